//! An overview as lines, for a terminal or a pipe. Pure: the time is an argument.

use super::{EtcdChange, Mark, Overview, Progress, STAGES};
use crate::status::Place;
use crate::{NodeStatus, Open};
use seedling_machines::Power;
use std::fmt::Write;

/// `now` in milliseconds since 1970.
pub fn lines(view: &Overview, now: i64) -> Vec<String> {
    let mut lines = vec![headline(view, now)];
    lines.push(waiting(view, now));
    if let Some(error) = &view.last_error {
        let ago = seconds(now - error.at);
        lines.push(format!("last error, {ago} ago, {}: {}: {}", error.node, error.who, error.says));
    }
    lines.push(String::new());
    machines(view, now, &mut lines);
    lines.push(String::new());
    etcd(view, &mut lines);
    lines.push(String::new());
    cluster(view, &mut lines);
    lines
}

fn headline(view: &Overview, now: i64) -> String {
    let status = &view.status;
    let api = match (&view.cluster.error, &status.api) {
        (_, None) => "has no address yet".to_string(),
        (None, Some(address)) => format!("answers on {address}"),
        (Some(why), Some(address)) => format!("does not answer on {address} ({why})"),
    };
    let helper = match status.helper.as_ref().map(|helper| (helper.pid, helper.ready)) {
        None => "",
        Some((Some(_), true)) => "helper ready; ",
        Some((Some(_), false)) => "helper starting; ",
        Some((None, _)) => "helper not running; ",
    };
    let age = view.started.map_or("never started".into(), |at| format!("started {} ago", seconds(now - at)));
    let place = match status.place {
        Place::Lab => "lab",
        Place::Elsewhere => "cluster",
    };
    format!("{place} {}: {age}; {helper}the API {api}", status.name)
}

fn waiting(view: &Overview, now: i64) -> String {
    match (&view.awaited, view.milestones.last(), view.status.place) {
        (Some(awaited), ..) => {
            format!("waiting for {}, since {}", awaited.what, seconds(now - awaited.since))
        }
        (None, _, Place::Elsewhere) if view.cluster.is_done() => "installed".into(),
        (None, _, Place::Elsewhere) => "nobody says what is awaited".into(),
        (None, Some((_, at)), _) => {
            format!("installed, {} after the start", seconds(at - view.started.unwrap_or(*at)))
        }
        (None, None, _) if view.started.is_some() => {
            format!("nothing is awaited: `seedling lab up --name {}` goes on from here", view.status.name)
        }
        (None, None, _) => "nothing is awaited: `seedling lab up` has not begun".into(),
    }
}

fn machines(view: &Overview, now: i64, lines: &mut Vec<String>) {
    let stages: String = STAGES.iter().map(|s| format!("{:>9}", s.to_uppercase())).collect();
    let widest = view.status.nodes.iter().map(|node| node.address.to_string().len()).max();
    let wide = widest.unwrap_or_default().max(15);
    lines.push(format!(
        "{:<12} {:<9} {:<10} {:<wide$} {:<6}{stages}  NOW",
        "MACHINE", "ROLE", "KIND", "ADDRESS", "POWER"
    ));
    for (node, progress) in view.status.nodes.iter().zip(&view.progress) {
        let NodeStatus { name, role, kind, address, .. } = node;
        let power = match node.power() {
            Some(Power::On) => "on",
            Some(Power::Off) => "off",
            Some(Power::Paused) => "frozen",
            None => "?",
        };
        let marks: String = progress.marks.iter().map(|m| format!("{:>9}", mark(*m, view, now))).collect();
        let (role, address) = (role.as_str(), address.to_string());
        lines.push(format!(
            "{name:<12} {role:<9} {kind:<10} {address:<wide$} {power:<6}{marks}  {}",
            at_work(node, progress, now)
        ));
    }
}

/// Seconds after the start.
fn mark(mark: Mark, view: &Overview, now: i64) -> String {
    match (mark, view.started) {
        (Mark::Never, _) => "".into(),
        (Mark::Left, _) => "left".into(),
        (Mark::Pending, _) => "·".into(),
        (Mark::Unknown, _) => "?".into(),
        (Mark::Done(at), Some(start)) if at >= start => format!("{:.1} s", (at - start) as f64 / 1000.0),
        (Mark::Done(_), _) => "yes".into(),
        (Mark::Lost(at), _) => match (now - at).max(0) / 1000 {
            s @ 0..=99 => format!("down {s}s"),
            s @ 100..=5999 => format!("down {}m", s / 60),
            s => format!("down {}h", s / 3600),
        },
    }
}

fn at_work(node: &NodeStatus, progress: &Progress, now: i64) -> String {
    let mut text = node.says.clone();
    for Open { who, step, since_unix_millis } in &node.open {
        let since = seconds(now - since_unix_millis);
        let _ = match (who.as_str(), progress.bootkube) {
            ("bootkube", done) => write!(text, "; bootkube: {done} stages done, at {step} for {since}"),
            _ => write!(text, "; {who}: {step} for {since}"),
        };
    }
    text
}

fn etcd(view: &Overview, lines: &mut Vec<String>) {
    let Some(last) = view.etcd.last() else {
        let says = match view.status.place {
            Place::Lab => "nobody has founded it yet",
            Place::Elsewhere => "no machine that answers tells of it",
        };
        lines.push(format!("etcd: {says}"));
        return;
    };
    lines.push(format!("etcd: {}", count(last)));
    for change in &view.etcd {
        let at = view.started.map_or(0.0, |start| (change.at - start) as f64 / 1000.0);
        lines.push(format!("{at:8.1} s  {:<21}  {} {}", count(change), change.member, change.what));
    }
}

pub(super) fn count(change: &EtcdChange) -> String {
    let EtcdChange { members, voters, .. } = change;
    let (s, vote) = (if *members == 1 { "" } else { "s" }, if *voters == 1 { "votes" } else { "vote" });
    format!("{members} member{s}, {voters} {vote}")
}

fn cluster(view: &Overview, lines: &mut Vec<String>) {
    if let Some(why) = &view.cluster.error {
        lines.push(format!("operators: unknown, the API does not answer: {why}"));
        return;
    }
    let operators = &view.cluster.operators;
    let well = operators.iter().filter(|o| o.ok).count();
    lines.push(format!("operators: {well} of {} are done", operators.len()));
    for operator in operators.iter().filter(|o| !o.ok) {
        lines.push(format!("  {:<28} {}", operator.name, operator.says.lines().next().unwrap_or_default()));
    }
}

/// As people say it.
fn seconds(millis: i64) -> String {
    match millis.max(0) / 1000 {
        s @ 0..=119 => format!("{s} s"),
        s @ 120..=7199 => format!("{} min", s / 60),
        s @ 7200..=172_799 => format!("{} h", s / 3600),
        s => format!("{} days", s / 86400),
    }
}
