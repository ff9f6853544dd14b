//! Side by side: Seedling, and kubeadm with its defaults and with our settings, joins one after the other and all at once. How long a
//! bring-up takes and what it costs, and what the grown cluster costs at rest.
//!
//! In: a release in the cache. Out: raw runs, and reports of their medians. Every contestant gets the same machines (three
//! masters from one node image, the same containerd and the same images, already on their disks), boots them from the same
//! helper, and is watched by the same code; the clock starts when the helper listens and the machines are switched on.

mod conditions;
pub(crate) mod create;
mod kubeadm;
mod observe;
mod ours;
mod processes;
mod report;
mod rest;
mod rest_report;
mod usage;

pub(crate) use conditions::Conditions;
pub(crate) use kubeadm::store::Store;
pub(crate) use report::{Failed, Report};
pub(crate) use rest::Rest;
pub(crate) use rest_report::RestReport;

use anyhow::{Context, Result};
use observe::{Cluster, Milestones};
use seedling_lab::Labs;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

/// Labs whose name starts so are ours to remove.
const PREFIX: &str = "bench-up-";
/// What `seedling_lab::up` says right before it switches the machines on.
const SWITCH_ON: &str = "helper listens";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Contestant {
    Ours,
    /// Its defaults, masters joining one after the other, as its documentation says
    KubeadmSerial,
    /// Its defaults, masters joining at the same time
    KubeadmParallel,
    /// Our settings, one after the other
    KubeadmTunedSerial,
    /// Our settings, at the same time
    KubeadmTunedParallel,
}

impl Contestant {
    pub(crate) const ALL: [Self; 5] = [
        Self::Ours,
        Self::KubeadmSerial,
        Self::KubeadmParallel,
        Self::KubeadmTunedSerial,
        Self::KubeadmTunedParallel,
    ];

    /// Of its labs: short, since the kernel's names for networks are.
    fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::KubeadmSerial => "serial",
            Self::KubeadmParallel => "parallel",
            Self::KubeadmTunedSerial => "tuned-serial",
            Self::KubeadmTunedParallel => "tuned-parallel",
        }
    }

    /// For people.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Ours => "seedling",
            Self::KubeadmSerial => "kubeadm, serial joins",
            Self::KubeadmParallel => "kubeadm, parallel joins",
            Self::KubeadmTunedSerial => "kubeadm tuned, serial joins",
            Self::KubeadmTunedParallel => "kubeadm tuned, parallel joins",
        }
    }

    fn tuned(self) -> bool {
        matches!(self, Self::KubeadmTunedSerial | Self::KubeadmTunedParallel)
    }

    fn parallel(self) -> bool {
        matches!(self, Self::KubeadmParallel | Self::KubeadmTunedParallel)
    }

    /// How masters joined makes no difference once they have.
    pub(crate) fn rests(self) -> bool {
        self == Self::Ours || self.parallel()
    }
}

/// What all runs share.
pub(crate) struct Field {
    pub labs: Labs,
    pub release_dir: PathBuf,
    pub release: seedling_types::ReleaseInfo,
    /// The program that is `lab up` and the helper.
    pub seedling: PathBuf,
    /// The release's images, under kubeadm's names as well.
    pub kubeadm_store: Store,
    /// One log a run.
    pub logs: PathBuf,
}

/// One bring-up; times are seconds since the machines were switched on.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Run {
    pub contestant: Contestant,
    pub first_readyz: f64,
    /// All three masters vote, nobody learns. In ours the bootstrap member is still there: everything works without it.
    pub three_voters: f64,
    pub everything_works: f64,
    /// When the commands that grew it had ended: `lab up`, or the last `kubeadm join`.
    pub commands_ended: f64,
    /// Of all machines of the lab, until everything worked.
    pub cpu_seconds: f64,
    pub cpu_seconds_per_node: BTreeMap<String, f64>,
    /// Of what still ran then, by program.
    pub cpu_seconds_per_program: BTreeMap<String, f64>,
    /// Of everything else on this machine in the same time, the helper and this program included.
    pub other_cpu_seconds: f64,
    /// Working set in bytes: without page cache that could be dropped at once.
    pub peak_memory_per_node: BTreeMap<String, u64>,
}

