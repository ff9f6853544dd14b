//! Which master gets the newest revision next. Pure.

/// What is known of one master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeView {
    pub name: String,
    /// The last revision that was seen ready there; 0: none yet.
    pub current: i64,
    pub running: Option<Static>,
    pub installers: Vec<Installer>,
    /// Not ready, and without progress, for so long that the others stop waiting for it.
    pub broken: bool,
}

/// The mirror pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Static {
    pub revision: i64,
    pub ready: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Installer {
    pub pod: String,
    pub revision: i64,
    pub retry: i64,
    pub failed: bool,
    pub done: bool,
}

/// Installers of one revision that may fail on a node before a person is asked.
const RETRIES: i64 = 20;
/// Failed installers that are kept for their logs; upstream's prune controller keeps as many.
const FAILED_KEPT: usize = 5;

impl NodeView {
    /// Runs this revision, ready.
    pub(super) fn at(&self, revision: i64) -> bool {
        self.running == Some(Static { revision, ready: true })
    }
    pub(super) fn now_current(&self) -> i64 {
        match self.running {
            Some(Static { revision, ready: true }) => self.current.max(revision),
            _ => self.current,
        }
    }
    /// Its kubelet has started this revision: installing it again would change nothing.
    fn holds(&self, revision: i64) -> bool {
        self.running.is_some_and(|s| s.revision == revision)
    }
    fn last_installer(&self, revision: i64) -> Option<&Installer> {
        self.installers.iter().filter(|i| i.revision == revision).max_by_key(|i| i.retry)
    }
    /// An installer is at work, or has written what the kubelet has not started yet.
    pub(super) fn under_way(&self, revision: i64) -> bool {
        !self.at(revision) && self.last_installer(revision).is_some_and(|i| !i.failed)
    }
    pub(super) fn failed(&self, revision: i64) -> bool {
        self.last_installer(revision).is_some_and(|i| i.failed)
    }
    /// Two at once on one node would leave the manifest of the slower one.
    fn is_written_to(&self) -> bool {
        self.installers.iter().any(|i| !i.failed && !i.done)
    }
    fn retry(&self, revision: i64) -> i64 {
        self.last_installer(revision).map_or(0, |i| i.retry + 1)
    }
}

/// (master, retry number) of the installers to start now.
///
/// A master without any revision gets its first one at once: nothing is disturbed. Masters with an older revision roll one at a
/// time, and only while all the others are ready. One that works waits until its neighbours are `calm`, too.
///
/// A broken one is repaired beside other broken ones: nobody waits for those, and what was not ready for so long serves nobody whom
/// its stop could harm. So any number of them is repaired one after the other, also when none becomes ready.
pub(super) fn decide(nodes: &[NodeView], latest: i64, calm: bool) -> Vec<(String, i64)> {
    if latest == 0 {
        return vec![];
    }
    let wanting = |n: &&NodeView| {
        // What an installer has written a broken one did not start: it may have a new disk.
        let may_start = !n.under_way(latest) || n.broken;
        !n.holds(latest) && may_start && !n.is_written_to() && n.retry(latest) <= RETRIES
    };
    let fresh = |n: &NodeView| n.now_current() == 0 && n.running.is_none();
    let start = |n: &NodeView| (n.name.clone(), n.retry(latest));
    let mut chosen: Vec<_> = nodes.iter().filter(wanting).filter(|n| fresh(n)).map(start).collect();
    let is_ready = |n: &NodeView| n.running.is_some_and(|s| s.ready);
    let is_moving = |n: &NodeView| (n.under_way(latest) || n.is_written_to()) && !fresh(n);
    if chosen.is_empty() {
        let others = |me: &NodeView, so: &dyn Fn(&NodeView) -> bool| {
            nodes.iter().filter(|n| n.name != me.name).all(so)
        };
        let may_stop = |me: &&&NodeView| {
            let all_well = others(me, &is_ready) && !nodes.iter().any(is_moving);
            let is_awaited = |n: &NodeView| !n.broken && (is_moving(n) || !is_ready(n));
            match is_ready(me) {
                true => all_well && calm,
                false => all_well || (me.broken && others(me, &|n| !is_awaited(n))),
            }
        };
        let mut rest: Vec<_> = nodes.iter().filter(wanting).filter(|n| !fresh(n)).collect();
        rest.sort_by_key(|n| (is_ready(n), n.now_current(), n.name.clone()));
        chosen.extend(rest.iter().find(may_stop).map(|n| start(n)));
    }
    chosen
}

