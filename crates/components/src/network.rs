//! The pod network (flannel, host-gw) and Services (kube-proxy, nftables), as objects.
//!
//! In: the cluster's networks, the API server's internal name, images. Out: what the network operator applies, which is
//! `release/templates/network.yaml` with these values.

use crate::cluster_config::{any_address, joined, nth};
use crate::template::{self, BadTemplate, quoted};
use ipnet::IpNet;
use seedling_types::ports;
use serde::Serialize;
use serde_json::{Value, json};
use std::net::{IpAddr, SocketAddr};

const TEMPLATE: &str = include_str!("../../../release/templates/network.yaml");
pub const FLANNEL: &str = "flannel";
pub const KUBE_PROXY: &str = "kube-proxy";
/// flanneld writes it after its routes and masquerade rules are in place.
pub const SUBNET_FILE: &str = "/run/flannel/subnet.env";
pub const CNI_CONFIG: &str = "/etc/cni/net.d/10-seedling.conflist";

pub struct NetworkParams<'a> {
    /// One of each family of the cluster.
    pub cluster_networks: &'a [IpNet],
    pub service_networks: &'a [IpNet],
    /// Host and port of `infrastructure.status.apiServerInternalURI`.
    pub api_host: &'a str,
    pub api_port: u16,
    pub flannel_image: &'a str,
    pub kube_proxy_image: &'a str,
    pub seedling_image: &'a str,
}

/// The Service `kubernetes`: the first address of the main service network.
pub fn kubernetes_service(service_networks: &[IpNet]) -> Option<IpAddr> {
    service_networks.first().map(|network| nth(*network, 1))
}

/// The Service `dns-default`: the tenth of each.
pub fn dns_service(service_networks: &[IpNet]) -> Vec<String> {
    service_networks.iter().map(|network| nth(*network, 10).to_string()).collect()
}

/// In the order in which they are applied.
pub fn objects(p: &NetworkParams) -> Result<Vec<Value>, BadTemplate> {
    let any = any_address(p.service_networks);
    let service = kubernetes_service(p.service_networks).map(|address| address.to_string());
    template::objects(
        TEMPLATE,
        &[
            ("flannel-config", &quoted(flannel_config(p.cluster_networks))),
            ("cluster-networks", &joined(p.cluster_networks)),
            ("any-address", &any.to_string()),
            ("kube-proxy-healthz", &SocketAddr::new(any, ports::KUBE_PROXY_HEALTHZ).to_string()),
            ("subnet-file", SUBNET_FILE),
            ("api-host", p.api_host),
            ("api-port", &p.api_port.to_string()),
            ("service-address", &service.unwrap_or_default()),
            ("dns-addresses", &dns_service(p.service_networks).join(",")),
            ("network-check", &ports::NETWORK_CHECK.to_string()),
            ("image:flannel", p.flannel_image),
            ("image:kube-proxy", p.kube_proxy_image),
            ("image:seedling", p.seedling_image),
        ],
    )
}

/// flanneld's net-conf.json.
#[derive(Default, Serialize)]
struct FlannelConfig {
    #[serde(rename = "Backend")]
    backend: Backend,
    #[serde(rename = "Network", skip_serializing_if = "Option::is_none")]
    network: Option<String>,
    #[serde(rename = "IPv6Network", skip_serializing_if = "Option::is_none")]
    ipv6_network: Option<String>,
    #[serde(rename = "EnableIPv4")]
    enable_ipv4: bool,
    #[serde(rename = "EnableIPv6")]
    enable_ipv6: bool,
}

#[derive(Serialize)]
struct Backend {
    #[serde(rename = "Type")]
    kind: &'static str,
}

impl Default for Backend {
    /// All nodes share one layer-2 network, so routes are enough; no encapsulation.
    fn default() -> Self {
        Self { kind: "host-gw" }
    }
}

fn flannel_config(networks: &[IpNet]) -> String {
    let mut config = FlannelConfig::default();
    for network in networks {
        match network {
            IpNet::V4(network) => (config.network, config.enable_ipv4) = (Some(network.to_string()), true),
            IpNet::V6(network) => {
                (config.ipv6_network, config.enable_ipv6) = (Some(network.to_string()), true)
            }
        }
    }
    format!("{:#}\n", json!(config))
}

