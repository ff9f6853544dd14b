//! `seedling probe`: a client that forgives nothing, beside a bring-up or a running cluster.

use super::lab::{Name, Output};
use anyhow::Result;
use clap::Args;
use seedling_lab::probe::{ProbeError, RATE, Report, beside, install_complete};
use seedling_lab::{Lab, Labs};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

#[derive(Args)]
pub(crate) struct ProbeArgs {
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

pub(crate) async fn run(args: ProbeArgs) -> Result<ExitCode> {
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
    let report = log?.report(lab.as_ref())?;
    args.output.print(&serde_json::to_value(&report)?, || print(&report));
    Ok(if report.kept_everything() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn end(until: &Until, kubeconfig: &Path) -> Result<(), ProbeError> {
    match until {
        Until::Time(time) => {
            tokio::time::sleep(*time).await;
            Ok(())
        }
        Until::InstallComplete => install_complete(kubeconfig).await,
    }
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
