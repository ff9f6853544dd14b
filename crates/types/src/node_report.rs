//! What a node reports about itself, for operators and people to read.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Where a node writes its [`FirstBoot`].
pub const FIRST_BOOT_FILE: &str = "/var/log/openshift/first-boot.json";

/// Disk and clock, measured at the first boot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FirstBoot {
    pub fdatasync_median_micros: u64,
    pub fdatasync_slowest_micros: u64,
    /// This machine's clock is so far ahead of the helper's; none, if that did not answer.
    pub clock_ahead_seconds: Option<i64>,
    /// For people: what was found, and what to do.
    pub findings: Vec<String>,
}

/// How long the network check's `/report/after/<revision>` holds a request.
pub const HOLD: Duration = Duration::from_secs(20);

/// The network check's answer: does the node have a pod network, does a Service address answer there, does cluster DNS?
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeReport {
    pub node: String,
    pub revision: u64,
    /// The node's pod range, once its CNI config is written.
    pub pod_network: Option<String>,
    /// Of the pods' network cards, from then on.
    #[serde(default)]
    pub mtu: Option<u32>,
    pub service: Probed,
    pub dns: Probed,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probed {
    pub ok: bool,
    /// Why not.
    pub message: String,
    /// It answered at least once since this process started.
    pub before: bool,
}
