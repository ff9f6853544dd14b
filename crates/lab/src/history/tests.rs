//! Bad histories by hand, good ones from executions that really were one after the other, and any at all against a search that knows no
//! short cut.

use super::judge::{since, until};
use super::*;
use proptest::prelude::*;

fn op(sent: u64, answered: u64, action: Action, answer: Answer) -> Operation {
    Operation { key: 7, worker: 0, sent, answered, action, answer }
}

fn create(sent: u64, answered: u64, value: Value) -> Operation {
    op(sent, answered, Action::Create(value), Answer::Done)
}

fn update(sent: u64, answered: u64, from: Value, to: Value) -> Operation {
    op(sent, answered, Action::Update { from, to }, Answer::Done)
}

fn delete(sent: u64, answered: u64) -> Operation {
    op(sent, answered, Action::Delete, Answer::Done)
}

fn read(sent: u64, answered: u64, state: State) -> Operation {
    op(sent, answered, Action::Read, state.map_or(Answer::Missing, Answer::Found))
}

fn unanswered(operation: Operation) -> Operation {
    Operation { answer: Answer::Unknown, ..operation }
}

fn found(history: &[Operation]) -> Found {
    linearizable(history, &[None], STEPS)
}

#[test]
fn what_no_order_explains_is_found() {
    let conflict =
        |sent, answered, from| op(sent, answered, Action::Update { from, to: 9 }, Answer::Conflict);
    let cases: [(&str, Vec<Operation>); 12] = [
        ("a lost update", vec![create(0, 1, 1), update(2, 5, 1, 2), update(3, 6, 1, 3), read(7, 8, Some(3))]),
        (
            "compare and swap that succeeded twice",
            vec![create(0, 1, 1), update(2, 3, 1, 2), update(4, 5, 1, 3)],
        ),
        ("a stale read", vec![create(0, 1, 1), update(2, 3, 1, 2), read(4, 5, Some(1))]),
        (
            "a read that goes back",
            vec![create(0, 1, 1), update(2, 9, 1, 2), read(3, 4, Some(2)), read(5, 6, Some(1))],
        ),
        ("a deleted object that is back", vec![create(0, 1, 1), delete(2, 3), read(4, 5, Some(1))]),
        ("a value that nobody wrote", vec![create(0, 1, 1), read(2, 3, Some(8))]),
        ("an acknowledged create that is gone", vec![create(0, 1, 1), read(2, 3, None)]),
        (
            "an acknowledged update that is gone",
            vec![create(0, 1, 1), update(2, 3, 1, 2), update(4, 5, 1, 3)],
        ),
        ("two creates", vec![create(0, 9, 1), create(0, 9, 2)]),
        ("a delete of what is not there", vec![delete(0, 1), create(2, 3, 1)]),
        ("a refusal without a reason", vec![create(0, 1, 1), conflict(2, 3, 1)]),
        (
            "an effect before its request",
            vec![create(0, 1, 1), read(2, 3, Some(2)), unanswered(update(4, 5, 1, 2))],
        ),
    ];
    for (what, history) in cases {
        assert_eq!(found(&history), Found::None, "{what}");
        let writes = judge(&history);
        assert_eq!((writes.keys, writes.judged, writes.red.len()), (1, 1, 1), "{what}");
        assert!(writes.wrong()[0].contains("NOT LINEARIZABLE"), "{what}");
    }
}