/// The node's pod network: a bridge with this node's range. Masquerading is flannel's.
pub fn cni_config(subnets: &[IpNet], mtu: u32) -> Value {
    let ranges: Vec<_> =
        subnets.iter().map(|subnet| json!([{"subnet": subnet.trunc().to_string()}])).collect();
    let everywhere = |subnet: &IpNet| if subnet.addr().is_ipv4() { "0.0.0.0/0" } else { "::/0" };
    let routes: Vec<_> = subnets.iter().map(|subnet| json!({"dst": everywhere(subnet)})).collect();
    json!({
        "cniVersion": "1.0.0",
        "name": "seedling",
        "plugins": [
            {
                "type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true, "mtu": mtu,
                "ipam": {
                    "type": "host-local",
                    "ranges": ranges,
                    "routes": routes,
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": true}},
        ],
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    const PODS: [IpNet; 2] = [net([10, 128, 0, 0], 14), net6([0xfd01, 0, 0, 0, 0, 0, 0, 0], 48)];
    const SERVICES: [IpNet; 2] = [net([172, 30, 0, 0], 16), net6([0xfd02, 0, 0, 0, 0, 0, 0, 0], 112)];

    const fn net([a, b, c, d]: [u8; 4], prefix: u8) -> IpNet {
        IpNet::V4(ipnet::Ipv4Net::new_assert(std::net::Ipv4Addr::new(a, b, c, d), prefix))
    }

    const fn net6([a, b, c, d, e, f, g, h]: [u16; 8], prefix: u8) -> IpNet {
        IpNet::V6(ipnet::Ipv6Net::new_assert(std::net::Ipv6Addr::new(a, b, c, d, e, f, g, h), prefix))
    }

    fn params() -> NetworkParams<'static> {
        params_of([&PODS[..1], &SERVICES[..1]])
    }

    fn params_of(networks: [&'static [IpNet]; 2]) -> NetworkParams<'static> {
        NetworkParams {
            cluster_networks: networks[0],
            service_networks: networks[1],
            api_host: "api-int.ocp4.example.com",
            api_port: 6443,
            flannel_image: "flannel@sha256:1",
            kube_proxy_image: "kube-proxy@sha256:2",
            seedling_image: "seedling@sha256:3",
        }
    }

    #[test]
    fn no_agent_needs_a_service_address_to_start() {
        let agents: Vec<_> =
            objects(&params()).unwrap().into_iter().filter(|o| o["kind"] == "DaemonSet").collect();
        assert_eq!(agents.len(), 2);
        for agent in agents {
            let pod = &agent["spec"]["template"]["spec"];
            assert_eq!(
                (pod["hostNetwork"].as_bool(), pod["dnsPolicy"].as_str()),
                (Some(true), Some("Default"))
            );
            assert_eq!(pod["tolerations"], json!([{"operator": "Exists"}]));
            for container in pod["containers"].as_array().unwrap() {
                let env = container["env"].as_array().unwrap();
                let host = env.iter().find(|e| e["name"] == "KUBERNETES_SERVICE_HOST").unwrap();
                assert_eq!(host["value"], "api-int.ocp4.example.com");
            }
        }
    }

    fn config(params: &NetworkParams, map: &str, key: &str) -> Value {
        let objects = objects(params).unwrap();
        let config = objects.iter().find(|o| o["metadata"]["name"] == map).unwrap();
        serde_saphyr::from_str(config["data"][key].as_str().unwrap()).unwrap()
    }

    #[test]
    fn agents_know_every_family() {
        let flannel = |params: &NetworkParams| config(params, "flannel-config", "net-conf.json");
        let proxy = |params: &NetworkParams| config(params, "kube-proxy-config", "config.yaml");
        let host_gw = json!({"Type": "host-gw"});
        assert_eq!(
            flannel(&params()),
            json!({"Network": "10.128.0.0/14", "EnableIPv4": true, "EnableIPv6": false, "Backend": host_gw})
        );
        assert_eq!(proxy(&params())["bindAddress"], "0.0.0.0");
        let both = params_of([&PODS, &SERVICES]);
        let expected = json!({"Network": "10.128.0.0/14", "IPv6Network": "fd01::/48", "EnableIPv4": true, "EnableIPv6": true, "Backend": host_gw});
        assert_eq!(flannel(&both), expected);
        assert_eq!(proxy(&both)["clusterCIDR"], "10.128.0.0/14,fd01::/48");
        let six = params_of([&PODS[1..], &SERVICES[1..]]);
        let expected =
            json!({"IPv6Network": "fd01::/48", "EnableIPv6": true, "EnableIPv4": false, "Backend": host_gw});
        assert_eq!(flannel(&six), expected);
        assert_eq!(proxy(&six)["healthzBindAddress"], "[::]:10256");
    }

    #[test]
    fn kube_proxy_leaves_conntrack_limits_alone() {
        let config = config(&params(), "kube-proxy-config", "config.yaml");
        assert_eq!(config["mode"], "nftables");
        assert_eq!(config["conntrack"], json!({"maxPerCore": 0, "min": 0}));
        assert_eq!(config["clusterCIDR"], "10.128.0.0/14");
    }

    #[test]
    fn the_cni_config_has_the_nodes_range() {
        let config = cni_config(&["10.128.2.1/23".parse().unwrap()], 1500);
        assert_eq!(config["plugins"][0]["ipam"]["ranges"][0][0]["subnet"], "10.128.2.0/23");
        assert_eq!(config["plugins"][0]["mtu"], 1500);
        assert_eq!(config["plugins"][1]["type"], "portmap");
        let both = cni_config(&["10.128.2.1/23".parse().unwrap(), "fd01:0:0:2::1/64".parse().unwrap()], 1500);
        let ipam = &both["plugins"][0]["ipam"];
        assert_eq!(ipam["ranges"][1], json!([{"subnet": "fd01:0:0:2::/64"}]));
        assert_eq!(ipam["routes"], json!([{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]));
    }

    #[test]
    fn well_known_service_addresses() {
        assert_eq!(kubernetes_service(&SERVICES).unwrap().to_string(), "172.30.0.1");
        assert_eq!(kubernetes_service(&SERVICES[1..]).unwrap().to_string(), "fd02::1");
        assert_eq!(dns_service(&SERVICES), ["172.30.0.10", "fd02::a"]);
    }
}
