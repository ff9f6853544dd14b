//! The cluster's settings as its own API carries them: ConfigMap kube-system/cluster-config-v1, key `install-config`.

use ipnet::IpNet;
use seedling_types::ClusterDomain;
use serde::Deserialize;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterConfig {
    pub domain: ClusterDomain,
    /// The first of each family; the first of all is the cluster's main family.
    pub pod_networks: Vec<PodNetwork>,
    pub service_networks: Vec<IpNet>,
    pub control_plane_replicas: u32,
    pub compute_replicas: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodNetwork {
    pub cidr: IpNet,
    /// Size of the pod network of one node.
    pub host_prefix: u8,
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
    cluster_network: Vec<PodNetwork>,
    service_network: Vec<IpNet>,
}

impl ClusterConfig {
    /// From the manifest file `cluster-config.yaml`.
    pub fn from_manifest(yaml: &str) -> Result<Self, ClusterConfigError> {
        let map: ConfigMap = serde_saphyr::from_str(yaml)?;
        Self::from_install_config(map.data.get("install-config").ok_or(ClusterConfigError::NoInstallConfig)?)
    }

    pub fn from_install_config(yaml: &str) -> Result<Self, ClusterConfigError> {
        let config: InstallConfig = serde_saphyr::from_str(yaml)?;
        let pod_networks = one_a_family(config.networking.cluster_network, |network| network.cidr);
        let service_networks = one_a_family(config.networking.service_network, |network| *network);
        if pod_networks.is_empty() {
            return Err(ClusterConfigError::Empty("networking.clusterNetwork"));
        }
        if service_networks.is_empty() {
            return Err(ClusterConfigError::Empty("networking.serviceNetwork"));
        }
        Ok(Self {
            domain: ClusterDomain::new(&config.metadata.name, &config.base_domain),
            pod_networks,
            service_networks,
            control_plane_replicas: config.control_plane.replicas,
            compute_replicas: config.compute.iter().map(|pool| pool.replicas).sum(),
        })
    }

    /// The n-th address of each service network: 1 is the API, 10 is DNS.
    pub fn service_addresses(&self, n: u8) -> Vec<IpAddr> {
        self.service_networks.iter().map(|network| nth(*network, n)).collect()
    }
    pub fn pod_cidrs(&self) -> Vec<IpNet> {
        self.pod_networks.iter().map(|network| network.cidr).collect()
    }
    /// Where a server listens for everybody: with IPv6 in the cluster `::`, which is both.
    pub fn any_address(&self) -> IpAddr {
        any_address(&self.service_networks)
    }
    pub fn api_internal_url(&self) -> String {
        format!("https://{}:{}", self.domain.api_int(), seedling_types::ports::API)
    }
    pub fn masters_schedulable(&self) -> bool {
        self.compute_replicas == 0
    }
}

/// The n-th address of a network.
pub fn nth(network: IpNet, n: u8) -> IpAddr {
    match network.network() {
        IpAddr::V4(base) => Ipv4Addr::from_bits(base.to_bits().wrapping_add(n.into())).into(),
        IpAddr::V6(base) => Ipv6Addr::from_bits(base.to_bits().wrapping_add(n.into())).into(),
    }
}

pub fn any_address(networks: &[IpNet]) -> IpAddr {
    match networks.iter().any(|network| network.addr().is_ipv6()) {
        true => Ipv6Addr::UNSPECIFIED.into(),
        false => Ipv4Addr::UNSPECIFIED.into(),
    }
}

/// As `--cluster-cidr` and its like take them.
pub fn joined(networks: &[IpNet]) -> String {
    networks.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// The first of each family, in their order: Kubernetes takes no more.
pub fn one_a_family<T>(all: Vec<T>, network: impl Fn(&T) -> IpNet) -> Vec<T> {
    let mut kept = Vec::<T>::new();
    for one in all {
        let family = network(&one).addr().is_ipv6();
        if !kept.iter().any(|before| network(before).addr().is_ipv6() == family) {
            kept.push(one);
        }
    }
    kept
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_installer_wrote() {
        let config = crate::testing::cluster_config();
        assert_eq!(config.domain.api_int(), "api-int.ocp4.alchemy.com");
        assert_eq!(config.service_addresses(10), [IpAddr::from([172, 30, 0, 10])]);
        assert_eq!(config.any_address().to_string(), "0.0.0.0");
        assert!(config.masters_schedulable());
        let wrapped = format!(
            "data:\n  install-config: |\n{}",
            crate::testing::INSTALL_CONFIG.lines().map(|l| format!("    {l}\n")).collect::<String>()
        );
        assert_eq!(ClusterConfig::from_manifest(&wrapped).unwrap(), config);
    }
    #[test]
    fn the_first_network_of_each_family_counts() {
        let text = crate::testing::INSTALL_CONFIG
            .replace(
                "hostPrefix: 23}",
                "hostPrefix: 23}\n  - {cidr: 10.8.0.0/16, hostPrefix: 24}\n  - {cidr: 'fd01::/48', hostPrefix: 64}",
            )
            .replace("[172.30.0.0/16]", "[172.30.0.0/16, 'fd02::/112']");
        let config = ClusterConfig::from_install_config(&text).unwrap();
        assert_eq!(joined(&config.pod_cidrs()), "10.128.0.0/14,fd01::/48");
        let addresses: Vec<_> = config.service_addresses(10).iter().map(ToString::to_string).collect();
        assert_eq!(addresses, ["172.30.0.10", "fd02::a"]);
        assert_eq!(config.any_address().to_string(), "::");
    }
}