/// Installers of this master that are of no use to anyone: those that succeeded, once a revision as new as theirs was ready, and
/// failed ones beyond the last few, as upstream keeps them. What each did is in the node's journal.
pub(super) fn superfluous(node: &NodeView) -> Vec<&Installer> {
    let ready = node.now_current();
    let mut failed: Vec<_> = node.installers.iter().filter(|i| i.failed && i.revision <= ready).collect();
    failed.sort_by_key(|i| std::cmp::Reverse((i.revision, i.retry)));
    let done = node.installers.iter().filter(|i| i.done && i.revision <= ready);
    done.chain(failed.into_iter().skip(FAILED_KEPT)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn node(
        name: &str,
        current: i64,
        running: Option<(i64, bool)>,
        installers: &[(i64, i64, bool, bool)],
    ) -> NodeView {
        NodeView {
            name: name.into(),
            current,
            running: running.map(|(revision, ready)| Static { revision, ready }),
            installers: (installers.iter())
                .map(|&(revision, retry, failed, done)| {
                    let pod = format!("{name}-{revision}-{retry}");
                    Installer { pod, revision, retry, failed, done }
                })
                .collect(),
            broken: false,
        }
    }
    fn broken(node: NodeView) -> NodeView {
        NodeView { broken: true, ..node }
    }
    fn names(chosen: Vec<(String, i64)>) -> Vec<String> {
        chosen.into_iter().map(|(n, retry)| format!("{n}/{retry}")).collect()
    }

    #[test]
    fn the_first_revision_goes_to_all_at_once() {
        let nodes = [node("a", 0, None, &[]), node("b", 0, None, &[]), node("c", 0, None, &[])];
        assert_eq!(names(decide(&nodes, 1, true)), ["a/0", "b/0", "c/0"]);
        assert!(decide(&nodes, 0, true).is_empty());
    }

    #[test]
    fn a_latecomer_does_not_wait() {
        let nodes = [
            node("a", 1, Some((1, true)), &[(1, 0, false, true)]),
            node("b", 0, None, &[(1, 0, false, false)]),
            node("c", 0, None, &[]),
        ];
        assert_eq!(names(decide(&nodes, 1, true)), ["c/0"]);
    }

    #[test]
    fn later_revisions_roll_one_at_a_time() {
        let at_one = |n: &str| node(n, 1, Some((1, true)), &[(1, 0, false, true)]);
        assert_eq!(names(decide(&[at_one("a"), at_one("b"), at_one("c")], 2, true)), ["a/0"]);
        let rolling = node("a", 1, Some((1, true)), &[(2, 0, false, false)]);
        assert!(decide(&[rolling, at_one("b"), at_one("c")], 2, true).is_empty());
        let restarting = node("a", 1, Some((2, false)), &[(2, 0, false, true)]);
        assert!(decide(&[restarting, at_one("b"), at_one("c")], 2, true).is_empty());
        let done = node("a", 1, Some((2, true)), &[(2, 0, false, true)]);
        assert_eq!(names(decide(&[done, at_one("b"), at_one("c")], 2, true)), ["b/0"]);
    }

    #[test]
    fn nobody_rolls_while_another_is_down() {
        let at_one = |n: &str| node(n, 1, Some((1, true)), &[]);
        let down = node("c", 1, Some((1, false)), &[]);
        assert_eq!(names(decide(&[at_one("a"), at_one("b"), down.clone()], 2, true)), ["c/0"]);
        let also_down = node("b", 1, Some((1, false)), &[]);
        assert!(decide(&[at_one("a"), also_down, down], 2, true).is_empty(), "one may be on its way up");
    }

    #[test]
    fn broken_ones_are_repaired_one_after_the_other() {
        let at_one = |n: &str| node(n, 1, Some((1, true)), &[]);
        let down = |n: &str| broken(node(n, 1, Some((1, false)), &[]));
        let decided = |nodes: [NodeView; 3]| names(decide(&nodes, 2, true));
        assert_eq!(decided([at_one("a"), down("b"), down("c")]), ["b/0"]);
        assert_eq!(decided([down("a"), down("b"), down("c")]), ["a/0"]);
        let none: [&str; 0] = [];
        let writing = node("b", 1, Some((1, false)), &[(2, 0, false, false)]);
        assert_eq!(decided([at_one("a"), writing.clone(), down("c")]), none, "b is being repaired");
        assert_eq!(decided([at_one("a"), broken(writing), down("c")]), ["c/0"], "its kubelet is gone");
        let starting = node("b", 1, Some((2, false)), &[(2, 0, false, true)]);
        assert_eq!(decided([at_one("a"), starting.clone(), down("c")]), none, "b may come up");
        assert_eq!(decided([at_one("a"), broken(starting), down("c")]), ["c/0"], "b does not come up alone");
        let repaired = node("b", 2, Some((2, true)), &[]);
        assert_eq!(decided([at_one("a"), repaired, down("c")]), ["c/0"]);
        let unheard = node("b", 1, None, &[(2, 0, false, true)]);
        assert_eq!(decided([at_one("a"), unheard.clone(), at_one("c")]), none);
        assert_eq!(
            decided([at_one("a"), broken(unheard), at_one("c")]),
            ["b/1"],
            "it was written to a disk that is gone"
        );
        let stays_down = broken(node("b", 2, Some((2, false)), &[]));
        let flaps = node("c", 1, Some((1, false)), &[]);
        assert_eq!(decided([at_one("a"), stays_down, flaps]), none, "one lost probe is no reason to stop it");
    }

    #[test]
    fn a_failed_installer_is_tried_again() {
        let failed = node("a", 0, None, &[(1, 0, true, false)]);
        assert_eq!(names(decide(&[failed], 1, true)), ["a/1"]);
    }

    #[test]
    fn an_older_revision_is_written_to_its_end() {
        let at_one = |n: &str| node(n, 1, Some((1, true)), &[]);
        let writing = node("a", 1, Some((1, true)), &[(2, 0, false, false)]);
        assert!(decide(&[writing, at_one("b"), at_one("c")], 3, true).is_empty());
        let written = node("a", 1, Some((1, false)), &[(2, 0, false, true)]);
        assert_eq!(names(decide(&[written, at_one("b"), at_one("c")], 3, true)), ["a/0"]);
    }

    #[test]
    fn only_what_works_waits_for_calm() {
        let at_one = |n: &str| node(n, 1, Some((1, true)), &[]);
        assert!(decide(&[at_one("a"), at_one("b"), at_one("c")], 2, false).is_empty());
        let down = node("c", 1, Some((1, false)), &[]);
        assert_eq!(names(decide(&[at_one("a"), at_one("b"), down], 2, false)), ["c/0"]);
        assert_eq!(names(decide(&[node("a", 0, None, &[])], 1, false)), ["a/0"]);
    }

    #[test]
    fn what_runs_is_not_installed_again() {
        let at_one = |n: &str| node(n, 1, Some((1, true)), &[]);
        let restarting = node("c", 1, Some((1, false)), &[]);
        assert!(
            decide(&[at_one("a"), at_one("b"), restarting], 1, true).is_empty(),
            "its installer was pruned"
        );
        let blank = node("c", 1, None, &[]);
        assert_eq!(names(decide(&[at_one("a"), at_one("b"), blank], 1, true)), ["c/0"], "its disk is new");
    }

    #[test]
    fn installers_go_when_their_work_is_seen() {
        let left = |n: NodeView| {
            let gone = superfluous(&n).into_iter().cloned().collect::<Vec<_>>();
            n.installers.iter().filter(|i| !gone.contains(i)).map(|i| i.pod.clone()).collect::<Vec<_>>()
        };
        let both = [(1, 0, false, true), (2, 0, false, true)];
        assert_eq!(left(node("a", 1, Some((2, false)), &both)), ["a-2-0"], "not ready yet");
        assert!(left(node("a", 1, Some((2, true)), &both)).is_empty());
        assert_eq!(left(node("a", 0, None, &[(1, 0, false, true), (1, 1, false, false)])).len(), 2);
        let failed: Vec<_> = (0..8).map(|retry| (1, retry, true, false)).collect();
        assert_eq!(left(node("a", 0, None, &failed)).len(), 8, "retries are counted by them");
        let kept = ["a-1-3", "a-1-4", "a-1-5", "a-1-6", "a-1-7"];
        assert_eq!(left(node("a", 1, Some((1, true)), &failed)), kept);
    }

    /// Revision 1 or the newest one runs, or nothing; installers of either at any point.
    fn any_node(name: &'static str) -> impl Strategy<Value = NodeView> {
        let running = proptest::option::of((1..3i64, any::<bool>()));
        let installer = (1..3i64, 0..3i64, any::<bool>(), any::<bool>());
        let installers = proptest::collection::vec(installer, 0..3);
        (0..3i64, running, installers, any::<bool>()).prop_map(
            move |(current, running, installers, broken)| {
                let installers: Vec<_> = installers
                    .into_iter()
                    .map(|(r, n, failed, done)| (r, n, failed, done && !failed))
                    .collect();
                NodeView { broken, ..node(name, current, running, &installers) }
            },
        )
    }

    fn is_ready(n: &NodeView) -> bool {
        n.running.is_some_and(|s| s.ready)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5000))]

        #[test]
        fn what_is_ready_stops_only_while_all_others_are(
            nodes in (any_node("a"), any_node("b"), any_node("c")), calm: bool,
        ) {
            let nodes = [nodes.0, nodes.1, nodes.2];
            let chosen = decide(&nodes, 2, calm);
            let chosen: Vec<_> = nodes.iter().filter(|n| chosen.iter().any(|(name, _)| *name == n.name)).collect();
            prop_assert!(chosen.iter().filter(|n| n.running.is_some()).count() <= 1, "one at a time");
            for node in chosen {
                let mut others = nodes.iter().filter(|n| n.name != node.name);
                prop_assert!(!node.is_written_to() && !node.holds(2));
                prop_assert!(!is_ready(node) || (calm && others.all(is_ready)));
            }
        }

        /// Whatever is broken, and whoever never becomes ready again: all get the newest revision, if installers end and the kubelets
        /// of those who are ready start what was written.
        #[test]
        fn whatever_is_broken_gets_the_newest_revision(
            nodes in (any_node("a"), any_node("b"), any_node("c")), heals in proptest::array::uniform3(any::<bool>()),
        ) {
            let mut nodes = [nodes.0, nodes.1, nodes.2];
            for n in &mut nodes {
                n.installers.retain(|i| i.failed || i.done);
            }
            for _ in 0..12 {
                let chosen = decide(&nodes, 2, true);
                // Installed, started, and waited for in vain where it does not heal.
                for (n, heals) in nodes.iter_mut().zip(heals) {
                    let started = chosen.iter().any(|(name, _)| *name == n.name) || (is_ready(n) && n.under_way(2));
                    n.running = if started { Some(Static { revision: 2, ready: heals }) } else { n.running };
                    n.broken = !is_ready(n);
                }
            }
            prop_assert!(nodes.iter().all(|n| n.holds(2) || is_ready(n)), "{:?}", nodes);
        }
    }
}
