//! `seedling helper`: the servers that nodes boot from, and the door to a machine's Ignition config.

use super::lab::Name;
use anyhow::Result;
use seedling_helper::{doors, keep, load, run as serve};
use seedling_lab::Labs;
use std::path::PathBuf;

#[derive(clap::Subcommand)]
pub(crate) enum HelperCommand {
    /// Run all servers on the machines' network, until it is stopped
    Run {
        /// The configuration, helper.yaml
        #[arg(long)]
        config: PathBuf,
        /// Why it is restarted, for the event log
        #[arg(long, hide = true)]
        after: Option<String>,
        /// Send a heartbeat through the pipe on standard input
        #[arg(long, hide = true)]
        beat: bool,
    },
    /// `run` in a child process that is restarted when it dies or its heartbeat stops
    #[command(hide = true)]
    Keep {
        #[arg(long)]
        config: PathBuf,
    },
    /// Let a machine fetch its Ignition config once more within the next hour
    ///
    /// Without this, the bootstrap machine gets its config once per power-on and never after the masters have taken over, and other
    /// machines get theirs only while they boot for the first time.
    Open {
        /// The machine's name in hosts.yaml
        machine: String,
        /// The helper's configuration, helper.yaml [default: the lab's]
        #[arg(long)]
        config: Option<PathBuf>,
        #[command(flatten)]
        lab: Name,
    },
}

pub(crate) async fn run(cmd: HelperCommand) -> Result<()> {
    match cmd {
        HelperCommand::Run { config, after, beat } => {
            if beat {
                tokio::spawn(seedling_helper::beat());
            }
            serve(&config, after).await?;
        }
        HelperCommand::Keep { config } => keep(&std::env::current_exe()?, &config).await?,
        HelperCommand::Open { machine, config, lab } => {
            let config = match config {
                Some(config) => config,
                None => Labs::from_env().open(&lab.name)?.helper_config(),
            };
            doors::open(&load(&config)?, &machine)?;
            eprintln!("{machine} may fetch its Ignition config once within the hour");
        }
    }
    Ok(())
}
