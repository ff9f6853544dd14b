//! The second of three types: old names moved to new ones and every default filled in. Serialises as upstream's normalised file.

use super::features::Gates;
use super::model::{ClusterEntry, Fields, MachineEntry, Networking, Pool};
use super::problem::{FoundAt, Problem};
use super::{Context, Read, baremetal::Baremetal};
use ipnet::{IpNet, Ipv4Net};
use serde::Serialize;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::{Deref, DerefMut};

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Merged(Fields);

impl Deref for Merged {
    type Target = Fields;
    fn deref(&self) -> &Fields {
        &self.0
    }
}

impl DerefMut for Merged {
    fn deref_mut(&mut self) -> &mut Fields {
        &mut self.0
    }
}

pub(super) fn merge(read: Read, context: &Context, problems: &mut Vec<Problem>) -> Merged {
    let Read(mut fields) = read;
    upconvert(&mut fields, problems);
    fill(&mut fields, context);
    Merged(fields)
}

fn upconvert(fields: &mut Fields, problems: &mut Vec<Problem>) {
    let mut refuse = |path: &str, message: String, hint: &str| {
        problems.push(Problem::new(FoundAt::Upconvert, path, message).hint(hint));
    };
    match fields.api_version.as_str() {
        "v1" | "v1beta3" | "v1beta4" => {}
        "" => refuse(
            "apiVersion",
            "apiVersion: Required value: no version was provided".into(),
            "add the line apiVersion: v1",
        ),
        other => {
            let why = format!("cannot upconvert from version {other}");
            let problem = Problem::invalid_text("apiVersion", other, why);
            refuse("apiVersion", problem.message, "write apiVersion: v1");
        }
    }
    networking(&mut fields.networking);
    if let Some(baremetal) = &mut fields.platform.baremetal {
        for problem in old_baremetal(baremetal) {
            refuse(&problem.path, problem.message, "keep one of the two");
        }
    }
    fields.api_version = "v1".into();
}

fn networking(net: &mut Networking) {
    let convert = |entries: &mut Vec<ClusterEntry>| {
        for entry in entries {
            if let (0, length, Some(cidr)) = (entry.host_prefix, entry.host_subnet_length, entry.cidr)
                && length != 0
            {
                entry.host_prefix = i32::from(cidr.max_prefix_len()).saturating_sub(length);
            }
        }
    };
    if net.cluster_network.is_empty() {
        // The old list shows the converted prefix as well.
        convert(&mut net.cluster_networks);
        net.cluster_network.clone_from(&net.cluster_networks);
    }
    convert(&mut net.cluster_network);
    if net.machine_network.is_empty() {
        net.machine_network =
            net.machine_cidr.iter().map(|cidr| MachineEntry { cidr: Some(*cidr) }).collect();
    }
    if net.service_network.is_empty() {
        net.service_network = net.service_cidr.iter().copied().map(Some).collect();
    }
    if net.network_type.is_empty() {
        net.network_type.clone_from(&net.kind);
    }
    for known in ["OpenShiftSDN", "OVNKubernetes"] {
        if net.network_type.eq_ignore_ascii_case(known) {
            net.network_type = known.into();
        }
    }
}

fn old_baremetal(b: &mut Baremetal) -> Vec<Problem> {
    let mut problems = Vec::new();
    let path = |field: &str| format!("platform.baremetal.{field}");
    if b.provisioning_dhcp_external && b.provisioning_network.is_empty() {
        b.provisioning_network = "Unmanaged".into();
    }
    if b.cluster_provisioning_ip.is_empty() {
        b.cluster_provisioning_ip.clone_from(&b.provisioning_host_ip);
    }
    if !b.provisioning_host_ip.is_empty() && b.provisioning_host_ip != b.cluster_provisioning_ip {
        let why = "provisioningHostIP is deprecated; only clusterProvisioningIP needs to be specified";
        problems.push(Problem::invalid_text(&path("provisioningHostIP"), &b.provisioning_host_ip, why));
    }
    for (old, new, name) in
        [(&b.api_vip, &mut b.api_vips, "apiVIP"), (&b.ingress_vip, &mut b.ingress_vips, "ingressVIP")]
    {
        if !old.is_empty() && new.is_empty() {
            new.push(old.clone());
        } else if !old.is_empty() && !new.contains(old) {
            // Upstream has the two names the wrong way round.
            let why = format!("{name}s is deprecated; only {name} needs to be specified");
            problems.push(Problem::invalid_text(&path(&format!("{name}s")), old, why));
        }
    }
    problems
}

