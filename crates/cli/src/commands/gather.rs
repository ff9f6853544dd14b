//! `seedling gather`: what explains a failed bring-up.

use super::log::LogArgs;
use clap::{Args, Subcommand};
use seedling_assets::Options;
use seedling_observe::Level;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Subcommand)]
pub(crate) enum GatherCommand {
    /// Not supported yet: says how to collect logs on the bootstrap machine
    Bootstrap(GatherArgs),
}

#[derive(Args)]
pub(crate) struct GatherArgs {
    /// The asset directory
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// The bootstrap machine's address
    #[arg(long, value_name = "HOST")]
    bootstrap: Option<String>,
    #[command(flatten)]
    log: LogArgs,
}

pub(crate) fn run(command: GatherCommand) -> ExitCode {
    let GatherCommand::Bootstrap(args) = command;
    let mut console = match args.log.console(&args.dir) {
        Ok(console) => console,
        Err(code) => return code,
    };
    if let Some(host) = args.bootstrap {
        let text = format!(
            "gathering from here is not there yet; on the machine itself: ssh core@{host} sudo installer-gather.sh"
        );
        console.say(Level::Fatal, &text);
        return ExitCode::FAILURE;
    }
    match seedling_assets::platform(&args.dir, &Options::default()) {
        Ok(platform) => console.say(
            Level::Fatal,
            &format!(
                "error getting infrastructure provider: platform {platform:?} does not support automated infrastructure provisioning"
            ),
        ),
        Err(error) => {
            let fatal = |level| if level == "error" { Level::Error } else { Level::Fatal };
            error.lines().iter().for_each(|(level, line)| console.say(fatal(*level), line));
            return error.exit_code().into();
        }
    }
    ExitCode::FAILURE
}
