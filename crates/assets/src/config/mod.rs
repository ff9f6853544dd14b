//! install-config.yaml: read → merged → validated. All problems at once, each with its path, place and a hint.

mod answers;
#[rustfmt::skip] // A field is a line, as in Go.
pub mod baremetal;
mod capabilities;
mod check;
mod compose;
mod decode;
mod explain;
mod features;
mod fields;
mod go;
mod merge;
#[rustfmt::skip]
pub mod model;
mod network;
mod platform;
mod pools;
pub mod problem;
mod quiet;
mod reference;
mod scalar;
mod secret;
mod services;
mod ssh;
mod syntax;
mod text;
mod tree;
mod url;
mod vips;

pub use answers::{Answers, example};
pub use baremetal::Baremetal;
pub use explain::{all_fields, explain};
pub use merge::Merged;
pub use problem::{FoundAt, Mark, Problem};

use ipnet::IpNet;
use seedling_types::{ClusterDomain, Inventory};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The first of three types: what the file says, field by field.
#[derive(Clone, Debug)]
pub struct Read(model::Fields);

/// What a file is read with.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The node OS stream of the release, the default of `osImageStream`.
    pub stream: &'a str,
    /// Unknown fields are passed over with a warning, as upstream does for other programs that call it.
    pub lenient: bool,
    /// FIPS clusters are let through although this program is not FIPS-capable.
    pub skip_host_crypto: bool,
}

impl<'a> Context<'a> {
    pub fn new(stream: &'a str) -> Self {
        Self { stream, lenient: false, skip_host_crypto: false }
    }
}

/// A valid install-config.
#[derive(Clone, Debug)]
pub struct InstallConfig {
    pub name: String,
    pub domain: ClusterDomain,
    pub masters: u32,
    pub arbiters: u32,
    pub workers: u32,
    /// Pools whose machines run without simultaneous multithreading.
    pub without_hyperthreading: Vec<String>,
    pub networks: Networks,
    pub platform: Platform,
    /// What `featureGates` switches on and off.
    pub feature_gates: BTreeMap<String, bool>,
    /// What is allowed, but should be known.
    pub warnings: Vec<String>,
    /// With all defaults, as it goes into the cluster.
    pub merged: Merged,
}

#[derive(Clone, Debug)]
pub enum Platform {
    None,
    Baremetal(Box<Baremetal>),
}

/// In each list the first family is the one that comes first everywhere.
#[derive(Clone, Debug)]
pub struct Networks {
    pub network_type: String,
    pub machine: Vec<IpNet>,
    pub cluster: Vec<ClusterNetwork>,
    /// One, or one of each family.
    pub service: Vec<IpNet>,
}

#[derive(Clone, Copy, Debug)]
pub struct ClusterNetwork {
    pub cidr: IpNet,
    pub host_prefix: u8,
}

impl Networks {
    /// Address number `n` of each service network: 1 is the API, 10 is DNS.
    pub fn service_addresses(&self, n: u32) -> Vec<IpAddr> {
        self.service.iter().filter_map(|cidr| merge::host(*cidr, n).parse().ok()).collect()
    }
    /// The same of the first service network.
    pub fn service_address(&self, n: u32) -> IpAddr {
        let first = self.service_addresses(n).first().copied();
        first.unwrap_or(IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED))
    }
}

impl InstallConfig {
    pub fn parse(yaml: &str, context: &Context) -> Result<Self, Vec<Problem>> {
        let (tree, mut problems) = tree::parse(yaml);
        let root = tree.unwrap_or(tree::Node { value: tree::Value::Null, at: Mark { line: 1, column: 1 } });
        // What is not YAML has no fields that could be wrong.
        let unreadable = problems.iter().any(|p| p.step == FoundAt::Yaml) && root.value == tree::Value::Null;
        let mut valid = None;
        if !unreadable {
            let json = decode::decode(&root, &mut problems);
            if context.lenient {
                pass_over_unknown(&mut problems);
            }
            let read = Read(serde_json::from_value(json).unwrap_or_default());
            let mut merged = merge::merge(read, context, &mut problems);
            let mut found = Vec::new();
            check::check(&mut merged, context, &mut found);
            found.retain(|problem| !follows(problem, &problems));
            problems.extend(found);
            if problems.iter().all(|p| p.step == FoundAt::Warning) {
                let warnings = problems.iter().map(|p| p.message.clone()).collect();
                valid = Some(check::valid(merged, warnings));
            }
        }
        let text = yaml.trim_start_matches('\u{feff}');
        let places = root.places().into_iter().map(|(path, at)| (path.to_lowercase(), at)).collect();
        for problem in &mut problems {
            problem.locate(&places, text);
        }
        valid.ok_or(problems)
    }

