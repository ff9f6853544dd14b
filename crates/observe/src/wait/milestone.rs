//! What a growing cluster reaches, and how each is seen: by watches, so that it is known at once. The caller decides when to give
//! up: `wait-for` when nothing moves in the cluster, `lab up` when nothing moves on the machines.

use kube::Client;
use seedling_api::{ClusterVersion, Conditions, ConfigMap, Etcd, Files, Meta, Node};
use seedling_cluster::follow::{Followed, Selection, Snapshot, follow};
use seedling_cluster::{Kind, innermost};
use seedling_steps::{Condition, Probe, Unmet, wait_for};
use std::cell::RefCell;
use std::convert::Infallible;
use std::time::Duration;

const MASTER: &str = "node-role.kubernetes.io/master";
const WORKER: &str = "node-role.kubernetes.io/worker";
/// There is no event for the start of an API server.
const ASK_API: Duration = Duration::from_millis(250);

/// In the order in which they are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Milestone {
    ApiUp,
    /// This many masters. Fewer, if the others continue without those that are missing.
    MastersJoined(usize),
    EtcdOnMasters,
    BootstrapComplete,
    BootstrapMemberRemoved,
    Initialized,
    /// So many workers are Ready. They join when the masters' machine-config servers answer.
    WorkersReady(usize),
}

/// What is seen before a milestone is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct News {
    pub text: String,
    /// It is why nothing is heard at the moment.
    pub is_error: bool,
}

/// What the objects say: reached, or not yet.
type Look = Result<String, Option<String>>;

impl Milestone {
    /// Returns what was seen when it was reached. `meanwhile` is called with what is seen before that.
    async fn reached(self, client: &Client, mut meanwhile: impl FnMut(News)) -> String {
        let etcd = || follow::<Etcd>(client, Selection::one(None, "cluster"));
        match self {
            Milestone::ApiUp => api_up(client, meanwhile).await,
            Milestone::MastersJoined(wanted) => {
                let (mut nodes, mut etcd) = (follow::<Node>(client, Selection::all()), etcd());
                loop {
                    let seen = nodes.now();
                    let masters = seen.objects.values().filter(|node| node.label(MASTER).is_some()).count();
                    if let Some(joined) = joined(masters, wanted, etcd.one().as_deref()) {
                        return joined;
                    }
                    seen.error.into_iter().for_each(|text| meanwhile(News { text, is_error: true }));
                    tokio::select! {
                        _ = nodes.next() => {}
                        _ = etcd.next() => {}
                    }
                }
            }
            Milestone::EtcdOnMasters => {
                until(etcd(), |found| etcd_says(found, "EtcdRunningInCluster").ok_or(None), meanwhile).await
            }
            Milestone::BootstrapComplete => {
                let map = Selection::one(Some("kube-system"), "bootstrap");
                until(follow(client, map), bootstrap_status, meanwhile).await
            }
            Milestone::BootstrapMemberRemoved => until(etcd(), member_removed, meanwhile).await,
            Milestone::Initialized => {
                let version = follow::<ClusterVersion>(client, Selection::one(None, "version"));
                until(version, initialized, meanwhile).await
            }
            Milestone::WorkersReady(wanted) => {
                let mut nodes = follow::<Node>(client, Selection::all());
                loop {
                    let seen = nodes.now();
                    match ready_workers(seen.objects.values().map(|node| &**node), wanted) {
                        Ok(ready) => return ready,
                        Err(text) => meanwhile(News { text, is_error: false }),
                    }
                    seen.error.into_iter().for_each(|text| meanwhile(News { text, is_error: true }));
                    nodes.next().await;
                }
            }
        }
    }

