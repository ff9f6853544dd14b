//! Recorded facts of a real lab (three masters, a worker): healthy, in the middle of its bring-up, and with two masters cut off; and
//! the healthy ones with one thing broken at a time.

use super::*;
use crate::{Choice, Finding, Outcome, Report, Ssh};
use serde_json::{Value, json};

fn recorded(name: &str) -> Value {
    let text = match name {
        "healthy" => include_str!("../../testdata/healthy.json"),
        "during" => include_str!("../../testdata/during.json"),
        _ => include_str!("../../testdata/two-cut.json"),
    };
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}"))
}

fn judged(facts: Value) -> Vec<Finding> {
    let facts: Facts = serde_json::from_value(facts).unwrap_or_else(|e| panic!("{e}"));
    let shell = Ssh { user: "core".into(), key: None, options: vec![] };
    judge(&facts, &Hands { shell: &shell, kubectl: "kubectl" })
}

fn wrong(findings: &[Finding]) -> Vec<String> {
    let wrong = findings.iter().filter(|f| f.result != Outcome::Ok);
    wrong.map(|f| format!("{} {} {}: {}", f.result.as_str(), f.check.name, f.on, f.says)).collect()
}

#[test]
fn a_healthy_cluster_is_all_green() {
    let findings = judged(recorded("healthy"));
    assert_eq!(wrong(&findings), [""; 0]);
    let asked: std::collections::BTreeSet<_> = findings.iter().map(|f| f.check.name).collect();
    assert_eq!(asked.len(), CHECKS.len(), "{asked:?}");
    assert!(findings.iter().all(|f| !f.by_hand.is_empty()), "each can be done by hand");
    let of = |name: &str, on: &str| {
        let found = findings.iter().find(|f| f.check.name == name && f.on == on);
        found.map(|f| f.says.clone()).unwrap_or_else(|| panic!("{name} {on}"))
    };
    assert_eq!(of("etcd-members", "master-0"), "3 voters: master-0, master-1, master-2");
    assert_eq!(
        of("static-pods", "master-1"),
        "etcd 1, kube-apiserver 1, kube-controller-manager 1, kube-scheduler 1"
    );
    assert_eq!(of("connections", "from master-2"), "11 of 11 open");
    assert_eq!(of("connections", "from worker-0"), "2 of 2 open");
    assert!(Report::new(findings, &Choice::default()).ok);
}

#[test]
fn one_broken_thing_is_one_failed_check() {
    type Break = fn(&mut Value);
    let cases: [(&str, Break); 13] = [
        ("FAILED api-ready master-1: etcd failed: reason withheld", |f| {
            f["nodes"][1]["said"]["Ok"]["api"]["text"] =
                "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed".into();
        }),
        ("FAILED mcs-health worker-0 → balancer: curl: (7) refused", |f| {
            f["nodes"][3]["said"]["Ok"]["mcs-balancer"]["text"] = "curl: (7) refused\n000".into();
        }),
        ("FAILED mcs-refuses-strangers master-0: 200", |f| {
            f["nodes"][0]["said"]["Ok"]["mcs-stranger"]["text"] = "200".into();
        }),
        ("FAILED static-pods master-0: etcd is at revision 1, its operator says 2", |f| {
            f["api"]["static_pods"]["etcd"]["Ok"]["nodeStatuses"][0]["currentRevision"] = 2.into();
        }),
        ("FAILED static-pods master-2: kube-scheduler does not run", |f| {
            let text =
                f["nodes"][2]["said"]["Ok"]["containers"]["text"].as_str().unwrap_or_default().to_string();
            let left: Vec<_> = text.lines().filter(|l| !l.contains("kube-scheduler")).collect();
            f["nodes"][2]["said"]["Ok"]["containers"]["text"] = left.join("\n").into();
        }),
        ("FAILED etcd-health master-1: no etcd runs here", |f| {
            f["nodes"][1]["said"]["Ok"]["etcd-health"] = json!({"text": "no etcd runs here", "code": 1});
        }),
        ("FAILED etcd-members master-0: etcd-bootstrap is a member and no master", |f| {
            edit(f, 0, "etcd-members", |list| {
                list["members"]
                    .as_array_mut()
                    .into_iter()
                    .for_each(|m| m.push(json!({"ID": 9, "name": "etcd-bootstrap"})));
            });
        }),
        ("FAILED etcd-one-cluster all members: the members do not agree on cluster, term and leader", |f| {
            edit(f, 2, "etcd-status", |status| status[0]["Status"]["raftTerm"] = 99.into());
        }),
        ("FAILED manifests-applied version: Failing is True: cannot apply", |f| {
            let conditions = f["api"]["version"]["Ok"]["status"]["conditions"].as_array_mut();
            conditions.into_iter().flatten().filter(|c| c["type"] == "Failing").for_each(|c| {
                (c["status"], c["message"]) = ("True".into(), "cannot apply".into());
            });
        }),
        ("FAILED cluster-operators dns: it has not reported anything yet", |f| {
            f["api"]["operators"]["Ok"][0]["status"]["conditions"] = json!([]);
        }),
        ("FAILED csrs-decided all: 1 of 9 wait for approval", |f| {
            f["api"]["csrs"]["Ok"][0]["status"]["conditions"] = json!([]);
        }),
        ("FAILED kubelet worker-0: the service is failed", |f| {
            f["nodes"][3]["said"]["Ok"]["kubelet"]["text"] = "failed".into();
        }),
        ("FAILED connections from master-0: master-1:2380 no answer within 4 s", |f| {
            let tried = f["nodes"][0]["tried"].as_array_mut().into_iter().flatten();
            let mut dropped = tried.filter(|t| t["to"] == "master-1" && t["port"] == 2380);
            dropped.next().into_iter().for_each(|t| t["seen"] = "no answer within 4 s".into());
        }),
    ];
    for (expected, break_it) in cases {
        let mut facts = recorded("healthy");
        break_it(&mut facts);
        let mut said = wrong(&judged(facts));
        // How many requests there were is the recording's business.
        said.iter_mut().for_each(|s| {
            if let Some(at) = s.find(" of ").filter(|_| s.contains("wait for approval")) {
                *s = format!("{} of 9 wait for approval", &s[..at]);
            }
        });
        assert_eq!(said, [expected]);
    }
}

