//! What the facts amount to. Pure.

use super::facts::{Facts, NodeFacts, Said};
use super::{
    API_READY, BALANCER, CONNECTION, CSRS, ENTERED, ETCD_HEALTH, ETCD_MEMBERS, ETCD_ONE, KUBELET, MANIFESTS,
    MCS_HEALTH, MCS_REFUSES, NODE_READY, OPERATORS, STATIC_PODS, script,
};
use crate::{Check, Finding, Outcome, Shell};
use seedling_api::{Conditions, Meta};
use seedling_types::Role;
use serde_json::Value;
use std::collections::BTreeSet;

/// For the commands a person types.
pub struct Hands<'a> {
    pub shell: &'a dyn Shell,
    /// `kubectl`, with what it needs to find the cluster.
    pub kubectl: &'a str,
}

impl Hands<'_> {
    fn kubectl(&self, rest: &str) -> String {
        format!("{} {rest}", self.kubectl)
    }

    /// The command of a section on that node.
    fn section(&self, node: &NodeFacts, section: &str) -> String {
        let api =
            node.tried.iter().find(|t| t.to == BALANCER).map_or("api-int.DOMAIN", |t| t.address.as_str());
        self.shell.by_hand(&node.host, &script::command(section, api))
    }
}

pub fn judge(facts: &Facts, hands: &Hands) -> Vec<Finding> {
    let at_work: Vec<_> = facts.nodes.iter().filter(|n| !n.has_left()).collect();
    let serving: Vec<_> = at_work.iter().copied().filter(|n| n.host.role != Role::Worker).collect();
    let masters: Vec<_> = serving.iter().copied().filter(|n| n.host.role == Role::Master).collect();
    let joined: Vec<_> = at_work.iter().copied().filter(|n| n.host.role != Role::Bootstrap).collect();
    let mut all: Vec<_> = facts.nodes.iter().map(|node| entered(node, hands)).collect();
    all.push(outside(facts, hands));
    all.extend(serving.iter().map(|node| section_is(&API_READY, node, "api", "ok", hands)));
    all.extend(serving.iter().map(|node| section_is(&MCS_HEALTH, node, "mcs", "200", hands)));
    let through = joined.iter().map(|node| {
        let finding = section_is(&MCS_HEALTH, node, "mcs-balancer", "200", hands);
        Finding { on: format!("{} → {BALANCER}", node.host.name), ..finding }
    });
    all.extend(through);
    all.extend(masters.iter().map(|node| refuses_strangers(node, hands)));
    all.extend(serving.iter().map(|node| static_pods(facts, node, hands)));
    all.extend(serving.iter().map(|node| {
        section(&ETCD_HEALTH, node, "etcd-health", hands, |said| {
            (said.code == 0 && said.text.contains("is healthy")).then(|| "healthy".to_string())
        })
    }));
    all.extend(serving.iter().map(|node| etcd_members(node, &masters, hands)));
    all.push(etcd_one(&serving, hands));
    all.push(manifests(facts, hands));
    all.extend(operators(facts, hands));
    all.push(csrs(facts, hands));
    all.extend(joined.iter().map(|node| node_ready(facts, node, hands)));
    all.extend(at_work.iter().map(|node| kubelet(node, hands)));
    all.extend(at_work.iter().map(|node| connections(node, hands)));
    all
}

/// Nobody answered: whatever was to be looked at is unknown.
fn unknown(check: &Check, on: &str, why: &str, by_hand: String) -> Finding {
    Finding::new(check, on, Outcome::Unknown, format!("could not be asked: {why}")).seen(why, by_hand)
}

fn section(
    check: &Check,
    node: &NodeFacts,
    name: &str,
    hands: &Hands,
    well: impl Fn(&Said) -> Option<String>,
) -> Finding {
    let (on, hand) = (&node.host.name, hands.section(node, name));
    match node.said(name) {
        Err(why) => unknown(check, on, &why, hand),
        Ok(said) => match well(said) {
            Some(says) => Finding::new(check, on, Outcome::Ok, says).seen(&said.text, hand),
            None => Finding::new(check, on, Outcome::Failed, in_a_line(&said.text)).seen(&said.text, hand),
        },
    }
}

