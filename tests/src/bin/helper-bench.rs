//! `make helper-bench`: the helper beside dnsmasq, BIND, Kea, tftpd-hpa, nginx and HAProxy, on the machine this runs on, in network
//! namespaces of its own. Prints a table, writes target/bench/helper.json and, with `--report`, the report that is committed.

#[path = "../helper_bench/mod.rs"]
mod helper_bench;

use anyhow::{Context, Result};
use clap::Parser;
use helper_bench::{Outcome, RACES};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Parser)]
struct Args {
    /// How often each takes part in each race; figures are medians
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..))]
    runs: u8,
    /// Only these races
    races: Vec<String>,
    /// Write helper.json into this directory as well, as it is committed (docs/reports)
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let out = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bench");
    std::fs::create_dir_all(&out)?;
    let seedling = std::env::current_exe()?.with_file_name("seedling");
    let mut outcomes: BTreeMap<&str, Outcome> = BTreeMap::new();
    let chosen =
        RACES.iter().filter(|race| args.races.is_empty() || args.races.iter().any(|name| name == race.name));
    for race in chosen {
        outcomes.insert(race.name, race.run(&seedling, args.runs, &|line| eprintln!("{line}"))?);
    }
    println!("{:<24}{:>14}{:>14}  {:<12}{:>7}", "race", "seedling", "best other", "", "ratio");
    for (name, o) in &outcomes {
        println!("{name:<24}{:>14.0}{:>14.0}  {:<12}{:>7.2}  {}", o.ours, o.peer, o.best, o.ratio, o.unit);
    }
    let worst =
        outcomes.iter().min_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio)).context("no race of that name")?;
    let report = json!({
        "ours": worst.1.ours, "peer": worst.1.peer, "ratio": worst.1.ratio, "worst": worst.0, "runs": args.runs,
        "conditions": {
            "machines": helper_bench::MACHINES,
            "processors": std::thread::available_parallelism()?.get(),
            "revision": revision(),
            "how": "each server alone, in a namespace, configured by `helper export`; medians; more is better; the ratio is that of the worst race",
        },
        "races": outcomes,
    });
    let text = serde_json::to_string_pretty(&report)? + "\n";
    for dir in std::iter::once(&out).chain(&args.report) {
        std::fs::write(dir.join("helper.json"), &text).with_context(|| dir.display().to_string())?;
    }
    Ok(())
}

fn revision() -> Option<String> {
    let output = std::process::Command::new("git").args(["rev-parse", "--short", "HEAD"]).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_string()).filter(|text| !text.is_empty())
}
