//! `make helper-bench`: the helper beside dnsmasq, BIND, Kea, tftpd-hpa, nginx and HAProxy, on the machine this runs on, in network
//! namespaces of its own. Prints a table, writes target/bench/helper.json and, with `--report`, the report that is committed.

#[path = "../helper_bench/mod.rs"]
mod helper_bench;

use anyhow::{Context, Result};
use clap::Parser;
use helper_bench::{Outcome, RACES};
use seedling_observe::Report;
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
    /// Be a machine-config server that takes part in a race
    #[arg(long, value_name = "DIR", hide = true)]
    serve_configs: Option<PathBuf>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    if let Some(dir) = &args.serve_configs {
        return helper_bench::serve_configs(dir);
    }
    let out = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bench");
    std::fs::create_dir_all(&out)?;
    let seedling = std::env::current_exe()?.with_file_name("seedling");
    let report = Report::new("helper", "make helper-bench", None, json!({}));
    let mut outcomes: BTreeMap<&str, Outcome> = BTreeMap::new();
    let chosen =
        RACES.iter().filter(|race| args.races.is_empty() || args.races.iter().any(|name| name == race.name));
    for race in chosen {
        outcomes.insert(race.name, race.run(&seedling, args.runs, &|line| eprintln!("{line}"))?);
    }
    let lines = table(&outcomes);
    println!("{}", lines.join("\n"));
    let worst =
        outcomes.iter().min_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio)).context("no race of that name")?;
    let results = json!({
        "ours": worst.1.ours, "peer": worst.1.peer, "ratio": worst.1.ratio, "worst": worst.0, "runs": args.runs,
        "conditions": {
            "machines": helper_bench::MACHINES,
            "how": "each server alone, in a namespace, configured by `helper export`; medians; more is better; the ratio is that of the worst race",
        },
        "races": outcomes,
    });
    std::fs::write(out.join("helper.json"), serde_json::to_string_pretty(&results)? + "\n")?;
    if let Some(dir) = &args.report {
        Report { results, ..report }.summarised(lines).write(&dir.join("helper.json"))?;
    }
    Ok(())
}

/// As Markdown.
fn table(outcomes: &BTreeMap<&str, Outcome>) -> Vec<String> {
    let head = ["| race | Seedling | best other | ratio |", "|---|---|---|---|"];
    let row = |(name, o): (&&str, &Outcome)| {
        format!("| {name}, {} | {:.0} | {:.0} ({}) | {:.2} |", o.unit, o.ours, o.peer, o.best, o.ratio)
    };
    head.map(String::from).into_iter().chain(outcomes.iter().map(row)).collect()
}
