//! Questions about an install-config that several assets ask.

use crate::config::{Baremetal, InstallConfig, Platform};
use seedling_pki::KeyAlgorithm;
use std::collections::BTreeSet;
use std::net::IpAddr;

pub(crate) fn baremetal(config: &InstallConfig) -> Option<&Baremetal> {
    match &config.platform {
        Platform::Baremetal(baremetal) => Some(baremetal),
        Platform::None => None,
    }
}

/// Virtual addresses of the API, where the platform has them.
pub(crate) fn api_vips(config: &InstallConfig) -> Vec<IpAddr> {
    let given = baremetal(config).map(|b| b.api_vips.as_slice()).unwrap_or_default();
    given.iter().filter_map(|address| address.parse().ok()).collect()
}

pub(crate) fn has_pool(config: &InstallConfig, pool: &str) -> bool {
    pool != "arbiter" || config.merged.arbiter.is_some()
}

/// Where machines find the machine-config server: by name, or by address where the name is made inside the cluster.
pub(crate) fn pointer_host(config: &InstallConfig) -> String {
    match api_vips(config).first() {
        Some(IpAddr::V6(address)) => format!("[{address}]"),
        Some(address) => address.to_string(),
        None => config.domain.api_int(),
    }
}

/// `None` without the stanza.
pub(crate) fn installation_disk(config: &InstallConfig) -> Option<&str> {
    config.merged.bootstrap_in_place.as_ref().map(|given| given.installation_disk.as_str())
}

pub(crate) fn dual_stack(config: &InstallConfig) -> bool {
    let service = &config.networks.service;
    service.iter().any(|cidr| cidr.addr().is_ipv4()) && service.iter().any(|cidr| cidr.addr().is_ipv6())
}

/// Whether a feature set has a gate that the assets depend on.
pub(crate) fn enabled(config: &InstallConfig, gate: &str) -> bool {
    match (config.merged.feature_set.as_str(), gate) {
        ("CustomNoUpgrade", _) => config.feature_gates.get(gate).copied().unwrap_or(false),
        (_, "OSStreams") => true,
        (set, _) => ["TechPreviewNoUpgrade", "DevPreviewNoUpgrade"].contains(&set),
    }
}

/// What is reached without the proxy: the cluster's own, and what the user says.
pub(crate) fn no_proxy(config: &InstallConfig, given: &str) -> String {
    if given.split(',').any(|entry| entry.trim() == "*") {
        return "*".into();
    }
    let fixed = ["127.0.0.1", "localhost", ".svc", ".cluster.local"].map(str::to_string);
    let cluster = config.networks.cluster.iter().map(|n| n.cidr);
    let networks =
        config.networks.machine.iter().copied().chain(config.networks.service.iter().copied()).chain(cluster);
    let mut all: BTreeSet<_> = fixed.into_iter().chain(networks.map(|cidr| cidr.to_string())).collect();
    all.insert(config.domain.api_int());
    all.extend(given.split(',').map(|entry| entry.trim().to_string()).filter(|entry| !entry.is_empty()));
    all.into_iter().collect::<Vec<_>>().join(",")
}

/// What `pki.signerCertificates.key` asks for, if it asks.
pub(crate) fn keys(config: &InstallConfig) -> Result<Option<KeyAlgorithm>, String> {
    let Some(pki) = &config.merged.pki else { return Ok(None) };
    let key = &pki.signer_certificates.key;
    let name = match key.algorithm.as_str() {
        "RSA" => format!("rsa-{}", key.rsa.key_size),
        _ => format!("ecdsa-{}", key.ecdsa.curve),
    };
    name.parse().map(Some)
}
