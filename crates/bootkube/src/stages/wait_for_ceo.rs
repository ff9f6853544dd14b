//! Stage 20: this node's etcd member may only go when the masters' members carry the cluster.

use crate::{Context, Outcome};
use anyhow::Result;
use seedling_steps::{Condition, Probe, Stage, wait_for};
use serde_json::Value;
use std::time::Duration;

pub const STAGE: Stage = Stage {
    name: "wait-for-ceo",
    done: None,
    why: "taking the first member away too early loses the cluster; single-node installs used to fail on this race",
    reads: &["Etcd cluster, condition EtcdRunningInCluster"],
    writes: &[],
    check: "EtcdRunningInCluster is True",
};

pub async fn run(c: &Context) -> Result<Outcome> {
    println!("Waiting for CEO to finish...");
    let client = seedling_cluster::connect(Some(&c.kubeconfig())).await?;
    let condition = Condition::new(
        "Etcd cluster to report EtcdRunningInCluster",
        Duration::from_secs(1800),
        format!("kubectl --kubeconfig={} -n openshift-etcd get pods -o wide", c.kubeconfig().display()),
    );
    wait_for(&condition, Duration::from_millis(250), async || {
        match seedling_cluster::get(&client, "operator.openshift.io/v1", "Etcd", None, "cluster").await {
            Ok(Some(etcd)) => judge(&etcd),
            Ok(None) => Probe::Unmet("there is no Etcd cluster".into()),
            Err(e) => Probe::Unmet(e.to_string()),
        }
    })
    .await?;
    Ok(Outcome::Done)
}

fn judge(etcd: &Value) -> Probe<()> {
    let conditions =
        etcd.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    match conditions.iter().find(|c| c["type"] == "EtcdRunningInCluster") {
        Some(condition) if condition["status"] == "True" => Probe::Met(()),
        Some(condition) => Probe::Unmet(condition["message"].as_str().unwrap_or("False").into()),
        None => Probe::Unmet("the etcd operator has not reported yet".into()),
    }
}
