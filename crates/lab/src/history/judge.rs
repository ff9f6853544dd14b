//! All objects of a run, one after the other, and of one that cannot be explained what a person needs to see that.

use super::{Action, Answer, Found, Operation, STEPS, State, linearizable};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Of the objects: if fewer could be judged, too little was proved.
const JUDGED_AT_LEAST: f64 = 0.5;

/// What was found out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Writes {
    pub operations: usize,
    /// Of these, without an answer that says whether they were done.
    pub unknown: usize,
    pub keys: usize,
    /// The others were too large.
    pub judged: usize,
    pub red: Vec<Bad>,
}

/// An object whose answers no order explains.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bad {
    pub key: u32,
    /// What it may have been before; what came before that is left out.
    pub at_first: Vec<State>,
    pub history: Vec<Operation>,
}

pub fn judge(operations: &[Operation]) -> Writes {
    let mut keys: BTreeMap<u32, Vec<Operation>> = BTreeMap::new();
    for operation in operations {
        keys.entry(operation.key).or_default().push(*operation);
    }
    let unknown = operations.iter().filter(|o| !o.known()).count();
    let mut writes = Writes { operations: operations.len(), unknown, keys: keys.len(), ..Writes::default() };
    for (key, history) in keys {
        match linearizable(&history, &[None], STEPS) {
            Found::Order => writes.judged += 1,
            Found::TooLarge => {}
            Found::None => {
                writes.judged += 1;
                writes.red.push(smallest(key, history));
            }
        }
    }
    writes
}

/// Everything that is taken away here leaves a history that could be explained if the whole one could: what was sent after a moment;
/// what was sent before one, if the object may then be at first whatever was written before; and what only looks.
fn smallest(key: u32, mut history: Vec<Operation>) -> Bad {
    let bad =
        |history: &[Operation], at_first: &[State]| linearizable(history, at_first, STEPS) == Found::None;
    let mut at_first = vec![None];
    let moments: BTreeSet<u64> = history.iter().filter(|o| o.known()).map(|o| o.answered).collect();
    if let Some(end) = moments.iter().find(|end| bad(&until(&history, **end), &at_first)) {
        history = until(&history, *end);
    }
    for begin in moments.iter().rev() {
        if let Some((rest, may_be)) = since(&history, *begin)
            && bad(&rest, &may_be)
        {
            (history, at_first) = (rest, may_be);
            break;
        }
    }
    let mut index = 0;
    while index < history.len() {
        let mut without = history.clone();
        let gone = without.remove(index);
        if gone.only_looks() && bad(&without, &at_first) {
            history = without;
        } else {
            index += 1;
        }
    }
    history.sort_by_key(|o| o.sent);
    Bad { key, at_first, history }
}

/// What was not answered by then has no answer.
pub(super) fn until(history: &[Operation], end: u64) -> Vec<Operation> {
    let sent = history.iter().filter(|o| o.sent <= end);
    sent.map(|o| if o.answered > end { Operation { answer: Answer::Unknown, ..*o } } else { *o }).collect()
}

/// And what the object may be by then. Not in the middle of a write: it might have come before others that would be left out.
/// One that was never answered may stay, since it need not have happened.
pub(super) fn since(history: &[Operation], begin: u64) -> Option<(Vec<Operation>, Vec<State>)> {
    let (rest, gone): (Vec<_>, Vec<_>) = history.iter().copied().partition(|o| !o.known() || o.sent > begin);
    if gone.iter().any(|o| o.answered > begin && !o.only_looks()) {
        return None;
    }
    let written = gone.iter().filter_map(|o| match (o.action, o.answer) {
        (Action::Create(value) | Action::Update { to: value, .. }, Answer::Done) => Some(value),
        _ => None,
    });
    let may_be: BTreeSet<State> = written.map(Some).chain([None]).collect();
    Some((rest, may_be.into_iter().collect()))
}

impl Writes {
    /// What is wrong, in a few words; and what proves nothing.
    pub fn wrong(&self) -> Vec<String> {
        let known = self.operations - self.unknown;
        [
            (!self.red.is_empty()).then(|| format!("{} objects NOT LINEARIZABLE", self.red.len())),
            (known == 0).then(|| "no operation on shared objects was answered".to_string()),
            ((self.judged as f64) < self.keys as f64 * JUDGED_AT_LEAST)
                .then(|| format!("only {} of {} objects could be judged", self.judged, self.keys)),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

impl fmt::Display for Writes {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Self { operations, unknown, keys, judged, red } = self;
        let red = red.len();
        write!(
            f,
            "{operations} operations on {keys} shared objects, {unknown} unknown, {judged} judged, {red} not linearizable"
        )
    }
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let may_be = self.at_first.iter().map(|s| s.map_or("nothing".into(), |value| value.to_string()));
        let may_be = match self.at_first.len() {
            0..=3 => may_be.collect::<Vec<_>>().join(" or "),
            _ => "nothing, or what was written before".into(),
        };
        writeln!(f, "object {} was {may_be}, and then no order of these explains all answers:", self.key)?;
        self.history.iter().try_for_each(|operation| writeln!(f, "  {operation}"))
    }
}
