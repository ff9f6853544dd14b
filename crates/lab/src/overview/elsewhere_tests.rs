//! Drawn as a person sees it: with a helper here and without, while it grows and afterwards.

use super::super::tests::{BOOTSTRAP, MASTER, START, drawn, events, journal, operators};
use super::*;
use seedling_checks::Ssh;
use serde_json::json;

fn site(shell: &Ssh, with_helper: bool) -> Site<'_> {
    let host = |name: &str, role, last: u8| Host {
        name: name.into(),
        role,
        mac: format!("52:54:00:5e:ed:{last}"),
        address: [10, 0, 0, last].into(),
        second_address: None,
    };
    let ack = |last: u8| json!({"event": "dhcp", "message": "ACK", "mac": format!("52:54:00:5E:ED:{last}")});
    let seen = events(&[(0.5, ack(10)), (0.6, ack(11))]);
    let status = HelperStatus { pid: Some(7), ready: true, address: [10, 0, 0, 1].into() };
    Site {
        name: "ocp4".into(),
        hosts: vec![
            host("bootstrap", Role::Bootstrap, 10),
            host("master-0", Role::Master, 11),
            host("worker-0", Role::Worker, 21),
        ],
        shell,
        api: Some("https://api.ocp4.example.com:6443".into()),
        kubeconfig: "auth/kubeconfig".into(),
        helper: with_helper.then_some((status, seen)),
    }
}

fn bootstrap(more: &[(f64, &str, &str, &str)]) -> Asked {
    Ok(journal(&[BOOTSTRAP, more].concat()))
}

const REFUSED: &str = "connect to host 10.0.0.21 port 22: Connection refused";

fn shell() -> Ssh {
    Ssh { user: "core".into(), key: None, options: vec![] }
}

#[test]
fn while_it_grows_beside_the_helper() {
    let asked = [bootstrap(&[]), Ok(State::default()), Err(REFUSED.into())];
    let view = overview_of(site(&shell(), true), &asked, operators(false));
    let expected = "\
cluster ocp4: started 29 s ago; helper ready; the API answers on https://api.ocp4.example.com:6443
waiting for bootkube's cb-bootstrap, since 26 s

MACHINE      ROLE      KIND       ADDRESS         POWER      DHCP   CONFIG  KUBELET     ETCD      API  NOW
bootstrap    bootstrap machine    10.0.0.10       on        0.0 s    1.5 s    3.0 s    3.5 s        ·  booted; bootkube: 2 stages done, at cb-bootstrap for 26 s
master-0     master    machine    10.0.0.11       on        0.1 s        ·        ·        ·        ·  answers, and has no journal yet
worker-0     worker    machine    10.0.0.21       ?             ·        ?        ?                    no address yet: DHCP has not answered it

etcd: 1 member, 1 votes
     3.5 s  1 member, 1 votes      bootstrap founded it

operators: 1 of 2 are done
  etcd                         Available is False: no pods
";
    assert_eq!(drawn(&view, 30), expected);
}

#[test]
fn without_a_helper_and_without_an_api() {
    let asked = [Err(REFUSED.into()), Ok(journal(MASTER)), Err(REFUSED.into())];
    let down = ClusterView { error: Some("connection refused".into()), operators: vec![] };
    let view = overview_of(site(&shell(), false), &asked, down);
    let expected = "\
cluster ocp4: started 29 s ago; the API does not answer on https://api.ocp4.example.com:6443 (connection refused)
nobody says what is awaited

MACHINE      ROLE      KIND       ADDRESS         POWER      DHCP   CONFIG  KUBELET     ETCD      API  NOW
bootstrap    bootstrap machine    10.0.0.10       ?             ?        ?        ?        ?        ?  does not answer: connect to host 10.0.0.21 port 22: Connection refused
master-0     master    machine    10.0.0.11       on            ?    4.0 s    7.0 s   19.0 s        ?  booted
worker-0     worker    machine    10.0.0.21       ?             ?        ?        ?                    does not answer: connect to host 10.0.0.21 port 22: Connection refused

etcd: 1 member, 1 vote
    11.0 s  1 member, 0 vote       master-0 joined as a learner
    19.0 s  1 member, 1 votes      master-0 votes

operators: unknown, the API does not answer: connection refused
";
    assert_eq!(drawn(&view, 30), expected.replace("1 member, 1 vote\n", "1 member, 1 votes\n"));
}

#[test]
fn after_bootkube_the_operators_are_awaited_and_then_nothing() {
    let ended = bootstrap(&[
        (30.0, "bootkube", "cb-bootstrap", "end"),
        (30.0, "bootkube", "wait-for-ceo", "begin"),
        (40.0, "bootkube", "wait-for-ceo", "end"),
    ]);
    let asked = [ended, Ok(journal(MASTER)), Err(REFUSED.into())];
    let late = overview_of(site(&shell(), true), &asked, operators(false));
    assert_eq!(late.awaited, Some(Awaited { what: "operators: etcd".into(), since: START + 8000 }));
    assert_eq!(late.etcd.last().map(|change| (change.what, change.members)), Some(("left", 1)));
    let done = overview_of(site(&shell(), true), &asked, operators(true));
    assert!(drawn(&done, 60).contains("\ninstalled\n"), "{}", drawn(&done, 60));
}
