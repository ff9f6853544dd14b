//! Before, during and after a bring-up, and with the API down; drawn as a person sees it.

use super::*;
use crate::{Position, probe};
use seedling_machines::{Inspection, Power};
use seedling_steps::journal::lines as journal_lines;
use seedling_types::Role;
use serde_json::json;

pub(super) const START: i64 = 1_000_000;

fn node(name: &str, role: Role, last: u8, power: Power) -> crate::NodeStatus {
    crate::NodeStatus {
        kind: "container",
        name: name.into(),
        role,
        mac: format!("52:54:00:5e:ed:{last}"),
        address: [192, 168, 100, last].into(),
        inspection: Some(Inspection { power, pid: None, usage: Default::default() }),
        position: Position::Fetched,
        first_boot_done: power == Power::On,
        open: vec![],
        says: if power == Power::On { "booted" } else { "never booted" }.into(),
    }
}

fn status(power: Power) -> Status {
    Status {
        name: "t".into(),
        place: crate::status::Place::Lab,
        api: Some("127.0.0.1:40000".into()),
        kubeconfig: None,
        helper: Some(crate::status::HelperStatus {
            pid: Some(1),
            ready: true,
            address: [192, 168, 100, 1].into(),
        }),
        nodes: vec![
            node("bootstrap", Role::Bootstrap, 10, power),
            node("master-0", Role::Master, 11, power),
            node("worker-0", Role::Worker, 21, power),
        ],
    }
}

fn at(seconds: f64) -> String {
    let at = k8s_openapi::jiff::Timestamp::from_millisecond(START + (seconds * 1000.0) as i64);
    at.map(|t| t.to_string()).unwrap_or_default()
}

pub(super) fn journal(steps: &[(f64, &str, &str, &str)]) -> State {
    let line = |(seconds, who, step, event): &(f64, &str, &str, &str)| {
        json!({"time": at(*seconds), "who": who, "step": step, "event": event, "note": "no route"})
            .to_string()
            + "\n"
    };
    let text: String = steps.iter().map(line).collect();
    fold(&journal_lines(text.as_bytes()))
}

pub(super) fn events(all: &[(f64, serde_json::Value)]) -> Vec<HelperEvent> {
    let event = |(seconds, what): &(f64, serde_json::Value)| {
        let mut what = what.clone();
        what["time"] = at(*seconds).into();
        serde_json::from_value(what).unwrap_or_else(|e| panic!("{e}"))
    };
    all.iter().map(event).collect()
}

pub(super) const MASTER: &[(f64, &str, &str, &str)] = &[
    (1.0, "boot", "ignition", "begin"),
    (5.0, "boot", "ignition", "end"),
    (5.0, "kubelet-join", "certificate", "begin"),
    (8.0, "kubelet-join", "certificate", "end"),
    (9.0, "etcd-join", "membership", "begin"),
    (12.0, "etcd-join", "membership", "end"),
    (12.0, "etcd-wait", "voter", "begin"),
    (20.0, "etcd-wait", "voter", "end"),
];

pub(super) const BOOTSTRAP: &[(f64, &str, &str, &str)] = &[
    (1.0, "boot", "ignition", "begin"),
    (2.0, "boot", "ignition", "end"),
    (3.0, "bootkube", "etcd-bootstrap", "begin"),
    (3.5, "bootkube", "etcd-bootstrap", "end"),
    (3.5, "bootkube", "wait-for-etcd", "begin"),
    (4.0, "bootkube", "wait-for-etcd", "end"),
    (4.0, "bootkube", "cb-bootstrap", "begin"),
];

fn grown() -> (BTreeMap<String, State>, Vec<HelperEvent>, probe::BringUp) {
    let bootstrap = journal(BOOTSTRAP);
    let master = journal(MASTER);
    let ack = |last: u8| json!({"event": "dhcp", "message": "ACK", "mac": format!("52:54:00:5E:ED:{last}")});
    let backend = |healthy: bool| json!({"event": "backend", "port": 6443, "host": "master-0", "healthy": healthy, "reason": ""});
    let events = events(&[(0.5, ack(10)), (0.6, ack(11)), (25.0, backend(true))]);
    let milestones = [("machines switched on", 0.1), ("the API to answer: v1.36.0", 6.0)];
    let bring_up = probe::BringUp {
        started_unix_millis: START,
        milestones: milestones.map(|(name, at)| (name.to_string(), at)).into(),
        stages: vec![],
    };
    (
        BTreeMap::from([("bootstrap".to_string(), bootstrap), ("master-0".to_string(), master)]),
        events,
        bring_up,
    )
}

pub(super) fn operators(ok: bool) -> ClusterView {
    let one = OperatorView { name: "dns".into(), ok: true, says: String::new(), since: None };
    let says = if ok { "" } else { "Available is False: no pods" };
    let two = OperatorView { name: "etcd".into(), ok, says: says.into(), since: Some(START + 8000) };
    ClusterView { error: None, operators: vec![one, two] }
}

pub(super) fn drawn(view: &Overview, seconds: i64) -> String {
    lines(view, START + seconds * 1000).iter().map(|line| line.trim_end().to_string() + "\n").collect()
}

