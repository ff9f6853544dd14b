//! The first of three types: an install-config as it was written. Knows fields and their types, nothing of their meaning.

use super::problem::{Problem, Step};
use super::tree::{Node, Value, join};
use std::cell::RefCell;

#[derive(Debug, Default)]
pub struct Read {
    pub api_version: Option<String>,
    pub base_domain: Option<String>,
    pub name: Option<String>,
    pub ssh_key: Option<String>,
    pub pull_secret: Option<String>,
    pub control_plane: Option<Pool>,
    pub compute: Option<Vec<Pool>>,
    pub networking: Networking,
    /// Names of the platforms that are given.
    pub platforms: Vec<String>,
    pub publish: Option<String>,
    pub trust_bundle_policy: Option<String>,
    pub os_image_stream: Option<String>,
    pub credentials_mode: Option<String>,
    pub fips: Option<bool>,
    /// Fields that OpenShift knows and Seedling does not act on yet.
    pub not_yet: Vec<String>,
}

#[derive(Debug, Default)]
pub struct Pool {
    pub name: Option<String>,
    pub replicas: Option<i64>,
    pub hyperthreading: Option<String>,
    pub architecture: Option<String>,
}

#[derive(Debug, Default)]
pub struct Networking {
    pub network_type: Option<String>,
    pub machine_network: Option<Vec<String>>,
    pub cluster_network: Option<Vec<ClusterNetwork>>,
    pub service_network: Option<Vec<String>>,
    /// Old names, still accepted.
    pub cluster_networks: Option<Vec<ClusterNetwork>>,
    pub machine_cidr: Option<String>,
    pub service_cidr: Option<String>,
    pub kind: Option<String>,
    pub mtu: Option<i64>,
}

#[derive(Clone, Debug, Default)]
pub struct ClusterNetwork {
    pub cidr: String,
    pub host_prefix: Option<i64>,
    pub host_subnet_length: Option<i64>,
}

const NOT_YET: &[&str] = &[
    "additionalTrustBundle",
    "arbiter",
    "bootstrapInPlace",
    "capabilities",
    "cpuPartitioningMode",
    "featureGates",
    "featureSet",
    "imageContentSources",
    "imageDigestSources",
    "operatorPublishingStrategy",
    "pki",
    "proxy",
];

pub fn read(root: &Node, problems: &mut Vec<Problem>) -> Read {
    let found = RefCell::new(Vec::new());
    let top = Cursor { node: Some(root), path: String::new(), go: "InstallConfig", problems: &found };
    let mut known = vec![
        "apiVersion",
        "metadata",
        "baseDomain",
        "sshKey",
        "pullSecret",
        "controlPlane",
        "compute",
        "networking",
        "platform",
        "publish",
        "fips",
        "additionalTrustBundlePolicy",
        "osImageStream",
        "credentialsMode",
    ];
    known.extend(NOT_YET);
    top.only(&known);
    let metadata = top.at("metadata", "ObjectMeta");
    metadata.only(&["name", "creationTimestamp"]);
    let platform = top.at("platform", "Platform");
    let read = Read {
        api_version: top.text("apiVersion"),
        base_domain: top.text("baseDomain"),
        name: metadata.text("name"),
        ssh_key: top.text("sshKey"),
        pull_secret: top.text("pullSecret"),
        control_plane: top.given("controlPlane").then(|| pool(&top.at("controlPlane", "MachinePool"))),
        compute: top.list("compute", "MachinePool", pool),
        networking: networking(&top.at("networking", "Networking")),
        platforms: platforms(&platform),
        publish: top.text("publish"),
        trust_bundle_policy: top.text("additionalTrustBundlePolicy"),
        os_image_stream: top.text("osImageStream"),
        credentials_mode: top.text("credentialsMode"),
        fips: top.boolean("fips"),
        not_yet: NOT_YET.iter().filter(|field| top.given(field)).map(|f| f.to_string()).collect(),
    };
    problems.extend(found.into_inner());
    read
}

