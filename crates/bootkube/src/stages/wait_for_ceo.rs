//! Stage 20: this node's etcd member may only go when the masters' members carry the cluster.

use crate::{Context, Outcome, Result, conditions};
use seedling_api::{Conditions, Etcd};
use seedling_steps::{Condition, Probe, Stage, wait_for};
use std::time::Duration;

pub(crate) const STAGE: Stage = Stage {
    name: "wait-for-ceo",
    done: None,
    what: "Waits until the etcd operator says that the masters' members carry etcd.",
    why: "taking the first member away too early loses the cluster; single-node installs used to fail on this race",
    reads: &["Etcd cluster, condition EtcdRunningInCluster"],
    writes: &[],
    check: "EtcdRunningInCluster is True",
    fails: &[
        "`kubectl get etcd cluster -o yaml` says what it waits for: a member that is not ready, or a master that is missing",
    ],
    upstream: "podman run … cluster-etcd-operator wait-for-ceo --kubeconfig /assets/auth/kubeconfig",
    see: &["component.etcd-operator", "condition.etcd-on-masters", "port.2380", "seed.002.4"],
};

pub(crate) async fn run(_: &Context) -> Result<Outcome> {
    println!("Waiting for CEO to finish...");
    Ok(Outcome::Done)
}

/// The stage is this wait.
pub(crate) async fn check(c: &Context) -> Result<()> {
    let client = seedling_cluster::connect(Some(&c.kubeconfig())).await?;
    let condition = Condition::new(
        &conditions::ETCD_ON_MASTERS,
        Duration::from_secs(1800),
        format!("kubectl --kubeconfig={} -n openshift-etcd get pods -o wide", c.kubeconfig().display()),
    );
    wait_for(&condition, Duration::from_millis(250), async || {
        match seedling_cluster::get::<Etcd>(&client, None, "cluster").await {
            Ok(Some(etcd)) => judge(&etcd),
            Ok(None) => Probe::Unmet("there is no Etcd cluster".into()),
            Err(e) => Probe::Unmet(e.to_string()),
        }
    })
    .await?;
    Ok(())
}

fn judge(etcd: &Etcd) -> Probe<()> {
    match etcd.condition("EtcdRunningInCluster") {
        Some(condition) if condition.is_true() => Probe::Met(()),
        Some(condition) => Probe::Unmet(condition.message),
        None => Probe::Unmet("the etcd operator has not reported yet".into()),
    }
}
