//! The decisions: what a health check means for a backend, when the next one is due, and which backends a connection may go to.

use std::time::Duration;

/// From the end of a health check to the next one, while anything may change.
const QUICK: Duration = Duration::from_millis(200);
/// The same for a backend that was ready all the time lately. A check costs an API server more than most requests do, and a cluster is
/// at rest most of its life. Short enough that one that leaves is known to in the first third of its shutdown delay.
const SETTLED: Duration = Duration::from_millis(500);
/// Checks in a row after which a backend counts as settled: some ten seconds.
const SETTLES_AFTER: u32 = 50;
/// Checks in a row that must fail before a backend is down, where one failure proves nothing.
const FALL: u32 = 2;
/// Checks in a row without an answer (at 1 s each, if it hangs) after which a backend that still accepts connections
/// counts as frozen: its open connections are cut, so that clients find a living one.
const FROZEN: u32 = 10;

/// Outcome of one health check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    Ready,
    /// It answered, but not with 200: starting, or without etcd.
    NotReady(String),
    /// It answered that it is shutting down.
    Leaving,
    /// The machine is there, nothing listens.
    Refused,
    /// It answered, but is not the cluster's own: somebody has its address.
    Stranger(String),
    /// No TCP connection: the machine is off or cut off.
    Unreachable(String),
    /// Connected, but no answer in time: frozen, or very busy.
    Silent(String),
}

impl Seen {
    pub fn reason(&self) -> String {
        match self {
            Seen::Ready => "ready".into(),
            Seen::NotReady(answer) => format!("not ready: {answer}"),
            Seen::Leaving => "shutting down".into(),
            Seen::Refused => "connection refused".into(),
            Seen::Stranger(why) => format!("not the cluster's own: {why}"),
            Seen::Unreachable(why) => format!("unreachable: {why}"),
            Seen::Silent(why) => format!("no answer: {why}"),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Usable {
    Up,
    /// Too busy for its health check. Better than nothing when nothing else is up.
    LastResort,
    #[default]
    Down,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    pub usable: Usable,
    failures: u32,
    /// In a row.
    successes: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub health: Health,
    /// Open connections are of no use any more.
    ///
    /// A refused connection is no reason: a dead process's kernel has closed its connections already, and an API server that
    /// drains closes its listener while it still finishes the requests it has.
    pub cut: bool,
}

impl Health {
    pub fn after(self, seen: &Seen) -> Step {
        let failures = self.failures.saturating_add(1);
        let (usable, failures, cut) = match seen {
            Seen::Ready => (Usable::Up, 0, false),
            Seen::NotReady(_) | Seen::Leaving | Seen::Refused | Seen::Stranger(_) => (Usable::Down, 0, false),
            _ if failures < FALL => (self.usable, failures, false),
            Seen::Unreachable(_) => (Usable::Down, failures, true),
            Seen::Silent(_) if failures < FROZEN => (Usable::LastResort, failures, false),
            Seen::Silent(_) => (Usable::Down, failures, true),
        };
        let successes = if *seen == Seen::Ready { self.successes.saturating_add(1) } else { 0 };
        Step { health: Health { usable, failures, successes }, cut }
    }

    /// Until the next check.
    pub fn pause(self) -> Duration {
        if self.successes < SETTLES_AFTER { QUICK } else { SETTLED }
    }
}

/// The backends to try, in order: round-robin over those that are up. `patience_over` adds nothing to them, but opens the
/// last resort when none is.
pub fn candidates(backends: &[Health], turn: usize, patience_over: bool) -> Vec<usize> {
    let which =
        |usable| (0..backends.len()).filter(move |&i| backends[i].usable == usable).collect::<Vec<_>>();
    let mut chosen = which(Usable::Up);
    if chosen.is_empty() && patience_over {
        chosen = which(Usable::LastResort);
    }
    if !chosen.is_empty() {
        let start = turn % chosen.len();
        chosen.rotate_left(start);
    }
    chosen
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