fn platforms(platform: &Cursor) -> Vec<String> {
    const KNOWN: &[&str] = &[
        "aws",
        "azure",
        "baremetal",
        "external",
        "gcp",
        "ibmcloud",
        "none",
        "nutanix",
        "openstack",
        "ovirt",
        "powervc",
        "powervs",
        "vsphere",
    ];
    platform.only(KNOWN);
    platform.at("none", "Platform").only(&[]);
    KNOWN.iter().filter(|name| platform.given(name)).map(|name| name.to_string()).collect()
}

fn pool(pool: &Cursor) -> Pool {
    pool.only(&["name", "replicas", "hyperthreading", "architecture", "platform", "fencing", "diskSetup"]);
    let platform = pool.at("platform", "MachinePoolPlatform");
    for field in platform.fields() {
        platform.wrong(&field, "machine pools take no platform settings on none", "remove it");
    }
    for field in ["fencing", "diskSetup"].iter().filter(|field| pool.given(field)) {
        pool.wrong(field, "seedling does not act on it yet", "remove it");
    }
    Pool {
        name: pool.text("name"),
        replicas: pool.int("replicas", "int64"),
        hyperthreading: pool.text("hyperthreading"),
        architecture: pool.text("architecture"),
    }
}

fn networking(net: &Cursor) -> Networking {
    net.only(&[
        "networkType",
        "machineNetwork",
        "clusterNetwork",
        "serviceNetwork",
        "clusterNetworks",
        "machineCIDR",
        "serviceCIDR",
        "type",
        "clusterNetworkMTU",
        "ovnKubernetesConfig",
        "networkObservability",
    ]);
    for field in ["ovnKubernetesConfig", "networkObservability"].iter().filter(|field| net.given(field)) {
        net.wrong(field, "seedling does not act on it yet", "remove it");
    }
    Networking {
        network_type: net.text("networkType"),
        machine_network: net.list("machineNetwork", "MachineNetworkEntry", |entry| {
            entry.only(&["cidr"]);
            entry.text("cidr").unwrap_or_default()
        }),
        cluster_network: net.list("clusterNetwork", "ClusterNetworkEntry", cluster_network),
        service_network: net
            .list("serviceNetwork", "Networking", |entry| entry.own_text().unwrap_or_default()),
        cluster_networks: net.list("clusterNetworks", "ClusterNetworkEntry", cluster_network),
        machine_cidr: net.text("machineCIDR"),
        service_cidr: net.text("serviceCIDR"),
        kind: net.text("type"),
        mtu: net.int("clusterNetworkMTU", "uint32"),
    }
}

fn cluster_network(entry: &Cursor) -> ClusterNetwork {
    entry.only(&["cidr", "hostPrefix", "hostSubnetLength"]);
    ClusterNetwork {
        cidr: entry.text("cidr").unwrap_or_default(),
        host_prefix: entry.int("hostPrefix", "int32"),
        host_subnet_length: entry.int("hostSubnetLength", "int32"),
    }
}

/// A place in the file; reading through it notes what does not fit and goes on.
struct Cursor<'a> {
    node: Option<&'a Node>,
    path: String,
    /// Name of the Go type, for messages.
    go: &'static str,
    problems: &'a RefCell<Vec<Problem>>,
}

