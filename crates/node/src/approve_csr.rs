//! `seedling approve-csr`, on the bootstrap node: approves certificates of the inventory's machines, labels their Nodes, and keeps the
//! machine-config server's tokens up to date.

use crate::error::read;
use crate::{Result, conditions};
use seedling_cluster::{admission, inventory};
use seedling_components::ClusterConfig;
use seedling_operators::{machine_approver, machine_config};
use seedling_steps::{Condition, Journal, Probe, Recorder, wait_for};
use seedling_types::paths;
use std::path::Path;
use std::time::Duration;

pub async fn approve_until_bootstrapped() -> Result<()> {
    let recorder = Recorder::start(Path::new("/"), "approve-csr")?;
    let approved = approve().await;
    recorder.service_end(approved.as_ref().err().map(ToString::to_string))?;
    approved
}

/// Until the masters' own approver leads: bootkube waits for that before it takes this node's API away.
async fn approve() -> Result<()> {
    let assets = Path::new(paths::OPT_OPENSHIFT);
    let client = seedling_cluster::connect(Some(&assets.join("auth/kubeconfig-loopback"))).await?;
    let inventory = inventory::read(&assets.join("hosts.yaml"))?;
    let done = assets.join(".bootkube.done");
    let condition = Condition::within(
        &conditions::BOOTKUBE_ENDED,
        Duration::from_secs(4 * 3600),
        "journalctl -n 50 -u bootkube.service",
    )
    .quiet();
    let journal = Journal::of(Path::new("/"), "approve-csr");
    let until_done = wait_for(&condition, Duration::from_secs(1), async || match done.exists() {
        true => Probe::Met(()),
        false => Probe::Unmet(journal.summary_of("bootkube")),
    });
    let manifest = read(&assets.join("manifests/cluster-config.yaml"))?;
    let domain = ClusterConfig::from_manifest(&manifest)?.domain;
    tokio::select! {
        () = machine_approver::approve_loop(&client, &inventory, &domain) => {}
        () = machine_config::label_nodes(&client, &inventory) => {}
        () = admission::mirror(&client, Path::new(paths::MCS_NODE_TOKENS)) => {}
        ended = until_done => ended?,
    }
    Ok(())
}
