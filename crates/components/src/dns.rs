//! Cluster DNS: CoreDNS on every node behind one Service address, as objects.
//!
//! In: the service network, the API server's internal name, the image. Out: what the DNS operator applies, which is
//! `release/templates/dns.yaml` with these values. CoreDNS dials api-int through the node's own resolver.

use crate::network::dns_service;
use crate::template::{self, BadTemplate, quoted};
use ipnet::IpNet;
use serde_json::Value;

const TEMPLATE: &str = include_str!("../../../release/templates/dns.yaml");
pub const NAME: &str = "dns-default";

pub struct DnsParams<'a> {
    /// One of each family of the cluster.
    pub service_networks: &'a [IpNet],
    pub api_host: &'a str,
    pub api_port: u16,
    pub coredns_image: &'a str,
}

/// In the order in which they are applied.
pub fn objects(p: &DnsParams) -> Result<Vec<Value>, BadTemplate> {
    let addresses = dns_service(p.service_networks);
    template::objects(
        TEMPLATE,
        &[
            ("address", addresses.first().map_or("", String::as_str)),
            ("family-policy", if addresses.len() > 1 { "RequireDualStack" } else { "SingleStack" }),
            ("addresses", &quoted(addresses.clone())),
            ("api-host", p.api_host),
            ("api-port", &p.api_port.to_string()),
            ("image:coredns", p.coredns_image),
        ],
    )
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn one_address_and_a_quick_readiness() {
        let p = DnsParams {
            service_networks: &["172.30.0.0/16".parse().unwrap()],
            api_host: "api-int.ocp4.example.com",
            api_port: 6443,
            coredns_image: "coredns@sha256:1",
        };
        let objects = objects(&p).unwrap();
        let find = |kind: &str| objects.iter().find(|o| o["kind"] == kind).unwrap();
        assert_eq!(find("Service")["spec"]["clusterIP"], "172.30.0.10");
        let container = &find("DaemonSet")["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["startupProbe"]["periodSeconds"], 1);
        assert!(container["startupProbe"].get("initialDelaySeconds").is_none());
        let corefile = find("ConfigMap")["data"]["Corefile"].as_str().unwrap();
        for plugin in
            ["errors", "health", "ready", "kubernetes cluster.local", "forward .", "cache", "reload"]
        {
            assert!(corefile.contains(plugin), "{plugin}");
        }
    }
}
