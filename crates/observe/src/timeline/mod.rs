//! Where the time of a bring-up went: nodes × steps, with the critical path marked.
//!
//! In: what was written down on the way (milestones of `lab up`, the nodes' journals, the helper's events). Out: a [`Timeline`],
//! as data, for a terminal, or as SVG. Pure: nobody is asked.

mod draw;
mod path;

pub use draw::{svg, terminal};

use seedling_steps::journal::State;
use seedling_types::helper::{HelperEvent, HelperEventKind};
use seedling_types::{Inventory, ports};
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::IpAddr;

pub struct Input<'a> {
    /// When the machines were switched on, in milliseconds since 1970.
    pub started: i64,
    /// In seconds since then.
    pub milestones: &'a [(String, f64)],
    /// A state a node, by its name.
    pub journals: &'a BTreeMap<String, State>,
    pub events: &'a [HelperEvent],
    pub inventory: &'a Inventory,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Timeline {
    pub seconds: f64,
    pub rows: Vec<Row>,
    /// From the start to the end, without gaps.
    pub critical: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    pub node: String,
    pub bars: Vec<Bar>,
}

/// In seconds since the machines were switched on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bar {
    pub step: String,
    pub from: f64,
    pub to: f64,
    /// It waits for others: what they do explains its time.
    pub waits: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    pub node: String,
    pub step: String,
    pub from: f64,
    pub to: f64,
}

/// Steps that only wait; what others do explains their time.
#[rustfmt::skip]
const WAITS: [&str; 11] = [
    "bootkube wait-for-etcd", "bootkube cb-bootstrap", "bootkube cb-bootstrap/api", "bootkube cb-bootstrap/masters",
    "bootkube wait-for-ceo", "progress report-bootstrap-complete", "kubelet-join request",
    "kubelet-join certificate", "etcd-join membership", "etcd-wait voter", "first-boot disk-and-clock",
];
/// The helper reports a boot in more detail, and by its own clock.
const TOLD_BY_THE_HELPER: &str = "boot";
/// It follows bootkube from the beginning to the end, and says no more than that.
const TOLD_BY_BOOTKUBE: &str = "progress wait-for-bootstrap-complete";
const LAB: &str = "lab";

pub fn timeline(input: &Input) -> Timeline {
    let mut rows = vec![Row { node: LAB.into(), bars: milestones(input.milestones) }];
    for host in &input.inventory.hosts {
        let mut bars = boot(input, &host.name, host.address, &host.mac);
        if let Some(state) = input.journals.get(&host.name) {
            bars.extend(steps(input.started, state));
        }
        rows.push(Row { node: host.name.clone(), bars });
    }
    let seconds = input.milestones.last().map_or(0.0, |(_, at)| *at);
    for row in &mut rows {
        row.bars.retain(|bar| bar.from < seconds);
        row.bars.iter_mut().for_each(|bar| bar.to = bar.to.min(seconds));
    }
    let critical = path::critical(&rows, seconds);
    Timeline { seconds, rows, critical }
}

/// From one to the next: what `lab up` waited for.
fn milestones(milestones: &[(String, f64)]) -> Vec<Bar> {
    let starts = std::iter::once(0.0).chain(milestones.iter().map(|(_, at)| *at));
    let bars = milestones.iter().zip(starts).map(|((name, to), from)| {
        let step = name.split_once(": ").map_or(name.as_str(), |(what, _)| what).to_string();
        Bar { step, from, to: *to, waits: true }
    });
    bars.collect()
}

/// A step that a restart cut in two has two bars. Of an installer, revisions are enough.
fn steps(started: i64, state: &State) -> Vec<Bar> {
    let since = |at: i64| (at - started) as f64 / 1000.0;
    let mut bars = Vec::new();
    for service in state.services.iter().filter(|s| s.name != TOLD_BY_THE_HELPER) {
        let installs = service.name.starts_with("installer/");
        for step in service.steps.iter().filter(|s| !(installs && s.name.contains('/'))) {
            let name = format!("{} {}", service.name, step.name);
            if name == TOLD_BY_BOOTKUBE {
                continue;
            }
            let waits = WAITS.contains(&name.as_str());
            let bar = |&(from, to): &(i64, i64)| Bar {
                step: name.clone(),
                from: since(from),
                to: since(to),
                waits,
            };
            bars.extend(step.runs.iter().map(bar));
        }
    }
    bars.sort_by(|a, b| a.from.total_cmp(&b.from));
    bars
}

/// What the helper saw of a machine: address, pointer, configuration, software, and its API server's first `readyz`.
fn boot(input: &Input, name: &str, address: IpAddr, mac: &str) -> Vec<Bar> {
    let mut marks: [Option<(f64, f64)>; 5] = [None; 5];
    for event in input.events {
        let mark = match &event.what {
            HelperEventKind::Dhcp { mac: of, .. } if of.eq_ignore_ascii_case(mac) => 0,
            HelperEventKind::Http { path, remote, .. } if *remote == address && path.starts_with("/ign/") => {
                1
            }
            HelperEventKind::Connection { port, remote, .. } if *remote == address && *port == ports::MCS => {
                2
            }
            HelperEventKind::Http { path, remote, .. } if *remote == address && path.starts_with("/bin/") => {
                3
            }
            HelperEventKind::Backend { port, host, healthy: true, .. }
                if host == name && *port == ports::API =>
            {
                4
            }
            _ => continue,
        };
        let Some(at) = millis(&event.time).map(|at| (at - input.started) as f64 / 1000.0) else { continue };
        let has_its_config = marks[3].is_some();
        let seen = marks[mark].get_or_insert((at, at));
        // Leases are renewed, and machines restart: of those the first time counts. A worker asks until a master serves it.
        if mark == 3 || mark == 2 && !has_its_config {
            seen.1 = at;
        }
    }
    let first = |mark: usize| marks[mark].map(|(first, _)| first);
    let last = |mark: usize| marks[mark].map(|(_, last)| last);
    let (served, software) = (last(2), last(3));
    let steps = [
        ("power to DHCP", Some(0.0), first(0), false),
        ("DHCP to pointer", first(0), first(1), false),
        ("waits for its configuration", first(1), served, true),
        ("fetches its software", served.or(first(1)), software, false),
        ("kubelet, static pods, API server ready", software, first(4), input.journals.contains_key(name)),
    ];
    let bars = steps.into_iter().filter_map(|(step, from, to, waits)| {
        let (from, to) = (from?, to?);
        (to >= from).then(|| Bar { step: step.into(), from, to, waits })
    });
    bars.collect()
}

fn millis(time: &str) -> Option<i64> {
    time.parse::<jiff::Timestamp>().ok().map(|t| t.as_millisecond())
}

#[cfg(test)]
mod tests;
