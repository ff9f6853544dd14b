//! The cluster's settings as its own API carries them: ConfigMap kube-system/cluster-config-v1, key `install-config`.

use ipnet::Ipv4Net;
use seedling_types::ClusterDomain;
use serde::Deserialize;
use std::net::Ipv4Addr;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterConfig {
    pub domain: ClusterDomain,
    pub cluster_network: Ipv4Net,
    /// Size of the pod network of one node.
    pub host_prefix: u8,
    pub service_network: Ipv4Net,
    pub control_plane_replicas: u32,
    pub compute_replicas: u32,
}

#[derive(Debug, thiserror::Error)]
pub enum ClusterConfigError {
    #[error("cluster-config-v1 has no key install-config")]
    NoInstallConfig,
    #[error("cluster-config-v1: {0}")]
    Yaml(#[from] serde_saphyr::Error),
    #[error("cluster-config-v1: {0} is empty")]
    Empty(&'static str),
}

#[derive(Deserialize)]
struct ConfigMap {
    data: std::collections::BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InstallConfig {
    base_domain: String,
    metadata: Metadata,
    control_plane: Pool,
    #[serde(default)]
    compute: Vec<Pool>,
    networking: Networking,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

#[derive(Deserialize)]
struct Pool {
    replicas: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Networking {
    cluster_network: Vec<ClusterNetwork>,
    service_network: Vec<Ipv4Net>,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClusterNetwork {
    cidr: Ipv4Net,
    host_prefix: u8,
}

impl ClusterConfig {
    /// From the manifest file `cluster-config.yaml`.
    pub fn from_manifest(yaml: &str) -> Result<Self, ClusterConfigError> {
        let map: ConfigMap = serde_saphyr::from_str(yaml)?;
        Self::from_install_config(map.data.get("install-config").ok_or(ClusterConfigError::NoInstallConfig)?)
    }

    pub fn from_install_config(yaml: &str) -> Result<Self, ClusterConfigError> {
        let config: InstallConfig = serde_saphyr::from_str(yaml)?;
        let network = config.networking.cluster_network.first();
        let network = network.ok_or(ClusterConfigError::Empty("networking.clusterNetwork"))?;
        let services = config.networking.service_network.first();
        Ok(Self {
            domain: ClusterDomain::new(&config.metadata.name, &config.base_domain),
            cluster_network: network.cidr,
            host_prefix: network.host_prefix,
            service_network: *services.ok_or(ClusterConfigError::Empty("networking.serviceNetwork"))?,
            control_plane_replicas: config.control_plane.replicas,
            compute_replicas: config.compute.iter().map(|pool| pool.replicas).sum(),
        })
    }

    /// The n-th address of the service network: 1 is the API, 10 is DNS.
    pub fn service_address(&self, n: u32) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.service_network.network()).wrapping_add(n))
    }
    pub fn dns_address(&self) -> Ipv4Addr {
        self.service_address(10)
    }
    pub fn api_internal_url(&self) -> String {
        format!("https://{}:{}", self.domain.api_int(), seedling_types::ports::API)
    }
    pub fn masters_schedulable(&self) -> bool {
        self.compute_replicas == 0
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_installer_wrote() {
        let config = crate::testing::cluster_config();
        assert_eq!(config.domain.api_int(), "api-int.ocp4.alchemy.com");
        assert_eq!(config.dns_address().to_string(), "172.30.0.10");
        assert!(config.masters_schedulable());
        let wrapped = format!(
            "data:\n  install-config: |\n{}",
            crate::testing::INSTALL_CONFIG.lines().map(|l| format!("    {l}\n")).collect::<String>()
        );
        assert_eq!(ClusterConfig::from_manifest(&wrapped).unwrap(), config);
    }
}
