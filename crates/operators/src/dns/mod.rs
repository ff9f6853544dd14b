//! The DNS operator: CoreDNS on every node behind one Service address, and proof from every node that it answers.
//!
//! In: config.openshift.io Network and Infrastructure `cluster`, the nodes' network reports. Out: DaemonSet and Service
//! openshift-dns/dns-default, ClusterOperator `dns`, which is available only when cluster DNS answered on every node.

use crate::network::part::{ClusterNetwork, Part, variable};
use seedling_components::dns::{DnsParams, NAME, objects};
use seedling_components::network::dns_service;
use seedling_types::names::NS_DNS;

/// Pull spec and version, from the payload by way of the Deployment.
pub struct Images {
    pub version: String,
    pub coredns: String,
}

pub async fn run(client: kube::Client) -> anyhow::Result<()> {
    operate(client, Images { version: variable("RELEASE_VERSION")?, coredns: variable("COREDNS_IMAGE")? })
        .await
}

pub async fn operate(client: kube::Client, images: Images) -> anyhow::Result<()> {
    let part = Part {
        name: "dns",
        version: &images.version,
        namespace: NS_DNS,
        daemon_sets: &[NAME],
        objects: &|n: &ClusterNetwork| {
            objects(&DnsParams {
                service_network: n.service_network,
                api_host: &n.api_host,
                api_port: n.api_port,
                coredns_image: &images.coredns,
            })
        },
        subject: |n| format!("Cluster DNS at {}", dns_service(n.service_network)),
        probed: |report| &report.dns,
        status: |_, _| None,
    };
    part.run(client).await
}