#[test]
fn what_overlaps_may_have_happened_either_way() {
    let conflict = op(2, 9, Action::Update { from: 1, to: 9 }, Answer::Conflict);
    let cases: [(&str, Vec<Operation>); 7] = [
        ("nothing", vec![]),
        (
            "read while it is written",
            vec![create(0, 1, 1), update(2, 9, 1, 2), read(3, 4, Some(1)), read(5, 6, Some(2))],
        ),
        ("one of two wins", vec![create(0, 1, 1), update(2, 9, 1, 2), conflict]),
        (
            "deleted and made again",
            vec![create(0, 9, 1), delete(0, 9), create(0, 9, 2), read(10, 11, Some(2))],
        ),
        (
            "no answer, and it never happened",
            vec![create(0, 1, 1), unanswered(update(2, 3, 1, 2)), read(90, 91, Some(1))],
        ),
        (
            "no answer, and it happened much later",
            vec![
                create(0, 1, 1),
                unanswered(update(2, 3, 1, 2)),
                read(50, 51, Some(1)),
                read(90, 91, Some(2)),
            ],
        ),
        ("a delete without an answer", vec![create(0, 1, 1), unanswered(delete(2, 3)), create(50, 51, 2)]),
    ];
    for (what, history) in cases {
        assert_eq!(found(&history), Found::Order, "{what}");
        assert!(judge(&history).red.is_empty());
    }
}

/// It happens once: what it wrote does not come back.
#[test]
fn an_operation_without_an_answer_happens_at_most_once() {
    let late = unanswered(update(2, 3, 1, 2));
    let history = [create(0, 1, 1), late, read(4, 5, Some(2)), update(6, 7, 2, 3), read(8, 9, Some(2))];
    assert_eq!(found(&history), Found::None);
}

#[test]
fn what_takes_too_long_is_not_judged() {
    let mut history: Vec<_> = (0..40).map(|n| unanswered(delete(n, n))).collect();
    history.extend((0..10).map(|n| create(0, 500, 100 + n)));
    history.push(read(600, 601, Some(99)));
    assert_eq!(linearizable(&history, &[None], 2000), Found::TooLarge);
    let nothing = Writes { operations: 5, unknown: 5, keys: 4, judged: 1, red: vec![] };
    assert_eq!(nothing.wrong().len(), 2, "{:?}", nothing.wrong());
}

#[test]
fn a_person_sees_only_what_matters() {
    let mut history = vec![create(0, 1, 1)];
    for n in 1..30 {
        let at = u64::from(n) * 10;
        history.extend([update(at, at + 2, n, n + 1), read(at + 3, at + 4, Some(n + 1))]);
    }
    history.extend([read(1000, 1001, Some(29)), update(1010, 1011, 30, 31)]);
    let writes = judge(&history);
    let text = writes.red[0].to_string();
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(
        text.starts_with("object 7 was nothing, or what was written before, and then no order"),
        "{text}"
    );
    assert!(text.contains("it is 30") && text.contains("it is 29"), "{text}");
}

/// Another key's operations are no explanation, and no fault.
#[test]
fn each_object_is_judged_alone() {
    let of = |key, operation| Operation { key, ..operation };
    let history = [of(1, create(0, 1, 1)), of(2, create(2, 3, 2)), of(1, read(4, 5, Some(2)))];
    let writes = judge(&history);
    assert_eq!((writes.operations, writes.keys, writes.judged), (3, 2, 2));
    assert_eq!(writes.red.iter().map(|bad| bad.key).collect::<Vec<_>>(), [1]);
}

/// What one client does, when it happens after its request, how long its answer takes, and whether there is one.
type Turn = (u8, u64, u64, u8);

/// Really one after the other, ten microseconds apart.
fn executed(turns: &[Turn]) -> Vec<Operation> {
    let (mut state, mut before, mut last): (State, Value, Value) = (None, 0, 0);
    let mut history = Vec::new();
    for (number, (what, early, late, fate)) in turns.iter().enumerate() {
        let at = 1000 + number as u64 * 10;
        let value = number as Value + 1;
        let from = if what % 2 == 0 { last } else { before };
        let action = match what / 2 {
            0 => Action::Create(value),
            1 | 2 => Action::Update { from, to: value },
            3 => Action::Delete,
            _ => Action::Read,
        };
        let answers =
            [Answer::Done, Answer::Missing, Answer::Conflict, Answer::Found(state.unwrap_or_default())];
        let tried = answers.map(|answer| op(at - early, at + late, action, answer));
        // An answer that was lost, and a request that was lost.
        if *fate == 0 {
            history.push(unanswered(tried[0]));
            continue;
        }
        let Some((done, then)) = tried.iter().find_map(|o| Some((*o, o.applied_to(state)?))) else {
            continue;
        };
        if then != state && then.is_some() {
            (before, last) = (last, value);
        }
        state = then;
        history.push(if *fate == 1 { unanswered(done) } else { done });
    }
    history
}

