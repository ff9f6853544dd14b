//! What the nodes' reports mean for a ClusterOperator. Pure.

use super::reports::Views;
use crate::OperatorError;
use seedling_cluster::operator_status::Cond;
use seedling_types::node_report::{NodeReport, Probed};

/// Conditions of the ClusterOperator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub available: Cond,
    pub progressing: Cond,
    pub degraded: Cond,
}

/// `subject` answers on every node that can be asked, or it says where not. What was available once stays so while a new
/// or restarted node catches up, and as long as it answers anywhere.
pub(super) fn decide(
    subject: &str,
    views: &Views,
    probed: fn(&NodeReport) -> &Probed,
    was_available: bool,
    failure: Option<&OperatorError>,
) -> Verdict {
    let asked: Vec<_> = views.iter().filter(|(_, view)| !view.lost).collect();
    let failing: Vec<(&str, &str, bool)> = asked
        .iter()
        .filter_map(|(name, view)| match &view.report {
            Some(report) if probed(report).ok => None,
            Some(report) => Some((name.as_str(), probed(report).message.as_str(), probed(report).before)),
            None => Some((name.as_str(), view.error.as_str(), false)),
        })
        .collect();
    let well = Cond::new(false, "AsExpected", "");
    let degraded = match failure {
        Some(e) => Cond::new(true, "ApplyFailed", e.to_string()),
        None if was_available && failing.iter().any(|(_, _, before)| *before) => {
            Cond::new(true, "NotAnswering", sentence(subject, &failing))
        }
        None => well.clone(),
    };
    if asked.is_empty() {
        let waiting = Cond::new(true, "NoNodes", "Waiting for a node");
        let available = Cond::new(was_available, "NoNodes", "No node can be asked");
        return Verdict { available, progressing: waiting, degraded };
    }
    if failing.is_empty() {
        let message = format!("{subject} answers on all {} nodes", asked.len());
        return Verdict { available: Cond::new(true, "AsExpected", message), progressing: well, degraded };
    }
    let message = sentence(subject, &failing);
    let somewhere = failing.len() < asked.len();
    Verdict {
        available: Cond::new(was_available && somewhere, "NotAnswering", message.clone()),
        progressing: Cond::new(true, "NotAnswering", message),
        degraded,
    }
}

fn sentence(subject: &str, failing: &[(&str, &str, bool)]) -> String {
    let names: Vec<_> = failing.iter().map(|(name, _, _)| *name).collect();
    let why = failing.iter().map(|(_, why, _)| *why).find(|why| !why.is_empty());
    let why = why.map(|w| format!(": {w}")).unwrap_or_default();
    format!("{subject} does not answer yet on {}{why}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::reports::NodeView;
    use super::*;

    /// (name, (ok, ok before) or no report, lost)
    type Node = (&'static str, Option<(bool, bool)>, bool);

    fn views(nodes: &[Node]) -> Views {
        let view = |report: &Option<(bool, bool)>, lost| {
            let probed = |(ok, before): (bool, bool)| Probed { ok, before, message: "refused".into() };
            NodeView {
                lost,
                report: report.map(|p| NodeReport { service: probed(p), ..NodeReport::default() }),
                error: "no report".into(),
            }
        };
        nodes.iter().map(|(name, report, lost)| (name.to_string(), view(report, *lost))).collect()
    }

    fn verdict(nodes: &[Node], was: bool) -> (bool, bool, bool, String) {
        let v = decide("S", &views(nodes), |r| &r.service, was, None);
        (v.available.status, v.progressing.status, v.degraded.status, v.available.message)
    }

    const OK: Option<(bool, bool)> = Some((true, true));
    const NEW: Option<(bool, bool)> = Some((false, false));
    const BROKEN: Option<(bool, bool)> = Some((false, true));

    #[test]
    fn available_once_every_node_answered() {
        let all = "S answers on all 2 nodes".to_string();
        assert_eq!(verdict(&[("a", OK, false), ("b", OK, false)], false), (true, false, false, all.clone()));
        let some = "S does not answer yet on b: refused".to_string();
        assert_eq!(
            verdict(&[("a", OK, false), ("b", NEW, false)], false),
            (false, true, false, some.clone())
        );
        let silent = "S does not answer yet on b: no report".to_string();
        assert_eq!(verdict(&[("a", OK, false), ("b", None, false)], false), (false, true, false, silent));
        // A node that joins later does not take it away, a broken one is told.
        assert_eq!(verdict(&[("a", OK, false), ("b", NEW, false)], true), (true, true, false, some.clone()));
        assert_eq!(verdict(&[("a", OK, false), ("b", BROKEN, false)], true), (true, true, true, some));
        // A lost node is not asked.
        let one = "S answers on all 1 nodes".to_string();
        assert_eq!(verdict(&[("a", OK, false), ("b", None, true)], true), (true, false, false, one));
    }

    #[test]
    fn nothing_answers() {
        let (available, progressing, degraded, _) = verdict(&[("a", BROKEN, false)], true);
        assert_eq!((available, progressing, degraded), (false, true, true));
        assert_eq!(verdict(&[], false), (false, true, false, "No node can be asked".into()));
    }

    #[test]
    fn what_cannot_be_applied_is_degraded() {
        let failure = OperatorError::Waits("no".into());
        let v = decide("S", &views(&[("a", OK, false)]), |r| &r.service, false, Some(&failure));
        assert_eq!((v.degraded.status, v.degraded.message.as_str()), (true, "no"));
    }
}
