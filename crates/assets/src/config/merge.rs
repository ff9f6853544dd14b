//! The second of three types: old names moved to new ones and every default filled in. Serialises as upstream's normalised file.

use super::problem::{Problem, Step};
use super::read::{ClusterNetwork as ReadNetwork, Pool as ReadPool, Read};
use serde::Serialize;

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Merged {
    pub additional_trust_bundle_policy: String,
    pub api_version: String,
    pub base_domain: String,
    pub compute: Vec<Pool>,
    pub control_plane: Pool,
    pub metadata: Metadata,
    pub networking: Networking,
    pub os_image_stream: String,
    pub platform: serde_json::Map<String, serde_json::Value>,
    pub publish: String,
    pub pull_secret: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ssh_key: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct Metadata {
    pub name: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct Pool {
    pub architecture: String,
    pub hyperthreading: String,
    pub name: String,
    pub platform: Empty,
    pub replicas: i64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Empty {}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Networking {
    pub cluster_network: Vec<ClusterNetwork>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_networks: Option<Vec<ClusterNetwork>>,
    #[serde(rename = "machineCIDR", skip_serializing_if = "Option::is_none")]
    pub machine_cidr: Option<String>,
    pub machine_network: Vec<MachineNetwork>,
    pub network_type: String,
    #[serde(rename = "serviceCIDR", skip_serializing_if = "Option::is_none")]
    pub service_cidr: Option<String>,
    pub service_network: Vec<String>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct MachineNetwork {
    pub cidr: String,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterNetwork {
    pub cidr: String,
    pub host_prefix: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_subnet_length: Option<i64>,
}

/// `stream` is the node OS stream of the release, the default of `osImageStream`.
pub fn merge(read: &Read, stream: &str, problems: &mut Vec<Problem>) -> Merged {
    match read.api_version.as_deref().unwrap_or_default() {
        "v1" | "v1beta3" | "v1beta4" => {}
        "" => problems.push(upconvert("apiVersion: Required value: no version was provided".into())),
        other => {
            let text = format!("apiVersion: Invalid value: {other:?}: cannot upconvert from version {other}");
            problems.push(upconvert(text));
        }
    }
    Merged {
        additional_trust_bundle_policy: read
            .trust_bundle_policy
            .clone()
            .unwrap_or_else(|| "Proxyonly".into()),
        api_version: "v1".into(),
        base_domain: read.base_domain.clone().unwrap_or_default(),
        compute: compute(read),
        control_plane: Pool { name: "master".into(), ..pool(read.control_plane.as_ref(), "master", 3) },
        metadata: Metadata { name: read.name.clone().unwrap_or_default() },
        networking: networking(read),
        os_image_stream: read.os_image_stream.clone().unwrap_or_else(|| stream.into()),
        platform: read.platforms.iter().map(|name| (name.clone(), serde_json::json!({}))).collect(),
        publish: read.publish.clone().unwrap_or_else(|| "External".into()),
        pull_secret: read.pull_secret.clone().unwrap_or_default(),
        ssh_key: read.ssh_key.clone().unwrap_or_default(),
    }
}

fn upconvert(text: String) -> Problem {
    Problem::new(Step::Upconvert, "apiVersion", text).hint("write apiVersion: v1")
}

fn compute(read: &Read) -> Vec<Pool> {
    let given = read.compute.iter().flatten();
    let mut pools: Vec<_> = given.map(|p| pool(Some(p), p.name.as_deref().unwrap_or_default(), 3)).collect();
    if pools.is_empty() {
        pools.push(pool(None, "worker", 3));
    }
    pools
}

fn pool(read: Option<&ReadPool>, name: &str, replicas: i64) -> Pool {
    let text = |value: Option<&String>, default: &str| value.cloned().unwrap_or_else(|| default.into());
    Pool {
        architecture: text(read.and_then(|p| p.architecture.as_ref()), "amd64"),
        hyperthreading: text(read.and_then(|p| p.hyperthreading.as_ref()), "Enabled"),
        name: name.into(),
        platform: Empty {},
        replicas: read.and_then(|p| p.replicas).unwrap_or(replicas),
    }
}

fn networking(read: &Read) -> Networking {
    let net = &read.networking;
    let given = |list: &Option<Vec<String>>, old: &Option<String>, default: &str| {
        let list = list.clone().filter(|list| !list.is_empty());
        list.or_else(|| old.clone().map(|cidr| vec![cidr])).unwrap_or_else(|| vec![default.into()])
    };
    let default =
        vec![ReadNetwork { cidr: "10.128.0.0/14".into(), host_prefix: Some(23), host_subnet_length: None }];
    let cluster = net.cluster_network.clone().filter(|list| !list.is_empty());
    let cluster = cluster.or_else(|| net.cluster_networks.clone()).unwrap_or(default);
    let machine = given(&net.machine_network, &net.machine_cidr, "10.0.0.0/16");
    Networking {
        cluster_network: cluster.iter().map(cluster_network).collect(),
        cluster_networks: net
            .cluster_networks
            .as_ref()
            .map(|list| list.iter().map(cluster_network).collect()),
        machine_cidr: net.machine_cidr.clone(),
        machine_network: machine.into_iter().map(|cidr| MachineNetwork { cidr }).collect(),
        network_type: network_type(net.network_type.as_ref().or(net.kind.as_ref())),
        service_cidr: net.service_cidr.clone(),
        service_network: given(&net.service_network, &net.service_cidr, "172.30.0.0/16"),
        kind: net.kind.clone(),
    }
}

fn cluster_network(read: &ReadNetwork) -> ClusterNetwork {
    let bits = if read.cidr.contains(':') { 128 } else { 32 };
    let from_length = read.host_subnet_length.map(|length| bits - length);
    ClusterNetwork {
        cidr: read.cidr.clone(),
        host_prefix: read.host_prefix.or(from_length).unwrap_or_default(),
        host_subnet_length: read.host_subnet_length,
    }
}

/// Known names in their proper spelling, others as given.
fn network_type(given: Option<&String>) -> String {
    let Some(given) = given else { return "OVNKubernetes".into() };
    let known = ["OVNKubernetes", "OpenShiftSDN", "Kuryr"];
    known.iter().find(|name| name.eq_ignore_ascii_case(given)).map_or(given.clone(), |name| name.to_string())
}