impl<'a> Cursor<'a> {
    fn fields(&self) -> Vec<String> {
        match self.node.map(|n| &n.value) {
            Some(Value::Map(fields)) => fields.iter().map(|(key, _)| key.clone()).collect(),
            _ => vec![],
        }
    }
    /// Keys match exactly or, as Go's decoder does, without regard to case.
    fn child(&self, key: &str) -> Option<&'a Node> {
        let Some(Value::Map(fields)) = self.node.map(|n| &n.value) else { return None };
        let exact = fields.iter().find(|(k, _)| k == key);
        let field = exact.or_else(|| fields.iter().find(|(k, _)| k.eq_ignore_ascii_case(key)));
        field.map(|(_, node)| node).filter(|node| node.value != Value::Null)
    }
    fn given(&self, key: &str) -> bool {
        self.child(key).is_some()
    }
    fn at(&self, key: &str, go: &'static str) -> Cursor<'a> {
        let node = self.child(key);
        if let Some(node) = node.filter(|node| !matches!(node.value, Value::Map(_))) {
            self.mismatch(key, node, &format!("types.{go}"));
        }
        Cursor { node, path: join(&self.path, key), go, problems: self.problems }
    }
    fn only(&self, known: &[&str]) {
        for field in self.fields().iter().filter(|f| !known.iter().any(|k| k.eq_ignore_ascii_case(f))) {
            let message = format!("json: unknown field {field:?}");
            let hint =
                nearest(field, known).map_or("remove it".into(), |name| format!("did you mean {name:?}?"));
            self.note(Problem::new(Step::Unknown, &join(&self.path, field), message).hint(hint));
        }
    }
    fn wrong(&self, key: &str, detail: &str, hint: &str) {
        self.note(Problem::forbidden(&join(&self.path, key), detail).hint(hint));
    }
    fn text(&self, key: &str) -> Option<String> {
        self.child(key).and_then(|node| self.as_text(key, node))
    }
    fn own_text(&self) -> Option<String> {
        self.node.and_then(|node| self.as_text("", node))
    }
    /// Numbers are taken for text, as upstream does.
    fn as_text(&self, key: &str, node: &Node) -> Option<String> {
        match &node.value {
            Value::Text(text) => Some(text.clone()),
            Value::Int(number) => Some(number.to_string()),
            Value::Bool(value) => Some(value.to_string()),
            Value::Null => None,
            Value::List(_) | Value::Map(_) => {
                self.mismatch(key, node, "string");
                None
            }
        }
    }
    fn int(&self, key: &str, go: &str) -> Option<i64> {
        let node = self.child(key)?;
        if let Value::Int(number) = node.value {
            return Some(number);
        }
        self.mismatch(key, node, go);
        None
    }
    fn boolean(&self, key: &str) -> Option<bool> {
        let node = self.child(key)?;
        if let Value::Bool(value) = node.value {
            return Some(value);
        }
        self.mismatch(key, node, "bool");
        None
    }
    fn list<T>(&self, key: &str, go: &'static str, each: impl Fn(&Cursor<'a>) -> T) -> Option<Vec<T>> {
        let node = self.child(key)?;
        let Value::List(items) = &node.value else {
            self.mismatch(key, node, &format!("[]types.{go}"));
            return None;
        };
        let cursor = |(i, item)| {
            let path = format!("{}[{i}]", join(&self.path, key));
            each(&Cursor { node: Some(item), path, go, problems: self.problems })
        };
        Some(items.iter().enumerate().map(cursor).collect())
    }
    fn mismatch(&self, key: &str, node: &Node, go: &str) {
        let path = if key.is_empty() { self.path.clone() } else { join(&self.path, key) };
        let plain = without_indices(&path);
        let message = format!(
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go struct field {}.{plain} of type {go}",
            node.value.kind(),
            self.go
        );
        self.note(
            Problem::new(Step::Unmarshal, &path, message).hint(format!("write a {} here", plainly(go))),
        );
    }
    fn note(&self, problem: Problem) {
        self.problems.borrow_mut().push(problem);
    }
}

fn plainly(go: &str) -> &str {
    match go {
        "int64" | "int32" | "uint32" => "whole number",
        "string" => "text",
        "bool" => "true or false",
        go if go.starts_with("[]") => "list",
        _ => "map",
    }
}

fn without_indices(path: &str) -> String {
    path.split('.').map(|part| part.split('[').next().unwrap_or(part)).collect::<Vec<_>>().join(".")
}

/// The known name that is at most two edits away.
fn nearest<'a>(field: &str, known: &[&'a str]) -> Option<&'a str> {
    known.iter().copied().min_by_key(|name| distance(field, name)).filter(|name| distance(field, name) <= 2)
}

fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) =
        (a.to_lowercase().chars().collect(), b.to_lowercase().chars().collect());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let change = diagonal + usize::from(ca != cb);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}
