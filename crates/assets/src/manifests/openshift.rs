//! `openshift/` but for what belongs to machines: features, the first password, the node OS stream, who made this cluster.

use super::{config_map, files};
use crate::config::InstallConfig;
use crate::graph::{Asset, Id};
use crate::store::{Files, one};
use crate::yaml::to_yaml;
use crate::{Result, identity, install_config, roles, shape};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

pub(crate) const OPENSHIFT: Id = "manifests.Openshift";
pub(crate) const OPENSHIFT_INSTALL: Id = "openshiftinstall.Config";
const INSTALL_FILE: &str = "openshift/openshift-install-manifests.yaml";

pub(super) fn assets() -> [Asset; 2] {
    let needs = [
        install_config::ID,
        identity::CLUSTER_ID,
        identity::PASSWORD,
        identity::PASSWORD_SECRET,
        OPENSHIFT_INSTALL,
    ];
    let all = Asset::new(OPENSHIFT, "Openshift Manifests", &needs, |p, _| {
        let mut files = openshift(p.config()?, p.file(identity::PASSWORD_SECRET, "hash")?)?;
        files.extend(p.files(OPENSHIFT_INSTALL)?.clone());
        Ok(files)
    });
    let who = Asset::new(OPENSHIFT_INSTALL, "OpenShift Install (Manifests)", &[], |p, _| {
        install(&p.run().version, &p.run().options.invoker)
    });
    [all.loaded(|given, _| roles::manifests_of(given, None)), who.loaded(|given, _| given.file(INSTALL_FILE))]
}

fn openshift(config: &InstallConfig, password_hash: &str) -> Result<Files> {
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

/// Who made this cluster.
fn install(version: &str, invoker: &str) -> Result<Files> {
    let data = json!({ "invoker": invoker, "version": version });
    let object = config_map("openshift-config", "openshift-install-manifests", data);
    Ok(one(INSTALL_FILE, &to_yaml(&object)?))
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
