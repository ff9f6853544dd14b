//! The network operator: pod network and Services on every node, and proof from every node that they work.
//!
//! In: config.openshift.io Network and Infrastructure `cluster`, the Nodes. Out: flannel and kube-proxy in openshift-network,
//! ClusterOperator `network`, which is available only when the Service address answered on every node.

pub mod check;
mod cni;
pub(crate) mod decide;
pub(crate) mod part;
mod reports;

use part::{ClusterNetwork, Part};
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
    };
    part.run(client).await
}
