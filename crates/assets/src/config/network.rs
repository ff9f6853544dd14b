//! Networks of an install-config: well formed, apart from each other, and IPv4.

use super::Networks;
use super::check::cluster_networks;
use super::merge::Networking;
use super::problem::{Problem, Step};
use ipnet::IpNet;

/// What OVN-Kubernetes takes for itself; kept free also where another network is used, so that a config fits both.
const RESERVED: &[(&str, &str)] = &[
    (
        "100.64.0.0/16",
        "internal subnet 100.64.0.0/16: please run 'openshift-install explain installconfig.networking.ovnKubernetesConfig.ipv4' for further documentation",
    ),
    ("100.88.0.0/16", "transit subnet 100.88.0.0/16"),
    ("169.254.0.0/17", "masquerade subnet 169.254.0.0/17"),
];

pub fn check(net: &Networking, mtu: Option<i64>, problems: &mut Vec<Problem>) -> Option<Networks> {
    if let kind @ ("Kuryr" | "OpenShiftSDN") = net.network_type.as_str() {
        let why = format!("networkType {kind} is not supported, please use OVNKubernetes");
        let problem = Problem::invalid("networking.networkType", format!("{kind:?}"), why);
        problems.push(problem.hint("write OVNKubernetes"));
    }
    if let Some(mtu) = mtu {
        let why = "cluster network MTU is allowed only in AWS deployments";
        problems.push(Problem::invalid("networking.clusterNetworkMTU", mtu, why).hint("remove it"));
    }
    let before = problems.len();
    let machine = machine(net, problems);
    let service = service(net, &machine, problems);
    let cluster = cluster(net, &machine, &service, problems);
    if net.network_type == "OVNKubernetes" {
        let machine =
            machine.iter().enumerate().map(|(i, n)| (format!("networking.machineNetwork[{i}]"), *n));
        let service =
            service.iter().enumerate().map(|(i, n)| (format!("networking.serviceNetwork[{i}]"), *n));
        let cluster = cluster
            .iter()
            .enumerate()
            .map(|(i, (n, _))| (format!("networking.clusterNetwork[{i}].cidr"), *n));
        reserved(machine.chain(service).chain(cluster), problems);
    }
    if problems.len() > before {
        return None;
    }
    Some(Networks {
        network_type: net.network_type.clone(),
        machine: machine.iter().filter_map(v4).collect(),
        cluster: cluster_networks(cluster)?,
        service: service.iter().filter_map(v4).next()?,
    })
}

fn machine(net: &Networking, problems: &mut Vec<Problem>) -> Vec<IpNet> {
    let mut seen: Vec<IpNet> = Vec::new();
    for (i, entry) in net.machine_network.iter().enumerate() {
        let path = format!("networking.machineNetwork[{i}]");
        let Some(cidr) = parse(&path, &entry.cidr, problems) else { continue };
        if let Some(other) = seen.iter().position(|n| overlap(n, &cidr)) {
            problems.push(apart(
                &path,
                &cidr,
                &format!("machine network must not overlap with machine network {other}"),
            ));
        }
        seen.push(cidr);
    }
    seen
}

fn service(net: &Networking, machine: &[IpNet], problems: &mut Vec<Problem>) -> Vec<IpNet> {
    let mut seen: Vec<IpNet> = Vec::new();
    for (i, entry) in net.service_network.iter().enumerate() {
        let path = format!("networking.serviceNetwork[{i}]");
        let Some(cidr) = parse(&path, entry, problems) else { continue };
        if cidr.prefix_len() < 12 {
            let why = "subnet size for IPv4 service network must be /12 or greater (/16 is recommended)";
            problems.push(Problem::invalid(&path, format!("\"{cidr}\""), why).hint("e.g. 172.30.0.0/16"));
        }
        if machine.iter().any(|n| overlap(n, &cidr)) {
            problems.push(apart(
                &path,
                &cidr,
                "service network must not overlap with any of the machine networks",
            ));
        }
        if let Some(other) = seen.iter().position(|n| overlap(n, &cidr)) {
            problems.push(apart(
                &path,
                &cidr,
                &format!("service network must not overlap with service network {other}"),
            ));
        }
        seen.push(cidr);
    }
    if net.service_network.len() > 1 {
        let all = net.service_network.join(", ");
        let problem = Problem::invalid(
            "networking.serviceNetwork",
            format!("{all:?}"),
            "only one service network can be specified",
        );
        problems.push(problem.hint("keep one"));
    }
    seen
}

