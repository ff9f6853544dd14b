//! How far the payload is, and what stands in the way: one board that tasks write and the status is read from.

use super::graph::Mode;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Trouble {
    NotAvailable(String),
    Updating(String),
    Degraded(String),
    /// A manifest that could not be applied.
    Failed {
        reason: String,
        message: String,
    },
}

/// An operator may take this long before its slowness is mentioned as a failure of unknown cause.
const SLOW: Duration = Duration::from_secs(30 * 60);
/// It restarts every node.
const SLOW_MACHINE_CONFIG: Duration = Duration::from_secs(90 * 60);
const DEGRADED: Duration = Duration::from_secs(40 * 60);

#[derive(Clone, Debug, Default)]
pub(super) struct Board {
    pub total: usize,
    pub done: BTreeSet<usize>,
    troubles: BTreeMap<usize, (Trouble, Instant)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failing {
    No,
    /// Something takes longer than it should.
    Unknown {
        reason: String,
        message: String,
    },
    Yes {
        reason: String,
        message: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Summary {
    pub done: usize,
    pub total: usize,
    pub failing: Failing,
    /// Operators that are awaited and may still take their time.
    pub waiting: Vec<String>,
}

impl Board {
    pub(super) fn new(total: usize) -> Self {
        Self { total, ..Self::default() }
    }

    /// The outcome of a look at a task; the time of a trouble is kept while it stays the same.
    pub(super) fn set(&mut self, task: usize, trouble: Option<Trouble>, now: Instant) {
        match trouble {
            Some(trouble) => {
                self.done.remove(&task);
                match self.troubles.get(&task) {
                    Some((before, _)) if *before == trouble => {}
                    _ => drop(self.troubles.insert(task, (trouble, now))),
                }
            }
            None => {
                self.troubles.remove(&task);
                self.done.insert(task);
            }
        }
    }

    pub(super) fn summary(&self, mode: Mode, now: Instant) -> Summary {
        let mut failing = Vec::new();
        let mut slow = Vec::new();
        let mut waiting = Vec::new();
        for (trouble, since) in self.troubles.values() {
            let waited = now.duration_since(*since);
            match trouble {
                Trouble::Failed { .. } => failing.push(trouble.clone()),
                Trouble::NotAvailable(_) if mode == Mode::Reconciling => failing.push(trouble.clone()),
                Trouble::Degraded(_) if waited > DEGRADED => failing.push(trouble.clone()),
                Trouble::Degraded(_) if mode == Mode::Reconciling => {}
                Trouble::NotAvailable(name) | Trouble::Updating(name) | Trouble::Degraded(name) => {
                    let limit = if name == "machine-config" { SLOW_MACHINE_CONFIG } else { SLOW };
                    if waited > limit {
                        slow.push((name.clone(), limit.as_secs() / 60));
                    }
                    waiting.push(name.clone());
                }
            }
        }
        let failing = match condense(&failing) {
            Some((reason, message)) => Failing::Yes { reason, message },
            None => slow_message(&slow),
        };
        waiting.sort();
        waiting.dedup();
        Summary { done: self.done.len(), total: self.total, failing, waiting }
    }
}

fn slow_message(slow: &[(String, u64)]) -> Failing {
    let Some((_, minutes)) = slow.iter().max_by_key(|(_, m)| *m) else { return Failing::No };
    let names: Vec<_> = slow.iter().map(|(name, _)| name.as_str()).collect();
    Failing::Unknown {
        reason: "SlowClusterOperator".into(),
        message: format!(
            "waiting on {} over {minutes} minutes which is longer than expected",
            names.join(", ")
        ),
    }
}

/// Troubles of one reason become one sentence; several reasons a list.
fn condense(troubles: &[Trouble]) -> Option<(String, String)> {
    let (mut not_available, mut degraded) = (BTreeSet::new(), BTreeSet::new());
    let mut all = BTreeSet::new();
    for trouble in troubles {
        match trouble {
            Trouble::NotAvailable(name) => drop(not_available.insert(name.as_str())),
            Trouble::Degraded(name) => drop(degraded.insert(name.as_str())),
            Trouble::Failed { reason, message } => drop(all.insert((message.clone(), reason.clone()))),
            Trouble::Updating(_) => {}
        }
    }
    all.extend(sentence(&not_available, "NotAvailable", "not available"));
    all.extend(sentence(&degraded, "Degraded", "degraded"));
    if all.len() > 1 {
        let lines: Vec<_> = all.iter().map(|(message, _)| format!("* {message}")).collect();
        let message = format!("Multiple errors are preventing progress:\n{}", lines.join("\n"));
        return Some(("MultipleErrors".into(), message));
    }
    all.pop_first().map(|(message, reason)| (reason, message))
}

/// (message, reason)
fn sentence(operators: &BTreeSet<&str>, reason: &str, what: &str) -> Option<(String, String)> {
    let names: Vec<_> = operators.iter().copied().collect();
    match names.as_slice() {
        [] => None,
        [name] => Some((format!("Cluster operator {name} is {what}"), format!("ClusterOperator{reason}"))),
        names => Some((
            format!("Cluster operators {} are {what}", names.join(", ")),
            format!("ClusterOperators{reason}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failing(mode: Mode, troubles: &[Trouble], after: Duration) -> (Failing, Vec<String>) {
        let start = Instant::now();
        let mut board = Board::new(troubles.len());
        for (i, trouble) in troubles.iter().enumerate() {
            board.set(i, Some(trouble.clone()), start);
        }
        let summary = board.summary(mode, start + after);
        (summary.failing, summary.waiting)
    }

    fn yes(reason: &str, message: &str) -> Failing {
        Failing::Yes { reason: reason.into(), message: message.into() }
    }

    #[test]
    fn while_initializing_operators_are_waited_for() {
        let troubles = [Trouble::NotAvailable("dns".into()), Trouble::Updating("etcd".into())];
        let (failing_now, waiting) = failing(Mode::Initializing, &troubles, Duration::ZERO);
        assert_eq!((failing_now, waiting), (Failing::No, vec!["dns".to_string(), "etcd".into()]));
        let (later, _) = failing(Mode::Initializing, &troubles, SLOW + Duration::from_secs(1));
        let message = "waiting on dns, etcd over 30 minutes which is longer than expected";
        assert_eq!(later, Failing::Unknown { reason: "SlowClusterOperator".into(), message: message.into() });
    }

    #[test]
    fn troubles_are_condensed() {
        let a = Trouble::NotAvailable("a".into());
        let b = Trouble::NotAvailable("b".into());
        let now = Duration::ZERO;
        let one = failing(Mode::Reconciling, std::slice::from_ref(&a), now).0;
        assert_eq!(one, yes("ClusterOperatorNotAvailable", "Cluster operator a is not available"));
        let two = failing(Mode::Reconciling, &[a.clone(), b], now).0;
        assert_eq!(two, yes("ClusterOperatorsNotAvailable", "Cluster operators a, b are not available"));
        let failed = Trouble::Failed { reason: "R".into(), message: "Could not update x".into() };
        let both = failing(Mode::Reconciling, &[a, failed], now).0;
        let text = "Multiple errors are preventing progress:\n* Cluster operator a is not available\n* Could not update x";
        assert_eq!(both, yes("MultipleErrors", text));
    }

    #[test]
    fn degraded_fails_only_after_its_time() {
        let troubles = [Trouble::Degraded("a".into())];
        assert_eq!(failing(Mode::Reconciling, &troubles, Duration::ZERO), (Failing::No, vec![]));
        let late = failing(Mode::Updating, &troubles, DEGRADED + Duration::from_secs(1)).0;
        assert_eq!(late, yes("ClusterOperatorDegraded", "Cluster operator a is degraded"));
    }

    #[test]
    fn done_and_undone() {
        let now = Instant::now();
        let mut board = Board::new(2);
        board.set(0, None, now);
        board.set(1, Some(Trouble::Updating("x".into())), now);
        board.set(1, None, now);
        assert_eq!(board.summary(Mode::Updating, now).done, 2);
        board.set(1, Some(Trouble::Updating("x".into())), now);
        assert_eq!(board.summary(Mode::Updating, now).done, 1);
    }
}
