//! Which revisions stay. Pure. A copy of every file of every revision would fill etcd and the masters' disks one day.

use super::decide::NodeView;
use std::collections::BTreeSet;

/// Of what succeeded and of what failed, as upstream's prune controller keeps them.
const SUCCEEDED: usize = 5;
const FAILED: usize = 5;

/// What a master runs or is being given, the newest, and the last few before what succeeded or failed last on each master.
pub(super) fn kept(made: &BTreeSet<i64>, nodes: &[NodeView], latest: i64) -> BTreeSet<i64> {
    let until = |revision: i64, most: usize| made.range(..=revision).rev().take(most).copied();
    let mut kept: BTreeSet<i64> = until(latest, SUCCEEDED).chain([latest]).collect();
    for node in nodes {
        let failed = node.installers.iter().filter(|i| i.failed).map(|i| i.revision).max();
        kept.extend(until(node.now_current(), SUCCEEDED));
        kept.extend(failed.into_iter().flat_map(|failed| until(failed, FAILED)));
        kept.extend(node.running.map(|running| running.revision));
        kept.extend(node.installers.iter().filter(|i| !i.failed).map(|i| i.revision));
    }
    kept
}

/// Nothing goes while no master is known: who runs what is not known either.
pub(super) fn superfluous(made: &BTreeSet<i64>, nodes: &[NodeView], latest: i64) -> Vec<i64> {
    if nodes.is_empty() {
        return vec![];
    }
    made.difference(&kept(made, nodes, latest)).filter(|r| **r < latest).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::super::decide::{Installer, Static};
    use super::*;
    use proptest::prelude::*;

    fn node(current: i64, running: Option<i64>, installers: &[(i64, bool, bool)]) -> NodeView {
        NodeView {
            name: "a".into(),
            current,
            running: running.map(|revision| Static { revision, ready: false }),
            installers: (installers.iter())
                .map(|&(revision, failed, done)| Installer {
                    pod: "i".into(),
                    revision,
                    retry: 0,
                    failed,
                    done,
                })
                .collect(),
            broken: false,
        }
    }

    #[test]
    fn the_last_few_stay_and_whatever_is_in_use() {
        let made: BTreeSet<_> = (1..=20).collect();
        let gone = |nodes: &[NodeView]| superfluous(&made, nodes, 20);
        let numbers = |ranges: &[std::ops::RangeInclusive<i64>]| -> Vec<i64> {
            ranges.iter().cloned().flatten().collect()
        };
        assert_eq!(gone(&[node(20, Some(20), &[])]), numbers(&[1..=15]));
        assert_eq!(
            gone(&[node(20, Some(20), &[]), node(10, Some(3), &[])]),
            numbers(&[1..=2, 4..=5, 11..=15])
        );
        assert_eq!(gone(&[node(20, Some(20), &[(12, true, false)])]), numbers(&[1..=7, 13..=15]));
        assert_eq!(
            gone(&[node(20, Some(20), &[(2, false, false), (4, false, true)])]),
            numbers(&[1..=1, 3..=3, 5..=15])
        );
        assert_eq!(gone(&[]), [0; 0]);
        assert_eq!(superfluous(&[1, 2, 3].into(), &[node(3, Some(3), &[])], 3), [0; 0]);
    }

    proptest! {
        #[test]
        fn few_stay_and_none_in_use_goes(
            current in 0i64..300, running in proptest::option::of(1i64..300), latest in 1i64..300,
            installers in proptest::collection::vec((1i64..300, any::<bool>(), any::<bool>()), 0..4),
        ) {
            let made: BTreeSet<_> = (1..=latest).collect();
            let node = node(current.min(latest), running, &installers);
            let gone = superfluous(&made, std::slice::from_ref(&node), latest);
            prop_assert!(!gone.contains(&latest) && running.is_none_or(|r| !gone.contains(&r)));
            prop_assert!(node.installers.iter().filter(|i| !i.failed).all(|i| !gone.contains(&i.revision)));
            prop_assert!(made.len() - gone.len() <= SUCCEEDED * 2 + FAILED + 1 + installers.len());
        }
    }
}