/// Grows a cluster, watches it, and removes it; before that, lets it rest for so many minutes.
pub(crate) async fn run(
    field: &Field,
    contestant: Contestant,
    number: usize,
    rest_minutes: u32,
) -> Result<(Run, Option<Rest>)> {
    let lab = format!("{PREFIX}{}-{number}", contestant.name());
    let outcome: Result<_> = async {
        let run = grow(field, contestant, &lab).await?;
        if rest_minutes == 0 {
            return Ok((run, None));
        }
        let rest = rest::measure(contestant, &field.labs.open(&lab)?, rest_minutes).await;
        Ok((run, Some(rest)))
    }
    .await;
    let log = field.logs.join(format!("{lab}.log"));
    let outcome = outcome.with_context(|| format!("{lab}; its log is {}", log.display()));
    remove_labs(&field.labs).await?;
    outcome
}

async fn grow(field: &Field, contestant: Contestant, lab: &str) -> Result<Run> {
    match contestant {
        Contestant::Ours => {
            let (cluster, growth) = ours::switch_on(field, lab).await?;
            watch(contestant, cluster, growth.ended()).await
        }
        _ => {
            let (cluster, growth) = kubeadm::switch_on(field, lab, contestant.tuned()).await?;
            watch(contestant, cluster, growth.grow(contestant.parallel())).await
        }
    }
}

async fn watch(
    contestant: Contestant,
    cluster: Cluster,
    growth: impl Future<Output = Result<()>>,
) -> Result<Run> {
    let clock = cluster.clock;
    let busy_before = usage::machine_cpu_seconds();
    let watched = async {
        let milestones = cluster.until_everything_works().await?;
        let busy = usage::machine_cpu_seconds() - busy_before;
        anyhow::Ok((milestones, busy, usage::by_program(&cluster.lab)))
    };
    let grown = async {
        growth.await?;
        Ok(since(clock))
    };
    let ((milestones, busy, programs), commands_ended) = tokio::try_join!(watched, grown)?;
    let Milestones { first_readyz, three_voters, everything_works, usage } = milestones;
    Ok(Run {
        contestant,
        first_readyz,
        three_voters,
        everything_works,
        commands_ended,
        cpu_seconds: rounded(usage.cpu_seconds),
        cpu_seconds_per_node: usage.cpu_per_node.into_iter().map(|(node, s)| (node, rounded(s))).collect(),
        cpu_seconds_per_program: programs,
        other_cpu_seconds: rounded((busy - usage.cpu_seconds).max(0.0)),
        peak_memory_per_node: usage.peak_memory,
    })
}

/// Removes every lab of a benchmark, this one's or one's that was killed. `SEEDLING_KEEP_LAB` keeps them to look at.
pub(crate) async fn remove_labs(labs: &Labs) -> Result<()> {
    if std::env::var_os("SEEDLING_KEEP_LAB").is_some() {
        return Ok(());
    }
    let folder = labs.state.join("labs");
    let Ok(entries) = std::fs::read_dir(&folder) else { return Ok(()) };
    // By directory: a `lab up` that was killed early has left no record.
    for name in entries.filter_map(|e| e.ok()?.file_name().into_string().ok()) {
        if name.starts_with(PREFIX) {
            seedling_lab::down(labs, &name, &|_| {}).await?;
        }
    }
    Ok(())
}

fn since(clock: Instant) -> f64 {
    rounded(clock.elapsed().as_secs_f64())
}

/// To hundredths: more would be noise.
fn rounded(seconds: f64) -> f64 {
    (seconds * 100.0).round() / 100.0
}
