//! Medians and ratios: for people as a table, for programs as JSON.

use super::{Conditions, Contestant, Run, rounded};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    /// Seconds until everything works, medians.
    pub ours: Option<f64>,
    /// The quickest other contestant's.
    pub peer: Option<f64>,
    pub peer_name: Option<Contestant>,
    /// ours / peer; at most 1 is wanted.
    pub ratio: Option<f64>,
    /// Processor time, ours / the same peer's; at most 1.3 is wanted.
    pub cpu_ratio: Option<f64>,
    /// ours / each.
    pub ratios: BTreeMap<Contestant, Ratios>,
    pub cpu_seconds: BTreeMap<Contestant, f64>,
    /// Bytes.
    pub peak_memory_per_node: BTreeMap<Contestant, BTreeMap<String, u64>>,
    pub medians: BTreeMap<Contestant, Medians>,
    pub runs: Vec<Run>,
    /// Bring-ups that did not come to an end; in no median.
    pub failed: Vec<Failed>,
    pub conditions: Conditions,
}

#[derive(Debug, Serialize)]
pub(crate) struct Failed {
    pub contestant: Contestant,
    pub run: usize,
    pub error: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Ratios {
    pub time: f64,
    pub cpu: f64,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Medians {
    pub first_readyz: f64,
    pub three_voters: f64,
    pub everything_works: f64,
    pub commands_ended: f64,
    pub runs: usize,
}

impl Report {
    pub(crate) fn new(runs: Vec<Run>, failed: Vec<Failed>, conditions: Conditions) -> Self {
        let mut medians = BTreeMap::new();
        let mut cpu_seconds = BTreeMap::new();
        let mut peak_memory_per_node = BTreeMap::new();
        for contestant in Contestant::ALL {
            let own: Vec<&Run> = runs.iter().filter(|r| r.contestant == contestant).collect();
            let of = |field: fn(&Run) -> f64| median(own.iter().map(|r| field(r)).collect());
            let (
                Some(first_readyz),
                Some(three_voters),
                Some(everything_works),
                Some(commands_ended),
                Some(cpu),
            ) = (
                of(|r| r.first_readyz),
                of(|r| r.three_voters),
                of(|r| r.everything_works),
                of(|r| r.commands_ended),
                of(|r| r.cpu_seconds),
            )
            else {
                continue; // it did not run
            };
            let count = own.len();
            medians.insert(
                contestant,
                Medians { first_readyz, three_voters, everything_works, commands_ended, runs: count },
            );
            cpu_seconds.insert(contestant, cpu);
            peak_memory_per_node.insert(contestant, memory(&own));
        }
        let ours = medians.get(&Contestant::Ours).map(|m: &Medians| m.everything_works);
        let others = medians.iter().filter(|(c, _)| **c != Contestant::Ours);
        let quickest = others.min_by(|(_, a), (_, b)| a.everything_works.total_cmp(&b.everything_works));
        let quickest = quickest.map(|(c, m)| (*c, m.everything_works));
        let ratios: BTreeMap<_, _> = (medians.iter())
            .filter_map(|(contestant, m)| {
                let cpu = rounded(cpu_seconds.get(&Contestant::Ours)? / cpu_seconds.get(contestant)?);
                Some((*contestant, Ratios { time: rounded(ours? / m.everything_works), cpu }))
            })
            .filter(|(contestant, _)| *contestant != Contestant::Ours)
            .collect();
        let of_peer: Option<&Ratios> = quickest.and_then(|(c, _)| ratios.get(&c));
        Self {
            ours,
            peer: quickest.map(|(_, seconds)| seconds),
            peer_name: quickest.map(|(contestant, _)| contestant),
            ratio: of_peer.map(|r| r.time),
            cpu_ratio: of_peer.map(|r| r.cpu),
            ratios,
            cpu_seconds,
            peak_memory_per_node,
            medians,
            runs,
            failed,
            conditions,
        }
    }

    fn failures(&self, contestant: Contestant) -> usize {
        self.failed.iter().filter(|f| f.contestant == contestant).count()
    }

    /// As README.md quotes it.
    pub(crate) fn summary(&self) -> Vec<String> {
        let runs = self.medians.values().map(|m| m.runs).max().unwrap_or_default();
        let mut lines = vec![
            format!(
                "| bring-up of three masters, medians of {runs} | everything works after | CPU | Seedling / it: time | CPU |"
            ),
            "|---|---|---|---|---|".to_string(),
        ];
        for (contestant, m) in &self.medians {
            let cpu = self.cpu_seconds.get(contestant).copied().unwrap_or_default();
            let ratio = self.ratios.get(contestant);
            let of =
                |field: fn(&Ratios) -> f64| ratio.map(|r| format!("{:.2}", field(r))).unwrap_or_default();
            lines.push(format!(
                "| {} | {:.1} s | {cpu:.0} s | {} | {} |",
                contestant.title(),
                m.everything_works,
                of(|r| r.time),
                of(|r| r.cpu)
            ));
        }
        let failed =
            Contestant::ALL.into_iter().map(|c| (c.title(), self.failures(c))).filter(|(_, n)| *n > 0);
        lines.extend(failed.map(|(title, n)| format!("| {title} | {n} failed | | | |")));
        lines
    }
}

fn memory(runs: &[&Run]) -> BTreeMap<String, u64> {
    let mut by_node: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (node, peak) in runs.iter().flat_map(|r| &r.peak_memory_per_node) {
        by_node.entry(node.clone()).or_default().push(*peak as f64);
    }
    by_node.into_iter().filter_map(|(node, peaks)| Some((node, median(peaks)? as u64))).collect()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[middle]),
        _ => Some(rounded((values[middle - 1] + values[middle]) / 2.0)),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<30} {:>8} {:>9} {:>11} {:>8} {:>14}  OURS/IT: TIME   CPU",
            "BRING-UP, 3 masters", "/readyz", "3 voters", "everything", "CPU", "memory/master"
        )?;
        for (contestant, m) in &self.medians {
            let cpu = self.cpu_seconds.get(contestant).copied().unwrap_or_default();
            let peaks = self.peak_memory_per_node.get(contestant);
            // The bootstrap node's is in the report, too: it is there for a minute.
            let masters = peaks.into_iter().flatten().filter(|(node, _)| node.starts_with("master"));
            let largest = masters.map(|(_, peak)| *peak).max().unwrap_or_default();
            let ratio = self.ratios.get(contestant).map(|r| format!("{:>13.2} {:>5.2}", r.time, r.cpu));
            writeln!(
                f,
                "{:<30} {:>6.1} s {:>7.1} s {:>9.1} s {:>6.1} s {:>11} MB  {}",
                contestant.title(),
                m.first_readyz,
                m.three_voters,
                m.everything_works,
                cpu,
                largest >> 20,
                ratio.unwrap_or_default()
            )?;
        }
        for failed in &self.failed {
            let error = failed.error.lines().last().unwrap_or_default();
            writeln!(f, "{}: run {} failed: {error}", failed.contestant.title(), failed.run)?;
        }
        let c = &self.conditions;
        let runs = self.medians.values().map(|m| m.runs).max().unwrap_or_default();
        write!(
            f,
            "medians of {runs}; {} cores, {} GB, Linux {}; images are {}; the clock runs {}",
            c.cores,
            c.memory_bytes >> 30,
            c.kernel,
            c.images,
            c.clock
        )
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn run(contestant: Contestant, seconds: f64) -> Run {
        Run {
            contestant,
            first_readyz: 1.0,
            three_voters: 2.0,
            everything_works: seconds,
            commands_ended: seconds,
            cpu_seconds: 9.0,
            cpu_seconds_per_node: BTreeMap::new(),
            cpu_seconds_per_program: BTreeMap::new(),
            other_cpu_seconds: 1.0,
            peak_memory_per_node: [("master-0".to_string(), 5 << 20)].into(),
        }
    }

    pub(crate) fn conditions() -> Conditions {
        Conditions {
            date: String::new(),
            cores: 2,
            memory_bytes: 1 << 34,
            kernel: "6".into(),
            masters: 3,
            workers: 0,
            images: "there",
            clock: "now",
            versions: BTreeMap::new(),
        }
    }

    #[test]
    fn ratios_are_of_medians_and_the_peer_is_the_quickest() {
        let seconds = [
            (Contestant::Ours, [30.0, 99.0, 20.0]),
            (Contestant::KubeadmSerial, [60.0, 50.0, 70.0]),
            (Contestant::KubeadmTunedParallel, [40.0, 41.0, 39.0]),
        ];
        let runs = seconds.into_iter().flat_map(|(c, all)| all.map(|s| run(c, s))).collect();
        let lost =
            Failed { contestant: Contestant::KubeadmParallel, run: 2, error: "member not started".into() };
        let report = Report::new(runs, vec![lost], conditions());
        assert_eq!((report.ours, report.peer, report.ratio), (Some(30.0), Some(40.0), Some(0.75)));
        assert_eq!(report.peer_name, Some(Contestant::KubeadmTunedParallel));
        assert_eq!(report.ratios[&Contestant::KubeadmSerial], Ratios { time: 0.5, cpu: 1.0 });
        let table = report.to_string();
        assert!(
            table.contains("kubeadm, serial joins") && table.contains("run 2 failed: member not started"),
            "{table}"
        );
        assert_eq!(report.summary().len(), 6);
    }

    #[test]
    fn nobody_runs_against_nobody() {
        let report = Report::new(vec![run(Contestant::Ours, 30.0)], vec![], conditions());
        assert_eq!((report.ours, report.peer, report.ratio), (Some(30.0), None, None));
    }

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        for (values, want) in [(vec![], None), (vec![3.0], Some(3.0)), (vec![4.0, 1.0, 2.0, 9.0], Some(3.0))]
        {
            assert_eq!(median(values), want);
        }
    }
}
