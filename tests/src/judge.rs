//! What the end-to-end checks make of what they saw: pure, so that a check which cannot fail is found without a cluster.

use crate::{condition, name};
use anyhow::{Context, Result, bail, ensure};
use seedling_lab::probe;
use serde_json::Value;
use std::collections::BTreeSet;

pub const MASTERS: [&str; 3] = ["master-0", "master-1", "master-2"];
pub const OPERATORS: [&str; 8] = [
    "dns",
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "machine-approver",
    "machine-config",
    "network",
];

/// The parts that were asked for by name; none: all. An unknown name would run nothing, and that would be a success.
pub fn parts<'a>(arguments: impl IntoIterator<Item = &'a str>, known: &[&str]) -> Result<BTreeSet<&'a str>> {
    let parts: BTreeSet<_> = arguments.into_iter().filter(|a| !a.starts_with('-')).collect();
    if let Some(part) = parts.iter().find(|part| !known.contains(part)) {
        bail!("there is no part {part:?}; there are {}", known.join(", "));
    }
    Ok(parts)
}

/// The prober kept everything, wrote enough to tell, and of its requests no more failed than may.
pub fn probed(report: &probe::Report, failed_at_most: usize) -> Result<()> {
    ensure!(report.kept_everything(), "{}", report.summary());
    ensure!(report.acknowledged > 100, "hardly anything was written: {}", report.summary());
    let failed = report.failures.len();
    ensure!(
        failed <= failed_at_most,
        "{failed} requests failed, {failed_at_most} may: {:#?}",
        report.failures
    );
    Ok(())
}

/// Of `etcdctl endpoint health --cluster` while a cluster grows: a learner answers it with a refusal, and that is no illness.
pub fn healthy_or_learning(said: &str) -> Result<()> {
    ensure!(said.contains(" is healthy"), "nobody is healthy:\n{said}");
    let ill = |line: &str| line.contains(" is unhealthy") && !line.contains("not supported for learner");
    ensure!(!said.lines().any(ill), "{said}");
    Ok(())
}

/// Three masters Ready; every operator Available, settled and not Degraded.
pub fn whole(nodes: &[Value], operators: &[Value]) -> Result<()> {
    let names: Vec<_> = nodes.iter().map(name).collect();
    ensure!(names == MASTERS, "nodes are {names:?}");
    for node in nodes {
        ensure!(condition(node, "Ready") == Some("True"), "{} is not Ready", name(node));
    }
    settled(operators)
}

/// Every operator Available, settled and not Degraded.
pub fn settled(operators: &[Value]) -> Result<()> {
    let names: Vec<_> = operators.iter().map(name).collect();
    ensure!(names == OPERATORS, "operators are {names:?}");
    for operator in operators {
        let state = ["Available", "Progressing", "Degraded"].map(|c| condition(operator, c).unwrap_or("-"));
        ensure!(state == ["True", "False", "False"], "{}: {state:?}", name(operator));
    }
    Ok(())
}

/// Node, then who on it and which step: each is done, on every machine there was.
pub fn journals(journals: &Value, expected: &[(&str, &[(&str, &str)])]) -> Result<()> {
    let journals = journals.as_array().context("no array")?;
    for (node, steps) in expected {
        let journal =
            journals.iter().find(|j| j["node"] == *node).with_context(|| format!("none of {node}"))?;
        for (who, step) in *steps {
            let fate = fate(journal, who, step);
            ensure!(fate == Some("done"), "{node}: {who} {step} is {fate:?}");
        }
    }
    Ok(())
}

fn fate<'a>(journal: &'a Value, who: &str, step: &str) -> Option<&'a str> {
    let service = journal["services"].as_array()?.iter().find(|s| s["name"] == who)?;
    service["steps"].as_array()?.iter().find(|s| s["name"] == step)?["fate"].as_str()
}

/// Lines `good FILE` and `soon FILE`; fewer files than there must be means that somebody looked in the wrong place.
pub fn certificates(listing: &str, at_least: usize) -> Result<()> {
    let soon: Vec<_> = listing.lines().filter(|l| !l.starts_with("good ")).collect();
    ensure!(soon.is_empty(), "end within thirty days:\n{}", soon.join("\n"));
    let looked_at = listing.lines().count();
    ensure!(looked_at >= at_least, "{looked_at} certificates were looked at, there are {at_least} at least");
    Ok(())
}

