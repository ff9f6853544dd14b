//! Plain lines on stderr, one a step, each with the time since the start; and for what takes minutes, how many are left.

use crate::bill::Group;
use std::time::{Duration, Instant};

/// A machine that takes longer than this many times the usual has Go's packages in its cache, or something else to do.
const SLOWEST: f64 = 4.0;

pub struct Progress(Instant);

impl Progress {
    pub fn start() -> Self {
        Self(Instant::now())
    }
    pub fn step(&self, what: impl AsRef<str>) {
        eprintln!("{:7.1}s  {}", self.0.elapsed().as_secs_f64(), what.as_ref());
    }
}

/// What is left of the groups that must be built, by their usual times and by how long this machine took for those that are done.
pub(crate) struct Plan {
    /// Usual seconds of each group, in order.
    usual: Vec<u32>,
    done: usize,
    spent: Duration,
}

impl Plan {
    pub(crate) fn of<'a>(groups: impl IntoIterator<Item = &'a Group>) -> Self {
        Self {
            usual: groups.into_iter().map(|group| group.seconds).collect(),
            done: 0,
            spent: Duration::ZERO,
        }
    }

    pub(crate) fn finished(&mut self, took: Duration) {
        self.done += 1;
        self.spent += took;
    }

    /// `1 of 8, about 9 min`, when `share` of the group at hand is done after `took`.
    pub(crate) fn left(&self, share: f64, took: Duration) -> String {
        let (before, rest) = self.usual.split_at(self.done.min(self.usual.len()));
        let current = f64::from(rest.first().copied().unwrap_or(0));
        let sum = |seconds: &[u32]| f64::from(seconds.iter().sum::<u32>());
        let known = sum(before) + share * current;
        // The first half minute says nothing about the machine: downloads, and packages that others wait for. Nor do packages that are in
        // Go's cache: they are never counted as built.
        let speed = if known < 30.0 { 1.0 } else { ((self.spent + took).as_secs_f64() / known).min(SLOWEST) };
        let left = speed * (sum(rest) - share * current);
        format!("{} of {}, {}", (self.done + 1).min(self.usual.len()), self.usual.len(), about(left))
    }
}

fn about(seconds: f64) -> String {
    match (seconds / 60.0).round() {
        minutes if minutes < 1.0 => "less than a minute left".into(),
        minutes => format!("about {minutes} min left"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(usual: &[u32]) -> Plan {
        Plan { usual: usual.to_vec(), done: 0, spent: Duration::ZERO }
    }

    #[test]
    fn says_how_many_minutes_are_left() {
        let mut plan = plan(&[400, 100, 40]);
        assert_eq!(plan.left(0.0, Duration::ZERO), "1 of 3, about 9 min left");
        // Half of the first group took twice its usual time.
        assert_eq!(plan.left(0.5, Duration::from_secs(400)), "1 of 3, about 11 min left");
        plan.finished(Duration::from_secs(400));
        assert_eq!(plan.left(0.0, Duration::ZERO), "2 of 3, about 2 min left");
        plan.finished(Duration::from_secs(100));
        assert_eq!(plan.left(1.0, Duration::from_secs(40)), "3 of 3, less than a minute left");
    }
}