/// What matters of an answer that is not the one that was wanted.
fn in_a_line(text: &str) -> String {
    let failed: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("[-]")).collect();
    // curl's code for no answer; what crictl and etcdctl log beside what they say.
    let noise = |line: &&str| *line == "000" || line.starts_with("time=\"") || line.starts_with("{\"level\"");
    match failed.is_empty() {
        false => failed.join("; "),
        true => text.lines().rfind(|line| !noise(line)).unwrap_or("nothing was said").to_string(),
    }
}

fn section_is(check: &Check, node: &NodeFacts, name: &str, wanted: &str, hands: &Hands) -> Finding {
    section(check, node, name, hands, |said| (said.text == wanted).then(|| wanted.to_string()))
}

/// No answer is no refusal, nor is one that cannot ask the API who is a stranger: nothing is known then.
fn refuses_strangers(node: &NodeFacts, hands: &Hands) -> Finding {
    let finding = section_is(&MCS_REFUSES, node, "mcs-stranger", "403", hands);
    match node.said("mcs-stranger") {
        Ok(said) if said.text.ends_with("000") || said.text.starts_with('5') => {
            let says = format!("nobody decided: {}", finding.says);
            let silent = Finding::new(&MCS_REFUSES, &node.host.name, Outcome::Unknown, says.clone());
            silent.seen(says, finding.by_hand)
        }
        _ => finding,
    }
}

fn entered(node: &NodeFacts, hands: &Hands) -> Finding {
    let (name, hand) = (&node.host.name, hands.shell.by_hand(&node.host, "true"));
    match &node.said {
        Ok(_) => Finding::new(&ENTERED, name, Outcome::Ok, "entered").seen("", hand),
        Err(why) => Finding::new(&ENTERED, name, Outcome::Failed, why).seen(why, hand),
    }
}

fn outside(facts: &Facts, hands: &Hands) -> Finding {
    let hand = hands.kubectl("get --raw /readyz");
    let on = "outside";
    match &facts.api.readyz {
        Ok(text) if text == "ok" => Finding::new(&API_READY, on, Outcome::Ok, "ok").seen(text, hand),
        Ok(text) | Err(text) => {
            Finding::new(&API_READY, on, Outcome::Failed, in_a_line(text)).seen(text, hand)
        }
    }
}

/// On a master: file, operator and container agree. On bootstrap: they run.
fn static_pods(facts: &Facts, node: &NodeFacts, hands: &Hands) -> Finding {
    let on = &node.host.name;
    let hand = hands.section(node, "manifests");
    let (manifests, containers) = match (node.said("manifests"), node.said("containers")) {
        (Ok(manifests), Ok(containers)) => (&manifests.text, &containers.text),
        (Err(why), _) | (_, Err(why)) => return unknown(&STATIC_PODS, on, &why, hand),
    };
    let evidence = format!("{manifests}\n{containers}");
    let (mut well, mut wrong, mut open, mut silent) = (vec![], vec![], vec![], "");
    for (pod, operator) in &facts.api.static_pods {
        let on_disk = manifests.lines().find_map(|line| revision(line, pod));
        let running = containers.lines().any(|line| line.contains("Running") && has_word(line, pod));
        if !running {
            wrong.push(format!("{pod} does not run"));
            continue;
        }
        if node.host.role == Role::Bootstrap {
            well.push(format!("{pod} runs"));
            continue;
        }
        let said = operator.as_ref().map(|status| status.of_node(on).map_or(0, |node| node.current()));
        match (on_disk, said) {
            (None, _) => {
                wrong.push(format!("{pod} has no file with a revision in /etc/kubernetes/manifests"))
            }
            (Some(disk), Ok(said)) if disk == said => well.push(format!("{pod} {disk}")),
            (Some(disk), Ok(said)) => {
                wrong.push(format!("{pod} is at revision {disk}, its operator says {said}"))
            }
            (Some(disk), Err(why)) => {
                open.push(format!("{pod} {disk}"));
                silent = why;
            }
        }
    }
    let finding = match (wrong.is_empty(), open.is_empty()) {
        (true, false) => {
            let says =
                format!("{} run; what their operators say could not be asked: {silent}", open.join(", "));
            return Finding::new(&STATIC_PODS, on, Outcome::Unknown, says.clone()).seen(says, hand);
        }
        _ => Finding::of(&STATIC_PODS, on, well.join(", "), wrong),
    };
    finding.seen(evidence, hand)
}

