//! The verdict: what was lost, what failed, when, and what the bring-up was at.

use super::{Log, Request, Stages, Verb};
use crate::history::{self, Writes};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Failures that lie closer together than this are one outage.
const ONE_WINDOW: i64 = 1000;
/// Of the writes that were due: with fewer acknowledged, nothing was proved. Most of a bring-up may be an outage, and a machine with
/// fifteen times more to do than it has cores answered one write a second.
const ACKNOWLEDGED_AT_LEAST: f64 = 0.02;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// From the first `readyz` to the end.
    pub seconds: f64,
    /// By verb; a watch counts when it ends.
    pub requests: BTreeMap<String, usize>,
    /// By verb, in milliseconds, of those that succeeded.
    pub slowest: BTreeMap<String, i64>,
    pub acknowledged: usize,
    /// So many must be, or the run proves nothing.
    pub demanded: usize,
    /// Sent again because the server named them as not looked at: no failure, and no retry of one.
    pub resent: usize,
    /// Answers without what was acknowledged before they were asked for.
    pub stale: Vec<Stale>,
    /// Acknowledged, and not there at the end.
    pub lost: Vec<u32>,
    /// Acknowledged, and never delivered by the watch.
    pub unwatched: Vec<u32>,
    pub failures: Vec<Failure>,
    pub windows: Vec<Window>,
    /// The uids of kube-system: more than one is more than one cluster.
    pub clusters: BTreeSet<String>,
    /// Whether what rivals saw of shared objects could have happened one operation after the other.
    pub writes: Writes,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    pub unix_millis: i64,
    /// Since the first `readyz`.
    pub second: f64,
    pub took_millis: i64,
    pub verb: Verb,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    pub error: String,
    pub stage: String,
}

/// A read that had not heard of an acknowledged write.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stale {
    pub second: f64,
    pub verb: Verb,
    pub missing: Vec<u32>,
    pub stage: String,
}

/// A time in which requests failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Window {
    pub second: f64,
    pub millis: i64,
    pub failures: usize,
    pub stage: String,
}

pub fn judge(log: &Log, stages: &Stages) -> Report {
    let second = |at: i64| (at - log.from) as f64 / 1000.0;
    let acknowledged: BTreeSet<u32> = (log.requests.iter())
        .filter(|r| r.verb == Verb::Create && r.error.is_none())
        .filter_map(|r| r.number)
        .collect();
    let of = |verb: Verb| log.requests.iter().filter(move |r| r.verb == verb);
    let slowest = |verb| of(verb).filter(|r| r.error.is_none()).map(|r| r.took).max().unwrap_or_default();
    let mut failed: Vec<&Request> = log.requests.iter().filter(|r| r.error.is_some()).collect();
    failed.sort_by_key(|r| r.at);
    Report {
        seconds: second(log.to),
        requests: Verb::ALL.map(|v| (v.as_str().into(), of(v).count())).into(),
        slowest: [Verb::Create, Verb::Get, Verb::List].map(|v| (v.as_str().into(), slowest(v))).into(),
        lost: acknowledged.difference(&log.present).copied().collect(),
        unwatched: acknowledged.difference(&log.watched).copied().collect(),
        acknowledged: acknowledged.len(),
        demanded: ((second(log.to) * f64::from(log.rate) * ACKNOWLEDGED_AT_LEAST) as usize).max(1),
        resent: log.resent,
        stale: (log.requests.iter().filter(|r| !r.missing.is_empty()))
            .map(|r| Stale {
                second: second(r.at),
                verb: r.verb,
                missing: r.missing.clone(),
                stage: stages.at(r.at + r.took),
            })
            .collect(),
        windows: windows(&failed, log.from, stages),
        failures: (failed.iter())
            .map(|r| Failure {
                unix_millis: r.at,
                second: second(r.at),
                took_millis: r.took,
                verb: r.verb,
                number: r.number,
                error: r.error.clone().unwrap_or_default(),
                // A request fails at its end; a watch may have begun long before.
                stage: stages.at(r.at + r.took),
            })
            .collect(),
        clusters: log.clusters.clone(),
        writes: history::judge(&log.operations),
    }
}

