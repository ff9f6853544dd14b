//! `seedling helper run`: the servers that nodes boot from, until SIGTERM.

use std::path::PathBuf;

#[derive(clap::Subcommand)]
pub enum HelperCommand {
    /// Serve DHCP, DNS, HTTP, the registry and the load balancer on the nodes' network
    Run {
        /// helper.yaml
        #[arg(long)]
        config: PathBuf,
    },
}

pub async fn run(cmd: HelperCommand) -> anyhow::Result<()> {
    let HelperCommand::Run { config } = cmd;
    Ok(seedling_helper::run(seedling_helper::load(&config)?).await?)
}