    /// Without workers there is no other place for a workload.
    pub fn masters_schedulable(&self) -> bool {
        self.workers == 0
    }

    /// What an installation in place needs beyond a valid config: the disk that the node is written to.
    pub fn in_place_disk(&self) -> Result<&str, String> {
        let disk = self.merged.bootstrap_in_place.as_ref().map(|b| b.installation_disk.as_str());
        disk.filter(|disk| !disk.is_empty()).ok_or_else(|| {
            "bootstrapInPlace.installationDisk: Required value: installationDisk must be set the target disk drive for the \
             installation"
                .into()
        })
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
            problems.push(Problem::new(FoundAt::Hosts, "hosts", text).hint("make the two numbers equal"));
        }
        let families = self.networks.service.iter().map(|network| network.addr().is_ipv6());
        for (v6, family) in families.map(|v6| (v6, if v6 { "IPv6" } else { "IPv4" })) {
            let without = inventory.hosts.iter().filter(|h| !h.addresses().any(|a| a.is_ipv6() == v6));
            for host in without {
                let text =
                    format!("hosts: {} has no {family} address, and serviceNetwork has one", host.name);
                let hint = "give it one as address, or beside one of the other family as secondAddress";
                problems.push(Problem::new(FoundAt::Hosts, "hosts", text).hint(hint));
            }
        }
        if inventory.bootstrap().is_none() && self.masters > 1 {
            let hint = "add one; it is a machine for half an hour";
            problems.push(Problem::new(FoundAt::Hosts, "hosts", "hosts: has no bootstrap host").hint(hint));
        }
        problems
    }
}

/// Whether a rule was broken only because its field, or one around or inside it, could not be read or was misspelt.
fn follows(problem: &Problem, earlier: &[Problem]) -> bool {
    let within = |inner: &str, outer: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    let unread = |p: &Problem| matches!(p.step, FoundAt::Stop | FoundAt::Decode | FoundAt::Upconvert);
    earlier.iter().any(|p| {
        let whole = p.path.is_empty();
        let around = whole || within(&problem.path, &p.path) || within(&p.path, &problem.path);
        unread(p) && around || p.meant.as_ref().is_some_and(|meant| within(&problem.path, meant))
    })
}

/// Information rather than a warning, upstream as here.
pub const PASSED_OVER: &str =
    "Attempting to unmarshal while ignoring unknown keys because strict unmarshaling failed";

/// Upstream's two lines for it.
fn pass_over_unknown(problems: &mut Vec<Problem>) {
    let first = problems.iter().find(|p| p.step == FoundAt::Unknown).cloned();
    problems.retain(|p| p.step != FoundAt::Unknown);
    if let Some(first) = first {
        let text = format!(
            "failed to parse first occurrence of unknown field: failed to unmarshal install-config.yaml: {}",
            first.message
        );
        problems.push(Problem::warning(&first.path, text));
        problems.push(Problem::warning(&first.path, PASSED_OVER));
    }
}

/// Why a text is not YAML, in upstream's words.
pub(crate) fn yaml_error(text: &str) -> Option<String> {
    let (_, problems) = tree::parse(text);
    problems.into_iter().find(|p| p.step == FoundAt::Yaml).map(|p| p.message)
}

/// hosts.yaml, with all its problems.
pub fn parse_hosts(yaml: &str) -> Result<Inventory, Vec<Problem>> {
    Inventory::parse(yaml).map_err(|errors| {
        let problem = |e: seedling_types::InventoryError| {
            let mut problem = Problem::new(FoundAt::Hosts, &e.path, format!("{}: {}", e.path, e.message));
            problem.at = e.line.map(|line| Mark { line, column: 0 });
            problem.hint = e.hint;
            problem
        };
        errors.into_iter().map(problem).collect()
    })
}
