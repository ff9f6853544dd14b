//! What a static-pod operator says: the status of its settings object, and its ClusterOperator.

use super::decide::NodeView;
use super::{Env, Health, Names};
use anyhow::Result;
use seedling_cluster::operator_status::{Cond, Report, report as report_operator};
use seedling_cluster::patch_status;
use serde_json::{Value, json};

const MANAGER: &str = "seedling-nodes";

pub async fn report(
    env: &Env,
    names: &Names,
    settings: &Value,
    nodes: &[NodeView],
    latest: i64,
    health: &Health,
) -> Result<()> {
    node_statuses(env, names, settings, nodes, latest).await?;
    let wanted = env.inventory.masters().len();
    let behind: Vec<_> = nodes.iter().filter(|n| !n.at(latest)).map(|n| n.name.clone()).collect();
    let failed: Vec<_> = nodes.iter().filter(|n| n.failed(latest)).map(|n| n.name.clone()).collect();
    let progressing = !behind.is_empty() || nodes.len() < wanted;
    let progress = match (nodes.len() < wanted, behind.is_empty()) {
        (true, _) => format!("{} of {wanted} masters have joined", nodes.len()),
        (false, false) => format!("{} are not yet at revision {latest}", behind.join(", ")),
        (false, true) => format!("{} nodes are at revision {latest}", nodes.len()),
    };
    let cond = |status: bool, yes: &str, no: &str, message: String| {
        Cond::new(status, if status { yes } else { no }, message)
    };
    let degraded = match failed.is_empty() {
        true => "All installers succeeded".to_string(),
        false => format!(
            "installer pods failed on {}; kubectl -n {} logs -l app=installer",
            failed.join(", "),
            names.namespace
        ),
    };
    let report = Report {
        name: names.operator.into(),
        available: cond(health.working, "AsExpected", "NotWorking", health.message.clone()),
        progressing: cond(progressing, "NodeInstaller", "AsExpected", progress),
        degraded: cond(!failed.is_empty(), "InstallerFailed", "AsExpected", degraded),
        version: env.release.version.clone(),
        related: vec![
            (
                "operator.openshift.io".into(),
                format!("{}s", names.kind.to_lowercase()),
                String::new(),
                "cluster".into(),
            ),
            (String::new(), "namespaces".into(), String::new(), names.namespace.into()),
        ],
    };
    Ok(report_operator(&env.cache, &report).await?)
}

/// The kind's own rules: a node's entry is born without a revision, revisions only grow, one node at a time has a target.
async fn node_statuses(
    env: &Env,
    names: &Names,
    settings: &Value,
    nodes: &[NodeView],
    latest: i64,
) -> Result<()> {
    let live = settings["status"]["nodeStatuses"].as_array().cloned().unwrap_or_default();
    let known = |name: &str| live.iter().any(|n| n["nodeName"] == name);
    let status = |entries: Vec<Value>| {
        json!({"apiVersion": "operator.openshift.io/v1", "kind": names.kind, "metadata": {"name": "cluster"},
            "status": {"latestAvailableRevision": latest, "nodeStatuses": entries}})
    };
    if nodes.iter().any(|n| !known(&n.name)) {
        let born = nodes.iter().map(|n| match n.current {
            0 => json!({"nodeName": n.name}),
            current => json!({"nodeName": n.name, "currentRevision": current}),
        });
        patch_status(&env.client, MANAGER, &status(born.collect())).await?;
        return Ok(());
    }
    let mut target_given = false;
    let mut entry = |n: &NodeView| {
        let mut entry = json!({"nodeName": n.name, "targetRevision": 0});
        let current = n.now_current();
        if current > 0 {
            entry["currentRevision"] = json!(current);
        }
        if !target_given && n.under_way(latest) && latest > current {
            entry["targetRevision"] = json!(latest);
            target_given = true;
        }
        entry
    };
    let entries: Vec<_> = nodes.iter().map(&mut entry).collect();
    let same = live.len() == entries.len()
        && entries.iter().all(|e| {
            live.iter().any(|l| {
                let number = |v: &Value, key: &str| v[key].as_i64().unwrap_or(0);
                l["nodeName"] == e["nodeName"]
                    && ["currentRevision", "targetRevision"]
                        .iter()
                        .all(|key| number(l, key) == number(e, key))
            })
        });
    if same && settings["status"]["latestAvailableRevision"] == json!(latest) {
        return Ok(());
    }
    patch_status(&env.client, MANAGER, &status(entries)).await?;
    Ok(())
}
