//! `seedling explain`: what a field of the install-config is for.

use anyhow::Result;
use clap::Args;

#[derive(Args)]
pub(crate) struct ExplainArgs {
    /// `installconfig`, or a field in it, e.g. installconfig.networking.clusterNetwork
    #[arg(default_value = "installconfig")]
    path: String,
}

pub(crate) fn run(args: &ExplainArgs) -> Result<()> {
    let page = seedling_assets::config::explain(&args.path).map_err(anyhow::Error::msg)?;
    print!("{page}");
    Ok(())
}