/// A watch is broken at one moment: when it ends.
fn span(request: &Request) -> (i64, i64) {
    let end = request.at + request.took;
    if request.verb == Verb::Watch { (end, end) } else { (request.at, end) }
}

fn windows(failed: &[&Request], from: i64, stages: &Stages) -> Vec<Window> {
    let mut spans: Vec<_> = failed.iter().map(|r| span(r)).collect();
    spans.sort_unstable();
    let mut merged: Vec<(i64, i64, usize)> = Vec::new();
    for (start, end) in spans {
        match merged.last_mut() {
            Some((_, last, count)) if start <= *last + ONE_WINDOW => {
                *last = end.max(*last);
                *count += 1;
            }
            _ => merged.push((start, end, 1)),
        }
    }
    (merged.into_iter())
        .map(|(start, end, failures)| Window {
            second: (start - from) as f64 / 1000.0,
            millis: end - start,
            failures,
            stage: stages.at(start),
        })
        .collect()
}

impl Report {
    /// Enough was written, nothing that was acknowledged was ever missing, and there was one cluster all the time.
    pub fn kept_everything(&self) -> bool {
        self.wrong().is_empty()
    }

    /// What is wrong, each in a few words. A request that failed is not: it is only counted.
    pub fn wrong(&self) -> Vec<String> {
        let some = |count: usize, what: &str| (count > 0).then(|| format!("{count} {what}"));
        let (acknowledged, demanded) = (self.acknowledged, self.demanded.max(1));
        let few = format!("only {acknowledged} writes acknowledged, {demanded} are the least");
        [
            (acknowledged < demanded).then_some(few),
            some(self.lost.len(), "lost"),
            some(self.stale.len(), "STALE READS"),
            some(self.unwatched.len(), "never told by the watch"),
            (self.clusters.len() != 1).then(|| format!("{} CLUSTERS", self.clusters.len())),
        ]
        .into_iter()
        .flatten()
        .chain(self.writes.wrong())
        .collect()
    }

    pub fn longest_window(&self) -> i64 {
        self.windows.iter().map(|w| w.millis).max().unwrap_or_default()
    }

