//! The shape of install-config.yaml, field by field as upstream's structs. As in Go, an empty field is an absent one. Fields are
//! in the order of the normalised file: sorted by name.

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

pub(super) fn empty<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Fields {
    #[serde(skip_serializing_if = "empty")] pub additional_trust_bundle: String,
    pub additional_trust_bundle_policy: String,
    pub api_version: String,
    #[serde(skip_serializing_if = "empty")] pub arbiter: Option<Pool>,
    pub base_domain: String,
    #[serde(skip_serializing_if = "empty")] pub bootstrap_in_place: Option<BootstrapInPlace>,
    #[serde(skip_serializing_if = "empty")] pub capabilities: Option<Capabilities>,
    pub compute: Vec<Pool>,
    pub control_plane: Pool,
    #[serde(skip_serializing_if = "empty")] pub cpu_partitioning_mode: String,
    #[serde(skip_serializing_if = "empty")] pub credentials_mode: String,
    #[serde(skip_serializing_if = "empty")] pub feature_gates: Vec<String>,
    #[serde(skip_serializing_if = "empty")] pub feature_set: String,
    #[serde(skip_serializing_if = "empty")] pub fips: bool,
    #[serde(skip_serializing_if = "empty")] pub image_content_sources: Vec<ContentSource>,
    #[serde(skip_serializing_if = "empty")] pub image_digest_sources: Vec<DigestSource>,
    #[serde(skip_serializing_if = "empty")] pub kind: String,
    pub metadata: Metadata,
    pub networking: Networking,
    #[serde(skip_serializing_if = "empty")] pub operator_publishing_strategy: Option<OperatorPublishing>,
    #[serde(skip_serializing_if = "empty")] pub os_image_stream: String,
    #[serde(skip_serializing_if = "empty")] pub pki: Option<Pki>,
    pub platform: Platform,
    #[serde(skip_serializing_if = "empty")] pub proxy: Option<Proxy>,
    pub publish: String,
    pub pull_secret: String,
    #[serde(skip_serializing_if = "empty")] pub ssh_key: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Metadata {
    #[serde(default)] pub name: String,
    /// Labels, annotations and the rest of an object's metadata: kept, not looked at.
    #[serde(flatten)] pub other: Map<String, Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Pool {
    #[serde(skip_serializing_if = "empty")] pub architecture: String,
    #[serde(skip_serializing_if = "empty")] pub disk_setup: Vec<Disk>,
    #[serde(skip_serializing_if = "empty")] pub fencing: Option<Fencing>,
    #[serde(skip_serializing_if = "empty")] pub hyperthreading: String,
    pub name: String,
    /// Settings of the pool's machines by platform; empty for the platforms without any.
    pub platform: BTreeMap<String, Value>,
    #[serde(skip_serializing_if = "empty")] pub replicas: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Disk {
    #[serde(skip_serializing_if = "empty")] pub etcd: Option<PlatformDisk>,
    #[serde(skip_serializing_if = "empty")] pub swap: Option<PlatformDisk>,
    #[serde(rename = "type", skip_serializing_if = "empty")] pub kind: String,
    #[serde(skip_serializing_if = "empty")] pub user_defined: Option<PlatformDisk>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PlatformDisk {
    #[serde(skip_serializing_if = "empty")] pub mount_path: String,
    #[serde(rename = "platformDiskID", skip_serializing_if = "empty")] pub platform_disk_id: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct Fencing {
    #[serde(skip_serializing_if = "empty")] pub credentials: Vec<FencingCredential>,
}

