//! `make test-all`: `make test` and everything that takes too long for it, one part after the other. Writes docs/reports/test-all.json: what
//! was last seen of each part, and at which commit. `--today` does one of the long parts, another one every day, as `make test` does.

use anyhow::{Result, bail};
use clap::Parser;
use seedling_observe::Report;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

#[derive(Parser)]
struct Args {
    /// Only these; without a name, all
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(PARTS.iter().map(|p| p.name)))]
    parts: Vec<String>,
    /// The part of this day, which is as short as it can be; no report
    #[arg(long, conflicts_with = "parts")]
    today: bool,
    #[arg(long, default_value = "docs/reports/test-all.json")]
    report: PathBuf,
}

struct Part {
    name: &'static str,
    command: &'static str,
    /// For one day of `make test`; None: it is in there anyway, or cannot be made so short.
    daily: Option<&'static str>,
}

const DIST_SHORT: &str = "make dist && scripts/dist-check.sh package lab";
const TENTH: &str = "make conformance CONFORMANCE='--tenth today'";
const PARTS: [Part; 22] = [
    part("test", "make test", None),
    part("fresh", "scripts/fresh-root.sh --whole bookworm && scripts/fresh-root.sh --whole trixie", None),
    part("e2e", "make e2e", Some("make e2e E2E='quorum chaos'")),
    part("dist", "make dist-check", Some(DIST_SHORT)),
    part("recover", "make e2e E2E=recover", Some("make e2e E2E=recover")),
    part("restore", "make e2e E2E=restore", None),
    part("workers", "make e2e E2E=workers", Some("make e2e E2E=workers")),
    part("stack", "make e2e E2E=stack", Some("make e2e E2E=stack")),
    part("qemu", "make e2e E2E=qemu", Some("make e2e E2E=qemu")),
    part("bare-metal", "make build && scripts/bare-metal.sh", None),
    part("libvirt", "make release && scripts/libvirt.sh", None),
    part("step", "make e2e E2E=step", None),
    part("helper-bench", "make helper-bench", None),
    part("prober", "make prober", None),
    part("chaos", "make chaos", None),
    part("conformance", "make conformance", Some(TENTH)),
    part("mirrors", "make e2e E2E=mirrors", Some("make e2e E2E=mirrors")),
    part("others", "make e2e E2E=others", Some("make e2e E2E=others")),
    part("helper-unit", "make helper-unit", Some("make helper-unit")),
    part("fuzz", "make fuzz FUZZ_SECONDS=20", Some("make fuzz FUZZ_SECONDS=20")),
    part("bench", "make bench BENCH='--runs 3 --report docs/reports'", None),
    part("soak", "make soak", None),
];

const fn part(name: &'static str, command: &'static str, daily: Option<&'static str>) -> Part {
    Part { name, command, daily }
}

/// What was last seen of a part.
#[derive(Serialize, Deserialize)]
struct Seen {
    command: String,
    revision: String,
    dirty: bool,
    date: String,
    passed: bool,
    seconds: u64,
}

fn main() -> Result<()> {
    let args = Args::parse();
    if args.today {
        let days = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() / 86400;
        let (name, command) = of_day(days);
        println!("{name}, the part of this day: {command}");
        return if run(command)? { Ok(()) } else { bail!("{name} failed: {command}") };
    }
    let mut failed = vec![];
    for part in PARTS.iter().filter(|p| args.parts.is_empty() || args.parts.iter().any(|a| a == p.name)) {
        println!("\n== {}: {}", part.name, part.command);
        let report = Report::new("test-all", "make test-all", None, json!({}));
        let start = Instant::now();
        let passed = run(part.command)?;
        let seconds = start.elapsed().as_secs();
        let Report { revision, date, dirty, .. } = report.clone();
        let seen = Seen { command: part.command.into(), revision, dirty, date, passed, seconds };
        // Written after each: hours are not lost to the last.
        record(report, part.name, seen, &args.report)?;
        if !passed {
            failed.push(part.name);
        }
    }
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

fn of_day(days: u64) -> (&'static str, &'static str) {
    let short: Vec<_> = PARTS.iter().filter_map(|p| Some((p.name, p.daily?))).collect();
    short[days as usize % short.len()]
}

fn run(command: &str) -> Result<bool> {
    Ok(Command::new("bash").args(["-euo", "pipefail", "-c", command]).status()?.success())
}

/// Beside what is known of the other parts.
fn record(mut report: Report, name: &str, seen: Seen, path: &Path) -> Result<()> {
    let before = Report::read(path).ok();
    let mut parts: BTreeMap<String, Seen> =
        before.map(|b| serde_json::from_value(b.results)).transpose()?.unwrap_or_default();
    parts.insert(name.into(), seen);
    let line = |(name, seen): (&String, &Seen)| {
        let how = if seen.passed { "passed" } else { "FAILED" };
        format!("{name}: {how} in {} min, {}", seen.seconds.div_ceil(60), &seen.date[..10])
    };
    report.summary = parts.iter().map(line).collect();
    report.results = json!(parts);
    Ok(report.write(path)?)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn every_short_part_has_its_day() {
        let days: std::collections::BTreeSet<_> = (100..111).map(|day| of_day(day).0).collect();
        assert_eq!(
            days.into_iter().collect::<Vec<_>>(),
            [
                "conformance",
                "dist",
                "e2e",
                "fuzz",
                "helper-unit",
                "mirrors",
                "others",
                "qemu",
                "recover",
                "stack",
                "workers"
            ]
        );
    }

    #[test]
    fn what_was_seen_of_other_parts_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("test-all.json");
        for (name, passed) in [("dist", true), ("chaos", false), ("dist", false)] {
            let report = Report::new("test-all", "x", None, json!({}));
            let date = "2026-11-17T00:00:00Z".to_string();
            let seen =
                Seen { command: "x".into(), revision: "r".into(), dirty: false, date, passed, seconds: 61 };
            record(report, name, seen, &path).unwrap();
        }
        let lines = Report::read(&path).unwrap().summary;
        assert_eq!(lines, ["chaos: FAILED in 2 min, 2026-11-17", "dist: FAILED in 2 min, 2026-11-17"]);
    }
}
