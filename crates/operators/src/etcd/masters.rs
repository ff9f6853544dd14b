//! How far the masters have come, seen from their Nodes and etcd pods; and the record of those whose members were removed.

use super::decide::{Action, Master, Removed, State, Step};
use crate::patience::Progress;
use crate::static_pod::{Env, is_ready};
use anyhow::{Context as _, Result};
use seedling_cluster::get;
use seedling_types::names::NS_ETCD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Instant;

/// Key: the master's name. It outlives the operator: a removed member is not added again because an operator was restarted.
const RECORD: &str = "etcd-removed-members";
const MANAGER: &str = "seedling-etcd-removed";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    why: String,
    /// What the master looked like then.
    seen: String,
}
type Record = BTreeMap<String, Entry>;

/// The masters of the inventory. `well`: those whose members answer. `on_list`: those who have members.
pub async fn look(
    env: &Env,
    progress: &mut Progress<Step>,
    well: &[String],
    on_list: &[String],
    now: Instant,
) -> Result<Vec<Master>> {
    let mut record = read(env).await?;
    let known = record.len();
    // Also what a killed operator wrote before it did not come to remove.
    record.retain(|name, _| !on_list.contains(name));
    if record.len() < known {
        write(env, &record).await?;
    }
    let mut masters = Vec::new();
    for host in env.inventory.masters() {
        let (step, seen) = arrival(env, &host.name).await?;
        let removed = record.get(&host.name).map(|entry| Removed {
            why: entry.why.clone(),
            came_back: step == Step::Runs && seen != entry.seen,
        });
        let stalled = progress.stalled(&host.name, step, well.contains(&host.name), now);
        masters.push(Master { name: host.name.clone(), address: host.address, step, stalled, removed });
    }
    Ok(masters)
}

/// Right before a member is removed: what the watches told is asked of the API itself, since a watch may have told nothing for a while
/// without knowing it.
pub async fn confirm(env: &Env, state: &State, action: &Action) -> Result<()> {
    match action {
        Action::Remove(_) => {
            let map = get(&env.client, "v1", "ConfigMap", Some("kube-system"), "bootstrap").await?;
            let complete = map.is_some_and(|m| m["data"]["status"] == "complete");
            anyhow::ensure!(complete, "the bootstrap is not complete after all");
        }
        Action::GiveUp(id) => {
            let (master, _) = state.given_up(*id).context("the member is no master's")?;
            let (now, _) = arrival_now(env, &master.name).await?;
            anyhow::ensure!(!came_further(master.step, now), "{} has come further: {now:?}", master.name);
        }
        _ => {}
    }
    Ok(())
}

fn came_further(seen: Step, now: Step) -> bool {
    now > seen
}

/// Written before the member is removed.
pub async fn remember(env: &Env, state: &State, id: u64) -> Result<()> {
    let Some((master, why)) = state.given_up(id) else { return Ok(()) };
    tracing::warn!("members: {} is given up: {why}", master.name);
    let mut record = read(env).await?;
    let (_, seen) = arrival_now(env, &master.name).await?;
    record.insert(master.name.clone(), Entry { why, seen });
    write(env, &record).await
}

async fn read(env: &Env) -> Result<Record> {
    let live = env.cache.get("v1", "ConfigMap", Some(NS_ETCD), RECORD).await?;
    Ok(live.map(|live| parse(&live)).unwrap_or_default())
}

/// An entry that cannot be read would keep its master out for ever.
fn parse(live: &Value) -> Record {
    let data = live["data"].as_object().into_iter().flatten();
    data.filter_map(|(name, text)| Some((name.clone(), serde_json::from_str(text.as_str()?).ok()?))).collect()
}

async fn write(env: &Env, record: &Record) -> Result<()> {
    let text = |entry: &Entry| serde_json::to_string(entry);
    let data: BTreeMap<_, _> =
        record.iter().map(|(name, entry)| Ok((name, text(entry)?))).collect::<Result<_>>()?;
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": NS_ETCD, "name": RECORD}, "data": data});
    env.cache.apply(MANAGER, &object).await?;
    Ok(())
}

