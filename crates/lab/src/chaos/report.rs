//! What a run proves, as it is committed to `docs/reports`. Pure but for the report's beginning and its reading.

use super::round::{BringUp, Struck};
use super::{Tally, Verdict};
use crate::{LabError, Result};
use seedling_observe::Report;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Named after its file.
pub(super) fn begin(path: &Path, command: &str, seed: u64) -> Report {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    Report::new(&name, command, Some(seed), Value::Null)
}

/// What is green in the report of an earlier run, and its seed. Of cases that were meant together, all are, or none.
pub(super) fn green(path: &Path) -> Result<(Vec<BringUp>, Option<u64>)> {
    let none = |e| LabError::Strike(format!("--resume goes on with a run that has a report: {e:#}"));
    let mut report = Report::read(path).map_err(none)?;
    let mut before: Vec<BringUp> = serde_json::from_value(report.results["bringUps"].take())?;
    for bring_up in &mut before {
        let is_green = |case: &Struck| case.verdict == Verdict::Green;
        match bring_up.together && !bring_up.cases.iter().all(is_green) {
            true => bring_up.cases.clear(),
            false => bring_up.cases.retain(is_green),
        }
    }
    before.retain(|bring_up| !bring_up.cases.is_empty());
    Ok((before, report.seed))
}

pub(super) fn tally(bring_ups: &[BringUp]) -> Tally {
    Tally::of(bring_ups.iter().flat_map(|b| &b.cases).map(|case| &case.verdict))
}

/// And the summary in words. `planned`: cases of the whole run, also those that are still to come.
pub(super) fn results(bring_ups: &[BringUp], planned: usize, missed_at_most: usize) -> (Value, Vec<String>) {
    let Tally { green, red, missed } = tally(bring_ups);
    let cases = || bring_ups.iter().flat_map(|b| &b.cases);
    let by = |word: usize| -> BTreeMap<&str, Tally> {
        let mut verdicts: BTreeMap<&str, Vec<&Verdict>> = BTreeMap::new();
        for case in cases() {
            verdicts.entry(case.id.split('.').nth(word).unwrap_or_default()).or_default().push(&case.verdict);
        }
        verdicts.into_iter().map(|(word, verdicts)| (word, Tally::of(verdicts))).collect()
    };
    let sum = |of: fn(&BringUp) -> usize| bring_ups.iter().map(of).sum::<usize>();
    let (acknowledged, lost, stale) = (sum(|b| b.acknowledged), sum(|b| b.lost), sum(|b| b.stale));
    let (operations, not_linearizable) = (sum(|b| b.operations), sum(|b| b.not_linearizable));
    let longest = bring_ups.iter().map(|b| b.longest_window_millis).max().unwrap_or_default();
    let slowest = bring_ups.iter().map(|b| b.seconds).fold(0.0, f64::max);
    let revisions: BTreeSet<_> = bring_ups.iter().map(|b| &b.revision).collect();
    let summary = format!(
        "{} of {planned} strikes in {} bring-ups: {green} green, {red} red, {missed} missed; {acknowledged} writes acknowledged, {lost} lost, \
         {stale} stale reads; {operations} operations on shared objects, {not_linearizable} objects not linearizable; longest time in which requests failed {:.1} s, slowest bring-up {slowest:.0} s",
        cases().count(),
        bring_ups.len(),
        longest as f64 / 1000.0,
    );
    let results = json!({
        "planned": planned,
        "green": green,
        "red": red,
        "missed": missed,
        "missedAtMost": missed_at_most,
        "faults": by(0),
        "victims": by(1),
        "revisions": revisions,
        "acknowledged": acknowledged,
        "lost": lost,
        "stale": stale,
        "operations": operations,
        "unknown": sum(|b| b.unknown),
        "objectsJudged": sum(|b| b.objects_judged),
        "notLinearizable": not_linearizable,
        "resent": sum(|b| b.resent),
        "failedRequests": sum(|b| b.failed_requests),
        "longestWindowMillis": longest,
        "slowestBringUpSeconds": slowest,
        "bringUps": bring_ups,
    });
    (results, vec![summary])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bring_up(number: usize, cases: &[(&str, Verdict)]) -> BringUp {
        let struck = |(id, verdict): &(&str, Verdict)| Struck {
            id: id.to_string(),
            verdict: verdict.clone(),
            struck: None,
        };
        BringUp {
            number,
            revision: "abc".into(),
            seconds: 40.0 + number as f64,
            failed_requests: 1,
            longest_window_millis: 1200,
            resent: 2,
            acknowledged: 500,
            operations: 700,
            unknown: 3,
            objects_judged: 90,
            cases: cases.iter().map(struck).collect(),
            ..BringUp::default()
        }
    }

    fn sample() -> Vec<BringUp> {
        let missed = Verdict::Missed("gone".into());
        vec![
            bring_up(1, &[("kill.etcd.a@x", Verdict::Green), ("kill.kubelet.a@y", missed)]),
            bring_up(2, &[("freeze.etcd.a@x", Verdict::Red("x".into()))]),
            BringUp {
                together: true,
                ..bring_up(
                    3,
                    &[("kill.node.a@x", Verdict::Green), ("kill.etcd.b@y", Verdict::Missed("z".into()))],
                )
            },
        ]
    }

    #[test]
    fn cases_are_counted_by_fault_and_victim_and_requests_by_bring_up() {
        let (results, summary) = results(&sample(), 9, 1);
        let count = |pointer: &str| results.pointer(pointer).and_then(Value::as_u64);
        for (pointer, want) in [
            ("/green", 2),
            ("/red", 1),
            ("/missed", 2),
            ("/planned", 9),
            ("/victims/etcd/red", 1),
            ("/victims/kubelet/missed", 1),
            ("/faults/freeze/red", 1),
            ("/acknowledged", 1500),
            ("/operations", 2100),
            ("/unknown", 9),
            ("/objectsJudged", 270),
            ("/notLinearizable", 0),
            ("/resent", 6),
            ("/longestWindowMillis", 1200),
        ] {
            assert_eq!(count(pointer), Some(want), "{pointer}");
        }
        assert!(
            summary[0].starts_with("5 of 9 strikes in 3 bring-ups: 2 green, 1 red, 2 missed; 1500 writes"),
            "{summary:?}"
        );
    }

    #[test]
    fn a_run_is_gone_on_with_where_it_is_not_green() {
        let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        let path = dir.path().join("chaos.json");
        assert!(green(&path).is_err(), "there is nothing to go on with");
        let mut report = begin(&path, "seedling chaos", 7);
        (report.results, report.summary) = results(&sample(), 9, 1);
        report.write(&path).unwrap_or_else(|e| panic!("{e}"));
        let (kept, seed) = green(&path).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((kept, seed), (vec![bring_up(1, &[("kill.etcd.a@x", Verdict::Green)])], Some(7)));
    }
}