fn cluster(
    net: &Networking,
    machine: &[IpNet],
    service: &[IpNet],
    problems: &mut Vec<Problem>,
) -> Vec<(IpNet, i64)> {
    let mut seen: Vec<(IpNet, i64)> = Vec::new();
    for (i, entry) in net.cluster_network.iter().enumerate() {
        let path = format!("networking.clusterNetwork[{i}].cidr");
        let Some(cidr) = parse(&path, &entry.cidr, problems) else { continue };
        if machine.iter().any(|n| overlap(n, &cidr)) {
            problems.push(apart(
                &path,
                &cidr,
                "cluster network must not overlap with any of the machine networks",
            ));
        }
        if let Some(other) = service.iter().position(|n| overlap(n, &cidr)) {
            problems.push(apart(
                &path,
                &cidr,
                &format!("cluster network must not overlap with service network {other}"),
            ));
        }
        if let Some(other) = seen.iter().position(|(n, _)| overlap(n, &cidr)) {
            problems.push(apart(
                &path,
                &cidr,
                &format!("cluster network must not overlap with cluster network {other}"),
            ));
        }
        host_prefix(i, &cidr, entry.host_prefix, seen.first().map(|(_, prefix)| *prefix), problems);
        seen.push((cidr, entry.host_prefix));
    }
    seen
}

fn host_prefix(i: usize, cidr: &IpNet, prefix: i64, first: Option<i64>, problems: &mut Vec<Problem>) {
    let path = format!("networking.clusterNetwork[{i}].hostPrefix");
    let why = if prefix < 0 {
        "hostPrefix must be positive".to_string()
    } else if prefix < i64::from(cidr.prefix_len()) {
        format!("cluster network host subnetwork prefix must not be larger size than CIDR {cidr}")
    } else if prefix > 30 {
        "a node needs at least two pod addresses".to_string()
    } else if first.is_some_and(|first| first != prefix) {
        "cluster network host subnetwork prefix must be the same value for IPv4 networks".to_string()
    } else {
        return;
    };
    problems.push(
        Problem::invalid(&path, prefix, why).hint("each node gets a network of this size; 23 is usual"),
    );
}

fn reserved(networks: impl Iterator<Item = (String, IpNet)>, problems: &mut Vec<Problem>) {
    for (path, cidr) in networks {
        for (taken, words) in RESERVED {
            if taken.parse::<IpNet>().is_ok_and(|taken| overlap(&taken, &cidr)) {
                problems.push(apart(
                    &path,
                    &cidr,
                    &format!("must not overlap with OVNKubernetes default {words}"),
                ));
            }
        }
    }
}

fn parse(path: &str, text: &str, problems: &mut Vec<Problem>) -> Option<IpNet> {
    let Ok(cidr) = text.parse::<IpNet>() else {
        let message = format!(
            "error unmarshaling JSON: while decoding JSON: failed to Parse cidr string to net.IPNet: invalid CIDR address: {text}"
        );
        problems.push(Problem::new(Step::Unmarshal, path, message).hint("write it like 10.128.0.0/14"));
        return None;
    };
    let value = format!("\"{cidr}\"");
    if cidr.addr().is_unspecified() {
        problems.push(
            Problem::invalid(path, value, "address must be specified").hint("write it like 10.128.0.0/14"),
        );
    } else if cidr.addr() != cidr.network() {
        let why = format!("invalid network address. got {cidr}, expecting {}", cidr.trunc());
        problems.push(Problem::invalid(path, value, why).hint(format!("write {}", cidr.trunc())));
    } else if matches!(cidr, IpNet::V6(_)) {
        problems
            .push(Problem::invalid(path, value, "seedling does not do IPv6 yet").hint("use an IPv4 network"));
    } else {
        return Some(cidr);
    }
    None
}

fn apart(path: &str, cidr: &IpNet, why: &str) -> Problem {
    Problem::invalid(path, format!("\"{cidr}\""), why).hint("choose a range that nothing else uses")
}

fn overlap(a: &IpNet, b: &IpNet) -> bool {
    a.contains(b) || b.contains(a)
}

fn v4(net: &IpNet) -> Option<ipnet::Ipv4Net> {
    match net {
        IpNet::V4(net) => Some(*net),
        IpNet::V6(_) => None,
    }
}
