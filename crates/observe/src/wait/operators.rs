//! ClusterOperators: the lines about abnormal ones, and who still progresses.

use crate::Level;
use jiff::Timestamp;
use kube::Client;
use seedling_api::{ClusterOperator, Conditions, Meta, Node};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Lines for conditions that are not normal. Error level for those that mean the operator does not work.
pub(super) fn lines(name: &str, operator: &ClusterOperator) -> Vec<(Level, String)> {
    let mut lines = Vec::new();
    for condition in operator.conditions() {
        let (kind, status, message) = (&condition.kind, &condition.status, &condition.message);
        let level = match (kind.as_str(), status.as_str()) {
            ("Available", "True") | ("Upgradeable", "True") => continue,
            ("Progressing" | "Degraded", "False") => continue,
            ("Available", _) | ("Degraded", "True") => Level::Error,
            _ => Level::Info,
        };
        let reason = condition.reason.as_deref().unwrap_or_default();
        lines.push((level, format!("Cluster operator {name} {kind} is {status} with {reason}: {message}")));
    }
    lines
}

/// Why a node is not ready; none: it is.
pub(super) fn not_ready(node: &Node) -> Option<String> {
    let Some(ready) = node.condition("Ready") else {
        return Some("Ready was never reported".into());
    };
    let reason = ready.reason.as_deref().unwrap_or_default();
    (!ready.is_true()).then(|| format!("Ready is {} with {reason}: {}", ready.status, ready.message))
}

/// What makes no progress: nodes that are not ready, and operators that are not available or not done.
pub(super) fn standstill(
    nodes: &BTreeMap<String, Arc<Node>>,
    operators: &BTreeMap<String, Arc<ClusterOperator>>,
) -> String {
    let nodes_len = nodes.len();
    let nodes = nodes.iter().filter_map(|(name, node)| Some(format!("node {name}: {}", not_ready(node)?)));
    let abnormal = |(name, operator): (&String, &Arc<ClusterOperator>)| {
        let said: Vec<_> = lines(name, operator).into_iter().map(|(_, text)| text).collect();
        said.first().map(|first| first.trim_start_matches("Cluster ").to_string())
    };
    let all: Vec<_> = nodes.chain(operators.iter().filter_map(abnormal)).collect();
    match all.is_empty() {
        true => format!("{} nodes are ready, {} operators say nothing unusual", nodes_len, operators.len()),
        false => all.join("; "),
    }
}

pub(super) async fn tell_nodes(client: &Client, on: &mut impl FnMut(Level, String)) {
    for node in seedling_cluster::list::<Node>(client, None, "").await.unwrap_or_default() {
        if let Some(why) = not_ready(&node) {
            on(Level::Error, format!("Node {} {why}", node.name()));
        }
    }
}

pub(super) async fn tell_conditions(client: &Client, on: &mut impl FnMut(Level, String)) {
    match seedling_cluster::list::<ClusterOperator>(client, None, "").await {
        Ok(operators) => {
            for operator in operators {
                let lines = lines(operator.name(), &operator).into_iter();
                lines.for_each(|(level, text)| on(level, text));
            }
        }
        Err(e) => {
            let text = format!(
                "Attempted to gather ClusterOperator status after wait failure: listing ClusterOperator objects: {e}"
            );
            on(Level::Error, text);
        }
    }
}

/// Operators that do not say Progressing=False, or not for `stable_for` yet.
pub(super) fn unstable(
    operators: &BTreeMap<String, Arc<ClusterOperator>>,
    stable_for: Duration,
    now: Timestamp,
) -> Vec<String> {
    let stable = |operator: &ClusterOperator| {
        let condition = operator.condition("Progressing");
        let Some(condition) = condition.filter(|c| c.status == "False") else { return false };
        let since = condition.last_transition_time.parse::<Timestamp>().ok();
        stable_for.is_zero() || since.is_some_and(|s| now.duration_since(s).unsigned_abs() >= stable_for)
    };
    operators.iter().filter(|(_, o)| !stable(o)).map(|(name, _)| name.clone()).collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn operator(conditions: Value) -> ClusterOperator {
        serde_json::from_value(json!({"metadata": {}, "status": {"conditions": conditions}})).unwrap()
    }

    #[test]
    fn lines_as_recorded_from_upstream() {
        let condition = |kind: &str, status: &str, reason: &str, message: &str| json!({"type": kind, "status": status, "reason": reason, "message": message});
        let etcd = operator(json!([
            condition("Available", "False", "StaticPodsAvailable_ZeroNodesActive", "0 nodes are active"),
            condition("Progressing", "True", "NodeInstaller", "3 nodes at 0"),
            condition("Degraded", "True", "NodeController_MasterNodesReady", "bad\nsecond line"),
            condition("Upgradeable", "True", "", ""),
        ]));
        let authentication = operator(json!([
            condition("Available", "Unknown", "", ""),
            condition("RecentBackup", "False", "x", "y"),
            condition("Degraded", "False", "", ""),
        ]));
        let mut said = String::new();
        for (name, operator) in [("etcd", etcd), ("authentication", authentication)] {
            for (level, text) in lines(name, &operator) {
                for line in text.lines() {
                    said += &format!("level={} msg={line}\n", level.name());
                }
            }
        }
        assert_eq!(said, include_str!("../../tests/data/install-no-ingress-ca.operators.txt"));
    }

    #[test]
    fn what_stands_still_is_named() {
        let node = |status: &str| -> Arc<Node> {
            let ready = json!({"type": "Ready", "status": status, "reason": "KubeletNotReady", "message": "no network"});
            Arc::new(
                serde_json::from_value(json!({"metadata": {}, "status": {"conditions": [ready]}})).unwrap(),
            )
        };
        let etcd = operator(
            json!([{"type": "Available", "status": "False", "reason": "Members", "message": "1 of 3"}]),
        );
        let nodes: BTreeMap<_, _> =
            [("m0".to_string(), node("True")), ("m1".to_string(), node("False"))].into();
        let operators: BTreeMap<_, _> =
            [("dns".to_string(), Arc::default()), ("etcd".to_string(), Arc::new(etcd))].into();
        assert_eq!(
            standstill(&nodes, &operators),
            "node m1: Ready is False with KubeletNotReady: no network; operator etcd Available is False with Members: 1 of 3"
        );
        let well = standstill(&BTreeMap::from([("m0".to_string(), node("True"))]), &BTreeMap::new());
        assert_eq!(well, "1 nodes are ready, 0 operators say nothing unusual");
    }

    #[test]
    fn stable_means_not_progressing_long_enough() {
        let now: Timestamp = "2026-11-15T20:00:30Z".parse().unwrap();
        let operator = |status: &str, since: &str| {
            Arc::new(operator(
                json!([{"type": "Progressing", "status": status, "lastTransitionTime": since}]),
            ))
        };
        let operators = BTreeMap::from([
            ("a".to_string(), operator("False", "2026-11-15T20:00:20Z")),
            ("b".to_string(), operator("True", "2026-11-15T19:00:00Z")),
            ("c".to_string(), Arc::default()),
        ]);
        assert_eq!(unstable(&operators, Duration::ZERO, now), ["b", "c"]);
        assert_eq!(unstable(&operators, Duration::from_secs(30), now), ["a", "b", "c"]);
    }
}