fn turns(most: usize) -> impl Strategy<Value = Vec<Turn>> {
    proptest::collection::vec((0..10u8, 0..60u64, 0..60u64, 0..12u8), 1..most)
}

/// Every order, one after the other.
fn explained(left: &[Operation], state: State) -> bool {
    let Some(until) = left.iter().filter(|o| o.known()).map(|o| o.answered).min() else { return true };
    (0..left.len()).filter(|index| left[*index].sent <= until).any(|index| {
        let mut rest = left.to_vec();
        let next = rest.remove(index);
        next.applied_to(state).is_some_and(|then| explained(&rest, then))
    })
}

fn any_operation() -> impl Strategy<Value = Operation> {
    let action = prop_oneof![
        (1..6u32).prop_map(Action::Create),
        (1..4u32, 4..7u32).prop_map(|(from, to)| Action::Update { from, to }),
        Just(Action::Delete),
        Just(Action::Read),
    ];
    let answer = prop_oneof![
        4 => Just(Answer::Done),
        3 => (1..6u32).prop_map(Answer::Found),
        1 => Just(Answer::Missing),
        1 => Just(Answer::Conflict),
        2 => Just(Answer::Unknown),
    ];
    (0..30u64, 0..20u64, action, answer).prop_map(|(sent, took, action, answer)| {
        let answer = if action == Action::Read && answer == Answer::Done { Answer::Missing } else { answer };
        op(sent, sent + took, action, answer)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_execution_is_always_explained(turns in turns(60)) {
        let history = executed(&turns);
        prop_assert_eq!(found(&history), Found::Order, "{:#?}", history);
        // And so is what a person would be shown of it: leaving out makes nothing wrong.
        for moment in history.iter().map(|o| o.answered) {
            prop_assert_eq!(found(&until(&history, moment)), Found::Order);
            if let Some((rest, may_be)) = since(&history, moment) {
                prop_assert_eq!(linearizable(&rest, &may_be, STEPS), Found::Order, "{:#?}", rest);
            }
        }
    }

    #[test]
    fn a_spoilt_execution_is_never_explained(turns in turns(60), which in any::<prop::sample::Index>(), how in 0..4u8) {
        let mut history = executed(&turns);
        let end = 10_000;
        let done: Vec<_> = history.iter().copied().filter(|o| o.answer == Answer::Done).collect();
        prop_assume!(!done.is_empty());
        let chosen = done[which.index(done.len())];
        history.push(match (how, chosen.action) {
            // What it replaced is back.
            (0, Action::Update { from, .. }) => update(end, end + 1, from, 9999),
            (1, Action::Update { from, .. }) => read(end, end + 1, Some(from)),
            // What nobody wrote.
            (2, _) => update(end, end + 1, 9999, 10_000),
            _ => read(end, end + 1, Some(9999)),
        });
        prop_assert_eq!(found(&history), Found::None, "{:#?}", history);
        let writes = judge(&history);
        let bad = &writes.red[0];
        prop_assert_eq!(linearizable(&bad.history, &bad.at_first, STEPS), Found::None);
        prop_assert!(bad.history.len() <= history.len());
    }

    #[test]
    fn the_search_finds_what_trying_everything_finds(history in proptest::collection::vec(any_operation(), 0..7)) {
        let want = if explained(&history, None) { Found::Order } else { Found::None };
        prop_assert_eq!(found(&history), want, "{:#?}", history);
    }
}
