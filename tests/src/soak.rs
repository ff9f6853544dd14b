//! Hours of renewals, new revisions and new masters: does anything grow? Pure.

use seedling_lab::probe;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What is looked at after each deed, by name: a program's memory is that of the node where it has most.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sample {
    pub minute: f64,
    pub memory_bytes: BTreeMap<String, u64>,
    pub open_files: BTreeMap<String, u64>,
    /// Of each operand, in the API and on the disks of masters.
    pub revisions: BTreeMap<String, u64>,
    /// `/var/log` of each node, and the helper's logs.
    pub log_bytes: BTreeMap<String, u64>,
    /// etcd's database.
    pub database_bytes: BTreeMap<String, u64>,
}

/// What was done, and how the cluster and its clients took it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Round {
    pub deed: String,
    /// Until the cluster was whole again.
    pub seconds: f64,
    pub wrong: Option<String>,
    pub probed: Option<probe::Report>,
}

/// What a quantity may grow to from the second quarter to the last: a share more, and so much besides.
struct Bound {
    what: &'static str,
    of: fn(&Sample) -> &BTreeMap<String, u64>,
    share: f64,
    besides: f64,
    most: f64,
}

const MIB: f64 = 1048576.0;
/// Caches fill for a while, and a kubelet that was started anew has less: so the quarters are compared, not the looks. Logs grow until they are
/// cut, so they have a limit only: five files of 100 MiB that an API server keeps, and as much again.
const BOUNDS: [Bound; 5] = [
    grows("memory", |s| &s.memory_bytes, 1.25, 24.0 * MIB),
    grows("open files", |s| &s.open_files, 1.25, 32.0),
    grows("database", |s| &s.database_bytes, 1.5, 32.0 * MIB),
    Bound { most: 12.0, ..grows("revisions", |s| &s.revisions, f64::INFINITY, 0.0) },
    Bound { most: 1024.0 * MIB, ..grows("logs", |s| &s.log_bytes, f64::INFINITY, 0.0) },
];

const fn grows(
    what: &'static str,
    of: fn(&Sample) -> &BTreeMap<String, u64>,
    share: f64,
    besides: f64,
) -> Bound {
    Bound { what, of, share, besides, most: f64::INFINITY }
}

/// Everything that grew beyond its bounds, in words.
pub fn grown(samples: &[Sample]) -> Vec<String> {
    let mut found = vec![];
    for bound in &BOUNDS {
        let names: std::collections::BTreeSet<_> =
            samples.iter().flat_map(|s| (bound.of)(s).keys()).collect();
        for name in names {
            let series: Vec<f64> =
                samples.iter().filter_map(|s| (bound.of)(s).get(name)).map(|v| *v as f64).collect();
            if let Some((before, after)) = bound.broken_by(&series) {
                found.push(format!("{} of {name}: {before:.0}, then {after:.0}", bound.what));
            }
        }
    }
    found
}

impl Bound {
    fn broken_by(&self, series: &[f64]) -> Option<(f64, f64)> {
        let quarter = series.len() / 4;
        let last = median(&series[series.len() - quarter.max(1).min(series.len())..])?;
        if last > self.most {
            return Some((self.most, last));
        }
        // Too few looks say nothing about growth.
        let early = median(series.get(quarter..2 * quarter).filter(|_| quarter >= 2)?)?;
        (self.share.is_finite() && last > early * self.share + self.besides).then_some((early, last))
    }
}

fn median(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// For the report, and the summary in words.
pub fn results(minutes: f64, rounds: &[Round], samples: &[Sample]) -> (Value, Vec<String>) {
    let reports: Vec<_> = rounds.iter().filter_map(|r| r.probed.as_ref()).collect();
    let sum = |of: fn(&probe::Report) -> usize| reports.iter().map(|r| of(r)).sum::<usize>();
    let wrong: Vec<_> =
        rounds.iter().filter_map(|r| Some(format!("{}: {}", r.deed, r.wrong.as_deref()?))).collect();
    let grown = grown(samples);
    let (requests, failed) = (sum(|r| r.requests.values().sum()), sum(|r| r.failures.len()));
    let (acknowledged, lost) = (sum(|r| r.acknowledged), sum(|r| r.lost.len()));
    let summary = format!(
        "{minutes:.0} minutes: {} times something was done to the cluster, {} times it or its clients took it badly; {requests} requests, \
         {failed} failed; {acknowledged} writes acknowledged, {lost} lost; {} things grew",
        rounds.len(),
        wrong.len(),
        grown.len(),
    );
    let results = json!({
        "minutes": minutes, "rounds": rounds, "samples": samples, "wrong": wrong, "grown": grown,
        "requests": requests, "failed": failed, "acknowledged": acknowledged, "lost": lost,
    });
    (results, vec![summary])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(memory: impl Fn(u64) -> u64, revisions: u64) -> Vec<Sample> {
        let look = |n: u64| Sample {
            minute: n as f64,
            memory_bytes: [("kubelet".to_string(), memory(n) << 20)].into(),
            revisions: [("etcd".to_string(), revisions)].into(),
            ..Sample::default()
        };
        (0..40).map(look).collect()
    }

    #[test]
    fn a_leak_is_found_and_a_full_cache_is_none() {
        assert!(grown(&samples(|n| 100 + n.min(8) * 10, 5)).is_empty());
        assert!(grown(&samples(|n| 100 + (n % 5) * 10, 5)).is_empty());
        let leak = grown(&samples(|n| 100 + n * 4, 5));
        assert!(leak.len() == 1 && leak[0].starts_with("memory of kubelet"), "{leak:?}");
        assert_eq!(grown(&samples(|_| 100, 13)), ["revisions of etcd: 12, then 13"]);
        assert!(grown(&samples(|n| n * 50, 5)[..6]).is_empty(), "too few to say");
        assert!(grown(&[]).is_empty());
    }
}
