//! `seedling create`: an install-config becomes manifests or Ignition files.

use anyhow::Result;
use clap::{Args, Subcommand};
use seedling_assets::config::problem;
use seedling_assets::{CreateError, Level, Options, Target};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Subcommand)]
pub enum CreateCommand {
    /// Check install-config.yaml and write it back with all defaults; without one, make it from flags or questions
    InstallConfig {
        #[command(flatten)]
        args: CreateArgs,
        #[command(flatten)]
        new: super::ask::NewArgs,
    },
    /// Write the objects a cluster starts with into manifests/ and openshift/; they may be edited before the next step
    Manifests(CreateArgs),
    /// Write bootstrap.ign, master.ign, worker.ign and the admin kubeconfig
    IgnitionConfigs(CreateArgs),
}

#[derive(Args)]
pub struct CreateArgs {
    /// The asset directory; holds install-config.yaml
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// The inventory (name, role, MAC and address of each machine) [default: hosts.yaml in the asset directory, if there]
    #[arg(long, value_name = "FILE")]
    hosts: Option<PathBuf>,
    /// Output of `seedling release build` [default: $SEEDLING_CACHE/release]
    #[arg(long, value_name = "DIR")]
    release: Option<PathBuf>,
}

pub fn run(command: CreateCommand) -> Result<ExitCode> {
    let (target, args) = match command {
        CreateCommand::InstallConfig { args, new } => {
            super::ask::new_install_config(&args.dir, &new)?;
            (Target::InstallConfig, args)
        }
        CreateCommand::Manifests(args) => (Target::Manifests, args),
        CreateCommand::IgnitionConfigs(args) => (Target::IgnitionConfigs, args),
    };
    let defaults = Options::default();
    let options =
        Options { hosts: args.hosts, release: args.release.unwrap_or(defaults.release.clone()), ..defaults };
    match seedling_assets::create(target, &args.dir, &options) {
        Ok(outcome) => {
            for message in outcome.messages {
                let level = if message.level == Level::Warning { "warning" } else { "info" };
                say(level, &message.text);
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            if let CreateError::Config { problems, .. } = &error {
                problem::warnings(problems).iter().for_each(|warning| say("warning", warning));
            }
            say(error.level(), &error.to_string());
            Ok(error.exit_code().into())
        }
    }
}

/// One line of text, one line of log: `INFO …` in colour for people, `level=info msg=…` for programs.
fn say(level: &str, text: &str) {
    let colour = match level {
        "info" => 36,
        "warning" => 33,
        _ => 31,
    };
    for line in text.lines() {
        if std::io::stderr().is_terminal() {
            // Short messages are padded, as logrus does it.
            eprintln!("\x1b[{colour}m{}\x1b[0m {line:<44} ", level.to_uppercase());
        } else {
            eprintln!("level={level} msg={line}");
        }
    }
}
