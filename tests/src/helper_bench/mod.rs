//! The helper against the servers that it stands in for, one job at a time: each runs alone on the same machine, in a namespace, with the
//! configuration that `helper export` writes, and is asked by the same clients.
//!
//! In: the binary. Out: for every race the figures of each rival (more is better), and the CPU time that it took.

mod configs;
mod load;
mod rivals;
mod site;

use anyhow::{Context, Result};
pub(crate) use configs::serve as serve_configs;
use rivals::Rival;
use serde::Serialize;
use site::Site;
use std::collections::BTreeMap;
use std::path::Path;

/// At once.
pub(crate) const MACHINES: usize = 1000;

/// One job: who does it, how it is measured. More is better.
pub(crate) struct Race {
    pub name: &'static str,
    pub unit: &'static str,
    rivals: &'static [Rival],
    /// Behind the balancer there is one web server, elsewhere a thousand machines ask.
    balancer: bool,
    /// With network boot, for those who fetch its files.
    boot: bool,
    measure: fn(&Site) -> Result<f64>,
}

pub(crate) const RACES: &[Race] = &[
    Race {
        name: "dns",
        unit: "queries/s",
        rivals: &[Rival::Ours, Rival::Dnsmasq, Rival::Bind],
        balancer: false,
        boot: false,
        measure: |site| load::dns(site, MACHINES),
    },
    Race {
        name: "dhcp",
        unit: "exchanges/s",
        rivals: &[Rival::Ours, Rival::Kea, Rival::Dnsmasq],
        balancer: false,
        boot: false,
        measure: load::dhcp,
    },
    Race {
        name: "tftp",
        unit: "MB/s",
        rivals: &[Rival::Ours, Rival::TftpdHpa],
        balancer: false,
        boot: true,
        measure: load::tftp,
    },
    Race {
        name: "http-large-file",
        unit: "MB/s",
        rivals: &[Rival::Ours, Rival::Nginx],
        balancer: false,
        boot: true,
        measure: load::http_large,
    },
    Race {
        name: "http-ignition-at-once",
        unit: "machines/s",
        rivals: &[Rival::Ours, Rival::Nginx],
        balancer: false,
        boot: false,
        measure: |site| load::ignition(site, MACHINES),
    },
    Race {
        name: "balancer-large-file",
        unit: "MB/s",
        rivals: &[Rival::Ours, Rival::Haproxy],
        balancer: true,
        boot: false,
        measure: load::balancer_large,
    },
    Race {
        name: "balancer-connections",
        unit: "connections/s",
        rivals: &[Rival::Ours, Rival::Haproxy],
        balancer: true,
        boot: false,
        measure: load::balancer_connections,
    },
    Race {
        name: "machine-configs-at-once",
        unit: "machines/s",
        rivals: &[Rival::ConfigServer, Rival::ConfigNginx],
        balancer: false,
        boot: false,
        measure: configs::fetch,
    },
];

#[derive(Serialize)]
pub(crate) struct Outcome {
    pub unit: &'static str,
    pub ours: f64,
    /// The best of the others.
    pub peer: f64,
    pub best: &'static str,
    pub ratio: f64,
    /// Of everybody: each run, and the server's CPU seconds in it.
    pub runs: BTreeMap<&'static str, Vec<Run>>,
}

#[derive(Clone, Copy, Serialize)]
pub(crate) struct Run {
    pub figure: f64,
    pub cpu_seconds: f64,
}

impl Race {
    /// Everybody in turn, `runs` times.
    pub(crate) fn run(&self, seedling: &Path, runs: u8, say: &dyn Fn(&str)) -> Result<Outcome> {
        let site = Site::new(MACHINES)?;
        rivals::prepare(&site, MACHINES)?;
        let _behind = if self.balancer { Some(rivals::backend(&site)?) } else { None };
        let machines = (!self.balancer).then_some(MACHINES);
        let mut all: BTreeMap<&'static str, Vec<Run>> = BTreeMap::new();
        for round in 1..=runs {
            for &rival in self.rivals {
                let server = rivals::start(&site, seedling, rival, machines, self.boot)?;
                let before = server.cpu_seconds()?;
                let figure = (self.measure)(&site).with_context(|| {
                    let events = std::fs::read_to_string(site.path("state/events.jsonl")).unwrap_or_default();
                    let telling =
                        |line: &&str| line.contains("\"limited\"") || line.contains("\"restarted\"");
                    let said: Vec<_> = events.lines().filter(telling).take(5).collect();
                    format!("{}, {}: {}", self.name, rival.name(), said.join("\n"))
                })?;
                let run = Run { figure, cpu_seconds: server.cpu_seconds()? - before };
                say(&format!(
                    "{} {round}: {} {figure:.0} {} ({:.1} CPU s)",
                    self.name,
                    rival.name(),
                    self.unit,
                    run.cpu_seconds
                ));
                all.entry(rival.name()).or_default().push(run);
            }
        }
        outcome(self.unit, all)
    }
}

fn outcome(unit: &'static str, runs: BTreeMap<&'static str, Vec<Run>>) -> Result<Outcome> {
    let median = |of: &[Run]| {
        let mut figures: Vec<f64> = of.iter().map(|run| run.figure).collect();
        figures.sort_by(f64::total_cmp);
        figures[figures.len() / 2]
    };
    let ours = median(runs.get(Rival::Ours.name()).context("we did not run")?);
    let others = runs.iter().filter(|(name, _)| **name != Rival::Ours.name());
    let best = others.map(|(name, of)| (*name, median(of))).max_by(|a, b| a.1.total_cmp(&b.1));
    let (best, peer) = best.context("nobody else ran")?;
    Ok(Outcome { unit, ours, peer, best, ratio: ours / peer, runs })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_best_of_the_others_counts_by_its_median() {
        let runs = |figures: [f64; 3]| figures.map(|figure| Run { figure, cpu_seconds: 1.0 }).to_vec();
        let all = BTreeMap::from([
            ("seedling", runs([90.0, 300.0, 100.0])),
            ("bind", runs([50.0, 80.0, 1000.0])),
            ("dnsmasq", runs([79.0, 79.0, 79.0])),
        ]);
        let outcome = outcome("queries/s", all).unwrap();
        assert_eq!((outcome.ours, outcome.peer, outcome.best, outcome.ratio), (100.0, 80.0, "bind", 1.25));
    }
}
