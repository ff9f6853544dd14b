//! `seedling operator NAME`: one of the table, or the check that runs on every node.

use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use seedling_operators::OPERATORS;
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct OperatorArgs {
    #[arg(value_parser = names())]
    name: String,
    /// Instead of the pod's service account
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
}

fn names() -> PossibleValuesParser {
    let check = PossibleValue::new("network-check")
        .help("Not an operator: asks the Service address and DNS from its node");
    let operators = OPERATORS.iter().map(|operator| PossibleValue::new(operator.name));
    operators.chain([check]).collect::<Vec<_>>().into()
}

pub(crate) async fn run(args: OperatorArgs) -> Result<()> {
    let Some(operator) = OPERATORS.iter().find(|operator| operator.name == args.name) else {
        return Ok(seedling_node::network_check::check_and_report().await?);
    };
    Ok(operator.lead_and_run(seedling_cluster::connect(args.kubeconfig.as_deref()).await?).await?)
}