/// `/etc/kubernetes/manifests/etcd-pod.yaml:revision: "7"`
fn revision(line: &str, pod: &str) -> Option<i64> {
    let (file, revision) = line.split_once(':')?;
    let name = file.rsplit('/').next()?;
    (name.strip_suffix("-pod.yaml")? == pod)
        .then(|| revision.chars().filter(char::is_ascii_digit).collect::<String>().parse().ok())?
}

fn has_word(line: &str, word: &str) -> bool {
    line.split_whitespace().any(|w| w == word)
}

/// What one member says of the list: each voter's name, and those who are no voters.
fn etcd_members(node: &NodeFacts, masters: &[&NodeFacts], hands: &Hands) -> Finding {
    let wanted: BTreeSet<_> = masters.iter().map(|n| n.host.name.clone()).collect();
    let hand = hands.section(node, "etcd-members").replace("-w json", "-w table");
    let finding = section(&ETCD_MEMBERS, node, "etcd-members", hands, |said| {
        Some(match members(&said.text)? {
            (voters, learners) if voters == wanted && learners.is_empty() => {
                format!("{} voters: {}", voters.len(), join(&voters))
            }
            _ => return None,
        })
    });
    let says = match (finding.result, node.said("etcd-members").ok().and_then(|said| members(&said.text))) {
        (Outcome::Failed, Some((voters, learners))) => {
            let mut wrong: Vec<_> =
                voters.difference(&wanted).map(|name| format!("{name} is a member and no master")).collect();
            wrong.extend(wanted.difference(&voters).map(|name| format!("{name} is no voter")));
            wrong.extend(learners.iter().map(|name| format!("{name} is a learner")));
            wrong.join("; ")
        }
        _ => finding.says.clone(),
    };
    Finding { says, by_hand: hand, ..finding }
}

fn join(names: &BTreeSet<String>) -> String {
    names.iter().cloned().collect::<Vec<_>>().join(", ")
}

/// Voters and learners. A member that was added and never started has no name yet.
fn members(text: &str) -> Option<(BTreeSet<String>, BTreeSet<String>)> {
    let list: Value = serde_json::from_str(text).ok()?;
    let (mut voters, mut learners) = (BTreeSet::new(), BTreeSet::new());
    for member in list["members"].as_array()? {
        let name = member["name"].as_str().filter(|n| !n.is_empty()).unwrap_or("one that never started");
        let list = if member["isLearner"] == true { &mut learners } else { &mut voters };
        list.insert(name.to_string());
    }
    Some((voters, learners))
}

/// Cluster id, term and leader, as each says.
fn etcd_one(nodes: &[&NodeFacts], hands: &Hands) -> Finding {
    let hand = nodes.first().map(|n| hands.section(n, "etcd-status")).unwrap_or_default();
    let (mut views, mut evidence, mut silent) = (BTreeSet::new(), String::new(), vec![]);
    for node in nodes {
        let name = &node.host.name;
        let said = node.said("etcd-status").map_or("could not be asked", |said| said.text.as_str());
        match view(said) {
            Some(view) => {
                let (cluster, term, leader) = view;
                evidence += &format!("{name}: cluster {cluster:x}, term {term}, leader {leader:x}\n");
                views.insert(view);
            }
            None => {
                evidence += &format!("{name}: {said}\n");
                silent.push(name.clone());
            }
        }
    }
    let on = "all members";
    let views: Vec<_> = views.into_iter().collect();
    let finding = match (views.as_slice(), silent.is_empty()) {
        ([], _) => {
            let says = "no member answered: see machine-entered and etcd-health";
            return Finding::new(&ETCD_ONE, on, Outcome::Unknown, says).seen(says, hand);
        }
        ([(_, _, 0)], _) => Finding::new(&ETCD_ONE, on, Outcome::Failed, "no leader").or_next(|| {
            "a majority of the masters must run: switch on those that are off (machine-entered)".into()
        }),
        ([(cluster, term, leader)], true) => {
            let says = format!("cluster {cluster:x}, term {term}, leader {leader:x}");
            Finding::new(&ETCD_ONE, on, Outcome::Ok, says)
        }
        ([_], false) => Finding::new(
            &ETCD_ONE,
            on,
            Outcome::Unknown,
            format!("the others agree, but {} did not answer", silent.join(", ")),
        ),
        _ => Finding::new(
            &ETCD_ONE,
            on,
            Outcome::Failed,
            "the members do not agree on cluster, term and leader",
        ),
    };
    finding.seen(evidence, hand)
}

