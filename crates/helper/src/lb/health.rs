//! The decisions: what a health check means for a backend, and which backends a connection may go to.

/// A backend that still accepts connections and does not get well is of no use to those who are connected: ten checks in a row
/// without an answer (1.2 s each), or thirty that say it is not ready (0.2 s each). Their connections are cut, so that they find a
/// living one, or hear that there is none: an API server without etcd lets them wait for half a minute, among them the kubelet that
/// is to start etcd.
const HOPELESS: u32 = 30;
const SILENCE: u32 = 3;

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
    /// Of the checks in a row that failed; how much they weigh together.
    unwell: u32,
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
        let weight = if matches!(seen, Seen::Silent(_)) { SILENCE } else { 1 };
        let unwell = self.unwell.saturating_add(weight);
        let (usable, unwell, cut) = match seen {
            Seen::Ready => (Usable::Up, 0, false),
            Seen::Leaving | Seen::Refused => (Usable::Down, 0, false),
            Seen::NotReady(_) => (Usable::Down, unwell, unwell >= HOPELESS),
            // One failure proves nothing.
            _ if self.unwell == 0 => (self.usable, unwell, false),
            Seen::Unreachable(_) => (Usable::Down, unwell, true),
            Seen::Silent(_) if unwell < HOPELESS => (Usable::LastResort, unwell, false),
            Seen::Silent(_) => (Usable::Down, unwell, true),
        };
        Step { health: Health { usable, unwell }, cut }
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
