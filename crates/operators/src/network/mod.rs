//! The network operator: pod network and Services on every node, and proof from every node that they work.
//!
//! In: config.openshift.io Network and Infrastructure `cluster`, the Nodes. Out: flannel and kube-proxy in openshift-network,
//! ClusterOperator `network`, which is available only when the Service address answered on every node.

pub(crate) mod decide;
pub(crate) mod part;
mod reports;

use part::{ClusterNetwork, Part};
use reports::Views;
use seedling_api::config::{NetworkSpec, NetworkStatus};
use seedling_api::{Network, named};
use seedling_components::network::{FLANNEL, KUBE_PROXY, NetworkParams, kubernetes_service, objects};
use seedling_types::names::NS_NETWORK;

/// Pull specs and version, from the payload by way of the Deployment.
pub struct Images {
    pub version: String,
    pub flannel: String,
    pub kube_proxy: String,
    pub seedling: String,
}

pub async fn run(client: kube::Client) -> anyhow::Result<()> {
    let images = Images {
        version: part::variable("RELEASE_VERSION")?,
        flannel: part::variable("FLANNEL_IMAGE")?,
        kube_proxy: part::variable("KUBE_PROXY_IMAGE")?,
        seedling: part::variable("SEEDLING_IMAGE")?,
    };
    operate(client, images).await
}

pub async fn operate(client: kube::Client, images: Images) -> anyhow::Result<()> {
    let part = Part {
        name: "network",
        version: &images.version,
        namespace: NS_NETWORK,
        daemon_sets: &[FLANNEL, KUBE_PROXY],
        objects: &|n: &ClusterNetwork| {
            objects(&NetworkParams {
                cluster_network: n.cluster_network,
                service_network: n.service_network,
                api_host: &n.api_host,
                api_port: n.api_port,
                flannel_image: &images.flannel,
                kube_proxy_image: &images.kube_proxy,
                seedling_image: &images.seedling,
            })
        },
        subject: |n| format!("The Service address {}:443", kubernetes_service(n.service_network)),
        probed: |report| &report.service,
        status: |network, views| Some(network_status(&network.spec, views)),
    };
    part.run(client).await
}

/// Network `cluster` with what is so: what was asked for, and the smallest card among the nodes that told theirs.
fn network_status(spec: &NetworkSpec, views: &Views) -> Network {
    let mtu = views.values().filter_map(|view| view.report.as_ref()?.mtu).min();
    let status = NetworkStatus { asked_for: spec.clone(), mtu };
    Network { metadata: named("cluster"), spec: None, status: Some(status) }
}

#[cfg(test)]
mod tests {
    use super::reports::NodeView;
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
