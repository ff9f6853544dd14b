//! What a bring-up left behind, as read: the nodes' journals, the helper's events, what machine-config servers were asked, milestones,
//! and what the API said when it answered. A page is made of this and of nothing else.

use seedling_steps::journal::Line;
use seedling_types::Inventory;
use seedling_types::helper::HelperEvent;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Inputs {
    pub lab: String,
    pub domain: String,
    pub inventory: Inventory,
    /// When the machines were switched on, in milliseconds since 1970; 0: not yet.
    pub started: i64,
    /// In seconds since then.
    pub milestones: Vec<(String, f64)>,
    /// `lab up` has seen the end.
    pub finished: bool,
    /// By node.
    pub journals: BTreeMap<String, Vec<Line>>,
    pub events: Vec<HelperEvent>,
    /// By the node whose machine-config server was asked.
    pub configs: BTreeMap<String, Vec<Asked>>,
    /// On the nodes' disks.
    pub certificates: Vec<Certificate>,
    /// Power by machine, as it is now.
    pub power: BTreeMap<String, String>,
    /// The API answers now.
    pub api: bool,
    /// What it said when it last answered.
    pub cluster: Option<Cluster>,
}

/// A line of a machine-config server's audit log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Asked {
    pub time: String,
    pub verdict: String,
    pub reason: String,
    pub address: Option<String>,
    pub node: Option<String>,
    pub request: Option<Request>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Request {
    pub method: String,
    pub pool: String,
    pub status: u16,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Certificate {
    /// A node, or the namespace of a Secret.
    pub place: String,
    pub name: String,
    /// RFC 3339.
    pub issued: String,
    pub ends: String,
    pub renewed_from: Option<String>,
    /// Who renews it, or why nobody does.
    pub by: String,
}

/// What the API said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cluster {
    pub events: Vec<Told>,
    pub nodes: Vec<Node>,
    /// By operand: `etcd`, `kube-apiserver`, ...
    pub revisions: BTreeMap<String, Revisions>,
    pub certificates: Vec<Certificate>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Told {
    pub time: String,
    pub object: String,
    pub reason: String,
    pub message: String,
    pub warning: bool,
    pub count: i32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Node {
    pub name: String,
    pub ready: bool,
    /// Since when, RFC 3339.
    pub since: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Revisions {
    pub latest: i64,
    /// Current and target, by node.
    pub nodes: BTreeMap<String, (i64, i64)>,
}