/// What was seen of a static pod's roll-out to another revision, look by look.
#[derive(Debug, Default)]
pub struct Roll {
    looks: usize,
    unanswered: usize,
    /// The fewest pods that were ready at one look. A pod that is not there, because its mirror is just replaced, is not ready.
    fewest_ready: Option<usize>,
    /// How many ready pods had the new revision.
    renewed: BTreeSet<usize>,
}

impl Roll {
    pub fn look(&mut self, pods: Result<Vec<Value>>, revision: &str) {
        self.looks += 1;
        let Ok(pods) = pods else {
            self.unanswered += 1;
            return;
        };
        let ready: Vec<_> = pods.iter().filter(|p| condition(p, "Ready") == Some("True")).collect();
        self.fewest_ready = Some(self.fewest_ready.map_or(ready.len(), |fewest| fewest.min(ready.len())));
        self.renewed.insert(ready.iter().filter(|p| p["metadata"]["labels"]["revision"] == revision).count());
    }

    /// Two of three were ready at every look, and one master after the other was seen to change.
    pub fn one_at_a_time(&self) -> Result<()> {
        ensure!(self.unanswered * 10 <= self.looks, "too little was seen: {self:?}");
        ensure!(self.fewest_ready >= Some(2), "too few pods were ready at one moment: {self:?}");
        ensure!((0..=3).all(|n| self.renewed.contains(&n)), "not one master after the other: {self:?}");
        Ok(())
    }
}

/// Chaos's report: its counts, not only the exit code of whoever wrote it.
pub fn struck(report: &Value, green_at_least: u64) -> Result<()> {
    let count =
        |key: &str| report["results"][key].as_u64().with_context(|| format!("the report has no {key}"));
    let (green, red, missed) = (count("green")?, count("red")?, count("missed")?);
    ensure!(red == 0 && count("lost")? == 0 && count("stale")? == 0, "{:#}", report["results"]);
    ensure!(
        green >= green_at_least,
        "{green} green and {missed} missed, {green_at_least} green are the least"
    );
    Ok(())
}

/// The helper saw a machine boot over the network, install itself, and get its config from a master; each after the one before.
pub fn installed(events: &[Value], host: &str, mac: &str, address: &str) -> Result<()> {
    let http = |e: &Value, path: &str| {
        e["event"] == "http" && e["remote"] == address && e["status"] == 200 && e["path"] == path
    };
    let boot = |e: &Value, state: &str| e["event"] == "boot" && e["host"] == host && e["state"] == state;
    let config = format!("/ign/{mac}");
    type Seen<'a> = (&'a str, Box<dyn Fn(&Value) -> bool + 'a>);
    let steps: [Seen; 9] = [
        ("an address", Box::new(|e| e["event"] == "dhcp" && e["message"] == "ACK" && e["mac"] == mac)),
        ("the script that installs it", Box::new(|e| boot(e, "install"))),
        ("the kernel", Box::new(|e| http(e, "/boot/vmlinuz"))),
        ("the initramfs", Box::new(|e| http(e, "/boot/initramfs.img"))),
        (
            "the root file system",
            Box::new(|e| e["remote"] == address && e["path"] == "/boot/rootfs.squashfs"),
        ),
        ("its Ignition config", Box::new(|e| http(e, &config))),
        ("the report that it is installed", Box::new(|e| boot(e, "installed"))),
        ("a boot from its disk", Box::new(|e| boot(e, "disk"))),
        (
            "its config from a master",
            Box::new(|e| {
                e["event"] == "connection"
                    && e["host"] == host
                    && e["backend"].as_str().is_some_and(|backend| backend.starts_with("master-"))
            }),
        ),
    ];
    let mut rest = events.iter();
    for (what, is_it) in steps {
        ensure!(rest.any(is_it), "the helper did not see {what} of {host} where it belongs");
    }
    Ok(())
}

/// The registry's log: it gave this path to somebody at this address, after it had seen who that was.
pub fn pulled(registry: &str, path: &str, from: &str) -> Result<()> {
    let lines: Vec<Value> = registry.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let of = |line: &Value, message: &str| {
        line["msg"] == message
            && line["http.request.uri"] == path
            && line["http.request.remoteaddr"].as_str().is_some_and(|address| address.starts_with(from))
    };
    let shown = |line: &Value| of(line, "authorized request");
    let given = |line: &Value| of(line, "response completed") && line["http.response.status"] == 200;
    ensure!(lines.iter().any(shown), "the registry authorized nobody for {path}");
    ensure!(lines.iter().any(given), "the registry gave {path} to nobody");
    Ok(())
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
