//! What a static-pod operator says: the status of its settings object, and its ClusterOperator.

use super::decide::NodeView;
use super::{Env, Health, Names, policy};
use anyhow::Result;
use seedling_cluster::operator_status::{Cond, Report, report as report_operator};
use seedling_cluster::patch_status;
use seedling_types::names::{CERTIFICATES_CONFIGMAP, NS_CONFIG};
use serde_json::{Value, json};

const MANAGER: &str = "seedling-nodes";

/// How far a master has come with a revision: its current one, the one that runs, and its last installer.
pub type Step = Option<(i64, i64, (i64, i64))>;

pub fn step(node: Option<&NodeView>) -> Step {
    let node = node?;
    let installer = node.installers.iter().map(|i| (i.revision, i.retry)).max();
    Some((node.now_current(), node.running.map_or(0, |r| r.revision), installer.unwrap_or_default()))
}

/// A master of the inventory that does not run the newest revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Behind {
    pub name: String,
    /// Its Node is there.
    pub joined: bool,
    /// It has come no further for so long that nobody waits for it.
    pub lost: bool,
}

pub async fn report(
    env: &Env,
    names: &Names,
    settings: &Value,
    nodes: &[NodeView],
    latest: i64,
    behind: &[Behind],
    health: &Health,
) -> Result<()> {
    let (_, wrong_policy) = policy::read(&env.cache).await?;
    node_statuses(env, names, settings, nodes, latest).await?;
    let failed: Vec<_> = nodes.iter().filter(|n| n.failed(latest)).map(|n| n.name.clone()).collect();
    let cond = |status: bool, yes: &str, no: &str, message: String| {
        Cond::new(status, if status { yes } else { no }, message)
    };
    let report = Report {
        name: names.operator.into(),
        available: cond(health.working, "AsExpected", "NotWorking", health.message.clone()),
        progressing: progressing(nodes.len(), latest, behind),
        degraded: degraded(names.namespace, latest, &failed, behind, &wrong_policy),
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

fn progressing(joined: usize, latest: i64, behind: &[Behind]) -> Cond {
    let awaited: Vec<_> = behind.iter().filter(|b| !b.lost).collect();
    let absent: Vec<_> = awaited.iter().filter(|b| !b.joined).map(|b| b.name.as_str()).collect();
    let names: Vec<_> = awaited.iter().map(|b| b.name.as_str()).collect();
    match (absent.is_empty(), names.is_empty()) {
        (false, _) => Cond::new(true, "NodeInstaller", format!("{} have not joined yet", absent.join(", "))),
        (true, false) => {
            Cond::new(true, "NodeInstaller", format!("{} are not yet at revision {latest}", names.join(", ")))
        }
        (true, true) => {
            let well = joined - behind.iter().filter(|b| b.joined).count();
            Cond::new(false, "AsExpected", format!("{well} nodes are at revision {latest}"))
        }
    }
}

fn degraded(
    namespace: &str,
    latest: i64,
    failed: &[String],
    behind: &[Behind],
    wrong_policy: &[String],
) -> Cond {
    if !failed.is_empty() {
        let names = failed.join(", ");
        let message =
            format!("installer pods failed on {names}; kubectl -n {namespace} logs -l app=installer");
        return Cond::new(true, "InstallerFailed", message);
    }
    let lost = behind.iter().filter(|b| b.lost).map(|b| match b.joined {
        true => format!("{} does not come to revision {latest}", b.name),
        false => format!("{} has not joined", b.name),
    });
    match lost.collect::<Vec<_>>() {
        lost if lost.is_empty() && !wrong_policy.is_empty() => {
            let message = format!(
                "ConfigMap {NS_CONFIG}/{CERTIFICATES_CONFIGMAP} counts as if it were not there: {}",
                wrong_policy.join("; ")
            );
            Cond::new(true, "CertificatePolicyInvalid", message)
        }
        lost if lost.is_empty() => Cond::new(false, "AsExpected", "All installers succeeded"),
        lost => Cond::new(true, "MastersMissing", format!("nobody waits any more: {}", lost.join(", "))),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn behind(name: &str, joined: bool, lost: bool) -> Behind {
        Behind { name: name.into(), joined, lost }
    }

    #[test]
    fn a_lost_master_is_named_and_not_waited_for() {
        let cases = [
            (3, vec![], (false, "3 nodes are at revision 1"), (false, "All installers succeeded")),
            (
                2,
                vec![behind("c", false, false)],
                (true, "c have not joined yet"),
                (false, "All installers succeeded"),
            ),
            (
                2,
                vec![behind("c", false, true)],
                (false, "2 nodes are at revision 1"),
                (true, "nobody waits any more: c has not joined"),
            ),
            (
                3,
                vec![behind("c", true, true)],
                (false, "2 nodes are at revision 1"),
                (true, "nobody waits any more: c does not come to revision 1"),
            ),
            (
                3,
                vec![behind("b", true, false), behind("c", true, true)],
                (true, "b are not yet at revision 1"),
                (true, "nobody waits any more: c does not come to revision 1"),
            ),
        ];
        for (joined, behind, progress, trouble) in cases {
            let said = [progressing(joined, 1, &behind), degraded("ns", 1, &[], &behind, &[])];
            let said = said.each_ref().map(|c| (c.status, c.message.as_str()));
            assert_eq!(said, [progress, trouble]);
        }
        let failed = degraded("ns", 1, &["b".into()], &[behind("c", true, true)], &["leaf: …".into()]);
        assert_eq!(failed.reason, "InstallerFailed");
        let policy = degraded("ns", 1, &[], &[], &["leaf: x".into(), "kubelet: y".into()]);
        assert!(policy.status && policy.message.ends_with("leaf: x; kubelet: y"), "{}", policy.message);
    }
}
