//! Stage 16: etcd answers before an API server is started on it.

use crate::{Context, Outcome};
use anyhow::Result;
use seedling_cluster::etcd::Etcd;
use seedling_steps::{Condition, Probe, Stage, wait_for};
use seedling_types::ports;
use std::time::Duration;

pub const STAGE: Stage = Stage {
    name: "wait-for-etcd",
    done: None,
    why: "an API server that finds no etcd gives up after 20 s and is started again ever more slowly",
    reads: &["tls/etcd-client.*"],
    writes: &[],
    check: "etcd on localhost:2379 has a leader",
};

pub async fn run(c: &Context) -> Result<Outcome> {
    println!("Waiting for etcd cluster...");
    let tls = c.etcd_tls()?;
    let endpoints = [format!("https://localhost:{}", ports::ETCD_CLIENT)];
    let condition = Condition::new(
        "etcd on localhost:2379 to have a leader",
        Duration::from_secs(600),
        "crictl ps -a --name etcd; crictl logs of the last one",
    );
    wait_for(&condition, Duration::from_millis(100), async || {
        let status = match Etcd::connect(&endpoints, &tls).await {
            Ok(mut etcd) => etcd.status().await,
            Err(e) => Err(e),
        };
        match status {
            Ok(status) if status.leader != 0 => Probe::Met(()),
            Ok(_) => Probe::Unmet("no leader".into()),
            Err(e) => Probe::Unmet(e.to_string()),
        }
    })
    .await?;
    println!("etcd cluster up.");
    Ok(Outcome::Done)
}
