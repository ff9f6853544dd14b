//! Installers that will never start.
//!
//! A machine that goes down after a pod's container was made and before it was started leaves a pod of which the kubelet thinks that
//! it has run: it makes no new sandbox for it, and never says that it failed (kubernetes/kubernetes#118321). Such a pod is
//! deleted, and made again like one that was never there.

use seedling_api::{Conditions, Meta, Pod};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A sandbox of the host's network is there within a second or two; on a disk that takes a minute one is only made twice.
const PATIENCE: Duration = Duration::from_secs(20);

/// Since when which pod has no sandbox, by uid.
#[derive(Default)]
pub(super) struct Stuck(BTreeMap<String, Instant>);

impl Stuck {
    /// Names of the installers to delete.
    pub(super) fn look<'a>(&mut self, pods: impl Iterator<Item = &'a Pod>, now: Instant) -> Vec<String> {
        let waiting: BTreeMap<_, _> =
            pods.filter(|p| has_no_sandbox(p)).map(|p| (uid(p), p.name())).collect();
        self.0.retain(|uid, _| waiting.contains_key(uid.as_str()));
        let over = |(uid, name): (&str, &str)| {
            let since = *self.0.entry(uid.to_string()).or_insert(now);
            (now.duration_since(since) >= PATIENCE).then(|| name.to_string())
        };
        waiting.into_iter().filter_map(over).collect()
    }
}

fn uid(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}

/// Its kubelet has seen it, and says that its containers cannot be started yet.
fn has_no_sandbox(pod: &Pod) -> bool {
    pod.label("app") == Some("installer")
        && pod.metadata.deletion_timestamp.is_none()
        && pod.phase() == "Pending"
        && pod.condition("PodReadyToStartContainers").is_some_and(|c| c.status == "False")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(uid: &str, app: &str, phase: &str, sandbox: Option<&str>) -> Pod {
        let condition = sandbox.map(|s| json!({"type": "PodReadyToStartContainers", "status": s}));
        let pod = json!({"metadata": {"name": format!("pod-{uid}"), "uid": uid, "labels": {"app": app}},
            "status": {"phase": phase, "conditions": condition.into_iter().collect::<Vec<_>>()}});
        serde_json::from_value(pod).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn only_a_pod_that_stays_without_a_sandbox_is_stuck() {
        let mut stuck = Stuck::default();
        let start = Instant::now();
        let mut at = |seconds: u64, pods: &[Pod]| {
            stuck.look(pods.iter(), start + Duration::from_secs(seconds)).join(" ")
        };
        let waits = |uid| pod(uid, "installer", "Pending", Some("False"));
        let others = [
            pod("pulls", "installer", "Pending", Some("True")),
            pod("unseen", "installer", "Pending", None),
            pod("runs", "installer", "Running", Some("True")),
            pod("failed", "installer", "Failed", Some("False")),
            pod("etcd", "etcd", "Pending", Some("False")),
        ];
        assert_eq!(at(0, &[&others[..], &[waits("a")]].concat()), "");
        assert_eq!(at(15, &[&others[..], &[waits("a"), waits("b")]].concat()), "");
        assert_eq!(at(20, &[&others[..], &[waits("a"), waits("b")]].concat()), "pod-a");
        assert_eq!(at(36, &others), "", "both have one now");
        assert_eq!(at(37, &[waits("b")]), "", "lost again: counted anew");
        let mut going = waits("b");
        going.metadata.deletion_timestamp = serde_json::from_value(json!("2026-11-16T00:00:00Z")).ok();
        assert_eq!(at(99, &[going]), "");
    }
}