async fn arrival(env: &Env, name: &str) -> Result<(Step, String)> {
    let node = env.cache.get("v1", "Node", None, name).await?;
    let pod = env.cache.get("v1", "Pod", Some(NS_ETCD), &format!("etcd-{name}")).await?;
    Ok(judge(node.as_ref(), pod.as_ref()))
}

async fn arrival_now(env: &Env, name: &str) -> Result<(Step, String)> {
    let node = get(&env.client, "v1", "Node", None, name).await?;
    let pod = get(&env.client, "v1", "Pod", Some(NS_ETCD), &format!("etcd-{name}")).await?;
    Ok(judge(node.as_ref(), pod.as_ref()))
}

/// How far it is, and marks that change when the machine or its etcd starts again. Clocks of two machines are not compared.
fn judge(node: Option<&Value>, pod: Option<&Value>) -> (Step, String) {
    let container =
        pod.and_then(|p| p["status"]["containerStatuses"].as_array()?.iter().find(|c| c["name"] == "etcd"));
    let running = container.is_some_and(|c| c["state"]["running"].is_object());
    let step = match (node, pod) {
        (None, _) => Step::Absent,
        (Some(node), _) if !is_ready(node) => Step::NotReady,
        (_, None) => Step::NodeReady,
        _ if !running => Step::PodThere,
        _ => Step::Runs,
    };
    let ready =
        node.and_then(|n| n["status"]["conditions"].as_array()?.iter().find(|c| c["type"] == "Ready"));
    let ready_since = ready.and_then(|c| c["lastTransitionTime"].as_str()).unwrap_or_default();
    let started = container.and_then(|c| c["containerID"].as_str()).unwrap_or_default();
    (step, format!("{ready_since} {started}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(ready: &str, since: &str) -> Value {
        json!({"status": {"conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": since}]}})
    }
    fn pod(id: &str, state: &str) -> Value {
        let etcd = json!({"name": "etcd", "containerID": id, "state": {state: {}}});
        json!({"status": {"containerStatuses": [etcd]}})
    }

    #[test]
    fn a_master_comes_step_by_step() {
        let (up, down) = (node("True", "t1"), node("Unknown", "t2"));
        let (runs, waits) = (pod("c1", "running"), pod("c1", "waiting"));
        let empty = json!({});
        let step = |node, pod| judge(node, pod).0;
        assert_eq!(step(None, None), Step::Absent);
        assert_eq!(step(Some(&down), Some(&runs)), Step::NotReady);
        assert_eq!(step(Some(&up), None), Step::NodeReady);
        assert_eq!(step(Some(&up), Some(&empty)), Step::PodThere);
        assert_eq!(step(Some(&up), Some(&waits)), Step::PodThere);
        assert_eq!(step(Some(&up), Some(&runs)), Step::Runs);
    }

    #[test]
    fn nobody_is_given_up_who_came_further_than_the_watch_told() {
        assert!(came_further(Step::Absent, Step::NotReady) && came_further(Step::PodThere, Step::Runs));
        assert!(!came_further(Step::Runs, Step::Runs) && !came_further(Step::Runs, Step::Absent));
    }

    #[test]
    fn a_restart_of_the_machine_or_of_etcd_is_seen() {
        let marks = |since: &str, id: &str| judge(Some(&node("True", since)), Some(&pod(id, "running"))).1;
        assert_eq!(marks("t1", "c1"), marks("t1", "c1"));
        assert_ne!(marks("t1", "c1"), marks("t1", "c2"));
        assert_ne!(marks("t1", "c1"), marks("t3", "c1"));
    }

    #[test]
    fn the_record_is_read_as_it_is_written() {
        let entry = Entry { why: "it has no Node".into(), seen: " ".into() };
        let text = serde_json::to_string(&entry).unwrap_or_default();
        let live = json!({"data": {"master-2": text, "master-1": "?"}});
        assert_eq!(parse(&live), BTreeMap::from([("master-2".to_string(), entry)]));
    }
}
