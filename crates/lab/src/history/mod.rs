//! Whether what clients saw of an object could have happened one operation after the other, each at a moment between its request and
//! its answer (linearizability). Pure.
//!
//! In: every operation with its times and its answer, where none means that it may have happened at any time after, or never. Objects
//! do not know of each other, so each is judged alone. Out: how many were judged, and of each that cannot be explained the smallest
//! history that shows it.

mod judge;
mod search;
#[cfg(test)]
mod tests;

pub use judge::{Bad, Writes, judge};
pub use search::{Found, STEPS, linearizable};

use serde::{Deserialize, Serialize};
use std::fmt;

/// Each write has one of its own, so that a value identifies who wrote it. An object's resourceVersion changes with its value and only
/// then: to compare one is to compare the other.
pub type Value = u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    Create(Value),
    /// Only if it is still `from`.
    Update {
        from: Value,
        to: Value,
    },
    /// Whatever it is.
    Delete,
    Read,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    Done,
    /// To a read.
    Found(Value),
    /// There is no such object.
    Missing,
    /// There is one already, or another than was expected.
    Conflict,
    /// None, or one that does not say whether it was done.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    /// The object.
    pub key: u32,
    /// Who asked.
    pub worker: u32,
    /// When it was sent and when its answer was there, in microseconds since the beginning.
    pub sent: u64,
    pub answered: u64,
    pub action: Action,
    pub answer: Answer,
}

/// What an object is: nothing, or the last value written.
pub type State = Option<Value>;

impl Operation {
    /// What the object is after it, if it can have happened to such an object with this answer. One without an answer can always
    /// have been without effect; here it has one.
    pub fn applied_to(&self, state: State) -> Option<State> {
        match (self.action, self.answer) {
            (Action::Create(value), Answer::Done | Answer::Unknown) => state.is_none().then_some(Some(value)),
            (Action::Create(_), Answer::Conflict) => state.is_some().then_some(state),
            (Action::Update { from, to }, Answer::Done | Answer::Unknown) => {
                (state == Some(from)).then_some(Some(to))
            }
            (Action::Update { from, .. }, Answer::Conflict) => (state != Some(from)).then_some(state),
            (Action::Delete, Answer::Done | Answer::Unknown) => state.is_some().then_some(None),
            (Action::Read, Answer::Found(value)) => (state == Some(value)).then_some(state),
            (Action::Read | Action::Update { .. } | Action::Delete, Answer::Missing) => {
                state.is_none().then_some(state)
            }
            _ => None,
        }
    }

    fn known(&self) -> bool {
        self.answer != Answer::Unknown
    }

    /// It leaves the object as it is.
    fn only_looks(&self) -> bool {
        self.action == Action::Read || matches!(self.answer, Answer::Missing | Answer::Conflict)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let seconds = |micros: u64| micros as f64 / 1e6;
        let action = match self.action {
            Action::Create(value) => format!("create as {value}"),
            Action::Update { from, to } => format!("update {from} to {to}"),
            Action::Delete => "delete".into(),
            Action::Read => "read".into(),
        };
        let answer = match self.answer {
            Answer::Done => "done".into(),
            Answer::Found(value) => format!("it is {value}"),
            Answer::Missing => "there is none".into(),
            Answer::Conflict => "refused: there is another".into(),
            Answer::Unknown => "no answer: it may have happened since, or never".into(),
        };
        let (sent, answered) = (seconds(self.sent), seconds(self.answered));
        write!(f, "{sent:>12.6} s to {answered:>12.6} s  worker {}  {action:<22} {answer}", self.worker)
    }
}
