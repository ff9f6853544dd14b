//! `seedling probe`: a client that forgives nothing, beside a bring-up or a running cluster.

use super::lab::{Format, Name, Output};
use super::up::install_complete;
use anyhow::{Result, bail};
use clap::Args;
use seedling_lab::probe::{self, Options, Report, Stages, judge};
use seedling_lab::{Lab, Labs};
use seedling_steps::{Condition, Probe, wait_for, write_atomic};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;
use tokio::sync::watch;

/// When neither the first answer nor the end comes.
const NO_PROGRESS: Duration = Duration::from_secs(600);

#[derive(Args)]
pub struct ProbeArgs {
    #[command(flatten)]
    lab: Name,
    /// A cluster that is not a lab; failures are then reported without the installation's stage
    #[arg(long, value_name = "FILE", conflicts_with = "name")]
    kubeconfig: Option<PathBuf>,
    /// When to stop: when the installation is complete, or after a time like 90s or 5m
    #[arg(long, default_value = "install-complete", value_name = "install-complete|TIME")]
    until: Until,
    /// Writes per second; the same number of reads, and of operations on objects shared by several clients
    #[arg(long, default_value_t = RATE, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rate: u32,
    #[command(flatten)]
    output: Output,
}

/// Enough to fall into a gap of a tenth of a second, and no burden to a cluster that is growing.
pub const RATE: u32 = 20;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Until {
    InstallComplete,
    Time(Duration),
}

impl FromStr for Until {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "install-complete" {
            return Ok(Until::InstallComplete);
        }
        let units = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];
        let parsed = units.iter().find_map(|(unit, millis)| {
            let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
            Some(Duration::from_millis(number.checked_mul(*millis)?))
        });
        parsed
            .map(Until::Time)
            .ok_or_else(|| format!("{text:?} is neither install-complete nor a time like 90s"))
    }
}

pub async fn run(args: ProbeArgs) -> Result<ExitCode> {
    let lab = match &args.kubeconfig {
        Some(_) => None,
        None => Some(Labs::from_env().open(&args.lab.name)?),
    };
    let kubeconfig = args.kubeconfig.or_else(|| lab.as_ref().map(Lab::kubeconfig)).unwrap_or_default();
    let until = async {
        tokio::select! {
            () = super::log::interrupted() => Ok(()),
            ended = end(&args.until, &kubeconfig) => ended,
        }
    };
    let (ended, log) = beside(&kubeconfig, args.rate, until).await;
    ended?;
    let report = report(&log?, lab.as_ref())?;
    match args.output.output {
        Format::Json => println!("{}", serde_json::to_string_pretty(&report)?),
        Format::Table => print(&report),
    }
    Ok(if report.kept_everything() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn end(until: &Until, kubeconfig: &Path) -> Result<()> {
    if let Until::Time(time) = until {
        tokio::time::sleep(*time).await;
        return Ok(());
    }
    let client = seedling_cluster::connect(Some(kubeconfig)).await?;
    let condition = Condition::new("the install to complete", NO_PROGRESS, "seedling lab status");
    let complete =
        wait_for(&condition, Duration::from_secs(1), async || match install_complete(&client).await {
            Ok(Some(_)) => Probe::Met(()),
            Ok(None) => Probe::Unmet("no ClusterVersion yet".into()),
            Err(e) => Probe::Unmet(format!("{e:#}")),
        });
    Ok(complete.await?)
}

/// The prober at work beside something else, until that ends.
pub async fn beside<T>(
    kubeconfig: &Path,
    rate: u32,
    work: impl Future<Output = T>,
) -> (T, Result<probe::Log, probe::ProbeError>) {
    let (stop, stopped) = watch::channel(false);
    let options = Options { kubeconfig: kubeconfig.into(), rate, first_answer_within: NO_PROGRESS };
    let work = async {
        let done = work.await;
        stop.send_replace(true);
        done
    };
    tokio::join!(work, probe::run(options, stopped))
}

fn report(log: &probe::Log, lab: Option<&Lab>) -> Result<Report> {
    if log.requests.is_empty() {
        bail!("the API was never ready: nothing was probed");
    }
    Ok(judge(log, &lab.map_or_else(Stages::default, Lab::stages)))
}

/// Into the lab's directory, and one line for people.
pub fn write_report(log: &probe::Log, lab: &Lab) -> Result<Report> {
    let report = report(log, Some(lab))?;
    let path = lab.dir.join("probe.json");
    write_atomic(&path, serde_json::to_vec_pretty(&report)?, 0o644)?;
    if !report.writes.red.is_empty() {
        write_atomic(&lab.probe_history(), serde_json::to_vec(&log.operations)?, 0o644)?;
    }
    eprintln!("{}; see {}", report.summary(), path.display());
    Ok(report)
}

fn print(report: &Report) {
    println!("{}", report.summary());
    for (verb, count) in &report.requests {
        let slowest = report.slowest.get(verb).map(|ms| format!(", slowest {ms} ms")).unwrap_or_default();
        println!("{verb:<7} {count:>6}{slowest}");
    }
    if !report.failures.is_empty() {
        println!("{:>8} {:>8}  {:<7} ERROR; STAGE", "SECOND", "MILLIS", "VERB");
    }
    for failure in &report.failures {
        let (second, took, verb) = (failure.second, failure.took_millis, failure.verb.as_str());
        println!("{second:>8.2} {took:>8}  {verb:<7} {}; {}", failure.error, failure.stage);
    }
    for stale in &report.stale {
        println!(
            "{:>8.2} stale    {:<7} without {:?}; {}",
            stale.second,
            stale.verb.as_str(),
            stale.missing,
            stale.stage
        );
    }
    if !report.lost.is_empty() {
        println!("lost: {:?}", report.lost);
    }
    report.writes.red.iter().for_each(|bad| print!("{bad}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_a_time_or_the_install() {
        let time = |ms| Ok(Until::Time(Duration::from_millis(ms)));
        for (text, want) in [
            ("install-complete", Ok(Until::InstallComplete)),
            ("90s", time(90_000)),
            ("5m", time(300_000)),
            ("250ms", time(250)),
        ] {
            assert_eq!(text.parse::<Until>(), want);
        }
        for text in ["", "s", "9", "-1s", "1.5m", "installed"] {
            assert!(text.parse::<Until>().is_err(), "{text:?}");
        }
    }
}