fn view(text: &str) -> Option<(u64, u64, u64)> {
    let status: Value = serde_json::from_str(text).ok()?;
    let status = &status.get(0)?["Status"];
    let leader = status["leader"].as_u64().unwrap_or_default();
    Some((status["header"]["cluster_id"].as_u64()?, status["raftTerm"].as_u64()?, leader))
}

fn manifests(facts: &Facts, hands: &Hands) -> Finding {
    let hand = hands.kubectl("get clusterversion version -o yaml");
    let version = match &facts.api.version {
        Ok(version) => version,
        Err(why) => return unknown(&MANIFESTS, "version", why, hand),
    };
    let status = version.status.clone().unwrap_or_default();
    let mut wrong = vec![];
    for condition in version.conditions() {
        let said = format!("{} is {}: {}", condition.kind, condition.status, condition.message);
        match (condition.kind.as_str(), condition.is_true()) {
            ("Available", false) | ("Failing" | "Progressing", true) => wrong.push(said),
            _ => {}
        }
    }
    let newest = status.history.first();
    if !newest.is_some_and(|update| update.is_complete()) {
        let state = newest.map_or("there is none", |update| update.state.as_str());
        wrong.push(format!("the newest entry of its history: {state}"));
    }
    let well = format!("version {} is applied", status.desired.version);
    Finding::of(&MANIFESTS, "version", well, wrong).seen(conditions(&version.conditions()), hand)
}

fn conditions(all: &[seedling_api::Condition]) -> String {
    let line = |c: &seedling_api::Condition| {
        format!("{}={} since {} {}", c.kind, c.status, c.last_transition_time, c.message)
    };
    all.iter().map(|c| line(c).trim_end().to_string()).collect::<Vec<_>>().join("\n")
}

fn operators(facts: &Facts, hands: &Hands) -> Vec<Finding> {
    let operators = match &facts.api.operators {
        Ok(operators) => operators,
        Err(why) => return vec![unknown(&OPERATORS, "all", why, hands.kubectl("get clusteroperators"))],
    };
    if operators.is_empty() {
        let none = Finding::new(&OPERATORS, "all", Outcome::Failed, "there is no ClusterOperator");
        return vec![none.seen("", hands.kubectl("get clusteroperators"))];
    }
    let mut findings: Vec<_> = operators
        .iter()
        .map(|operator| {
            let mut wrong = vec![];
            if operator.conditions().is_empty() {
                wrong.push("it has not reported anything yet".to_string());
            }
            for (kind, wanted) in [("Available", "True"), ("Progressing", "False"), ("Degraded", "False")] {
                match operator.condition(kind) {
                    Some(condition) if condition.status == wanted => {}
                    Some(c) => wrong.push(format!("{kind} is {}: {}", c.status, c.message)),
                    None if wrong.is_empty() => wrong.push(format!("{kind} was never reported")),
                    None => {}
                }
            }
            let hand = hands.kubectl(&format!("get clusteroperator {} -o yaml", operator.name()));
            Finding::of(&OPERATORS, operator.name(), "available", wrong)
                .seen(conditions(&operator.conditions()), hand)
        })
        .collect();
    findings.sort_by(|a, b| a.on.cmp(&b.on));
    findings
}

