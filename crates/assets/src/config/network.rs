//! Networks of an install-config: well formed, apart from each other, and of the families that the cluster needs.

use super::model::Networking;
use super::problem::Problem;
use ipnet::{IpNet, Ipv4Net};
use std::net::IpAddr;

/// What OVN-Kubernetes takes for itself: join, transit and masquerade subnets.
const OVN_V4: [&str; 3] = ["100.64.0.0/16", "100.88.0.0/16", "169.254.0.0/17"];
const OVN_V6: [&str; 3] = ["fd98::/64", "fd97::/64", "fd69::/112"];
const DOCKER: &str = "172.17.0.0/16";
const APART: &str = "choose a range that nothing else uses";

/// As Go reads it: a prefix may have leading zeros, and an IPv4 address in IPv6 notation is an IPv4 address.
pub(super) fn parse_cidr(text: &str) -> Option<IpNet> {
    let (address, prefix) = text.split_once('/')?;
    let digits = !prefix.is_empty() && prefix.bytes().all(|b| b.is_ascii_digit());
    let prefix: u8 = prefix.parse().ok().filter(|_| digits)?;
    let address: IpAddr = address.parse().ok()?;
    if let IpAddr::V6(v6) = address
        && let Some(v4) = v6.to_ipv4_mapped()
        && prefix >= 96
    {
        return Ipv4Net::new(v4, prefix - 96).ok().map(IpNet::V4);
    }
    IpNet::new(address, prefix).ok()
}

pub(super) fn cidr_hint(text: &str) -> String {
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => format!("add the prefix length, e.g. {text}/16"),
        Ok(IpAddr::V6(_)) => format!("add the prefix length, e.g. {text}/64"),
        Err(_) => "write it like 10.128.0.0/14".into(),
    }
}

/// `networking` by itself, in upstream's order.
pub(super) fn check(net: &Networking, problems: &mut Vec<Problem>) {
    let path = "networking.networkType";
    let hint = "write OVNKubernetes";
    if net.network_type.eq_ignore_ascii_case("Kuryr") {
        let why = "networkType Kuryr is not supported on OpenShift later than 4.14";
        problems.push(Problem::invalid_text(path, &net.network_type, why).hint(hint));
    }
    if net.network_type == "OpenShiftSDN" {
        let why = "networkType OpenShiftSDN is not supported, please use OVNKubernetes";
        problems.push(Problem::invalid_text(path, &net.network_type, why).hint(hint));
    }
    machine(net, problems);
    service(net, problems);
    cluster(net, problems);
    families(net, problems);
    if net.cluster_network_mtu != 0 {
        let why = "cluster network MTU is allowed only in AWS deployments";
        let path = "networking.clusterNetworkMTU";
        problems.push(Problem::invalid(path, net.cluster_network_mtu, why).hint("remove it"));
    }
}

pub(super) fn machines(net: &Networking) -> Vec<IpNet> {
    net.machine_network.iter().filter_map(|entry| entry.cidr).collect()
}

pub(super) fn services(net: &Networking) -> Vec<IpNet> {
    net.service_network.iter().copied().flatten().collect()
}

fn clusters(net: &Networking) -> Vec<IpNet> {
    net.cluster_network.iter().filter_map(|entry| entry.cidr).collect()
}

fn machine(net: &Networking, problems: &mut Vec<Problem>) {
    for (i, entry) in net.machine_network.iter().enumerate() {
        let path = format!("networking.machineNetwork[{i}]");
        let Some(cidr) = usable(&path, entry.cidr, false, problems) else { continue };
        overlaps_docker(&path, cidr, problems);
        overlaps_ovn(net, &path, cidr, problems);
        for (j, _) in others(&machines(net)[..i], cidr) {
            let why = format!("machine network must not overlap with machine network {j}");
            problems.push(Problem::invalid_text(&path, &cidr.to_string(), why).hint(APART));
        }
    }
}

fn service(net: &Networking, problems: &mut Vec<Problem>) {
    for (i, entry) in net.service_network.iter().enumerate() {
        let path = format!("networking.serviceNetwork[{i}]");
        let Some(cidr) = usable(&path, *entry, true, problems) else { continue };
        overlaps_docker(&path, cidr, problems);
        overlaps_ovn(net, &path, cidr, problems);
        for _ in others(&machines(net), cidr) {
            let why = "service network must not overlap with any of the machine networks";
            problems.push(Problem::invalid_text(&path, &cidr.to_string(), why).hint(APART));
        }
        for (j, _) in others(&services(net)[..i], cidr) {
            let why = format!("service network must not overlap with service network {j}");
            problems.push(Problem::invalid_text(&path, &cidr.to_string(), why).hint(APART));
        }
    }
}

