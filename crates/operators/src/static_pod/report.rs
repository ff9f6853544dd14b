//! What a static-pod operator says: the status of its settings object, and its ClusterOperator.

use super::decide::NodeView;
use super::{Env, Health, Names};
use crate::Result;
use seedling_api::StaticPodOperator;
use seedling_api::config::RelatedObject;
use seedling_api::operator::{NodeStatus, StaticPodStatus};
use seedling_cluster::operator_status::{Cond, related_namespace};
use seedling_cluster::{Kind, apply_status};
use seedling_types::names::{CERTIFICATES_CONFIGMAP, NS_CONFIG};

const MANAGER: &str = "seedling-nodes";

/// How far a master has come with a revision: its current one, the one that runs, and its last installer.
pub(super) type Reached = Option<(i64, i64, (i64, i64))>;

pub(super) fn reached(node: Option<&NodeView>) -> Reached {
    let node = node?;
    let installer = node.installers.iter().map(|i| (i.revision, i.retry)).max();
    Some((node.now_current(), node.running.map_or(0, |r| r.revision), installer.unwrap_or_default()))
}

/// A master of the inventory that does not run the newest revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Behind {
    pub name: String,
    /// Its Node is there.
    pub joined: bool,
    /// It has made no progress for so long that the others stop waiting for it.
    pub lost: bool,
}

/// The settings' own record of the masters.
pub(super) async fn record<K: Kind + StaticPodOperator>(
    env: &Env,
    recorded: &StaticPodStatus,
    nodes: &[NodeView],
    latest: i64,
) -> Result<()> {
    if let Some(status) = node_statuses(recorded, nodes, latest) {
        apply_status(&env.client, MANAGER, &K::with_status(status)).await?;
    }
    Ok(())
}

/// Available, progressing, degraded.
pub(super) fn conditions(
    names: &Names,
    nodes: &[NodeView],
    latest: i64,
    behind: &[Behind],
    health: &Health,
    wrong_policy: &[String],
) -> (Cond, Cond, Cond) {
    let failed: Vec<_> = nodes.iter().filter(|n| n.failed(latest)).map(|n| n.name.clone()).collect();
    let reason = if health.working { "AsExpected" } else { "NotWorking" };
    let degraded = match (degraded(names.namespace, latest, &failed, behind, wrong_policy), &health.trouble) {
        (said, Some((reason, message))) if !said.status => Cond::new(true, reason, message.clone()),
        (said, _) => said,
    };
    (
        Cond::new(health.working, reason, health.message.clone()),
        progressing(nodes.len(), latest, behind),
        degraded,
    )
}

/// What the ClusterOperator looks after.
pub(super) fn related<K: Kind>(names: &Names) -> Vec<RelatedObject> {
    let settings = RelatedObject {
        group: "operator.openshift.io".into(),
        resource: K::plural(&()).into(),
        name: "cluster".into(),
        namespace: None,
    };
    vec![settings, related_namespace(names.namespace)]
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

/// What is to be written, if anything. The kind's own rules: a node's entry is born without a revision, revisions only grow, one node at a
/// time has a target.
fn node_statuses(recorded: &StaticPodStatus, nodes: &[NodeView], latest: i64) -> Option<StaticPodStatus> {
    let status = |node_statuses: Vec<NodeStatus>| StaticPodStatus {
        latest_available_revision: Some(latest),
        node_statuses,
        conditions: vec![],
    };
    let entry = |node: &NodeView, current: i64| NodeStatus {
        node_name: node.name.clone(),
        current_revision: (current > 0).then_some(current),
        target_revision: None,
    };
    if nodes.iter().any(|n| recorded.of_node(&n.name).is_none()) {
        return Some(status(nodes.iter().map(|n| entry(n, n.current)).collect()));
    }
    let mut target_given = false;
    let mut entry = |node: &NodeView| {
        let current = node.now_current();
        let target = !target_given && node.under_way(latest) && latest > current;
        target_given |= target;
        NodeStatus { target_revision: Some(if target { latest } else { 0 }), ..entry(node, current) }
    };
    let entries: Vec<_> = nodes.iter().map(&mut entry).collect();
    let same = recorded.node_statuses.len() == entries.len()
        && entries.iter().all(|entry| {
            let live = recorded.of_node(&entry.node_name);
            live.is_some_and(|l| (l.current(), l.target()) == (entry.current(), entry.target()))
        });
    (!same || recorded.latest_available_revision != Some(latest)).then(|| status(entries))
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

    #[test]
    fn what_works_can_be_degraded() {
        let names = crate::etcd::NAMES;
        let trouble = Some(("DatabaseNearlyFull", "a: its database is 81 % full".to_string()));
        let health = Health { working: true, message: "3 of 3".into(), trouble };
        let (available, _, degraded) = conditions(&names, &[], 1, &[], &health, &[]);
        assert!(available.status && degraded.status);
        assert_eq!(
            (degraded.reason.as_str(), degraded.message.as_str()),
            ("DatabaseNearlyFull", "a: its database is 81 % full")
        );
        let (_, _, degraded) = conditions(&names, &[], 1, &[behind("c", false, true)], &health, &[]);
        assert_eq!(degraded.reason, "MastersMissing", "a missing master comes first");
    }

    #[test]
    fn revisions_are_recorded_as_the_kind_allows_it() {
        use super::super::decide::{Installer, Static};
        let node = |name: &str, running: Option<i64>, installing: Option<i64>| NodeView {
            name: name.into(),
            current: 0,
            running: running.map(|revision| Static { revision, ready: true }),
            installers: (installing.into_iter())
                .map(|revision| Installer { pod: "i".into(), revision, retry: 0, failed: false, done: false })
                .collect(),
            broken: false,
        };
        let of = |status: &StaticPodStatus| -> Vec<_> {
            status.node_statuses.iter().map(|n| (n.current_revision, n.target_revision)).collect()
        };
        let nodes = [node("a", Some(1), None), node("b", None, Some(2)), node("c", None, Some(2))];
        let born = node_statuses(&StaticPodStatus::default(), &nodes, 2).unwrap_or_default();
        assert_eq!(of(&born), [(None, None); 3], "an entry is born without a revision");
        let next = node_statuses(&born, &nodes, 2).unwrap_or_default();
        assert_eq!(of(&next), [(Some(1), Some(0)), (None, Some(2)), (None, Some(0))], "one target");
        assert_eq!(node_statuses(&next, &nodes, 2), None, "nothing new");
        assert!(node_statuses(&next, &nodes, 3).is_some());
    }
}
