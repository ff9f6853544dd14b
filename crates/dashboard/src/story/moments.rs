//! What happened, one line each: milestones, machine-config requests, what the helper and the cluster told, steps that failed.

use super::{Moment, Source, Tone, seconds, since};
use crate::inputs::{Asked, Inputs};
use seedling_steps::journal::Event;
use seedling_types::helper::HelperEventKind;
use seedling_types::ports;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Of each source, the newest.
const MOST: usize = 400;

pub(super) fn moments(inputs: &Inputs) -> BTreeMap<String, Moment> {
    let sources = [milestones(inputs), configs(inputs), helper(inputs), journals(inputs), cluster(inputs)];
    sources.into_iter().flat_map(newest).collect()
}

fn newest(mut moments: Vec<(String, Moment)>) -> Vec<(String, Moment)> {
    moments.sort_by(|(_, a), (_, b)| a.at.total_cmp(&b.at));
    moments.split_off(moments.len().saturating_sub(MOST))
}

fn milestones(inputs: &Inputs) -> Vec<(String, Moment)> {
    let told = inputs.milestones.iter().enumerate().map(|(n, (text, at))| {
        let moment = Moment {
            at: *at,
            source: Source::Milestone,
            node: String::new(),
            text: text.clone(),
            tone: Tone::Good,
        };
        (format!("moment/milestone/{n:03}"), moment)
    });
    told.collect()
}

fn configs(inputs: &Inputs) -> Vec<(String, Moment)> {
    let mut told = Vec::new();
    for (server, lines) in &inputs.configs {
        for (n, asked) in lines.iter().enumerate() {
            let Some(at) = seconds(inputs, &asked.time) else { continue };
            let node = name(inputs, asked);
            let given = asked.request.as_ref().is_some_and(|request| request.status == 200);
            let tone = match asked.verdict.as_str() {
                "allowed" if given => Tone::Good,
                "allowed" => Tone::Plain,
                _ => Tone::Bad,
            };
            let what = asked.request.as_ref().map_or_else(
                || "a connection".to_string(),
                |r| format!("{} /config/{} → {}", r.method, r.pool, r.status),
            );
            let text = format!("{what} by {server}, {}: {}", asked.verdict, asked.reason);
            told.push((
                format!("moment/config/{server}/{n:05}"),
                Moment { at, source: Source::Config, node, text, tone },
            ));
        }
    }
    told
}

/// Who asked: as the server knew it, or whose address it is.
pub(super) fn name(inputs: &Inputs, asked: &Asked) -> String {
    let by_address = || {
        let address: IpAddr = asked.address.as_ref()?.parse().ok()?;
        inputs.inventory.by_address(address).map(|host| host.name.clone())
    };
    asked.node.clone().or_else(by_address).unwrap_or_default()
}

fn helper(inputs: &Inputs) -> Vec<(String, Moment)> {
    let by_address = |address: &IpAddr| inputs.inventory.by_address(*address).map(|host| host.name.clone());
    let told = inputs.events.iter().enumerate().filter_map(|(n, event)| {
        let (node, text, tone) = match &event.what {
            HelperEventKind::Dhcp { message, mac, address, .. } => {
                let host = inputs.inventory.by_mac(mac).map(|host| host.name.clone());
                let address = address.map(|a| format!(" {a}")).unwrap_or_default();
                let tone = if matches!(message.as_str(), "NAK" | "REFUSED" | "ELSEWHERE") {
                    Tone::Bad
                } else {
                    Tone::Plain
                };
                (host, format!("DHCP {message}{address} for {mac}"), tone)
            }
            HelperEventKind::Http { path, status, remote, bytes, .. } if path.starts_with("/ign/") => {
                let tone = if *status == 200 { Tone::Plain } else { Tone::Bad };
                (by_address(remote), format!("Ignition config, {bytes} bytes → {status}"), tone)
            }
            HelperEventKind::Backend { port, host, healthy, reason } => {
                let (word, tone) = if *healthy { ("takes", Tone::Good) } else { ("leaves", Tone::Plain) };
                (Some(host.clone()), format!("the load balancer {word} {host}:{port}: {reason}"), tone)
            }
            HelperEventKind::Connection { port, remote, backend, .. } if *port == ports::MCS => (
                by_address(remote),
                format!("is connected with the machine-config server on {backend}"),
                Tone::Plain,
            ),
            HelperEventKind::Refused { remote, reason, .. } => {
                (by_address(remote), format!("Ignition config refused: {reason}"), Tone::Bad)
            }
            HelperEventKind::Restarted { what, reason } => {
                (None, format!("{what} was started again: {reason}"), Tone::Bad)
            }
            HelperEventKind::Reloaded { machines } => {
                (None, format!("config read again: {machines} machines"), Tone::Plain)
            }
            HelperEventKind::NotReloaded { reason } => {
                (None, format!("config not usable: {reason}"), Tone::Bad)
            }
            HelperEventKind::Limited { service, connections, reason, .. } => {
                (None, format!("{service} closed {connections} connections: {reason}"), Tone::Bad)
            }
            _ => return None,
        };
        let (at, node) = (seconds(inputs, &event.time)?, node.unwrap_or_default());
        Some((format!("moment/helper/{n:06}"), Moment { at, source: Source::Helper, node, text, tone }))
    });
    told.collect()
}

/// What went well is on the path; here is what did not.
fn journals(inputs: &Inputs) -> Vec<(String, Moment)> {
    let mut told = Vec::new();
    for (node, lines) in &inputs.journals {
        for (n, line) in lines.iter().enumerate().filter(|(_, line)| line.event == Event::Failed) {
            let (at, step) = (since(inputs, line.unix_millis()), line.step.as_deref().unwrap_or_default());
            let text = format!(
                "{} {step} failed: {}",
                line.who,
                line.note.as_deref().unwrap_or("no reason was given")
            );
            let moment = Moment { at, source: Source::Journal, node: node.clone(), text, tone: Tone::Bad };
            told.push((format!("moment/journal/{node}/{n:05}"), moment));
        }
    }
    told
}

fn cluster(inputs: &Inputs) -> Vec<(String, Moment)> {
    let events = inputs.cluster.iter().flat_map(|cluster| &cluster.events);
    let told = events.filter_map(|event| {
        let times = if event.count > 1 { format!(" ({} times)", event.count) } else { String::new() };
        let text = format!("{} {}: {}{times}", event.object, event.reason, event.message);
        let tone = if event.warning { Tone::Bad } else { Tone::Plain };
        let moment = Moment {
            at: seconds(inputs, &event.time)?,
            source: Source::Cluster,
            node: String::new(),
            text,
            tone,
        };
        Some((format!("moment/cluster/{}/{}/{}", event.time, event.object, event.reason), moment))
    });
    told.collect()
}
