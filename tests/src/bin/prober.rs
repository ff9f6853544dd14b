//! `make prober`: bring-ups one after the other, each beside the prober, and one report of all of them.

use anyhow::{Result, bail};
use clap::Parser;
use seedling_e2e::prober::{Run, results};
use seedling_e2e::{Lab, run};
use seedling_observe::Report;
use serde_json::Value;
use std::path::PathBuf;
use std::time::Instant;

#[derive(Parser)]
struct Args {
    #[arg(long, default_value_t = 20)]
    runs: usize,
    #[arg(long, default_value = "docs/reports/prober.json")]
    report: PathBuf,
    /// Name of the lab: made for each bring-up, and removed
    #[arg(long, default_value = "prober")]
    name: String,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let mut report = Report::new("prober", &format!("make prober RUNS={}", args.runs), None, Value::Null);
    let mut runs = Vec::new();
    while runs.len() < args.runs {
        runs.push(bring_up(&Lab { name: args.name.clone() }));
        // Written after each: an hour of them is not lost to the last.
        (report.results, report.summary) = results(&runs);
        report.write(&args.report)?;
        println!("{:>3}  {}", runs.len(), report.summary.join(" "));
    }
    let wrong: Vec<_> = runs.iter().filter_map(|r| r.wrong.as_deref()).collect();
    if runs.is_empty() || !wrong.is_empty() {
        bail!("{} of {} bring-ups are not well: {}", wrong.len(), runs.len(), wrong.join("; "));
    }
    Ok(())
}

fn bring_up(lab: &Lab) -> Run {
    let started = Instant::now();
    let ended = run(&mut lab.lab(&["up", "--probe"])).map(drop).map_err(|e| format!("{e:#}"));
    let seconds = started.elapsed().as_secs_f64();
    let probed = std::fs::read(lab.dir().join("probe.json")).ok();
    Run::new(seconds, ended, probed.and_then(|json| serde_json::from_slice(&json).ok()))
}