/// How to switch a control-plane machine off through its management controller.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FencingCredential {
    pub address: String,
    #[serde(skip_serializing_if = "empty")] pub certificate_verification: String,
    #[serde(skip_serializing_if = "empty")] pub host_name: String,
    #[serde(skip_serializing_if = "empty")] pub mac_address: String,
    pub password: String,
    pub username: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Networking {
    #[serde(skip_serializing_if = "empty")] pub cluster_network: Vec<ClusterEntry>,
    #[serde(rename = "clusterNetworkMTU", skip_serializing_if = "empty")] pub cluster_network_mtu: u32,
    #[serde(skip_serializing_if = "empty")] pub cluster_networks: Vec<ClusterEntry>,
    #[serde(rename = "machineCIDR", skip_serializing_if = "empty")] pub machine_cidr: Option<IpNet>,
    #[serde(skip_serializing_if = "empty")] pub machine_network: Vec<MachineEntry>,
    #[serde(skip_serializing_if = "empty")] pub network_observability: Option<NetworkObservability>,
    #[serde(skip_serializing_if = "empty")] pub network_type: String,
    #[serde(skip_serializing_if = "empty")] pub ovn_kubernetes_config: Option<OvnKubernetes>,
    #[serde(rename = "serviceCIDR", skip_serializing_if = "empty")] pub service_cidr: Option<IpNet>,
    #[serde(skip_serializing_if = "empty")] pub service_network: Vec<Option<IpNet>>,
    #[serde(rename = "type", skip_serializing_if = "empty")] pub kind: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct MachineEntry {
    pub cidr: Option<IpNet>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterEntry {
    pub cidr: Option<IpNet>,
    #[serde(skip_serializing_if = "empty")] pub host_prefix: i32,
    #[serde(skip_serializing_if = "empty")] pub host_subnet_length: i32,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkObservability {
    #[serde(skip_serializing_if = "empty")] pub installation_policy: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct OvnKubernetes {
    #[serde(skip_serializing_if = "empty")] pub ipv4: Option<OvnIpv4>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OvnIpv4 {
    #[serde(skip_serializing_if = "empty")] pub internal_join_subnet: Option<IpNet>,
}

impl Networking {
    /// The join subnet that replaces OVN-Kubernetes' own.
    pub fn join_subnet(&self) -> Option<IpNet> {
        self.ovn_kubernetes_config.as_ref()?.ipv4.as_ref()?.internal_join_subnet
    }
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Proxy {
    #[serde(skip_serializing_if = "empty")] pub http_proxy: String,
    #[serde(skip_serializing_if = "empty")] pub https_proxy: String,
    #[serde(skip_serializing_if = "empty")] pub no_proxy: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct ContentSource {
    #[serde(skip_serializing_if = "empty")] pub mirrors: Vec<String>,
    pub source: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DigestSource {
    #[serde(skip_serializing_if = "empty")] pub mirrors: Vec<String>,
    pub source: String,
    pub source_policy: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct OperatorPublishing {
    #[serde(skip_serializing_if = "empty")] pub apiserver: String,
    #[serde(skip_serializing_if = "empty")] pub ingress: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BootstrapInPlace {
    pub installation_disk: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Capabilities {
    #[serde(skip_serializing_if = "empty")] pub additional_enabled_capabilities: Vec<String>,
    #[serde(skip_serializing_if = "empty")] pub baseline_capability_set: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Pki {
    pub signer_certificates: SignerCertificates,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct SignerCertificates {
    pub key: KeyConfig,
}

/// `RSA` with a size or `ECDSA` with a curve.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct KeyConfig {
    #[serde(skip_serializing_if = "empty")] pub algorithm: String,
    #[serde(skip_serializing_if = "empty")] pub ecdsa: EcdsaKey,
    #[serde(skip_serializing_if = "empty")] pub rsa: RsaKey,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RsaKey {
    #[serde(skip_serializing_if = "empty")] pub key_size: i32,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct EcdsaKey {
    #[serde(skip_serializing_if = "empty")] pub curve: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct Platform {
    #[serde(skip_serializing_if = "empty")] pub baremetal: Option<super::baremetal::Baremetal>,
    #[serde(skip_serializing_if = "empty")] pub none: Option<Empty>,
    /// Every other platform, by name; Seedling installs none of them.
    #[serde(flatten)] pub other: BTreeMap<String, Value>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Empty {}
