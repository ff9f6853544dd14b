//! `openshift/` but for what belongs to machines: features, the first password, the node OS stream, who made this cluster.

use super::{config_map, files};
use crate::config::InstallConfig;
use crate::store::Files;
use crate::{CreateError, shape};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

/// Asset "Openshift Manifests".
pub fn openshift(config: &InstallConfig, password_hash: &str) -> Result<Files, CreateError> {
    let mut objects = vec![
        ("99_feature-gate.yaml", feature_gate(config)),
        (
            "99_kubeadmin-password-secret.yaml",
            json!({
                "apiVersion": "v1",
                "data": { "kubeadmin": STANDARD.encode(password_hash) },
                "kind": "Secret",
                "metadata": { "name": "kubeadmin", "namespace": "kube-system" },
            }),
        ),
    ];
    if shape::enabled(config, "OSStreams") {
        objects.push((
            "99_osimagestream.yaml",
            json!({
                "apiVersion": "machineconfiguration.openshift.io/v1",
                "kind": "OSImageStream",
                "metadata": { "name": "cluster" },
                "spec": { "defaultStream": config.merged.os_image_stream },
            }),
        ));
    }
    if let Some(provisioning) = provisioning(config) {
        objects.push(("99_baremetal-provisioning-config.yaml", provisioning));
    }
    files("openshift", objects.into_iter().map(|(name, object)| (name.to_string(), object)).collect())
}

/// Asset "OpenShift Install (Manifests)": who made this cluster.
pub fn install(version: &str, invoker: &str) -> Result<Files, CreateError> {
    let data = json!({ "invoker": invoker, "version": version });
    let object = config_map("openshift-config", "openshift-install-manifests", data);
    files("openshift", vec![("openshift-install-manifests.yaml".into(), object)])
}

fn feature_gate(config: &InstallConfig) -> Value {
    let mut spec = json!({});
    if !config.merged.feature_set.is_empty() {
        spec["featureSet"] = config.merged.feature_set.clone().into();
    }
    for (list, on) in [("enabled", true), ("disabled", false)] {
        let gates: Vec<_> =
            config.feature_gates.iter().filter(|(_, o)| **o == on).map(|(name, _)| name).collect();
        if !gates.is_empty() {
            spec["customNoUpgrade"][list] = json!(gates);
        }
    }
    json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "FeatureGate",
        "metadata": { "name": "cluster" },
        "spec": spec,
        "status": { "featureGates": null },
    })
}

/// How bare metal is provisioned.
fn provisioning(config: &InstallConfig) -> Option<Value> {
    let given = shape::baremetal(config)?;
    let cidr = given.provisioning_network_cidr.map(|cidr| cidr.to_string()).unwrap_or_default();
    Some(json!({
        "apiVersion": "metal3.io/v1alpha1",
        "kind": "Provisioning",
        "metadata": { "name": "provisioning-configuration" },
        "spec": {
            "provisioningInterface": given.provisioning_network_interface,
            "provisioningIP": given.cluster_provisioning_ip,
            "provisioningNetworkCIDR": cidr,
            "provisioningNetwork": given.provisioning_network,
            "provisioningDHCPRange": given.provisioning_dhcp_range,
            "provisioningNetworkGateway": given.provisioning_network_gateway,
            "provisioningOSDownloadURL": given.cluster_os_image,
            "additionalNTPServers": given.additional_ntp_servers,
            "watchAllNamespaces": false,
        },
    }))
}