    pub fn summary(&self) -> String {
        let asked: usize = self.requests.values().sum();
        let mut text = format!(
            "probed for {:.1}s: {asked} requests, {} failed (longest window {} ms), {} sent again as not looked at, \
             {} writes acknowledged, {} lost; {}",
            self.seconds,
            self.failures.len(),
            self.longest_window(),
            self.resent,
            self.acknowledged,
            self.lost.len(),
            self.writes,
        );
        let wrong = self.wrong();
        if !wrong.is_empty() {
            text += &format!("; WRONG: {}", wrong.join(", "));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Action, Answer, Operation};

    fn request(verb: Verb, at: i64, took: i64, number: u32, error: Option<&str>) -> Request {
        let number = (verb != Verb::Watch).then_some(number);
        Request { verb, at, took, number, error: error.map(str::to_string), missing: vec![] }
    }

    fn log(requests: Vec<Request>, watched: &[u32], present: &[u32]) -> Log {
        Log {
            from: 1000,
            to: 2_000,
            rate: 20,
            resent: 0,
            requests,
            watched: watched.iter().copied().collect(),
            present: present.iter().copied().collect(),
            clusters: ["a".to_string()].into(),
            operations: vec![shared(Action::Create(1), Answer::Done)],
        }
    }

    fn shared(action: Action, answer: Answer) -> Operation {
        Operation { key: 1, worker: 0, sent: 0, answered: 1, action, answer }
    }

    #[test]
    fn only_an_acknowledged_write_can_be_lost() {
        use Verb::Create;
        let ok = |n| request(Create, 2000, 5, n, None);
        let failed = |n| request(Create, 2000, 5, n, Some("reset"));
        let cases: [(Log, &[u32], &[u32]); 5] = [
            (log(vec![ok(1), ok(2)], &[1, 2], &[1, 2]), &[], &[]),
            (log(vec![ok(1), ok(2)], &[1, 2], &[2]), &[1], &[]),
            (log(vec![ok(1), ok(3), failed(2)], &[1, 3], &[1, 3]), &[], &[]),
            // Not acknowledged, but there: the answer was lost, not the write.
            (log(vec![ok(1), ok(3), failed(2)], &[1, 2, 3], &[1, 2, 3]), &[], &[]),
            (log(vec![ok(1), ok(2)], &[1], &[1, 2]), &[], &[2]),
        ];
        for (log, lost, unwatched) in cases {
            let report = judge(&log, &Stages::default());
            assert_eq!((&report.lost[..], &report.unwatched[..]), (lost, unwatched), "{log:?}");
            assert_eq!(report.kept_everything(), lost.is_empty() && unwatched.is_empty());
        }
    }

    #[test]
    fn failures_close_together_are_one_window() {
        let failures = vec![
            request(Verb::Create, 2000, 100, 1, Some("e")),
            request(Verb::Get, 2050, 400, 1, Some("e")),
            request(Verb::List, 3400, 10, 1, Some("e")),
            request(Verb::Get, 9000, 30, 1, Some("e")),
            // Opened long ago, broken at 20 s.
            request(Verb::Watch, 1500, 19_500, 0, Some("e")),
        ];
        let stages =
            Stages { bootkube: vec![(1000, "early".into()), (20_000, "late".into())], milestones: vec![] };
        let report = judge(&log(failures, &[], &[]), &stages);
        let seen: Vec<_> =
            report.windows.iter().map(|w| (w.second, w.millis, w.failures, w.stage.as_str())).collect();
        assert_eq!(seen, [(1.0, 1410, 3, "early"), (8.0, 30, 1, "early"), (20.0, 0, 1, "late")]);
        assert_eq!(report.failures.len(), 5);
        assert_eq!(report.failures[0].stage, "late", "the watch is judged by its end");
    }

    /// Nothing lost, and yet each of these proves nothing, or the opposite.
    #[test]
    fn a_run_must_prove_something() {
        let write = |n| request(Verb::Create, 1500, 5, n, None);
        let well = || log(vec![write(1), write(2)], &[1, 2], &[1, 2]);
        let wrong = |log: &Log| judge(log, &Stages::default()).wrong().join(", ");
        assert_eq!(wrong(&well()), "");
        let cases = [
            (log(vec![], &[], &[]), "only 0 writes acknowledged, 1 are the least"),
            (Log { to: 61_000, ..well() }, "only 2 writes acknowledged, 24 are the least"),
            (Log { clusters: BTreeSet::new(), ..well() }, "0 CLUSTERS"),
            (Log { operations: vec![], ..well() }, "no operation on shared objects was answered"),
            (
                Log { operations: vec![shared(Action::Delete, Answer::Done)], ..well() },
                "1 objects NOT LINEARIZABLE",
            ),
            (Log { clusters: ["a", "b"].map(String::from).into(), ..well() }, "2 CLUSTERS"),
        ];
        for (log, want) in cases {
            assert_eq!(wrong(&log), want);
        }
    }

    /// There at the end, but in between a read had not heard of it: two histories, or a cache that lags.
    #[test]
    fn a_stale_read_is_wrong_even_if_nothing_is_lost() {
        for verb in [Verb::Get, Verb::List] {
            let read = Request { missing: vec![1], ..request(verb, 1600, 5, 1, None) };
            let writes = [1, 2].map(|n| request(Verb::Create, 1500, 5, n, None));
            let log = log(writes.into_iter().chain([read]).collect(), &[1, 2], &[1, 2]);
            let report = judge(&log, &Stages::default());
            assert_eq!((report.lost.len(), report.failures.len(), report.stale.len()), (0, 0, 1));
            assert_eq!(report.wrong(), ["1 STALE READS"]);
            assert!(!report.kept_everything() && report.summary().contains("STALE"), "{}", report.summary());
        }
    }
}