fn cluster(net: &Networking, problems: &mut Vec<Problem>) {
    for (i, entry) in net.cluster_network.iter().enumerate() {
        let entry_path = format!("networking.clusterNetwork[{i}]");
        let path = format!("{entry_path}.cidr");
        let Some(cidr) = usable(&path, entry.cidr, false, problems) else { continue };
        // Upstream counts twice here.
        overlaps_docker(&format!("{entry_path}[{i}]"), cidr, problems);
        overlaps_ovn(net, &path, cidr, problems);
        let mut refuse = |why: String| {
            problems.push(Problem::invalid_text(&path, &cidr.to_string(), why).hint(APART));
        };
        for _ in others(&machines(net), cidr) {
            refuse("cluster network must not overlap with any of the machine networks".into());
        }
        for (j, _) in others(&services(net), cidr) {
            refuse(format!("cluster network must not overlap with service network {j}"));
        }
        for (j, _) in others(&clusters(net)[..i], cidr) {
            refuse(format!("cluster network must not overlap with cluster network {j}"));
        }
        host_prefix(net, i, cidr, problems);
    }
}

fn host_prefix(net: &Networking, i: usize, cidr: IpNet, problems: &mut Vec<Problem>) {
    let prefix = net.cluster_network[i].host_prefix;
    if net.network_type != "OVNKubernetes" && prefix == 0 {
        return;
    }
    let v4 = matches!(cidr, IpNet::V4(_));
    let differs = net.cluster_network[..i]
        .iter()
        .any(|other| matches!(other.cidr, Some(IpNet::V4(_))) && other.host_prefix != prefix);
    let why = if prefix < 0 {
        "hostPrefix must be positive".to_string()
    } else if prefix < i32::from(cidr.prefix_len()) {
        format!("cluster network host subnetwork prefix must not be larger size than CIDR {cidr}")
    } else if v4 && differs {
        "cluster network host subnetwork prefix must be the same value for IPv4 networks".to_string()
    } else if !v4 && prefix != 64 {
        "cluster network host subnetwork prefix must be 64 for IPv6 networks".to_string()
    } else if v4 && prefix > 30 {
        // Upstream takes any number.
        "a node needs at least two pod addresses".to_string()
    } else {
        return;
    };
    let hint = if v4 { "each node gets a network of this size; 23 is usual" } else { "write 64" };
    let path = format!("networking.clusterNetwork[{i}].hostPrefix");
    problems.push(Problem::invalid(&path, prefix, why).hint(hint));
}

/// There, not 0.0.0.0, without host bits and, for services, not too large.
fn usable(path: &str, cidr: Option<IpNet>, service: bool, problems: &mut Vec<Problem>) -> Option<IpNet> {
    let Some(cidr) = cidr else {
        let problem = Problem::required(path, "a network is needed");
        problems.push(problem.hint("write it like 10.128.0.0/14"));
        return None;
    };
    let (why, hint) = if cidr.addr().is_unspecified() {
        ("address must be specified".to_string(), "write it like 10.128.0.0/14".to_string())
    } else if cidr.addr() != cidr.network() {
        let meant = cidr.trunc();
        (format!("invalid network address. got {cidr}, expecting {meant}"), format!("write {meant}"))
    } else {
        match (service, cidr) {
            (true, IpNet::V4(_)) if cidr.prefix_len() < 12 => (
                "subnet size for IPv4 service network must be /12 or greater (/16 is recommended)".into(),
                format!("write {}/16", cidr.addr()),
            ),
            (true, IpNet::V6(_)) if cidr.prefix_len() < 108 => (
                "subnet size for IPv6 service network should be /112".into(),
                format!("write {}/112", cidr.addr()),
            ),
            // Upstream takes a network that has no address for its own DNS.
            (true, _) if super::merge::host(cidr, 10).is_empty() => (
                "the network is too small: the API takes its first address and DNS its tenth".into(),
                "e.g. 172.30.0.0/16, or fd02::/112".into(),
            ),
            _ => return Some(cidr),
        }
    };
    problems.push(Problem::invalid_text(path, &cidr.to_string(), why).hint(hint));
    None
}

fn overlaps_docker(path: &str, cidr: IpNet, problems: &mut Vec<Problem>) {
    if DOCKER.parse().is_ok_and(|docker| overlap(docker, cidr)) {
        let text = format!("{path}: {cidr} overlaps with default Docker Bridge subnet");
        problems.push(Problem::warning(path, text));
    }
}

fn overlaps_ovn(net: &Networking, path: &str, cidr: IpNet, problems: &mut Vec<Problem>) {
    if net.network_type != "OVNKubernetes" {
        return;
    }
    let (taken, family) = if matches!(cidr, IpNet::V4(_)) { (OVN_V4, "ipv4") } else { (OVN_V6, "ipv6") };
    for (subnet, name) in taken.iter().zip(["internal", "transit", "masquerade"]) {
        let replaced = name == "internal" && family == "ipv4" && net.join_subnet().is_some();
        if replaced || !subnet.parse().is_ok_and(|subnet| overlap(subnet, cidr)) {
            continue;
        }
        let more = if name == "internal" {
            format!(
                ": please run 'openshift-install explain installconfig.networking.ovnKubernetesConfig.{family}' for further \
                 documentation"
            )
        } else {
            String::new()
        };
        let why = format!("must not overlap with OVNKubernetes default {name} subnet {subnet}{more}");
        problems.push(Problem::invalid_text(path, &cidr.to_string(), why).hint(APART));
    }
}

