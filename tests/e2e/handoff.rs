//! The handoff: records, events, members, static pods, operators; and the bootstrap node off.

use crate::Suite;
use anyhow::{Context, Result, ensure};
use seedling_e2e::{Lab, judge, name, run, seedling, wait};
use seedling_lab::probe;
use serde_json::Value;
use std::time::Duration;

const STATIC_PODS: [&str; 4] = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"];
pub(crate) fn checks(suite: &mut Suite, lab: &Lab) {
    suite.check("masters_are_ready_and_operators_available", || {
        judge::whole(&lab.items(&["nodes"])?, &lab.items(&["clusteroperators"])?)
    });
    suite.check("masters_take_pods", || {
        for node in &lab.items(&["nodes"])? {
            ensure!(
                node.pointer("/metadata/labels/node-role.kubernetes.io~1master").is_some(),
                "no master label"
            );
            ensure!(
                node["spec"]["taints"].is_null(),
                "{} is tainted: {}",
                name(node),
                node["spec"]["taints"]
            );
        }
        Ok(())
    });
    suite.check("bootkube_recorded_every_stage", || records(lab));
    suite.check("events_and_configmap_say_complete", || {
        for event in ["bootstrap-success", "bootstrap-finished"] {
            lab.get(&["-n", "kube-system", "event", event])?;
        }
        let map = lab.get(&["-n", "kube-system", "configmap", "bootstrap"])?;
        ensure!(map["data"]["status"] == "complete", "{}", map["data"]);
        Ok(())
    });
    suite.check("etcd_grew_to_four_and_ended_with_three", || members_over_time(lab));
    suite.check("etcds_members_are_one_cluster", || lab.one_etcd_cluster());
    suite.check("static_pods_run_on_every_master", || {
        for node in ["master-0", "master-1", "master-2"] {
            let files = lab.exec(node, &["ls", "/etc/kubernetes/manifests"])?;
            ensure!(files.split_whitespace().count() == 4, "{node}: {files}");
            let running: Value = serde_json::from_str(&lab.exec(node, &["crictl", "ps", "-o", "json"])?)?;
            for container in STATIC_PODS {
                let found = running["containers"].as_array().is_some_and(|list| {
                    list.iter().any(|c| {
                        c["metadata"]["name"] == container
                            && c["labels"]["io.kubernetes.pod.namespace"]
                                .as_str()
                                .is_some_and(|ns| ns.starts_with("openshift-"))
                    })
                });
                ensure!(found, "{node} runs no {container}");
            }
        }
        Ok(())
    });
    suite.check("one_revision_before_complete", || {
        for kind in ["etcd", "kubeapiserver", "kubecontrollermanager", "kubescheduler"] {
            let settings = lab.get(&[kind, "cluster"])?;
            ensure!(settings["status"]["latestAvailableRevision"] == 1, "{kind}: {}", settings["status"]);
            let nodes = settings["status"]["nodeStatuses"].as_array().cloned().unwrap_or_default();
            ensure!(nodes.len() == 3 && nodes.iter().all(|n| n["currentRevision"] == 1), "{kind}: {nodes:?}");
        }
        Ok(())
    });
    suite.check("the_bootstrap_node_is_off", || {
        let status = lab.status()?;
        let bootstrap =
            status["nodes"].as_array().and_then(|n| n.iter().find(|n| n["name"] == "bootstrap").cloned());
        ensure!(bootstrap.context("no bootstrap")?["power"] == "off", "{status}");
        let events = lab.events()?;
        let last =
            events.iter().rfind(|e| e["event"] == "backend" && e["host"] == "bootstrap" && e["port"] == 6443);
        ensure!(
            last.context("no health check of bootstrap")?["healthy"] == false,
            "the load balancer still sends there"
        );
        Ok(())
    });
    suite.check("wait_for_says_what_upstream_says", || {
        let assets = lab.dir().join("assets");
        // The kubeconfig of the assets names api.CD, which only the lab resolves; this machine goes through the forward.
        let dir = std::env::temp_dir().join(format!("seedling-wait-for-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("auth"))?;
        std::fs::copy(assets.join("auth/kubeconfig.lab"), dir.join("auth/kubeconfig"))?;
        std::fs::copy(assets.join("auth/kubeadmin-password"), dir.join("auth/kubeadmin-password"))?;
        for (what, line) in [
            ("bootstrap-complete", "It is now safe to remove the bootstrap resources"),
            ("install-complete", "Install complete!"),
        ] {
            let output = seedling_e2e::output(seedling().args(["wait-for", what, "--dir"]).arg(&dir))?;
            let said = seedling_e2e::text(&output.stderr) + &seedling_e2e::text(&output.stdout);
            ensure!(output.status.success() && said.contains(line), "{said}");
        }
        std::fs::remove_dir_all(dir)?;
        Ok(())
    });
}

fn record(lab: &Lab) -> Result<Vec<Value>> {
    let path = lab.dir().join("nodes/bootstrap/upper/var/log/openshift/bootkube.json");
    Ok(serde_json::from_slice(&std::fs::read(&path)?)?)
}

/// What the prober saw beside the bring-up: one request may fail, in the moment in which etcd's leader moves
/// (docs/design/etcd.md).
pub(crate) fn lost_nothing(lab: &Lab) -> Result<()> {
    let report: probe::Report = serde_json::from_slice(&std::fs::read(lab.dir().join("probe.json"))?)?;
    judge::probed(&report, 1)
}

/// Without a warning, while it waits for the masters.
pub(crate) fn kill_bootkube(lab: &Lab) -> Result<()> {
    wait("bootkube to be at cb-bootstrap", Duration::from_secs(180), || {
        let at =
            record(lab)?.last().is_some_and(|e| e["phase"] == "stage start" && e["stage"] == "cb-bootstrap");
        Ok(at.then_some(()))
    })?;
    lab.exec("bootstrap", &["systemctl", "kill", "--signal=KILL", "bootkube.service"]).map(drop)
}

/// The interrupted stage is closed as failed, what was done before is not done again, and the end is well.
pub(crate) fn went_on(lab: &Lab) -> Result<()> {
    let entries = record(lab)?;
    let of = |stage: &str| {
        entries.iter().filter(|e| e["stage"] == stage).map(|e| e["result"].clone()).collect::<Vec<_>>()
    };
    let (start, failure, success) = (Value::Null, Value::from("failure"), Value::from("success"));
    ensure!(
        of("cb-bootstrap") == [start.clone(), failure, start.clone(), success.clone()],
        "{:?}",
        of("cb-bootstrap")
    );
    ensure!(of("etcd-bootstrap") == [start, success.clone()], "{:?}", of("etcd-bootstrap"));
    ensure!(
        entries.last().is_some_and(|e| e["phase"] == "service end" && e["result"] == success),
        "not ended well"
    );
    Ok(())
}

fn records(lab: &Lab) -> Result<()> {
    let entries = record(lab)?;
    let ended = |stage: &str| entries.iter().find(|e| e["phase"] == "stage end" && e["stage"] == stage);
    let stages = [
        "openshift-manifests",
        "api-bootstrap",
        "auth-api-bootstrap",
        "config-bootstrap",
        "cvo-bootstrap",
        "etcd-bootstrap",
        "kube-apiserver-bootstrap",
        "kube-controller-manager-bootstrap",
        "kube-scheduler-bootstrap",
        "ingress-operator-bootstrap",
        "node-tuning-bootstrap",
        "mco-bootstrap",
        "resolve-api-url",
        "resolve-api-int-url",
        "cco-bootstrap",
        "wait-for-etcd",
        "cb-bootstrap",
        "cvo-overrides",
        "wait-for-ceo",
        "check-api-url",
        "check-api-int-url",
    ];
    for stage in stages {
        let entry = ended(stage).with_context(|| format!("no end of {stage}"))?;
        ensure!(entry["result"] == "success", "{stage}: {entry}");
    }
    let note = ended("cco-bootstrap").map(|e| e["note"].clone());
    ensure!(note == Some("cloud-credential-operator is not in the payload".into()), "{note:?}");
    let last = entries.last().context("empty record")?;
    ensure!(last["phase"] == "service end" && last["result"] == "success", "{last}");
    Ok(())
}

/// The etcd operator logs the list whenever it changes.
fn members_over_time(lab: &Lab) -> Result<()> {
    let log = run(&mut lab.kubectl(&["-n", "openshift-etcd-operator", "logs", "deployment/etcd-operator"]))?;
    let lists: Vec<_> = log.lines().filter(|l| l.contains("members: ") && l.contains("(voter")).collect();
    let voters = |line: &str| line.matches("(voter").count();
    let most = lists.iter().map(|l| voters(l)).max().unwrap_or(0);
    ensure!(most == 4, "never four voters:\n{}", lists.join("\n"));
    let last = lists.last().context("no list")?;
    ensure!(voters(last) == 3 && !last.contains("etcd-bootstrap"), "{last}");
    let first_with_learners =
        lists.iter().find(|l| l.contains("(learner")).context("nobody joined as a learner")?;
    ensure!(first_with_learners.matches("(learner").count() == 3, "not all at once: {first_with_learners}");
    let removal = log.lines().position(|l| l.contains("Remove(")).context("bootstrap was not removed")?;
    let before = log.lines().take(removal).filter(|l| l.contains("members: ")).last().unwrap_or_default();
    ensure!(!before.contains("etcd-bootstrap (voter, healthy, leads)"), "the leader was removed: {before}");
    Ok(())
}
