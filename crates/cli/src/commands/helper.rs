//! `seedling helper`: the servers that nodes boot from, and the door to a machine's Ignition config.

use super::lab::Name;
use anyhow::Result;
use seedling_helper::{doors, keep, load, run as serve};
use seedling_lab::Labs;
use std::path::PathBuf;

#[derive(clap::Subcommand)]
pub enum HelperCommand {
    /// Serve DHCP, DNS, HTTP, the registry and the load balancer on the nodes' network
    Run {
        /// helper.yaml
        #[arg(long)]
        config: PathBuf,
        /// Why it is started again, for the event log
        #[arg(long, hide = true)]
        after: Option<String>,
        /// Tell the parent on standard input, which is a pipe to it, that all is well
        #[arg(long, hide = true)]
        beat: bool,
    },
    /// `run` in a process of its own, started again when it dies or falls silent
    #[command(hide = true)]
    Keep {
        #[arg(long)]
        config: PathBuf,
    },
    /// Let a machine fetch its Ignition config once more within the hour: the bootstrap node's is given once a power-on and never
    /// after the handoff, the others' only while their machine boots
    Open {
        /// Name of the machine in the inventory
        machine: String,
        /// helper.yaml [default: the lab's]
        #[arg(long)]
        config: Option<PathBuf>,
        #[command(flatten)]
        lab: Name,
    },
}

pub async fn run(cmd: HelperCommand) -> Result<()> {
    match cmd {
        HelperCommand::Run { config, after, beat } => {
            if beat {
                tokio::spawn(seedling_helper::beat());
            }
            serve(load(&config)?, after).await?;
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
