//! `seedling certs recover`: on one master, when the cluster was off for longer than its certificates live.

use anyhow::{Context, Result};
use clap::Args;
use seedling_node::recover::recover;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub(crate) struct RecoverArgs {
    /// The administrator's kubeconfig that `create` made (auth/kubeconfig); /dev/stdin reads it from standard input
    #[arg(long, value_name = "FILE")]
    kubeconfig: PathBuf,
}

pub(super) async fn run(args: &RecoverArgs) -> Result<()> {
    let path = &args.kubeconfig;
    let kubeconfig = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    anyhow::ensure!(
        Path::new(seedling_types::paths::STATIC_POD_RESOURCES).exists(),
        "this is no master; run it on one, for example: seedling lab exec master-0 -- seedling certs recover --kubeconfig /dev/stdin < auth/kubeconfig"
    );
    let name = nix::unistd::gethostname()?.to_string_lossy().into_owned();
    let node = name.split('.').next().unwrap_or_default();
    let lenient = seedling_cluster::connect_here(&kubeconfig, true).await?;
    let strict = seedling_cluster::connect_here(&kubeconfig, false).await?;
    recover(lenient, strict, node, Path::new("/"), &|text| eprintln!("{text}")).await?;
    println!(
        "the cluster is back; its operators do the rest: seedling certs list, kubectl get clusteroperators"
    );
    Ok(())
}