    /// Gives up as `condition` says. `instead` says what is seen meanwhile; it is shown the last news.
    pub async fn wait(
        self,
        client: &Client,
        condition: &Condition,
        poll: Duration,
        mut instead: impl FnMut(&News) -> String,
    ) -> Result<String, Unmet> {
        let heard = RefCell::new(News::default());
        let reached = self.reached(client, |news| *heard.borrow_mut() = news);
        let standstill =
            wait_for(condition, poll, async || Probe::<Infallible>::Unmet(instead(&heard.borrow())));
        tokio::select! {
            seen = reached => Ok(seen),
            gave_up = standstill => gave_up.map(|never| match never {}),
        }
    }
}

async fn api_up(client: &Client, mut meanwhile: impl FnMut(News)) -> String {
    loop {
        match client.apiserver_version().await {
            Ok(version) => return version.git_version,
            Err(e) => meanwhile(News { text: innermost(&e), is_error: false }),
        }
        tokio::time::sleep(ASK_API).await;
    }
}

/// `look` is shown the one object there is, if any.
async fn until<K: Kind>(
    mut followed: Followed<K>,
    look: impl Fn(Option<&K>) -> Look,
    mut meanwhile: impl FnMut(News),
) -> String {
    loop {
        let Snapshot { synced, objects, error, .. } = followed.now();
        let found = objects.into_values().next();
        let news = match synced.then(|| look(found.as_deref())) {
            Some(Ok(seen)) => return seen,
            Some(Err(Some(text))) if error.is_none() || found.is_some() => {
                Some(News { text, is_error: false })
            }
            _ => error.map(|text| News { text, is_error: true }),
        };
        news.into_iter().for_each(&mut meanwhile);
        followed.next().await;
    }
}

fn joined(nodes: usize, wanted: usize, etcd: Option<&Etcd>) -> Option<String> {
    if nodes >= wanted {
        return Some(format!("{nodes} nodes"));
    }
    // The others continue without it, and say which one is missing.
    let missing = etcd_says(etcd, "EtcdMembersDegraded")?;
    Some(format!("{nodes} of {wanted} nodes; {missing}"))
}

/// Workers by their label and without a master's; both labels are a master's on which everybody's pods run.
fn ready_workers<'a>(nodes: impl Iterator<Item = &'a Node>, wanted: usize) -> Result<String, String> {
    let workers = nodes.filter(|node| node.label(WORKER).is_some() && node.label(MASTER).is_none());
    let ready = workers.filter(|node| node.condition("Ready").is_some_and(|c| c.is_true())).count();
    match ready >= wanted {
        true => Ok(format!("{ready} nodes")),
        false => Err(format!("{ready} of {wanted} workers are Ready")),
    }
}

fn etcd_says(etcd: Option<&Etcd>, condition: &str) -> Option<String> {
    etcd?.condition(condition).filter(|c| c.is_true()).map(|c| c.message)
}

fn bootstrap_status(map: Option<&ConfigMap>) -> Look {
    let map = map.ok_or(None)?;
    match map.file("status") {
        Some("complete") => Ok("complete".into()),
        Some(status) => Err(Some(format!("Bootstrap status: {status}"))),
        None => Err(Some("No status found in bootstrap configmap".into())),
    }
}

fn member_removed(etcd: Option<&Etcd>) -> Look {
    if etcd.is_none() {
        let line = r#"Error getting etcd operator singleton, retrying: etcds.operator.openshift.io "cluster" not found"#;
        return Err(Some(line.into()));
    }
    etcd_says(etcd, "EtcdBootstrapMemberRemoved").ok_or(None)
}

