//! What a run proves, as it is committed to `docs/reports`. Pure but for the report's beginning.

use super::round::Outcome;
use seedling_lab::chaos::Tally;
use seedling_observe::Report;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// Named after its file, with the command as it was typed.
pub fn begin(path: &Path, seed: u64) -> Report {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let typed: Vec<_> = std::iter::once("seedling".into()).chain(std::env::args().skip(1)).collect();
    Report::new(&name, &typed.join(" "), Some(seed), Value::Null)
}

pub fn tally<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Tally {
    Tally::of(outcomes.into_iter().map(|o| &o.verdict))
}

/// And the summary in words.
pub fn results(outcomes: &[Outcome], missed_at_most: usize) -> (Value, Vec<String>) {
    let Tally { green, red, missed } = tally(outcomes);
    let mut victims: BTreeMap<&str, Vec<&Outcome>> = BTreeMap::new();
    for outcome in outcomes {
        victims.entry(outcome.victim.as_str()).or_default().push(outcome);
    }
    let victims: BTreeMap<_, _> = victims.into_iter().map(|(v, all)| (v, tally(all))).collect();
    // What was counted beside a bring-up is in each of its cases.
    let bring_ups: BTreeMap<_, _> = outcomes.iter().map(|o| (o.round, o)).collect();
    let sum = |of: fn(&Outcome) -> usize| bring_ups.values().map(|o| of(o)).sum::<usize>();
    let (acknowledged, lost, stale) = (sum(|o| o.acknowledged), sum(|o| o.lost), sum(|o| o.stale));
    let (operations, not_linearizable) = (sum(|o| o.operations), sum(|o| o.not_linearizable));
    let longest = bring_ups.values().map(|o| o.longest_window_millis).max().unwrap_or_default();
    let slowest = bring_ups.values().map(|o| o.seconds).fold(0.0, f64::max);
    let summary = format!(
        "{} strikes in {} bring-ups: {green} green, {red} red, {missed} missed; {acknowledged} writes acknowledged, {lost} lost, \
         {stale} stale reads; {operations} operations on shared objects, {not_linearizable} objects not linearizable; longest time in which requests failed {:.1} s, slowest bring-up {slowest:.0} s",
        outcomes.len(),
        bring_ups.len(),
        longest as f64 / 1000.0,
    );
    let results = json!({
        "green": green,
        "red": red,
        "missed": missed,
        "missedAtMost": missed_at_most,
        "victims": victims,
        "bringUps": bring_ups.len(),
        "acknowledged": acknowledged,
        "lost": lost,
        "stale": stale,
        "operations": operations,
        "unknown": sum(|o| o.unknown),
        "objectsJudged": sum(|o| o.objects_judged),
        "notLinearizable": not_linearizable,
        "resent": sum(|o| o.resent),
        "failedRequests": sum(|o| o.failed_requests),
        "longestWindowMillis": longest,
        "slowestBringUpSeconds": slowest,
        "cases": outcomes,
    });
    (results, vec![summary])
}

#[cfg(test)]
mod tests {
    use super::*;
    use seedling_lab::chaos::{Verdict, Victim};

    fn outcome(round: usize, victim: Victim, verdict: Verdict) -> Outcome {
        Outcome {
            id: String::new(),
            victim,
            round,
            seconds: 40.0 + round as f64,
            verdict,
            struck: String::new(),
            failed_requests: 1,
            longest_window_millis: 1200,
            resent: 2,
            acknowledged: 500,
            stale: 0,
            lost: 0,
            operations: 700,
            unknown: 3,
            objects_judged: 90,
            not_linearizable: 0,
        }
    }

    #[test]
    fn cases_are_counted_by_victim_and_requests_by_bring_up() {
        let missed = Verdict::Missed("gone".into());
        let outcomes = [
            outcome(1, Victim::Etcd, Verdict::Green),
            outcome(1, Victim::Kubelet, missed),
            outcome(2, Victim::Etcd, Verdict::Red("x".into())),
        ];
        let (results, summary) = results(&outcomes, 1);
        let count = |pointer: &str| results.pointer(pointer).and_then(Value::as_u64);
        for (pointer, want) in [
            ("/green", 1),
            ("/red", 1),
            ("/missed", 1),
            ("/victims/etcd/red", 1),
            ("/victims/kubelet/missed", 1),
            ("/bringUps", 2),
            ("/acknowledged", 1000),
            ("/operations", 1400),
            ("/unknown", 6),
            ("/objectsJudged", 180),
            ("/notLinearizable", 0),
            ("/resent", 4),
            ("/longestWindowMillis", 1200),
        ] {
            assert_eq!(count(pointer), Some(want), "{pointer}");
        }
        assert!(
            summary[0].starts_with("3 strikes in 2 bring-ups: 1 green, 1 red, 1 missed; 1000 writes"),
            "{summary:?}"
        );
    }
}
