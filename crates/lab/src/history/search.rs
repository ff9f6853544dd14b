//! The search for an order (Wing and Gong, with Lowe's memory of what was tried): depth first over which operations have happened
//! and what the object is then; the same again is not tried twice.

use super::{Action, Operation, State};
use std::collections::HashSet;

/// So many different moments are looked at: a second or two, and a hundred megabytes, at most.
pub const STEPS: usize = 300_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// An order that explains every answer.
    Order,
    /// There is none.
    None,
    /// Neither was found within the limit of steps.
    TooLarge,
}

/// Which operations have happened.
type Happened = Vec<u64>;

fn has(happened: &Happened, index: usize) -> bool {
    happened[index / 64] & (1 << (index % 64)) != 0
}

fn with(happened: &Happened, index: usize) -> Happened {
    let mut more = happened.clone();
    more[index / 64] |= 1 << (index % 64);
    more
}

/// Operations of one object, in any order; what it may be before the first of them; and how long to search.
pub fn linearizable(operations: &[Operation], at_first: &[State], steps: usize) -> Found {
    // A read without an answer says nothing.
    let mut operations: Vec<_> =
        operations.iter().filter(|o| o.known() || o.action != Action::Read).collect();
    operations.sort_by_key(|o| o.sent);
    let nothing: Happened = vec![0; operations.len().div_ceil(64)];
    let mut tried: HashSet<(Happened, State)> = HashSet::new();
    let mut open: Vec<(Happened, State)> = at_first.iter().map(|state| (nothing.clone(), *state)).collect();
    tried.extend(open.iter().cloned());
    while let Some((happened, state)) = open.pop() {
        if tried.len() > steps {
            return Found::TooLarge;
        }
        let (happened, next) = look(&operations, happened, state);
        let Some(next) = next else { return Found::Order };
        let mut first_delete = true;
        for index in next {
            // Of deletes without an answer the first is as good as any: it may happen whenever the others may.
            let delete = operations[index].action == Action::Delete && !operations[index].known();
            if delete && !std::mem::replace(&mut first_delete, false) {
                continue;
            }
            if let Some(state) = operations[index].applied_to(state) {
                let then = (with(&happened, index), state);
                if tried.insert(then.clone()) {
                    open.push(then);
                }
            }
        }
    }
    Found::None
}

/// What only looks, and may happen now with the answer it had, happens now: any order in which it comes later is as good with it here.
/// Then, which of the others may happen next; none if all that was answered has happened.
fn look(operations: &[&Operation], mut happened: Happened, state: State) -> (Happened, Option<Vec<usize>>) {
    loop {
        let waiting = || (0..operations.len()).filter(|index| !has(&happened, *index));
        // Whatever was sent after another was answered has happened after it.
        let known = waiting().filter(|index| operations[*index].known());
        let Some(until) = known.map(|index| operations[index].answered).min() else {
            return (happened, None);
        };
        let next: Vec<_> = waiting().take_while(|index| operations[*index].sent <= until).collect();
        let looks: Vec<_> = (next.iter())
            .filter(|index| operations[**index].only_looks())
            .filter(|index| operations[**index].applied_to(state).is_some())
            .collect();
        if looks.is_empty() {
            return (happened, Some(next));
        }
        for index in looks {
            happened = with(&happened, *index);
        }
    }
}