fn csrs(facts: &Facts, hands: &Hands) -> Finding {
    let hand = hands.kubectl("get csr");
    let requests = match &facts.api.csrs {
        Ok(requests) => requests,
        Err(why) => return unknown(&CSRS, "all", why, hand),
    };
    let decided = |r: &seedling_api::CertificateSigningRequest| {
        r.conditions().iter().any(|c| ["Approved", "Denied", "Failed"].contains(&c.kind.as_str()))
    };
    let pending: Vec<_> = requests.iter().filter(|r| !decided(r)).collect();
    let lines: Vec<_> = pending
        .iter()
        .map(|r| {
            format!(
                "{} {}",
                r.meta().name.as_deref().unwrap_or_default(),
                r.spec.username.as_deref().unwrap_or_default()
            )
        })
        .collect();
    let wrong = match pending.len() {
        0 => vec![],
        n => vec![format!("{n} of {} wait for approval", requests.len())],
    };
    Finding::of(&CSRS, "all", format!("{} requests, none pending", requests.len()), wrong)
        .seen(lines.join("\n"), hand)
}

fn node_ready(facts: &Facts, node: &NodeFacts, hands: &Hands) -> Finding {
    let on = &node.host.name;
    let hand = hands.kubectl(&format!("describe node {on}"));
    let nodes = match &facts.api.nodes {
        Ok(nodes) => nodes,
        Err(why) => return unknown(&NODE_READY, on, why, hand),
    };
    let Some(node) = nodes.iter().find(|n| n.name() == on || n.name().split('.').next() == Some(on)) else {
        let gone = Finding::new(&NODE_READY, on, Outcome::Failed, "the API has no node of that name");
        let names: Vec<_> = nodes.iter().map(|n| n.name()).collect();
        return gone.seen(names.join("\n"), hand);
    };
    let mut wrong = vec![];
    match node.condition("Ready") {
        None => wrong.push("Ready was never reported".to_string()),
        Some(c) if !c.is_true() => wrong.push(format!("Ready is {}: {}", c.status, c.message)),
        Some(_) => {}
    }
    let pressed = node.conditions().into_iter().filter(|c| c.kind.ends_with("Pressure") && c.is_true());
    wrong.extend(pressed.map(|c| format!("{}: {}", c.kind, c.message)));
    Finding::of(&NODE_READY, on, "Ready", wrong).seen(conditions(&node.conditions()), hand)
}

fn kubelet(node: &NodeFacts, hands: &Hands) -> Finding {
    let both = node.said("kubelet").and_then(|active| Ok((active, node.said("kubelet-healthz")?)));
    let hand = hands.section(node, "kubelet");
    let (active, health) = match both {
        Ok(both) => both,
        Err(why) => return unknown(&KUBELET, &node.host.name, &why, hand),
    };
    let mut wrong = vec![];
    if active.text != "active" {
        wrong.push(format!("the service is {}", active.text));
    }
    if health.text != "ok" {
        wrong.push(format!("/healthz: {}", health.text));
    }
    let evidence = format!("{}\n{}", active.text, health.text);
    Finding::of(&KUBELET, &node.host.name, "active, healthz ok", wrong).seen(evidence, hand)
}

fn connections(node: &NodeFacts, hands: &Hands) -> Finding {
    let on = format!("from {}", node.host.name);
    if let Err(why) = &node.said {
        return unknown(&CONNECTION, &on, why, hands.shell.by_hand(&node.host, "true"));
    }
    let shut: Vec<_> = node.tried.iter().filter(|t| !t.is_open()).collect();
    let wrong = shut.iter().map(|t| format!("{}:{} {}", t.to, t.port, t.seen)).collect();
    let lines: Vec<_> =
        node.tried.iter().map(|t| format!("{} {}:{} {}", t.to, t.address, t.port, t.seen)).collect();
    let example = shut.first().copied().or(node.tried.first());
    let hand =
        example.map(|t| hands.shell.by_hand(&node.host, &script::connect_by_hand(t))).unwrap_or_default();
    let well = format!("{} of {} open", lines.len(), lines.len());
    Finding::of(&CONNECTION, &on, well, wrong).seen(lines.join("\n"), hand)
}
