//! `seedling kubectl …`: the payload's kubectl on a lab's kubeconfig.

use anyhow::{Context, Result};
use clap::Args;
use seedling_lab::Labs;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

#[derive(Args)]
pub(crate) struct KubectlArgs {
    /// The lab's name
    #[arg(long = "lab", env = "SEEDLING_LAB", default_value = "default", value_name = "NAME")]
    lab: String,
    /// Arguments for kubectl
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

pub(crate) fn run(args: KubectlArgs) -> Result<ExitCode> {
    let lab = Labs::from_env().open(&args.lab)?;
    let kubectl = lab.record.spec.release_dir.join("bin/kubectl");
    let error = Command::new(&kubectl).args(&args.args).env("KUBECONFIG", lab.kubeconfig()).exec();
    Err(error).with_context(|| format!("cannot run {}", kubectl.display()))
}
