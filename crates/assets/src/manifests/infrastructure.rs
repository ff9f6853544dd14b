//! What the cluster stands on: platform, addresses of the API, how many of each machine.

use crate::config::{Baremetal, InstallConfig};
use crate::identity::Identity;
use crate::shape;
use serde_json::{Value, json};

pub(super) fn infrastructure(config: &InstallConfig, identity: &Identity) -> Value {
    let baremetal = shape::baremetal(config);
    let platform = if baremetal.is_some() { "BareMetal" } else { "None" };
    let mut object = json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "Infrastructure",
        "metadata": { "name": "cluster" },
        "spec": { "cloudConfig": { "name": "" }, "platformSpec": { "type": platform } },
        "status": {
            "apiServerInternalURI": format!("https://{}:6443", config.domain.api_int()),
            "apiServerURL": format!("https://{}:6443", config.domain.api()),
            "controlPlaneTopology": control_plane(config),
            "cpuPartitioning": cpu_partitioning(config),
            "etcdDiscoveryDomain": "",
            "infrastructureName": identity.infra_id,
            "infrastructureTopology": workload(config),
            "platform": platform,
            "platformStatus": { "type": platform },
        },
    });
    if let Some(baremetal) = baremetal {
        object["spec"]["platformSpec"]["baremetal"] = addresses(config, baremetal);
        object["status"]["platformStatus"]["baremetal"] = status(config, baremetal);
    }
    object
}

fn control_plane(config: &InstallConfig) -> &'static str {
    match config.masters {
        _ if config.arbiters > 0 => "HighlyAvailableArbiter",
        1 => "SingleReplica",
        2 => "DualReplica",
        _ => "HighlyAvailable",
    }
}

/// Where workloads run: on workers, or on masters if there are none.
fn workload(config: &InstallConfig) -> &'static str {
    match (config.workers, config.masters) {
        (1, _) | (0, 1) => "SingleReplica",
        _ => "HighlyAvailable",
    }
}

fn cpu_partitioning(config: &InstallConfig) -> &str {
    match config.merged.cpu_partitioning_mode.as_str() {
        "" => "None",
        mode => mode,
    }
}

fn addresses(config: &InstallConfig, baremetal: &Baremetal) -> Value {
    json!({
        "apiServerInternalIPs": baremetal.api_vips,
        "ingressIPs": baremetal.ingress_vips,
        "machineNetworks": config.networks.machine,
    })
}

fn status(config: &InstallConfig, baremetal: &Baremetal) -> Value {
    let mut status = addresses(config, baremetal);
    for (key, list) in [("apiServerInternalIP", &baremetal.api_vips), ("ingressIP", &baremetal.ingress_vips)]
    {
        if let Some(first) = list.first() {
            status[key] = first.clone().into();
        }
    }
    if !baremetal.dns_records_type.is_empty() {
        status["dnsRecordsType"] = baremetal.dns_records_type.clone().into();
    }
    if let Some(balancer) = baremetal.load_balancer.as_ref().filter(|balancer| !balancer.kind.is_empty()) {
        status["loadBalancer"] = json!({ "type": balancer.kind });
    }
    status
}
