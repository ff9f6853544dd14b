//! How far each machine is: one mark a stage, and when it was reached. Pure.

use crate::NodeStatus;
use seedling_steps::journal::{State, Step};
use seedling_types::helper::{HelperEvent, HelperEventKind};
use seedling_types::{Role, ports};
use serde::Serialize;
use std::collections::BTreeMap;

/// From power to a working control plane, in this order.
pub const STAGES: [&str; 5] = ["dhcp", "config", "kubelet", "etcd", "api"];

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Progress {
    pub name: String,
    /// A mark for each of [`STAGES`].
    pub marks: Vec<Mark>,
    /// Stages of bootkube that are done; of the bootstrap machine.
    pub bootkube: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "state", content = "at")]
pub enum Mark {
    /// Not of this machine's role.
    Never,
    Pending,
    /// The machine does not answer, or nobody here sees it: of a cluster elsewhere.
    Unknown,
    /// When it was reached first, in milliseconds since 1970.
    Done(i64),
    /// It was reached, and is gone: since when.
    Lost(i64),
    /// It was given up on purpose, by the machine that only helps others to begin.
    Left,
}

pub(super) fn progress(
    node: &NodeStatus,
    journals: &BTreeMap<String, State>,
    events: &[HelperEvent],
) -> Progress {
    let state = journals.get(&node.name);
    let step = |who: &str, step: &str| state.and_then(|state| state.step(who, step)).and_then(first_done);
    let or_pending = |at: Option<i64>| at.map_or(Mark::Pending, Mark::Done);
    let address = events.iter().find_map(|event| match &event.what {
        HelperEventKind::Dhcp { message, mac, .. }
            if message == "ACK" && mac.eq_ignore_ascii_case(&node.mac) =>
        {
            millis(&event.time)
        }
        _ => None,
    });
    // A machine that booted again begins "boot" again; what it did first counts.
    let boot = state.and_then(|state| state.service("boot"));
    let config = boot.and_then(|boot| boot.steps.iter().filter_map(first_done).max());
    let config = config.filter(|_| node.first_boot_done);
    let (kubelet, etcd) = match node.role {
        Role::Bootstrap => {
            (step("bootkube", "etcd-bootstrap"), or_pending(step("bootkube", "wait-for-etcd")))
        }
        Role::Master => (step("kubelet-join", "certificate"), or_pending(step("etcd-wait", "voter"))),
        Role::Worker => (step("kubelet-join", "certificate"), Mark::Never),
    };
    let api = if node.role == Role::Worker { Mark::Never } else { api(node, events) };
    let stages = state.and_then(|state| state.service("bootkube"));
    let bootkube =
        stages.map_or(0, |s| s.steps.iter().filter(|s| s.was_done && !s.name.contains('/')).count());
    let marks = vec![or_pending(address), or_pending(config), or_pending(kubelet), etcd, api];
    Progress { name: node.name.clone(), marks, bootkube }
}

/// As the balancer's health checks see it.
fn api(node: &NodeStatus, events: &[HelperEvent]) -> Mark {
    let mut mark = Mark::Pending;
    for event in events {
        let HelperEventKind::Backend { port, host, healthy, .. } = &event.what else { continue };
        if *host != node.name || *port != ports::API {
            continue;
        }
        let Some(at) = millis(&event.time) else { continue };
        mark = match (mark, healthy) {
            (Mark::Done(first), true) => Mark::Done(first),
            (_, true) => Mark::Done(at),
            (Mark::Done(_), false) if node.role == Role::Bootstrap => Mark::Left,
            (Mark::Done(_), false) => Mark::Lost(at),
            (mark, false) => mark,
        };
    }
    mark
}

fn first_done(step: &Step) -> Option<i64> {
    step.was_done.then(|| step.runs.first().map_or(step.since, |(_, to)| *to))
}

pub(super) fn millis(time: &str) -> Option<i64> {
    time.parse::<k8s_openapi::jiff::Timestamp>().ok().map(|t| t.as_millisecond())
}