/// Changes JSON that a node printed.
fn edit(facts: &mut Value, node: usize, section: &str, change: impl FnOnce(&mut Value)) {
    let text = &mut facts["nodes"][node]["said"]["Ok"][section]["text"];
    let mut inner: Value =
        serde_json::from_str(text.as_str().unwrap_or_default()).unwrap_or_else(|e| panic!("{e}"));
    change(&mut inner);
    *text = inner.to_string().into();
}

#[test]
fn a_node_that_the_api_does_not_know_or_call_ready() {
    let mut gone = recorded("healthy");
    gone["api"]["nodes"]["Ok"].as_array_mut().into_iter().for_each(|nodes| {
        nodes.retain(|n| n["metadata"]["name"] != "worker-0");
    });
    assert_eq!(wrong(&judged(gone)), ["FAILED node-ready worker-0: the API has no node of that name"]);
}

#[test]
fn in_the_middle_of_a_bring_up_the_bootstrap_machine_counts() {
    let findings = judged(recorded("during"));
    let found = |name: &str, on: &str| {
        let found = findings.iter().find(|f| f.check.name == name && f.on == on);
        found.map(|f| (f.result, f.says.as_str())).unwrap_or_else(|| panic!("{name} {on}"))
    };
    assert_eq!(found("api-ready", "bootstrap"), (Outcome::Ok, "ok"));
    assert_eq!(found("mcs-health", "bootstrap"), (Outcome::Ok, "200"));
    assert_eq!(found("etcd-health", "bootstrap").0, Outcome::Ok);
    assert_eq!(found("static-pods", "bootstrap").0, Outcome::Ok, "{:?}", found("static-pods", "bootstrap"));
    let members = found("etcd-members", "bootstrap");
    assert!(
        members.0 == Outcome::Failed && members.1.starts_with("etcd-bootstrap is a member and no master"),
        "{members:?}"
    );
    assert_eq!(found("static-pods", "master-0").0, Outcome::Failed);
    // Once bootkube is done, nothing is expected of it.
    let mut done = recorded("during");
    done["nodes"][0]["said"]["Ok"]["bootkube"] = json!({"text": "/opt/openshift/.bootkube.done", "code": 0});
    let asked = judged(done);
    assert!(asked.iter().all(|f| f.on != "bootstrap" || f.check.name == "machine-entered"));
}

#[test]
fn with_two_masters_cut_off_it_says_what_is_known() {
    let findings = judged(recorded("two-cut"));
    let all = wrong(&findings);
    for line in [
        "FAILED machine-entered master-1",
        "FAILED api-ready outside: tls handshake eof",
        "FAILED api-ready master-0: etcd failed: reason withheld; etcd-readiness failed: reason withheld",
        "unknown api-ready master-1: could not be asked",
        "FAILED etcd-health master-0",
        "FAILED etcd-one-cluster all members: no leader",
        "unknown manifests-applied version: could not be asked: tls handshake eof",
        "FAILED connections from master-0: master-1:2379 Connection refused",
    ] {
        assert!(all.iter().any(|said| said.starts_with(line)), "{line}\n{all:#?}");
    }
    assert!(!Report::new(findings, &Choice::default()).ok);
}
