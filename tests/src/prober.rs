//! Many bring-ups beside the prober: what they prove together. Pure.

use seedling_lab::probe;
use serde::Serialize;
use serde_json::{Value, json};

#[derive(Debug, Serialize)]
pub struct Run {
    /// Of the whole bring-up.
    pub seconds: f64,
    /// Why it did not grow, or what the prober misses.
    pub wrong: Option<String>,
    /// None, if it never came so far.
    pub probed: Option<probe::Report>,
}

impl Run {
    /// A run without the prober's report proves nothing, however it ended.
    pub fn new(seconds: f64, ended: Result<(), String>, probed: Option<probe::Report>) -> Self {
        let kept = match &probed {
            Some(report) if report.kept_everything() => Ok(()),
            Some(report) => Err(report.summary()),
            None => Err("the prober left no report".into()),
        };
        Self { seconds: (seconds * 10.0).round() / 10.0, wrong: ended.and(kept).err(), probed }
    }
}

/// And the summary in words.
pub fn results(runs: &[Run]) -> (Value, Vec<String>) {
    let reports: Vec<_> = runs.iter().filter_map(|r| r.probed.as_ref()).collect();
    let sum = |of: fn(&probe::Report) -> usize| reports.iter().map(|r| of(r)).sum::<usize>();
    let requests = sum(|r| r.requests.values().sum());
    let (failed, resent) = (sum(|r| r.failures.len()), sum(|r| r.resent));
    let (acknowledged, lost, stale) =
        (sum(|r| r.acknowledged), sum(|r| r.lost.len()), sum(|r| r.stale.len()));
    let well = runs.iter().filter(|r| r.wrong.is_none()).count();
    let without_failure = reports.iter().filter(|r| r.failures.is_empty()).count();
    let longest = reports.iter().map(|r| r.longest_window()).max().unwrap_or_default();
    let summary = format!(
        "{well} of {} bring-ups lost nothing, and in {without_failure} no request failed: {requests} requests, {failed} failed \
         (longest time {longest} ms), {resent} sent again because the server named them as not looked at; {acknowledged} writes \
         acknowledged, {lost} lost, {stale} stale reads",
        runs.len(),
    );
    let results = json!({
        "bringUps": runs.len(),
        "well": well,
        "withoutFailure": without_failure,
        "requests": requests,
        "failed": failed,
        "longestWindowMillis": longest,
        "resent": resent,
        "acknowledged": acknowledged,
        "lost": lost,
        "stale": stale,
        "runs": runs,
    });
    (results, vec![summary])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probed(failures: usize) -> probe::Report {
        let failure = probe::Failure {
            unix_millis: 0,
            second: 1.0,
            took_millis: 5,
            verb: probe::Verb::Get,
            number: None,
            error: "x".into(),
            stage: String::new(),
        };
        probe::Report {
            acknowledged: 500,
            resent: 1,
            requests: [("create".to_string(), 500)].into(),
            failures: vec![failure; failures],
            clusters: ["a".to_string()].into(),
            writes: seedling_lab::history::Writes { operations: 1, keys: 1, judged: 1, ..Default::default() },
            ..probe::Report::default()
        }
    }

    #[test]
    fn a_run_that_proves_nothing_is_not_well() {
        let lost = probe::Report { lost: vec![1], ..probed(0) };
        let runs = [
            Run::new(40.0, Ok(()), Some(probed(0))),
            Run::new(41.0, Ok(()), Some(probed(2))),
            Run::new(42.0, Ok(()), None),
            Run::new(43.0, Err("no progress".into()), Some(probed(0))),
            Run::new(44.0, Ok(()), Some(lost)),
        ];
        let (results, summary) = results(&runs);
        let counts = ["bringUps", "well", "withoutFailure", "requests", "failed", "resent", "lost"]
            .map(|k| results[k].as_u64());
        assert_eq!(counts, [5, 2, 3, 2000, 2, 4, 1].map(Some));
        assert!(summary[0].starts_with("2 of 5 bring-ups lost nothing"), "{summary:?}");
    }
}
