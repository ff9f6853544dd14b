//! What rendering starts from: the built-in MachineConfigs, the pools, the ControllerConfig, and the files people add.

use super::{API_VERSION, CONTROLLER_CONFIG, MachineConfig, ROLE_LABEL, RenderError};
use crate::Outside;
use crate::network::dns_service;
use crate::node::{self, NodeParams};
use base64::{Engine, engine::general_purpose::STANDARD};
use ipnet::IpNet;
use seedling_types::release::MissingComponent;
use seedling_types::{ClusterDomain, Role};
use serde_json::{Value, json};

const ROLES: [Role; 2] = [Role::Master, Role::Worker];

/// `00-<role>`, `01-<role>-container-runtime`, `01-<role>-kubelet`: together, what `node::joined` describes.
pub fn machine_configs(node: &NodeParams) -> Result<Vec<MachineConfig>, MissingComponent> {
    let mut configs = Vec::new();
    for role in ROLES {
        let name = role.as_str();
        configs.extend([
            MachineConfig::of_role(format!("00-{name}"), name, json!(node::base(node)?)),
            MachineConfig::of_role(
                format!("01-{name}-container-runtime"),
                name,
                json!(node::container_runtime(node)?),
            ),
            MachineConfig::of_role(format!("01-{name}-kubelet"), name, json!(node::kubelet(node, role)?)),
        ]);
    }
    Ok(configs)
}

/// `99-<role>-generated-registries`: what changes with pull secret, mirrors, trust bundle and proxy. Upstream's has the mirrors only.
pub fn outside_configs(domain: &ClusterDomain, outside: &Outside) -> Vec<MachineConfig> {
    let of_role = |role: Role| {
        let name = format!("99-{}-generated-registries", role.as_str());
        MachineConfig::of_role(name, role.as_str(), json!(node::outside(domain, outside, false)))
    };
    ROLES.map(of_role).into()
}

/// The MachineConfigs among manifests; other kinds are somebody else's.
pub fn read_machine_configs<'a>(
    files: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Vec<MachineConfig>, RenderError> {
    let mut found = Vec::new();
    for (file, text) in files {
        let unreadable = |message: String| RenderError::Unreadable { file: file.into(), message };
        let object: Value = serde_saphyr::from_str(text).map_err(|e| unreadable(e.to_string()))?;
        if object["kind"] == "MachineConfig" && object["apiVersion"] == API_VERSION {
            found.push(serde_json::from_value(object).map_err(|e| unreadable(e.to_string()))?);
        }
    }
    Ok(found)
}

pub fn pool(name: &str) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": "MachineConfigPool",
        "metadata": {
            "name": name,
            "labels": {
                "operator.machineconfiguration.openshift.io/required-for-upgrade": "",
                format!("pools.operator.machineconfiguration.openshift.io/{name}"): "",
            },
        },
        "spec": {
            "machineConfigSelector": {"matchLabels": {ROLE_LABEL: name}},
            "nodeSelector": {"matchLabels": {format!("node-role.kubernetes.io/{name}"): ""}},
            "paused": false,
        },
    })
}

/// The pool with what it was rendered to, and from.
pub fn with_configuration(mut pool: Value, rendered: &str, sources: &[&MachineConfig]) -> Value {
    let reference = |mc: &&MachineConfig| json!({"apiVersion": API_VERSION, "kind": "MachineConfig", "name": mc.metadata.name});
    let source: Vec<_> = sources.iter().map(reference).collect();
    let configuration = json!({"name": rendered, "source": source});
    pool["spec"]["configuration"] = configuration.clone();
    pool["status"]["configuration"] = configuration;
    pool
}

/// In upstream's words.
fn ip_families(service_networks: &[IpNet]) -> &'static str {
    match service_networks {
        [IpNet::V4(_), _] => "DualStack",
        [IpNet::V6(_), _] => "DualStackIPv6Primary",
        [IpNet::V6(_)] => "IPv6",
        _ => "IPv4",
    }
}

/// `kube_ca`: the clients that a kubelet trusts, the complete client CA bundle.
pub fn controller_config(node: &NodeParams, root_ca: &str, kube_ca: &str) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": "ControllerConfig",
        "metadata": {
            "name": CONTROLLER_CONFIG,
            "annotations": {"machineconfiguration.openshift.io/generated-by-version": node.release.version},
        },
        "spec": {
            "additionalTrustBundle": null,
            // Node software comes by Ignition; the node's operating system is left alone.
            "baseOSContainerImage": "",
            "cloudProviderCAData": null,
            "cloudProviderConfig": "",
            "clusterDNSIP": dns_service(&node.service_networks).first(),
            "dns": null,
            "images": {"machineConfigOperator": node.release.images.get("seedling")},
            "infra": null,
            "ipFamilies": ip_families(&node.service_networks),
            "kubeAPIServerServingCAData": STANDARD.encode(kube_ca),
            "network": null,
            "platform": "none",
            "proxy": null,
            "releaseImage": node.release.release_image,
            "rootCAData": STANDARD.encode(root_ca),
        },
    })
}
