//! `seedling completion`

use clap::{Args, Command};
use clap_complete::Shell;

#[derive(Args)]
pub(crate) struct CompletionArgs {
    /// Your shell; for example `source <(seedling completion bash)`
    shell: Shell,
}

pub(crate) fn run(args: &CompletionArgs, command: &mut Command) {
    clap_complete::generate(args.shell, command, "seedling", &mut std::io::stdout());
}
