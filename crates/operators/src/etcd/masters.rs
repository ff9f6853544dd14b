//! How far the masters have come, seen from their Nodes and etcd pods; and the record of those whose members were removed.

use super::decide::{Action, Arrival, Master, Removed, State};
use super::{ensure, hindered};
use crate::Result;
use crate::patience::Progress;
use crate::static_pod::Env;
use seedling_api::{Conditions, ConfigMap, Files, Node, Pod, config_map};
use seedling_cluster::get;
use seedling_types::names::NS_ETCD;
use serde::{Deserialize, Serialize};
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
pub(super) async fn look(
    env: &Env,
    progress: &mut Progress<Arrival>,
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
            came_back: step == Arrival::Runs && seen != entry.seen,
        });
        let stalled = progress.stalled(&host.name, step, well.contains(&host.name), now);
        masters.push(Master { name: host.name.clone(), address: host.address, step, stalled, removed });
    }
    Ok(masters)
}

/// Right before a member is removed: what the watches showed is read again from the API, since a watch may have been stuck for a while
/// without knowing it.
pub(super) async fn confirm(env: &Env, state: &State, action: &Action) -> Result<()> {
    match action {
        Action::Remove(_) => {
            let map = get::<ConfigMap>(&env.client, Some("kube-system"), "bootstrap").await?;
            let complete = map.is_some_and(|map| map.file("status") == Some("complete"));
            ensure(complete, "the bootstrap is not complete after all")?;
        }
        Action::GiveUp(id) => {
            let (master, _) = state.given_up(*id).ok_or_else(|| hindered("the member is no master's"))?;
            let (now, _) = arrival_now(env, &master.name).await?;
            let why = format!("{} has come further: {now:?}", master.name);
            ensure(!came_further(master.step, now), why)?;
        }
        _ => {}
    }
    Ok(())
}

fn came_further(seen: Arrival, now: Arrival) -> bool {
    now > seen
}

/// Written before the member is removed.
pub(super) async fn remember(env: &Env, state: &State, id: u64) -> Result<()> {
    let Some((master, why)) = state.given_up(id) else { return Ok(()) };
    tracing::warn!("etcd members: giving up on {}: {why}", master.name);
    let mut record = read(env).await?;
    let (_, seen) = arrival_now(env, &master.name).await?;
    record.insert(master.name.clone(), Entry { why, seen });
    write(env, &record).await
}

async fn read(env: &Env) -> Result<Record> {
    let live = env.cache.get::<ConfigMap>(Some(NS_ETCD), RECORD).await?;
    Ok(live.map(|live| parse(&live.files())).unwrap_or_default())
}

/// An entry that cannot be read must not keep its master out forever.
fn parse(files: &BTreeMap<String, String>) -> Record {
    files.iter().filter_map(|(name, text)| Some((name.clone(), serde_json::from_str(text).ok()?))).collect()
}

async fn write(env: &Env, record: &Record) -> Result<()> {
    let text = |entry: &Entry| serde_json::to_string(entry);
    let data = record.iter().map(|(name, entry)| Ok((name.clone(), text(entry)?))).collect::<Result<_>>()?;
    env.cache.apply(MANAGER, &config_map(NS_ETCD, RECORD, data)).await?;
    Ok(())
}

async fn arrival(env: &Env, name: &str) -> Result<(Arrival, String)> {
    let node = env.cache.get::<Node>(None, name).await?;
    let pod = env.cache.get::<Pod>(Some(NS_ETCD), &format!("etcd-{name}")).await?;
    Ok(judge(node.as_deref(), pod.as_deref()))
}

async fn arrival_now(env: &Env, name: &str) -> Result<(Arrival, String)> {
    let node = get::<Node>(&env.client, None, name).await?;
    let pod = get::<Pod>(&env.client, Some(NS_ETCD), &format!("etcd-{name}")).await?;
    Ok(judge(node.as_ref(), pod.as_ref()))
}

/// How far it is, and marks that change when the machine or its etcd starts again. Clocks of two machines are not compared.
fn judge(node: Option<&Node>, pod: Option<&Pod>) -> (Arrival, String) {
    let container = pod.and_then(|pod| pod.containers().iter().find(|c| c.name == "etcd"));
    let running = container.is_some_and(|c| c.state.running.is_some());
    let step = match (node, pod) {
        (None, _) => Arrival::Absent,
        (Some(node), _) if !node.is("Ready") => Arrival::NotReady,
        (_, None) => Arrival::NodeReady,
        _ if !running => Arrival::PodThere,
        _ => Arrival::Runs,
    };
    let ready_since =
        node.and_then(|n| n.condition("Ready")).map(|c| c.last_transition_time).unwrap_or_default();
    let started = container.and_then(|c| c.container_id.as_deref()).unwrap_or_default();
    (step, format!("{ready_since} {started}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node(ready: &str, second: u32) -> Node {
        let since = format!("2026-11-17T08:00:0{second}Z");
        let ready = json!({"type": "Ready", "status": ready, "lastTransitionTime": since});
        let node = json!({"metadata": {}, "status": {"conditions": [ready]}});
        serde_json::from_value(node).unwrap_or_else(|e| panic!("{e}"))
    }
    fn pod(id: &str, state: &str) -> Pod {
        let etcd = json!({"name": "etcd", "containerID": id, "state": {state: {}}});
        let pod = json!({"metadata": {}, "status": {"containerStatuses": [etcd]}});
        serde_json::from_value(pod).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn a_master_comes_step_by_step() {
        let (up, down) = (node("True", 1), node("Unknown", 2));
        let (runs, waits) = (pod("c1", "running"), pod("c1", "waiting"));
        let empty = Pod::default();
        let step = |node, pod| judge(node, pod).0;
        assert_eq!(step(None, None), Arrival::Absent);
        assert_eq!(step(Some(&down), Some(&runs)), Arrival::NotReady);
        assert_eq!(step(Some(&up), None), Arrival::NodeReady);
        assert_eq!(step(Some(&up), Some(&empty)), Arrival::PodThere);
        assert_eq!(step(Some(&up), Some(&waits)), Arrival::PodThere);
        assert_eq!(step(Some(&up), Some(&runs)), Arrival::Runs);
    }

    #[test]
    fn nobody_is_given_up_who_came_further_than_the_watch_told() {
        assert!(
            came_further(Arrival::Absent, Arrival::NotReady)
                && came_further(Arrival::PodThere, Arrival::Runs)
        );
        assert!(!came_further(Arrival::Runs, Arrival::Runs) && !came_further(Arrival::Runs, Arrival::Absent));
    }

    #[test]
    fn a_restart_of_the_machine_or_of_etcd_is_seen() {
        let marks = |second: u32, id: &str| judge(Some(&node("True", second)), Some(&pod(id, "running"))).1;
        assert_eq!(marks(1, "c1"), "2026-11-17T08:00:01Z c1", "as it was written by others before");
        assert_eq!(marks(1, "c1"), marks(1, "c1"));
        assert_ne!(marks(1, "c1"), marks(1, "c2"));
        assert_ne!(marks(1, "c1"), marks(3, "c1"));
    }

    #[test]
    fn the_record_is_read_as_it_is_written() {
        let entry = Entry { why: "it has no Node".into(), seen: " ".into() };
        let text = serde_json::to_string(&entry).unwrap_or_default();
        let live = [("master-2", text.as_str()), ("master-1", "?")]
            .map(|(k, v)| (k.to_string(), v.to_string()))
            .into();
        assert_eq!(parse(&live), BTreeMap::from([("master-2".to_string(), entry)]));
    }
}
