//! Of Kubernetes' own kinds those that are large and of which little is read. Whole, they would make the program a fifth larger, and
//! a cache of pods several times.

use crate::Condition;
use crate::config::Nothing;
use crate::kind::{kinds, or_default};
use k8s_openapi::api::core::v1::Taint;
use serde::{Deserialize, Serialize};

kinds! {
    Pod = "Pod" "pods" in "" namespaced: PodSpec, PodStatus;
    Node = "Node" "nodes" in "" cluster: NodeSpec, NodeStatus;
    /// Only whether it is there, and whether somebody changed it.
    DaemonSet = "DaemonSet" "daemonsets" in "apps" namespaced: Nothing, Nothing;
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    pub node_name: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    pub phase: Option<String>,
    #[serde(deserialize_with = "or_default")] pub conditions: Vec<Condition>,
    #[serde(deserialize_with = "or_default")] pub container_statuses: Vec<ContainerStatus>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerStatus {
    pub name: String,
    /// Of the last one that was started.
    #[serde(rename = "containerID")] pub container_id: Option<String>,
    #[serde(deserialize_with = "or_default")] pub state: ContainerState,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerState {
    pub running: Option<Nothing>,
    pub waiting: Option<Waiting>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Waiting {
    pub reason: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeSpec {
    #[serde(deserialize_with = "or_default")] pub taints: Vec<Taint>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeStatus {
    #[serde(deserialize_with = "or_default")] pub conditions: Vec<Condition>,
    #[serde(deserialize_with = "or_default")] pub addresses: Vec<NodeAddress>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeAddress {
    #[serde(rename = "type")] pub kind: String,
    pub address: String,
}

impl Pod {
    pub fn phase(&self) -> &str {
        self.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Unknown")
    }
    pub fn containers(&self) -> &[ContainerStatus] {
        self.status.as_ref().map(|status| status.container_statuses.as_slice()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Conditions, Meta};
    use serde_json::json;

    #[test]
    fn what_the_api_says_is_read_with_all_its_gaps() {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"app": "x"}, "creationTimestamp": null},
            "spec": {"nodeName": "n", "containers": [{"name": "c"}]},
            "status": {"phase": "Running", "conditions": [
                {"type": "Ready", "status": "True", "lastProbeTime": null, "lastTransitionTime": null, "reason": null, "message": null}],
                "containerStatuses": [{"name": "c", "containerID": "containerd://1", "state": {"running": {"startedAt": "2026-11-17T08:00:00Z"}}}]}});
        let pod: Pod = serde_json::from_value(pod).unwrap_or_else(|e| panic!("{e}"));
        assert!(pod.is("Ready") && pod.label("app") == Some("x") && pod.phase() == "Running");
        assert!(pod.containers()[0].state.running.is_some() && pod.containers()[0].state.waiting.is_none());
        let young: Pod =
            serde_json::from_value(json!({"metadata": {"name": "a"}, "status": {"conditions": null}}))
                .unwrap_or_else(|e| panic!("{e}"));
        assert!(!young.is("Ready") && young.phase() == "Unknown" && young.containers().is_empty());
    }
}