#[test]
fn before_anything() {
    let none = (BTreeMap::new(), vec![], probe::BringUp::default());
    let down = ClusterView { error: Some("connection refused".into()), operators: vec![] };
    let view = assemble(status(Power::Off), down, &none.2, &none.0, &none.1);
    let expected = "\
lab t: never started; helper ready; the API does not answer on 127.0.0.1:40000 (connection refused)
nothing is awaited: `seedling lab up` has not begun

MACHINE      ROLE      KIND       ADDRESS         POWER      DHCP   CONFIG  KUBELET     ETCD      API  NOW
bootstrap    bootstrap container  192.168.100.10  off           ·        ·        ·        ·        ·  never booted
master-0     master    container  192.168.100.11  off           ·        ·        ·        ·        ·  never booted
worker-0     worker    container  192.168.100.21  off           ·        ·        ·                    never booted

etcd: nobody has founded it yet

operators: unknown, the API does not answer: connection refused
";
    assert_eq!(drawn(&view, 0), expected);
}

#[test]
fn during_a_bring_up() {
    let (journals, events, bring_up) = grown();
    let mut status = status(Power::On);
    let cb =
        crate::Open { who: "bootkube".into(), step: "cb-bootstrap".into(), since_unix_millis: START + 4000 };
    status.nodes[0].open = vec![cb];
    let view = assemble(status, operators(false), &bring_up, &journals, &events);
    let expected = "\
lab t: started 30 s ago; helper ready; the API answers on 127.0.0.1:40000
waiting for all masters to join, since 24 s

MACHINE      ROLE      KIND       ADDRESS         POWER      DHCP   CONFIG  KUBELET     ETCD      API  NOW
bootstrap    bootstrap container  192.168.100.10  on        0.5 s    2.0 s    3.5 s    4.0 s        ·  booted; bootkube: 2 stages done, at cb-bootstrap for 26 s
master-0     master    container  192.168.100.11  on        0.6 s    5.0 s    8.0 s   20.0 s   25.0 s  booted
worker-0     worker    container  192.168.100.21  on            ·        ·        ·                    booted

etcd: 2 members, 2 vote
     4.0 s  1 member, 1 votes      bootstrap founded it
    12.0 s  2 members, 1 votes     master-0 joined as a learner
    20.0 s  2 members, 2 vote      master-0 votes

operators: 1 of 2 are done
  etcd                         Available is False: no pods
";
    assert_eq!(drawn(&view, 30), expected);
}

/// `lab up --until` ends before anybody waits for milestones.
#[test]
fn stopped_at_a_stage() {
    let (journals, events, _) = grown();
    let none = probe::BringUp::default();
    let view = assemble(status(Power::On), operators(false), &none, &journals, &events);
    let drawn = drawn(&view, 30);
    let begins = "\
lab t: started 29 s ago; helper ready; the API answers on 127.0.0.1:40000
nothing is awaited: `seedling lab up --name t` goes on from here
";
    assert!(drawn.starts_with(begins) && drawn.contains("on        0.0 s    1.5 s    3.0 s"), "{drawn}");
}

#[test]
fn after_it_and_with_the_api_down() {
    let (mut journals, mut seen, mut bring_up) = grown();
    for (n, what) in AWAITED.iter().enumerate().skip(2) {
        bring_up.milestones.push((format!("{what}: all"), 30.0 + n as f64));
    }
    let done = assemble(status(Power::On), operators(true), &bring_up, &journals, &seen);
    assert_eq!(done.awaited, None);
    assert!(drawn(&done, 60).contains("installed, 38 s after the start\n"), "{}", drawn(&done, 60));
    assert_eq!(done.etcd.last().map(|c| (c.what, c.members, c.voters)), Some(("left", 1, 1)));

    seen.extend(events(&[(
        90.0,
        json!({"event": "backend", "port": 6443, "host": "master-0", "healthy": false, "reason": "x"}),
    )]));
    let again = [(95.0, "etcd-wait", "voter", "begin"), (96.0, "etcd-wait", "voter", "failed")];
    let failed = journal(&[MASTER, &again].concat());
    journals.insert("master-0".into(), failed);
    let down = ClusterView { error: Some("no answer within 2 s".into()), operators: vec![] };
    let cut = assemble(status(Power::On), down, &bring_up, &journals, &seen);
    let text = drawn(&cut, 100);
    for line in [
        "the API does not answer on 127.0.0.1:40000 (no answer within 2 s)",
        "last error, 4 s ago, master-0: etcd-wait voter: no route",
        "down 10s",
        "operators: unknown, the API does not answer",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert_eq!(
        news(&done, &cut),
        [
            "master-0: api is gone",
            "the API does not answer: no answer within 2 s",
            "master-0: etcd-wait voter failed: no route"
        ]
    );
    assert!(news(&cut, &cut).is_empty());
}

#[test]
fn what_is_awaited_comes_after_what_was_reached() {
    let reached =
        |n: usize| AWAITED[..n].iter().map(|what| (format!("{what}: x"), START)).collect::<Vec<_>>();
    assert_eq!(awaited(&[], true), None);
    for (n, next) in AWAITED.iter().enumerate().take(AWAITED.len() - 1).skip(1) {
        assert_eq!(awaited(&reached(n), false).map(|a| a.what).as_deref(), Some(*next));
    }
    let last = AWAITED.len() - 1;
    assert_eq!(awaited(&reached(last), false), None, "there are no workers");
    assert_eq!(awaited(&reached(last), true).map(|a| a.what).as_deref(), Some(AWAITED[last]));
    assert_eq!(awaited(&reached(last + 1), true), None);
}
