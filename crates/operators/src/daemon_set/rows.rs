//! The rows: network (pod network and Services on every node) and dns (CoreDNS on every node behind one Service address).

use super::Row;
use super::reports::Views;
use seedling_api::config::{NetworkSpec, NetworkStatus};
use seedling_api::{Network, named};
use seedling_components::dns::{self, DnsParams};
use seedling_components::network::{
    self, FLANNEL, KUBE_PROXY, NetworkParams, dns_service, kubernetes_service,
};
use seedling_types::names::{NS_DNS, NS_NETWORK};
use std::net::SocketAddr;

pub static NETWORK: Row = Row {
    name: "network",
    namespace: NS_NETWORK,
    daemon_sets: &[FLANNEL, KUBE_PROXY],
    template: |n, given| {
        let params = NetworkParams {
            cluster_networks: &n.cluster_networks,
            service_networks: &n.service_networks,
            api_host: &n.api_host,
            api_port: n.api_port,
            flannel_image: &given("FLANNEL_IMAGE")?,
            kube_proxy_image: &given("KUBE_PROXY_IMAGE")?,
            seedling_image: &given("SEEDLING_IMAGE")?,
        };
        Ok(network::objects(&params)?)
    },
    subject: |n| {
        let address = kubernetes_service(&n.service_networks).map(|ip| SocketAddr::new(ip, 443).to_string());
        format!("The Service address {}", address.unwrap_or_default())
    },
    probed: |report| &report.service,
    status: |n, views| Some(network_status(&n.spec, views)),
};

pub static DNS: Row = Row {
    name: "dns",
    namespace: NS_DNS,
    daemon_sets: &[dns::NAME],
    template: |n, given| {
        let params = DnsParams {
            service_networks: &n.service_networks,
            api_host: &n.api_host,
            api_port: n.api_port,
            coredns_image: &given("COREDNS_IMAGE")?,
        };
        Ok(dns::objects(&params)?)
    },
    subject: |n| format!("Cluster DNS at {}", dns_service(&n.service_networks).join(" and ")),
    probed: |report| &report.dns,
    status: |_, _| None,
};

/// Network `cluster` with its status: what was asked for, and the smallest MTU among the nodes that reported theirs.
fn network_status(spec: &NetworkSpec, views: &Views) -> Network {
    let mtu = views.values().filter_map(|view| view.report.as_ref()?.mtu).min();
    let status = NetworkStatus { asked_for: spec.clone(), mtu };
    Network { metadata: named("cluster"), spec: None, status: Some(status) }
}

#[cfg(test)]
mod tests {
    use super::super::reports::NodeView;
    use super::*;
    use seedling_types::node_report::NodeReport;
    use serde_json::json;

    #[test]
    fn the_status_is_upstreams() {
        let spec = json!({
            "clusterNetwork": [{"cidr": "10.128.0.0/14", "hostPrefix": 23}], "serviceNetwork": ["172.30.0.0/16"],
            "networkType": "OVNKubernetes", "externalIP": {"policy": {}},
        });
        let spec: NetworkSpec = serde_json::from_value(spec).unwrap_or_default();
        let status = |views: &Views| json!(network_status(&spec, views))["status"].clone();
        let view = |mtu| NodeView {
            report: Some(NodeReport { mtu, ..NodeReport::default() }),
            ..NodeView::default()
        };
        let mut views = Views::new();
        let mut want = json!({
            "clusterNetwork": [{"cidr": "10.128.0.0/14", "hostPrefix": 23}], "serviceNetwork": ["172.30.0.0/16"],
            "networkType": "OVNKubernetes",
        });
        assert_eq!(status(&views), want, "nobody has told yet");
        views.extend([
            ("a".to_string(), view(Some(1500))),
            ("b".to_string(), view(Some(1400))),
            ("c".to_string(), view(None)),
        ]);
        want["clusterNetworkMTU"] = 1400.into();
        assert_eq!(status(&views), want);
    }
}
