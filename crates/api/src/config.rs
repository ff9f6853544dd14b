//! config.openshift.io/v1

use crate::Condition;
use crate::kind::kinds;
use serde::{Deserialize, Serialize};

kinds! {
    /// What an operator says of itself.
    ClusterOperator = "ClusterOperator" "clusteroperators" in "config.openshift.io" cluster: Nothing, ClusterOperatorStatus;
    /// How far the payload is.
    ClusterVersion = "ClusterVersion" "clusterversions" in "config.openshift.io" cluster: ClusterVersionSpec, ClusterVersionStatus;
    Dns = "DNS" "dnses" in "config.openshift.io" cluster: DnsSpec, Nothing;
    Infrastructure = "Infrastructure" "infrastructures" in "config.openshift.io" cluster: Nothing, InfrastructureStatus;
    Network = "Network" "networks" in "config.openshift.io" cluster: NetworkSpec, NetworkStatus;
    Scheduler = "Scheduler" "schedulers" in "config.openshift.io" cluster: SchedulerSpec, Nothing;
    FeatureGate = "FeatureGate" "featuregates" in "config.openshift.io" cluster: FeatureGateSpec, FeatureGateStatus;
    /// Where a console would be found.
    Route = "Route" "routes" in "route.openshift.io" namespaced: RouteSpec, RouteStatus;
}

/// A spec or a status of which nothing is read or written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nothing {}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterOperatorStatus {
    pub conditions: Vec<Condition>,
    pub versions: Vec<OperandVersion>,
    pub related_objects: Vec<RelatedObject>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OperandVersion {
    pub name: String,
    pub version: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RelatedObject {
    pub group: String,
    pub resource: String,
    #[serde(skip_serializing_if = "Option::is_none")] pub namespace: Option<String>,
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterVersionSpec {
    #[serde(rename = "clusterID", skip_serializing_if = "String::is_empty")] pub cluster_id: String,
    #[serde(skip_serializing_if = "Option::is_none")] pub overrides: Option<Vec<Override>>,
    #[serde(skip_serializing_if = "Option::is_none")] pub capabilities: Option<Capabilities>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Capabilities {
    #[serde(skip_serializing_if = "Option::is_none")] pub baseline_capability_set: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")] pub additional_enabled_capabilities: Option<Vec<String>>,
}

/// A manifest that the version operator leaves alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Override {
    pub kind: String,
    pub group: String,
    pub namespace: String,
    pub name: String,
    pub unmanaged: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterVersionStatus {
    pub desired: Release,
    pub history: Vec<Update>,
    pub observed_generation: i64,
    pub version_hash: String,
    /// None known; written as null, which the kind asks for.
    pub available_updates: Option<Vec<Release>>,
    pub conditions: Vec<Condition>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Release {
    pub version: String,
    pub image: String,
}

/// One entry of the history, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Update {
    /// `Partial` or `Completed`.
    pub state: String,
    pub started_time: String,
    pub completion_time: Option<String>,
    pub version: String,
    pub image: String,
    pub verified: bool,
}

impl Update {
    pub fn is_complete(&self) -> bool {
        self.state == "Completed"
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DnsSpec {
    /// `CLUSTER.DOMAIN`
    pub base_domain: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InfrastructureStatus {
    #[serde(rename = "apiServerURL")] pub api_server_url: String,
    #[serde(rename = "apiServerInternalURI")] pub api_server_internal_uri: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkSpec {
    pub cluster_network: Vec<ClusterNetworkEntry>,
    pub service_network: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")] pub network_type: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterNetworkEntry {
    pub cidr: String,
    #[serde(skip_serializing_if = "Option::is_none")] pub host_prefix: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NetworkStatus {
    #[serde(flatten)] pub asked_for: NetworkSpec,
    #[serde(rename = "clusterNetworkMTU", skip_serializing_if = "Option::is_none")] pub mtu: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SchedulerSpec {
    pub masters_schedulable: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FeatureGateSpec {
    #[serde(skip_serializing_if = "String::is_empty")] pub feature_set: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FeatureGateStatus {
    pub feature_gates: Vec<GatesOfVersion>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GatesOfVersion {
    pub version: String,
    pub enabled: Vec<Gate>,
    pub disabled: Vec<Gate>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gate {
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RouteSpec {
    pub host: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RouteStatus {
    pub ingress: Vec<RouteIngress>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RouteIngress {
    pub conditions: Vec<Condition>,
}