fn fill(fields: &mut Fields, context: &Context) {
    let net = &mut fields.networking;
    if net.machine_network.is_empty() {
        net.machine_network.push(MachineEntry { cidr: Some(v4([10, 0, 0, 0], 16)) });
    }
    default(&mut net.network_type, "OVNKubernetes");
    if net.service_network.is_empty() {
        net.service_network.push(Some(v4([172, 30, 0, 0], 16)));
    }
    if net.cluster_network.is_empty() {
        let cidr = Some(v4([10, 128, 0, 0], 14));
        net.cluster_network.push(ClusterEntry { cidr, host_prefix: 23, host_subnet_length: 0 });
    }
    default(&mut fields.publish, "External");
    default(&mut fields.additional_trust_bundle_policy, "Proxyonly");
    fields.control_plane.name = "master".into();
    pool(&mut fields.control_plane, 3);
    if let Some(arbiter) = &mut fields.arbiter {
        arbiter.name = "arbiter".into();
        pool(arbiter, 0);
    }
    if !fields.compute.iter().any(|pool| pool.name == "worker") {
        fields.compute.push(Pool { name: "worker".into(), ..Pool::default() });
    }
    for compute in &mut fields.compute {
        pool(compute, 3);
    }
    if fields.os_image_stream.is_empty() && Gates::of(fields).enabled("OSStreams") {
        fields.os_image_stream = context.stream.into();
    }
    let domain = format!("{}.{}", fields.metadata.name, fields.base_domain);
    let machines = &fields.networking.machine_network;
    if let Some(b) = &mut fields.platform.baremetal {
        baremetal(b, machines, &domain);
    }
}

fn pool(pool: &mut Pool, replicas: i64) {
    default(&mut pool.architecture, "amd64");
    default(&mut pool.hyperthreading, "Enabled");
    pool.replicas.get_or_insert(replicas);
}

fn baremetal(b: &mut Baremetal, machines: &[MachineEntry], domain: &str) {
    default(&mut b.libvirt_uri, "qemu:///system");
    default(&mut b.provisioning_network, "Managed");
    if b.provisioning_network == "Disabled" {
        if let Ok(ip) = b.cluster_provisioning_ip.parse::<IpAddr>() {
            let around = machines.iter().filter_map(|m| m.cidr).rfind(|cidr| cidr.contains(&ip));
            b.provisioning_network_cidr = around.or(b.provisioning_network_cidr);
        }
    } else {
        let cidr = *b.provisioning_network_cidr.get_or_insert(v4([172, 22, 0, 0], 24));
        default(&mut b.bootstrap_provisioning_ip, &host(cidr, 2));
        default(&mut b.cluster_provisioning_ip, &host(cidr, 3));
        default(&mut b.provisioning_bridge, "provisioning");
        if b.provisioning_network == "Managed" {
            default(&mut b.provisioning_dhcp_range, &format!("{},{}", host(cidr, 10), last(cidr)));
        }
    }
    default(&mut b.external_bridge, "baremetal");
    default(&mut b.external_mac_address, &mac(domain, "external"));
    default(&mut b.provisioning_mac_address, &mac(domain, "provisioning"));
    default(&mut b.dns_records_type, "Internal");
    for host in b.hosts.iter_mut().flatten() {
        default(&mut host.hardware_profile, "default");
        default(&mut host.boot_mode, "UEFI");
    }
}

fn default(field: &mut String, value: &str) {
    if field.is_empty() {
        *field = value.into();
    }
}

fn v4(octets: [u8; 4], prefix: u8) -> IpNet {
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::from(octets), prefix))
}

/// Address number `n` of a network; empty if the network has none.
pub(super) fn host(cidr: IpNet, n: u32) -> String {
    let address: Option<IpAddr> = match cidr.network() {
        IpAddr::V4(base) => u32::from(base).checked_add(n).map(|a| Ipv4Addr::from(a).into()),
        IpAddr::V6(base) => {
            u128::from(base).checked_add(n.into()).map(|a| std::net::Ipv6Addr::from(a).into())
        }
    };
    address.filter(|address| cidr.contains(address)).map(|address| address.to_string()).unwrap_or_default()
}

/// The last address before the broadcast one.
fn last(cidr: IpNet) -> String {
    match cidr.broadcast() {
        IpAddr::V4(end) => Ipv4Addr::from(u32::from(end).saturating_sub(1)).to_string(),
        IpAddr::V6(end) => std::net::Ipv6Addr::from(u128::from(end).saturating_sub(1)).to_string(),
    }
}

/// A MAC address of QEMU's range. Upstream draws one by lot, so that the same file never gives the same assets; this one depends on
/// the cluster's domain.
fn mac(domain: &str, what: &str) -> String {
    let hash = domain
        .bytes()
        .chain(what.bytes())
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let [_, a, b, c] = hash.to_be_bytes();
    format!("52:54:00:{a:02x}:{b:02x}:{c:02x}")
}
