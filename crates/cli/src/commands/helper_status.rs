//! `seedling helper status`: how far each machine's boot got, from the event log and the states of installations.

use super::helper::config_here;
use super::lab::{Name, Output};
use anyhow::Result;
use clap::Args;
use seedling_helper::status::status;
use seedling_helper::{boot, dhcp, load};
use seedling_lab::read_events;
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct StatusArgs {
    /// The helper's configuration [default: /etc/seedling/helper.yaml, else the lab's]
    #[arg(long)]
    config: Option<PathBuf>,
    #[command(flatten)]
    lab: Name,
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(args: &StatusArgs) -> Result<()> {
    let config = load(&config_here(args.config.clone(), &args.lab)?)?;
    let found = status(
        &config,
        &read_events(&config.events),
        |host| boot::state(&config, host),
        &dhcp::leases(&config),
    );
    args.output.print(&serde_json::to_value(&found)?, || print!("{}", found.table()));
    Ok(())
}
