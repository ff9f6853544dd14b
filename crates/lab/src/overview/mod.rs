//! A lab at a glance: machines × stages, etcd's members over time, operators, what is awaited, the last error.
//!
//! In: the machines' power, their journals, the helper's events, the milestones of `lab up`, and what the API says, if it answers.
//! Out: an [`Overview`], as data or as lines. All but the API's part is read from files: it is there before the API, and when it is down.

mod draw;
mod elsewhere;
mod news;
mod stages;

pub use draw::lines;
pub use elsewhere::{Site, elsewhere};
pub use news::news;
pub use stages::{Mark, Progress, STAGES};

use crate::bring_up::AWAITED;
use crate::{Lab, Result, Status, read_events, status};
use seedling_api::{ClusterOperator, Conditions, Meta};
use seedling_steps::journal::{Fate, State, fold};
use seedling_types::Role;
use seedling_types::helper::{HelperEvent, HelperEventKind};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// An API that is down must not hold up the rest.
const API_WITHIN: Duration = Duration::from_secs(2);

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Overview {
    #[serde(flatten)]
    pub status: Status,
    /// When the machines were switched on, in milliseconds since 1970; none: never.
    pub started: Option<i64>,
    /// Reached by `lab up`, and when.
    pub milestones: Vec<(String, i64)>,
    pub awaited: Option<Awaited>,
    pub progress: Vec<Progress>,
    pub etcd: Vec<EtcdChange>,
    pub cluster: ClusterView,
    pub last_error: Option<LastError>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Awaited {
    pub what: String,
    pub since: i64,
}

/// etcd's members after somebody came, voted or left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EtcdChange {
    pub at: i64,
    pub member: String,
    pub what: &'static str,
    pub members: usize,
    pub voters: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClusterView {
    /// Why the API does not answer; none: it does.
    pub error: Option<String>,
    pub operators: Vec<OperatorView>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OperatorView {
    pub name: String,
    pub ok: bool,
    /// What is not as it should be, in the operator's words.
    pub says: String,
    /// Since when, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<i64>,
}

impl ClusterView {
    /// All operators have reported, and all are well.
    pub fn is_done(&self) -> bool {
        self.error.is_none() && !self.operators.is_empty() && self.operators.iter().all(|o| o.ok)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LastError {
    pub at: i64,
    pub node: String,
    pub who: String,
    pub says: String,
}

pub async fn overview(lab: &Lab) -> Result<Overview> {
    let kubeconfig = lab.kubeconfig();
    let (status, cluster) = tokio::join!(status(lab), ask(&kubeconfig));
    let hosts = &lab.record.spec.inventory.hosts;
    let journals = hosts.iter().map(|host| (host.name.clone(), fold(&lab.journal(&host.name)))).collect();
    let bring_up = lab.bring_up();
    let events = read_events(&lab.helper_events());
    Ok(assemble(status?, cluster, &bring_up, &journals, &events))
}

/// Pure.
fn assemble(
    status: Status,
    cluster: ClusterView,
    bring_up: &crate::probe::BringUp,
    journals: &BTreeMap<String, State>,
    events: &[HelperEvent],
) -> Overview {
    // In step mode nobody times the bring-up: it began when the first machine asked for its address.
    let asked = || events.iter().find(|event| matches!(event.what, HelperEventKind::Dhcp { .. }));
    let started = Some(bring_up.started_unix_millis).filter(|at| *at > 0);
    let started = started.or_else(|| stages::millis(&asked()?.time));
    let at = |seconds: f64| bring_up.started_unix_millis + (seconds * 1000.0) as i64;
    let milestones: Vec<_> = bring_up.milestones.iter().map(|(name, s)| (name.clone(), at(*s))).collect();
    let workers = status.nodes.iter().any(|node| node.role == Role::Worker);
    let progress = status.nodes.iter().map(|node| stages::progress(node, journals, events)).collect();
    let etcd = etcd(&status, journals, &milestones);
    let last_error = last_error(journals, events);
    Overview {
        awaited: awaited(&milestones, workers),
        started,
        milestones,
        progress,
        etcd,
        cluster,
        last_error,
        status,
    }
}

/// What comes after the last milestone.
fn awaited(milestones: &[(String, i64)], workers: bool) -> Option<Awaited> {
    let (last, since) = milestones.last()?;
    let reached = AWAITED.iter().rposition(|what| last.starts_with(what))?;
    let next = AWAITED.get(reached + 1).filter(|_| workers || reached + 2 < AWAITED.len())?;
    Some(Awaited { what: next.to_string(), since: *since })
}

fn etcd(
    status: &Status,
    journals: &BTreeMap<String, State>,
    milestones: &[(String, i64)],
) -> Vec<EtcdChange> {
    let done = |node: &str, who: &str, step: &str| {
        let found = journals.get(node)?.step(who, step).filter(|step| step.was_done)?;
        found.runs.iter().map(|(_, to)| *to).min()
    };
    let mut changes: Vec<(i64, &str, &'static str, i32, i32)> = vec![];
    for node in &status.nodes {
        let name = node.name.as_str();
        match node.role {
            Role::Bootstrap => {
                let founded = done(name, "bootkube", "wait-for-etcd");
                changes.extend(founded.map(|at| (at, name, "founded it", 1, 1)));
                let left =
                    milestones.iter().find(|(what, _)| what.starts_with(crate::bring_up::MEMBER_REMOVED));
                changes.extend(left.map(|(_, at)| (*at, name, "left", -1, -1)));
            }
            Role::Master => {
                let (joined, votes) =
                    (done(name, "etcd-join", "membership"), done(name, "etcd-wait", "voter"));
                changes.extend(joined.map(|at| (at, name, "joined as a learner", 1, 0)));
                changes.extend(votes.map(|at| (at, name, "votes", 0, 1)));
            }
            Role::Worker => {}
        }
    }
    changes.sort();
    let (mut members, mut voters) = (0i32, 0i32);
    let count = |n: i32| usize::try_from(n).unwrap_or_default();
    let change = |(at, member, what, more, votes): (i64, &str, &'static str, i32, i32)| {
        (members, voters) = (members + more, voters + votes);
        EtcdChange { at, member: member.into(), what, members: count(members), voters: count(voters) }
    };
    changes.into_iter().map(change).collect()
}

/// The newest step that failed and was not done since, or what the helper refused since.
fn last_error(journals: &BTreeMap<String, State>, events: &[HelperEvent]) -> Option<LastError> {
    let failed = journals.iter().flat_map(|(node, state)| {
        state.services.iter().flat_map(move |service| {
            let failed = service.steps.iter().filter(|step| step.fate == Fate::Failed);
            failed.map(move |step| LastError {
                at: step.since,
                node: node.clone(),
                who: format!("{} {}", service.name, step.name),
                says: step.note.clone().unwrap_or_else(|| "failed".into()),
            })
        })
    });
    let refused = events.iter().filter_map(|event| {
        let HelperEventKind::Refused { path, remote, host, reason } = &event.what else { return None };
        let node = host.clone().unwrap_or_else(|| remote.to_string());
        Some(LastError {
            at: stages::millis(&event.time)?,
            node,
            who: format!("helper {path}"),
            says: reason.clone(),
        })
    });
    failed.chain(refused).max_by_key(|error| error.at)
}

async fn ask(kubeconfig: &Path) -> ClusterView {
    if !kubeconfig.exists() {
        return ClusterView { error: Some("there is no kubeconfig yet".into()), operators: vec![] };
    }
    let asked = async {
        let client = seedling_cluster::connect(Some(kubeconfig)).await.map_err(|e| e.to_string())?;
        let found = seedling_cluster::list::<ClusterOperator>(&client, None, "").await;
        found.map_err(|e| seedling_cluster::innermost(&e))
    };
    let within = tokio::time::timeout(API_WITHIN, asked).await;
    match within.unwrap_or_else(|_| Err(format!("no answer within {} s", API_WITHIN.as_secs()))) {
        Ok(operators) => ClusterView { error: None, operators: operators.iter().map(operator).collect() },
        Err(error) => ClusterView { error: Some(error), operators: vec![] },
    }
}

fn operator(operator: &ClusterOperator) -> OperatorView {
    let name = operator.name().to_string();
    if operator.conditions().is_empty() {
        return OperatorView { name, ok: false, says: "has not reported anything yet".into(), since: None };
    }
    let wrong = [("Available", "True"), ("Degraded", "False"), ("Progressing", "False")];
    let wrong = wrong.iter().find_map(|(kind, wanted)| match operator.condition(kind) {
        Some(condition) if condition.status == *wanted => None,
        Some(condition) => Some((
            format!("{kind} is {}: {}", condition.status, condition.message),
            stages::millis(&condition.last_transition_time),
        )),
        None => Some((format!("{kind} was never reported"), None)),
    });
    let (says, since) = wrong.clone().unwrap_or_default();
    OperatorView { name, ok: wrong.is_none(), says, since }
}

#[cfg(test)]
mod tests;