/// The service networks say whether the cluster is dual-stack.
fn families(net: &Networking, problems: &mut Vec<Problem>) {
    let lists = [
        ("machineNetwork", machines(net)),
        ("serviceNetwork", services(net)),
        ("clusterNetwork", clusters(net)),
    ];
    let has = |list: &[IpNet]| {
        (list.iter().any(|n| matches!(n, IpNet::V4(_))), list.iter().any(|n| matches!(n, IpNet::V6(_))))
    };
    let shown = |list: &[IpNet]| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let services = &lists[1].1;
    let path = "networking.serviceNetwork";
    match has(services) {
        (true, true) => {
            if services.len() != 2 {
                let why = "when installing dual-stack IPv4/IPv6 you must provide two service networks, one for each IP address type";
                problems.push(Problem::invalid_text(path, &shown(services), why).hint("keep one of each"));
            }
            for (name, list) in &lists {
                let missing = match has(list) {
                    (true, false) => "IPv6",
                    (false, true) => "IPv4",
                    _ => continue,
                };
                let why = format!("dual-stack IPv4/IPv6 requires an {missing} network in this list");
                let problem = Problem::invalid_text(&format!("networking.{name}"), &shown(list), why);
                problems.push(problem.hint(format!("add an {missing} network, or keep one service network")));
            }
        }
        (true, false) if services.len() > 1 => {
            let why = "only one service network can be specified";
            problems.push(Problem::invalid_text(path, &shown(services), why).hint("keep one"));
        }
        _ => {}
    }
}

/// `networking.ovnKubernetesConfig` and `networking.networkObservability`.
pub(super) fn check_ovn(net: &Networking, problems: &mut Vec<Problem>) {
    if net.ovn_kubernetes_config.is_some() && net.network_type != "OVNKubernetes" {
        let why = "ovnKubernetesConfig may only be specified with the OVNKubernetes networkType";
        let problem = Problem::invalid_text("networking.networkType", &net.network_type, why);
        problems.push(problem.hint("remove networking.ovnKubernetesConfig"));
    }
    if let Some(join) = net.join_subnet() {
        join_subnet(net, join, problems);
    }
    let policy = net.network_observability.as_ref().map_or("", |o| &o.installation_policy);
    if !["", "InstallAndEnable", "NoAction"].contains(&policy) {
        let path = "networking.networkObservability.installationPolicy";
        problems.push(Problem::unsupported(path, policy, &["InstallAndEnable", "NoAction"]));
    }
}

fn join_subnet(net: &Networking, join: IpNet, problems: &mut Vec<Problem>) {
    let path = "networking.ovnKubernetesConfig.ipv4.internalJoinSubnet";
    let Some(join) = usable(path, Some(join), false, problems) else { return };
    let mut refuse = |why: String, hint: &str| {
        problems.push(Problem::invalid_text(path, &join.to_string(), why).hint(hint));
    };
    // Upstream panics here.
    if matches!(join, IpNet::V6(_)) {
        return refuse("must be an IPv4 network".into(), "e.g. 100.64.0.0/16");
    }
    for (list, name) in [
        (clusters(net), "clusterNetwork"),
        (machines(net), "machineNetwork"),
        (services(net), "serviceNetwork"),
    ] {
        for (_, other) in others(&list, join) {
            refuse(format!("must not overlap with {name} {other}"), APART);
        }
    }
    let mut nodes: u64 = 0;
    for (i, entry) in net.cluster_network.iter().enumerate() {
        let Some(IpNet::V4(cidr)) = entry.cidr else { continue };
        let Some(bits) = u32::try_from(entry.host_prefix - i32::from(cidr.prefix_len())).ok() else {
            let why = format!(
                "{path}: Internal error: cannot determine the number of nodes supported by cluster network {i} due to invalid \
                 hostPrefix"
            );
            problems.push(Problem::new(super::FoundAt::Validate, path, why));
            return;
        };
        nodes = nodes.saturating_add(1_u64.checked_shl(bits).unwrap_or(u64::MAX));
    }
    let addresses = 1_u64 << (32 - u32::from(join.prefix_len()));
    if nodes >= addresses.saturating_sub(3) {
        let why = "ipv4InternalJoinSubnet is not large enough for the maximum number of nodes which can be supported by \
                   ClusterNetwork";
        refuse(why.into(), &format!("it needs room for {nodes} nodes and three more addresses"));
    }
}

fn others(list: &[IpNet], cidr: IpNet) -> Vec<(usize, IpNet)> {
    list.iter().copied().enumerate().filter(|(_, other)| overlap(*other, cidr)).collect()
}

pub(super) fn overlap(a: IpNet, b: IpNet) -> bool {
    a.contains(&b.addr()) || b.contains(&a.addr())
}
