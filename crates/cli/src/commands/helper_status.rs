//! `seedling helper status`: how far each machine's boot got, from the event log and the states of installations.

use super::helper::config_here;
use super::lab::{Name, Output};
use anyhow::Result;
use clap::Args;
use seedling_helper::status::status;
use seedling_helper::{boot, dhcp, load};
use seedling_types::HelperConfig;
use seedling_types::helper::HelperEvent;
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
    let found = status(&config, &events(&config), |host| boot::state(&config, host), &dhcp::leases(&config));
    args.output.print(&serde_json::to_value(&found)?, || print!("{}", found.table()));
    Ok(())
}

/// With those before, if the log was put aside; a line that is being written is none yet.
fn events(config: &HelperConfig) -> Vec<HelperEvent> {
    let older = HelperEvent::older(&config.events);
    let text =
        [older.as_path(), &config.events].map(|path| std::fs::read_to_string(path).unwrap_or_default());
    text.iter().flat_map(|text| text.lines()).filter_map(|line| serde_json::from_str(line).ok()).collect()
}
