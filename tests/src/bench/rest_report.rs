//! The cost at rest, side by side: for people as tables, for programs as JSON.

use super::rest::{Cost, HELPER};
use super::{Conditions, Contestant, Rest, rounded};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RestReport {
    /// CPU seconds a minute.
    pub ours: Option<f64>,
    /// The most frugal other contestant's.
    pub peer: Option<f64>,
    pub peer_name: Option<Contestant>,
    /// ours / peer; at most 1.1 is wanted.
    pub ratio: Option<f64>,
    /// ours / each.
    pub ratios: BTreeMap<Contestant, f64>,
    pub memory_ratios: BTreeMap<Contestant, f64>,
    pub runs: Vec<Rest>,
    pub conditions: Conditions,
}

impl RestReport {
    pub(crate) fn new(runs: Vec<Rest>, conditions: Conditions) -> Self {
        let ours = runs.iter().find(|r| r.contestant == Contestant::Ours);
        let others: Vec<_> = runs.iter().filter(|r| r.contestant != Contestant::Ours).collect();
        let against = |field: fn(&Rest) -> f64| -> BTreeMap<_, _> {
            let ratio = |r: &&Rest| Some((r.contestant, rounded(field(ours?) / field(r))));
            others.iter().filter_map(ratio).collect()
        };
        let peer = others.iter().min_by(|a, b| a.cpu_seconds_per_minute.total_cmp(&b.cpu_seconds_per_minute));
        let ratios = against(|r| r.cpu_seconds_per_minute);
        Self {
            ours: ours.map(|r| r.cpu_seconds_per_minute),
            peer: peer.map(|r| r.cpu_seconds_per_minute),
            peer_name: peer.map(|r| r.contestant),
            ratio: peer.and_then(|r| ratios.get(&r.contestant).copied()),
            ratios,
            memory_ratios: against(|r| r.memory_bytes as f64),
            runs,
            conditions,
        }
    }

    /// As README.md quotes it.
    pub(crate) fn summary(&self) -> Vec<String> {
        let minutes = self.runs.iter().map(|r| r.minutes).fold(0.0, f64::max);
        let mut lines = vec![
            format!(
                "| three masters at rest, {minutes:.0} minutes | CPU seconds a minute | memory | Seedling / it: CPU | memory |"
            ),
            "|---|---|---|---|---|".to_string(),
        ];
        for run in &self.runs {
            let ratio = |of: &BTreeMap<Contestant, f64>| {
                of.get(&run.contestant).map(|r| format!("{r:.2}")).unwrap_or_default()
            };
            lines.push(format!(
                "| {} | {:.1} s | {} MB | {} | {} |",
                title(run.contestant),
                run.cpu_seconds_per_minute,
                run.memory_bytes >> 20,
                ratio(&self.ratios),
                ratio(&self.memory_ratios)
            ));
        }
        lines
    }

    fn rows(
        &self,
        f: &mut fmt::Formatter<'_>,
        of: fn(&Rest) -> &BTreeMap<String, Cost>,
        least: f64,
    ) -> fmt::Result {
        let names: BTreeSet<_> = self.runs.iter().flat_map(|r| of(r).keys()).collect();
        let cost = |name: &str| self.runs.iter().map(|r| of(r).get(name).cloned()).collect::<Vec<_>>();
        let most =
            |name: &str| cost(name).iter().flatten().map(|c| c.cpu_seconds_per_minute).fold(0.0, f64::max);
        let mut names: Vec<_> = names.into_iter().filter(|name| most(name) >= least).collect();
        names.sort_by(|a, b| most(b).total_cmp(&most(a)));
        for name in names {
            write!(f, "{name:<34}")?;
            for cost in cost(name) {
                match cost {
                    Some(c) => {
                        write!(f, " {:>8.2} s {:>6} MB", c.cpu_seconds_per_minute, c.memory_bytes >> 20)?
                    }
                    None => write!(f, " {:>10} {:>9}", "", "")?,
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

fn title(contestant: Contestant) -> &'static str {
    match contestant {
        Contestant::Ours => "seedling",
        Contestant::KubeadmSerial | Contestant::KubeadmParallel => "kubeadm",
        Contestant::KubeadmTunedSerial | Contestant::KubeadmTunedParallel => "kubeadm tuned",
    }
}

impl fmt::Display for RestReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<34}", "AT REST, CPU a minute, memory")?;
        for run in &self.runs {
            write!(f, " {:>20}", title(run.contestant))?;
        }
        writeln!(f)?;
        write!(f, "{:<34}", format!("all machines and the {HELPER}"))?;
        for run in &self.runs {
            write!(f, " {:>8.2} s {:>6} MB", run.cpu_seconds_per_minute, run.memory_bytes >> 20)?;
        }
        writeln!(f)?;
        self.rows(f, |r| &r.machines, 0.0)?;
        writeln!(f, "by program, from 0.05 s a minute on:")?;
        self.rows(f, |r| &r.processes, 0.05)?;
        let busy = self.runs.iter().map(|r| r.other_cpu_seconds_per_minute).fold(0.0, f64::max);
        let ratio = self.ratio.map(|r| format!("; ours / the most frugal: {r:.2}")).unwrap_or_default();
        write!(f, "everything else on this machine used at most {busy:.1} s a minute{ratio}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::report::tests::conditions;

    fn rest(contestant: Contestant, cpu: f64) -> Rest {
        let cost = |cpu_seconds_per_minute| Cost {
            cpu_seconds_per_minute,
            memory_bytes: 3 << 20,
            processes: BTreeMap::new(),
        };
        Rest {
            contestant,
            minutes: 5.0,
            cpu_seconds_per_minute: cpu,
            memory_bytes: 1 << 30,
            other_cpu_seconds_per_minute: 0.1,
            machines: [("master-0".to_string(), cost(cpu))].into(),
            processes: [("kubelet".to_string(), cost(cpu)), ("agetty".to_string(), cost(0.01))].into(),
        }
    }

    #[test]
    fn the_peer_is_the_most_frugal() {
        let runs = vec![
            rest(Contestant::Ours, 11.0),
            rest(Contestant::KubeadmParallel, 20.0),
            rest(Contestant::KubeadmTunedParallel, 10.0),
        ];
        let report = RestReport::new(runs, conditions());
        assert_eq!((report.ours, report.peer, report.ratio), (Some(11.0), Some(10.0), Some(1.1)));
        assert_eq!(report.ratios[&Contestant::KubeadmParallel], 0.55);
        let table = report.to_string();
        assert!(table.contains("kubelet") && !table.contains("agetty"), "{table}");
        assert_eq!(report.summary()[4], "| kubeadm tuned | 10.0 s | 1024 MB | 1.10 | 1.00 |");
    }
}
