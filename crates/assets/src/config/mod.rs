//! install-config.yaml: read → merged → validated. All problems at once, each with its path, line and a hint.

mod check;
mod merge;
mod network;
pub mod problem;
mod read;
mod text;
mod tree;

pub use merge::Merged;
pub use problem::{Problem, Step};

use ipnet::Ipv4Net;
use seedling_types::{ClusterDomain, Inventory};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// A valid install-config.
#[derive(Clone, Debug)]
pub struct InstallConfig {
    pub name: String,
    pub domain: ClusterDomain,
    pub masters: u32,
    pub workers: u32,
    /// Pools whose machines run without simultaneous multithreading.
    pub without_hyperthreading: Vec<String>,
    pub networks: Networks,
    /// With all defaults, as it goes into the cluster.
    pub merged: Merged,
}

#[derive(Clone, Debug)]
pub struct Networks {
    pub network_type: String,
    pub machine: Vec<Ipv4Net>,
    pub cluster: Vec<ClusterNetwork>,
    pub service: Ipv4Net,
}

#[derive(Clone, Debug)]
pub struct ClusterNetwork {
    pub cidr: Ipv4Net,
    pub host_prefix: u8,
}

impl Networks {
    /// Address number `n` of the service network: 1 is the API, 10 is DNS.
    pub fn service_address(&self, n: u32) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.service.network()) + n)
    }
}

impl InstallConfig {
    pub fn parse(yaml: &str, stream: &str) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let tree = tree::parse(yaml, &mut problems);
        let fatal = tree.is_none() && !problems.is_empty();
        let tree = tree.unwrap_or(tree::Node { value: tree::Value::Map(vec![]), line: 1 });
        if !matches!(tree.value, tree::Value::Map(_) | tree::Value::Null) {
            let text = format!(
                "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type types.InstallConfig",
                tree.value.kind()
            );
            problems.push(Problem::new(Step::Unmarshal, "", text).hint("the file is a map of fields"));
        } else if !fatal {
            let read = read::read(&tree, &mut problems);
            let merged = merge::merge(&read, stream, &mut problems);
            let config = check::check(&read, merged, &mut problems);
            if let Some(config) = config.filter(|_| problems.is_empty()) {
                return Ok(config);
            }
        }
        let lines = with_old_names(tree.lines());
        for problem in &mut problems {
            problem.locate(&lines);
        }
        Err(problems)
    }

    /// Without workers there is no other place for a workload.
    pub fn masters_schedulable(&self) -> bool {
        self.workers == 0
    }

    /// What hosts.yaml and the install-config must agree on.
    pub fn check_hosts(&self, inventory: &Inventory) -> Vec<Problem> {
        let mut problems = Vec::new();
        let masters = inventory.masters().len();
        if masters != self.masters as usize {
            let wanted = self.masters;
            let text = format!(
                "hosts: has {masters} masters, but controlPlane.replicas of install-config.yaml is {wanted}"
            );
            problems.push(Problem::new(Step::Hosts, "hosts", text).hint("make the two numbers equal"));
        }
        if inventory.bootstrap().is_none() && self.masters > 1 {
            let hint = "add one; it is a machine for half an hour";
            problems.push(Problem::new(Step::Hosts, "hosts", "hosts: has no bootstrap host").hint(hint));
        }
        problems
    }
}

/// A field given under its old name has its line under the new one as well.
fn with_old_names(mut lines: BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    const MOVED: &[(&str, &str)] = &[
        ("networking.clusterNetworks", "networking.clusterNetwork"),
        ("networking.machineCIDR", "networking.machineNetwork"),
        ("networking.serviceCIDR", "networking.serviceNetwork"),
        ("networking.type", "networking.networkType"),
    ];
    let moved = |(path, line): (&String, &u64)| {
        let (old, new) = MOVED.iter().find(|(old, _)| path.starts_with(old))?;
        Some((path.replacen(old, new, 1), *line))
    };
    let extra: Vec<_> = lines.iter().filter_map(moved).collect();
    for (path, line) in extra {
        lines.entry(path).or_insert(line);
    }
    lines
}

/// hosts.yaml, with all its problems.
pub fn parse_hosts(yaml: &str) -> Result<Inventory, Vec<Problem>> {
    Inventory::parse(yaml).map_err(|errors| {
        let problem = |e: seedling_types::InventoryError| Problem {
            step: Step::Hosts,
            message: format!("{}: {}", e.path, e.message),
            path: e.path,
            line: e.line,
            hint: e.hint,
        };
        errors.into_iter().map(problem).collect()
    })
}
