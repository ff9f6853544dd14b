//! A node is emptied before it goes: no new pods, and those it has are evicted, as disruption budgets allow. What `kubectl drain` does.
//!
//! In: a node's name. Out: a node that only has pods which belong to the node itself.

use crate::{ClusterError, conditions, describe, get};
use k8s_openapi::api::core::{self, v1::NodeSpec};
use k8s_openapi::api::policy::v1::Eviction;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, Preconditions};
use kube::Client;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use seedling_api::{Conditions, Meta, Node, Pod, named_in};
use seedling_steps::{Condition, Probe, Unmet, wait_for};
use serde_json::Value;
use std::time::Duration;
use thiserror::Error;

/// A disruption budget may wait for a pod that starts slowly elsewhere.
const NO_PROGRESS: Duration = Duration::from_secs(600);
const POLL: Duration = Duration::from_millis(500);
/// The kubelet's own copy of a static pod.
const MIRROR: &str = "kubernetes.io/config.mirror";

#[derive(Debug, Error)]
pub enum DrainError {
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error(
        "{node} has pods that nobody would start elsewhere: {}; delete them, or say --force to lose them",
        .pods.join(", ")
    )]
    Lonely { node: String, pods: Vec<String> },
    #[error(transparent)]
    Unmet(#[from] Unmet),
}

/// What becomes of a pod when its node is emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It belongs to the node: a DaemonSet's, or a static pod.
    Stays,
    /// It is on its way out.
    Ends,
    Evict,
    /// Nobody owns it, so nobody starts it again.
    Lonely,
}

fn fate(pod: &Pod) -> Fate {
    let meta = pod.meta();
    let owner = meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true));
    match owner.map(|owner| owner.kind.as_str()) {
        _ if pod.annotation(MIRROR).is_some() => Fate::Stays,
        Some("DaemonSet") => Fate::Stays,
        _ if meta.deletion_timestamp.is_some() => Fate::Ends,
        _ if ["Succeeded", "Failed"].contains(&pod.phase()) => Fate::Evict,
        Some(_) => Fate::Evict,
        None => Fate::Lonely,
    }
}

/// `client` must hear of a refused eviction at once (`connect_without_retries`). A node that is not there is empty. `force` also evicts
/// pods that nobody would start again.
pub async fn drain(client: &Client, node: &str, force: bool) -> Result<(), DrainError> {
    if get::<Node>(client, None, node).await?.is_none() {
        return Ok(());
    }
    let pods = pods(client, node).await?;
    let lonely: Vec<_> = pods.iter().filter(|pod| fate(pod) == Fate::Lonely).map(said).collect();
    if !force && !lonely.is_empty() {
        return Err(DrainError::Lonely { node: node.into(), pods: lonely });
    }
    cordon(client, node).await?;
    let hint = "seedling kubectl get pods,poddisruptionbudgets -A";
    let condition = Condition::new(&conditions::PODS_ELSEWHERE, NO_PROGRESS, hint).with("NODE", node);
    let emptied = wait_for(&condition, POLL, async || match empty(client, node).await {
        Ok(left) if left.is_empty() => Probe::Met(()),
        Ok(left) => Probe::Unmet(left.join(", ")),
        Err(e) => Probe::Unmet(e.to_string()),
    });
    Ok(emptied.await?)
}

/// One look: evicts what can be, and says what is left and why.
async fn empty(client: &Client, node: &str) -> Result<Vec<String>, ClusterError> {
    let found = get::<Node>(client, None, node).await?;
    // Its kubelet confirms nothing any more; what it had goes with the Node.
    let silent =
        found.is_none_or(|node| node.condition("Ready").is_none_or(|ready| ready.status == "Unknown"));
    let mut left = Vec::new();
    for pod in pods(client, node).await? {
        match fate(&pod) {
            Fate::Stays => {}
            Fate::Ends if silent => {}
            Fate::Ends => left.push(format!("{} ends", said(&pod))),
            Fate::Evict | Fate::Lonely => match evict(client, &pod).await? {
                Some(why) => left.push(format!("{}: {why}", said(&pod))),
                None => left.push(format!("{} was evicted", said(&pod))),
            },
        }
    }
    Ok(left)
}

fn said(pod: &Pod) -> String {
    format!("{}/{}", pod.meta().namespace.as_deref().unwrap_or_default(), pod.name())
}

async fn pods(client: &Client, node: &str) -> Result<Vec<Pod>, ClusterError> {
    let on_it = ListParams::default().fields(&format!("spec.nodeName={node}"));
    let found = Api::<Pod>::all(client.clone()).list(&on_it).await;
    Ok(found.map_err(|e| crate::objects::failed(format!("listing the pods of {node}"), e))?.items)
}

/// No new pods.
async fn cordon(client: &Client, node: &str) -> Result<(), ClusterError> {
    let spec = NodeSpec { unschedulable: Some(true), ..NodeSpec::default() };
    let patch = core::v1::Node { spec: Some(spec), ..core::v1::Node::default() };
    let api: Api<Node> = Api::all(client.clone());
    let cordoned = api.patch(node, &PatchParams::default(), &Patch::Merge(&patch)).await;
    cordoned.map(drop).map_err(|e| crate::objects::failed(format!("cordoning Node {node}"), e))
}

/// Why not yet, if a disruption budget forbids it.
async fn evict(client: &Client, pod: &Pod) -> Result<Option<String>, ClusterError> {
    let namespace = pod.meta().namespace.as_deref().unwrap_or_default();
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    // Another pod of the same name is not meant.
    let this_one = Preconditions { uid: pod.meta().uid.clone(), resource_version: None };
    let options = DeleteOptions { preconditions: Some(this_one), ..DeleteOptions::default() };
    let eviction = Eviction { metadata: named_in(namespace, pod.name()), delete_options: Some(options) };
    let failed = |e| crate::objects::failed(format!("evicting {}", describe(pod)), e);
    let evicted = api.create_subresource("eviction", pod.name(), &PostParams::default(), &eviction).await;
    match evicted {
        Ok::<Value, _>(_) => Ok(None),
        Err(kube::Error::Api(status)) if status.code == 429 => Ok(Some(status.message.clone())),
        // Gone, or replaced by another.
        Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => Ok(None),
        Err(e) => Err(failed(e)),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_becomes_of_a_pod() {
        let owned = |kind: &str| json!({"ownerReferences": [{"kind": kind, "name": "o", "uid": "u", "apiVersion": "v1", "controller": true}]});
        let with = |mut meta: Value, key: &str, value: Value| {
            meta[key] = value;
            meta
        };
        let gone = json!("2026-11-17T08:00:00Z");
        let mirror = json!({"annotations": {MIRROR: "x"}});
        let cases = [
            (owned("DaemonSet"), "Running", Fate::Stays),
            (with(owned("DaemonSet"), "deletionTimestamp", gone.clone()), "Running", Fate::Stays),
            (with(owned("Node"), "annotations", mirror["annotations"].clone()), "Running", Fate::Stays),
            (mirror, "Running", Fate::Stays),
            (owned("ReplicaSet"), "Running", Fate::Evict),
            (owned("StatefulSet"), "Pending", Fate::Evict),
            (with(owned("ReplicaSet"), "deletionTimestamp", gone), "Running", Fate::Ends),
            (json!({}), "Running", Fate::Lonely),
            (json!({}), "Succeeded", Fate::Evict),
        ];
        for (metadata, phase, wanted) in cases {
            let pod = json!({"metadata": metadata, "status": {"phase": phase}});
            assert_eq!(fate(&serde_json::from_value(pod.clone()).unwrap()), wanted, "{pod}");
        }
    }
}
