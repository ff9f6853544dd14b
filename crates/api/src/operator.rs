//! operator.openshift.io/v1: the settings of the operators whose operands are static pods.

use crate::Condition;
use crate::kind::kinds;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StaticPodSpec {
    #[serde(skip_serializing_if = "String::is_empty")] pub force_redeployment_reason: String,
}

/// Every field has its own writer, so each may be left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StaticPodStatus {
    #[serde(skip_serializing_if = "Vec::is_empty")] pub conditions: Vec<Condition>,
    #[serde(skip_serializing_if = "Option::is_none")] pub latest_available_revision: Option<i64>,
    #[serde(skip_serializing_if = "Vec::is_empty")] pub node_statuses: Vec<NodeStatus>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeStatus {
    pub node_name: String,
    #[serde(skip_serializing_if = "Option::is_none")] pub current_revision: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")] pub target_revision: Option<i64>,
}

impl StaticPodStatus {
    pub fn latest(&self) -> i64 {
        self.latest_available_revision.unwrap_or(0)
    }
    /// Masters on which some revision was ready.
    pub fn at_a_revision(&self) -> usize {
        self.node_statuses.iter().filter(|n| n.current() > 0).count()
    }
    pub fn of_node(&self, node: &str) -> Option<&NodeStatus> {
        self.node_statuses.iter().find(|n| n.node_name == node)
    }
}

impl NodeStatus {
    /// 0: none is ready yet.
    pub fn current(&self) -> i64 {
        self.current_revision.unwrap_or(0)
    }
    pub fn target(&self) -> i64 {
        self.target_revision.unwrap_or(0)
    }
}

kinds! {
    Etcd = "Etcd" "etcds" in "operator.openshift.io" cluster: StaticPodSpec, StaticPodStatus;
    KubeApiServer = "KubeAPIServer" "kubeapiservers" in "operator.openshift.io" cluster: StaticPodSpec, StaticPodStatus;
    KubeControllerManager = "KubeControllerManager" "kubecontrollermanagers" in "operator.openshift.io" cluster: StaticPodSpec, StaticPodStatus;
    KubeScheduler = "KubeScheduler" "kubeschedulers" in "operator.openshift.io" cluster: StaticPodSpec, StaticPodStatus;
}

/// The four have the same form. The object is called `cluster`.
pub trait StaticPodOperator: k8s_openapi::Resource + Sized {
    fn spec(&self) -> StaticPodSpec;
    fn status(&self) -> StaticPodStatus;
    /// To be applied: the status alone.
    fn with_status(status: StaticPodStatus) -> Self;
}

macro_rules! static_pod_operators {
    ($($kind:ident),+) => {$(
        impl StaticPodOperator for $kind {
            fn spec(&self) -> StaticPodSpec {
                self.spec.clone().unwrap_or_default()
            }
            fn status(&self) -> StaticPodStatus {
                self.status.clone().unwrap_or_default()
            }
            fn with_status(status: StaticPodStatus) -> Self {
                Self { metadata: crate::named("cluster"), status: Some(status), ..Self::default() }
            }
        }
    )+};
}
static_pod_operators!(Etcd, KubeApiServer, KubeControllerManager, KubeScheduler);

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_is_set_is_written() {
        let statuses = vec![
            NodeStatus { node_name: "a".into(), ..NodeStatus::default() },
            NodeStatus { node_name: "b".into(), current_revision: Some(3), target_revision: Some(0) },
        ];
        let status = StaticPodStatus {
            latest_available_revision: Some(3),
            node_statuses: statuses,
            ..Default::default()
        };
        let written = serde_json::to_value(KubeApiServer::with_status(status)).unwrap_or_default();
        let expected = json!({"apiVersion": "operator.openshift.io/v1", "kind": "KubeAPIServer", "metadata": {"name": "cluster"},
            "status": {"latestAvailableRevision": 3, "nodeStatuses": [
                {"nodeName": "a"}, {"nodeName": "b", "currentRevision": 3, "targetRevision": 0}]}});
        assert_eq!(written, expected);
    }
}