/// What a ClusterVersion waits for, or what it has come to.
fn initialized(version: Option<&ClusterVersion>) -> Look {
    let version = version.ok_or(None)?;
    let is = |kind: &str, status: &str| version.condition(kind).is_some_and(|c| c.status == status);
    let message = |kind: &str| Some(version.condition(kind)?.message);
    if is("Available", "True") && is("Failing", "False") && is("Progressing", "False") {
        return Ok(message("Progressing").unwrap_or_default());
    }
    let failing = is("Failing", "True").then(|| message("Failing")).flatten();
    Err(Some(failing.or_else(|| message("Progressing")).unwrap_or_default()))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use serde::de::DeserializeOwned;
    use serde_json::json;

    /// Type, status and message of each.
    fn with<K: DeserializeOwned>(conditions: &[(&str, &str, &str)]) -> K {
        let condition = |(kind, status, message): &(&str, &str, &str)| json!({"type": kind, "status": status, "message": message});
        let conditions: Vec<_> = conditions.iter().map(condition).collect();
        serde_json::from_value(json!({"metadata": {}, "status": {"conditions": conditions}})).unwrap()
    }

    #[test]
    fn what_a_version_waits_for() {
        let working = "Working towards 5.0.0: 10 of 900 done (1% complete)";
        let seen = |available: &str, failing: &str, progressing: &str| {
            initialized(Some(&with(&[
                ("Available", available, "a"),
                ("Failing", failing, "Multiple errors are preventing progress:\n* one"),
                ("Progressing", progressing, working),
            ])))
        };
        let waits = || Err(Some(working.to_string()));
        assert_eq!(seen("True", "False", "False"), Ok(working.into()));
        assert_eq!(seen("False", "False", "True"), waits());
        assert_eq!(seen("True", "Unknown", "False"), waits());
        assert!(seen("True", "True", "True").unwrap_err().unwrap().starts_with("Multiple errors"));
        assert_eq!(initialized(Some(&ClusterVersion::default())), Err(Some(String::new())));
        assert_eq!(initialized(None), Err(None));
    }

    #[test]
    fn masters_have_joined_when_all_are_there_or_the_others_go_on() {
        let etcd: Etcd = with(&[("EtcdMembersDegraded", "True", "master-2 is missing")]);
        let waits: Etcd = with(&[("EtcdMembersDegraded", "False", "")]);
        assert_eq!(joined(3, 3, None).as_deref(), Some("3 nodes"));
        assert_eq!(joined(2, 3, Some(&waits)), None);
        assert_eq!(joined(2, 3, Some(&etcd)).as_deref(), Some("2 of 3 nodes; master-2 is missing"));
    }

    #[test]
    fn a_worker_counts_when_it_is_ready_and_no_master() {
        let node = |labels: &[&str], ready: &str| -> Node {
            let labels: serde_json::Map<_, _> = labels.iter().map(|l| (l.to_string(), json!(""))).collect();
            let conditions = json!([{"type": "Ready", "status": ready}]);
            let node = json!({"metadata": {"labels": labels}, "status": {"conditions": conditions}});
            serde_json::from_value(node).unwrap()
        };
        let nodes = [
            node(&[MASTER, WORKER], "True"),
            node(&[MASTER], "True"),
            node(&[WORKER], "True"),
            node(&[WORKER], "False"),
            node(&[], "True"),
        ];
        assert_eq!(ready_workers(nodes.iter(), 1).as_deref(), Ok("1 nodes"));
        assert_eq!(ready_workers(nodes.iter(), 2).unwrap_err(), "1 of 2 workers are Ready");
    }

    #[test]
    fn bootstrapping_ends_in_upstreams_words() {
        let status = |data: serde_json::Value| {
            let map: ConfigMap = serde_json::from_value(json!({"metadata": {}, "data": data})).unwrap();
            bootstrap_status(Some(&map))
        };
        assert_eq!(status(json!({"status": "complete"})), Ok("complete".into()));
        assert_eq!(
            status(json!({"status": "progressing"})),
            Err(Some("Bootstrap status: progressing".into()))
        );
        assert_eq!(status(json!({})), Err(Some("No status found in bootstrap configmap".into())));
        assert!(member_removed(None).unwrap_err().unwrap().ends_with("\"cluster\" not found"));
        assert_eq!(
            member_removed(Some(&with(&[("EtcdBootstrapMemberRemoved", "True", "gone")]))),
            Ok("gone".into())
        );
    }
}
