//! Where the time of a bring-up went: nodes × steps, with the critical path marked.
//!
//! In: what was written down on the way (milestones of `lab up`, bootkube's record, the helper's events). Out: a [`Timeline`],
//! as data, for a terminal, or as SVG. Pure: nobody is asked.

mod draw;
mod path;

pub use draw::{svg, terminal};

use seedling_steps::{Entry, Phase};
use seedling_types::helper::{HelperEvent, HelperEventKind};
use seedling_types::{Inventory, ports};
use serde::Serialize;
use std::net::Ipv4Addr;

pub struct Input<'a> {
    /// When the machines were switched on, in milliseconds since 1970.
    pub started: i64,
    /// In seconds since then.
    pub milestones: &'a [(String, f64)],
    pub record: &'a [Entry],
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

/// bootkube's stages that only wait.
const WAITS: [&str; 3] = ["wait-for-etcd", "cb-bootstrap", "wait-for-ceo"];
const LAB: &str = "lab";

pub fn timeline(input: &Input) -> Timeline {
    let mut rows = vec![Row { node: LAB.into(), bars: milestones(input.milestones) }];
    for host in &input.inventory.hosts {
        let mut bars = boot(input, &host.name, host.address, &host.mac);
        if input.inventory.bootstrap().is_some_and(|b| b.name == host.name) {
            bars.extend(stages(input));
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

/// A stage that a restart cut in two has two bars.
fn stages(input: &Input) -> Vec<Bar> {
    let mut bars = Vec::new();
    let mut open: Option<(&String, i64)> = None;
    for entry in input.record {
        match (entry.phase, &entry.stage, entry.unix_millis) {
            (Phase::StageStart, Some(stage), Some(at)) => open = Some((stage, at)),
            (Phase::StageEnd, Some(stage), Some(at)) => {
                if let Some((_, from)) = open.take().filter(|(name, _)| *name == stage) {
                    let since = |at: i64| (at - input.started) as f64 / 1000.0;
                    let waits = WAITS.contains(&stage.as_str());
                    bars.push(Bar { step: stage.clone(), from: since(from), to: since(at), waits });
                }
            }
            _ => {}
        }
    }
    bars
}

/// What the helper saw of a machine: address, pointer, configuration, software, and its API server's first `readyz`.
fn boot(input: &Input, name: &str, address: Ipv4Addr, mac: &str) -> Vec<Bar> {
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
        let seen = marks[mark].get_or_insert((at, at));
        // Leases are renewed, and machines restart: of those the first time counts.
        if mark == 3 {
            seen.1 = at;
        }
    }
    let first = |mark: usize| marks[mark].map(|(first, _)| first);
    let software = marks[3].map(|(_, last)| last);
    let steps = [
        ("power to DHCP", Some(0.0), first(0), false),
        ("DHCP to pointer", first(0), first(1), false),
        ("waits for its configuration", first(1), first(2), true),
        ("fetches its software", first(2).or(first(1)), software, false),
        ("kubelet, static pods, API server ready", software, first(4), false),
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
