//! Which manifests are to be tried when: each has its own back-off, so that one that fails holds up no other. Pure.

use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

#[derive(Debug, Default)]
pub(super) struct Schedule {
    /// By task: when it is to be tried, and how often it has failed in a row.
    due: BTreeMap<usize, (Instant, u32)>,
    /// Being tried now.
    in_hand: BTreeMap<usize, u32>,
}

impl Schedule {
    /// All of them; what failed is tried in its own time.
    pub(super) fn all(&mut self, tasks: impl Iterator<Item = usize>, now: Instant) {
        for task in tasks.filter(|t| !self.in_hand.contains_key(t)).collect::<Vec<_>>() {
            self.due.entry(task).or_insert((now, 0));
        }
    }

    /// Somebody has changed it: once more, also when it is being tried right now.
    pub(super) fn at_once(&mut self, task: usize, now: Instant) {
        let failures = self.due.get(&task).map_or(0, |(_, failures)| *failures);
        self.due.insert(task, (now, failures));
    }

    /// The one that has waited longest, and how often it has failed.
    pub(super) fn take(&mut self, now: Instant) -> Option<(usize, u32)> {
        let (task, (at, failures)) = self.next()?;
        (at <= now).then(|| {
            self.due.remove(&task);
            self.in_hand.insert(task, failures);
            (task, failures)
        })
    }

    /// When one is to be tried next.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.next().map(|(_, (at, _))| at)
    }

    fn next(&self) -> Option<(usize, (Instant, u32))> {
        let waiting = self.due.iter().filter(|(task, _)| !self.in_hand.contains_key(task));
        waiting.min_by_key(|(task, (at, _))| (*at, **task)).map(|(task, entry)| (*task, *entry))
    }

    /// `again`: it failed, and is tried again after this time.
    pub(super) fn tried(&mut self, task: usize, again: Option<Duration>, now: Instant) {
        let failures = self.in_hand.remove(&task).unwrap_or_default();
        if let Some(pause) = again {
            let at = self.due.get(&task).map_or(now + pause, |(at, _)| *at);
            self.due.insert(task, (at, failures + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_has_its_own_back_off() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut schedule = Schedule::default();
        schedule.all(0..3, at(0));
        assert_eq!([0, 0].map(|now| schedule.take(at(now))), [Some((0, 0)), Some((1, 0))]);
        schedule.all(0..3, at(0));
        schedule.tried(0, Some(Duration::from_secs(10)), at(0));
        schedule.tried(1, None, at(0));
        assert_eq!([0, 0].map(|now| schedule.take(at(now))), [Some((2, 0)), None]);
        schedule.tried(2, None, at(0));
        assert_eq!(schedule.next_at(), Some(at(10)));
        schedule.all(0..3, at(5));
        let rest = [5, 5, 5].map(|now| schedule.take(at(now)));
        assert_eq!(rest, [Some((1, 0)), Some((2, 0)), None], "0 waits for its own time");
        assert_eq!(schedule.take(at(10)), Some((0, 1)));
        // Changed while it is tried: it is tried again, but not twice at a time.
        schedule.at_once(0, at(11));
        assert_eq!(schedule.take(at(11)), None);
        schedule.tried(0, None, at(12));
        assert_eq!(schedule.take(at(12)), Some((0, 0)));
    }

    proptest! {
        /// Whatever fails, and however often: everything else is tried in every round.
        #[test]
        fn what_fails_holds_up_nobody(bad in proptest::collection::btree_set(0usize..20, 0..10), rounds in 1u64..10) {
            let start = Instant::now();
            let mut schedule = Schedule::default();
            let mut tried = BTreeMap::<usize, u64>::new();
            for round in 0..rounds {
                let now = start + Duration::from_secs(180 * round);
                schedule.all(0..20, now);
                while let Some((task, _)) = schedule.take(now) {
                    *tried.entry(task).or_default() += 1;
                    schedule.tried(task, bad.contains(&task).then_some(Duration::from_secs(15)), now);
                }
            }
            prop_assert!((0..20).all(|task| tried.get(&task) == Some(&rounds)));
        }
    }
}
