//! How long a master may make no progress before the others stop waiting for it. It can still join later.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

pub(crate) use seedling_cluster::patience::read;

/// Masters that carry a cluster of so many when the others do not come: more than half. Of three they are two, with bootstrap's three
/// members, OpenShift's threshold for a delayed bring-up.
pub(crate) fn enough(masters: usize) -> usize {
    masters / 2 + 1
}

/// How far each master has come, and since when it made no progress.
#[derive(Debug)]
pub(crate) struct Progress<S>(BTreeMap<String, (S, Instant)>);

impl<S> Default for Progress<S> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<S: Ord> Progress<S> {
    /// How long `master` has made no progress. Only what it never reached before counts: one that fails again and again makes none.
    /// While it is `well` the time does not count.
    pub(crate) fn stalled(&mut self, master: &str, step: S, well: bool, now: Instant) -> Duration {
        match self.0.get_mut(master) {
            Some((best, since)) => {
                if well || step > *best {
                    *since = now;
                }
                if step > *best {
                    *best = step;
                }
                now.duration_since(*since)
            }
            None => {
                self.0.insert(master.into(), (step, now));
                Duration::ZERO
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_new_heights_and_health_count_as_progress() {
        let start = Instant::now();
        let mut progress = Progress::default();
        let mut at = |minute: u64, step: u32, well: bool| {
            progress.stalled("m", step, well, start + Duration::from_secs(60 * minute)).as_secs() / 60
        };
        assert_eq!(at(0, 0, false), 0);
        assert_eq!(at(3, 0, false), 3);
        assert_eq!(at(4, 2, false), 0);
        assert_eq!(at(5, 1, false), 1);
        assert_eq!(at(6, 2, false), 2);
        assert_eq!(at(9, 1, true), 0);
        assert_eq!(at(11, 2, false), 2);
    }
}
