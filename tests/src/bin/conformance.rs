//! `make conformance`: the real Kubernetes conformance suite on a lab of its own. Writes docs/reports/conformance.json when all of it
//! was run, else target/conformance/report.json, and leaves no lab behind, however it ends.

#[path = "../conformance/mod.rs"]
mod conformance;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use conformance::report::{Facts, fill};
use conformance::suite::{self, Run, SHARES, Seen};
use conformance::{Programs, images, lab};
use seedling_e2e::{Lab, run};
use seedling_lab::Labs;
use seedling_observe::report::Report;
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};

#[derive(Parser)]
struct Args {
    /// Only a tenth of the tests: 0 to 9, or `today`: another one every day
    #[arg(long, value_parser = share, conflicts_with = "focus")]
    tenth: Option<u64>,
    /// Only tests with these words in their names; may be given again
    #[arg(long, value_name = "WORDS")]
    focus: Vec<String>,
    /// A lab that was grown with the test images, which stays
    #[arg(long, value_name = "NAME")]
    lab: Option<String>,
    /// Tests side by side [default: two a core, and two]
    #[arg(long)]
    processes: Option<usize>,
    /// Minutes for the parallel tests, and again for the serial ones; what is not through then counts as missed
    #[arg(long, default_value_t = 60)]
    within: u64,
    /// Build suite and images, and stop
    #[arg(long)]
    build: bool,
}

fn share(text: &str) -> Result<u64, String> {
    let today = || std::time::UNIX_EPOCH.elapsed().map_or(0, |d| d.as_secs() / 86_400 % SHARES);
    match text {
        "today" => Ok(today()),
        number => number.parse().ok().filter(|n| *n < SHARES).ok_or(format!("0 to {}, or today", SHARES - 1)),
    }
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let own = args.lab.is_none().then(|| Lab { name: "conformance".into() });
    let work = tokio::task::spawn_blocking(move || work(&args));
    let outcome = tokio::select! {
        outcome = work => outcome?,
        _ = interrupt.recv() => Err(anyhow::anyhow!("interrupted")),
        _ = terminate.recv() => Err(anyhow::anyhow!("terminated")),
    };
    drop(own); // removes the lab
    match outcome {
        Ok(green) => Ok(if green { ExitCode::SUCCESS } else { ExitCode::FAILURE }),
        Err(e) => {
            eprintln!("Error: {e:#}");
            // What works on in its thread ends with us.
            std::process::exit(1)
        }
    }
}

fn work(args: &Args) -> Result<bool> {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    let labs = Labs::from_env();
    let (source, cache) = (tree.join("release"), labs.cache.clone());
    let payload = cache.join("release");
    let info = seedling_release::load(&payload).context("run `seedling release build` first")?;
    let programs = Programs::build(&source, &cache, &info.kubernetes_version)?;
    let images = images::ensure(&cache, &programs, &payload)?;
    if args.build {
        return Ok(true);
    }

    let listed = suite::list(&programs)?;
    let wanted = |name: &&String| {
        args.tenth.is_none_or(|share| suite::share_of(name) == share)
            && (args.focus.is_empty() || args.focus.iter().any(|words| name.contains(words)))
    };
    let asked: Vec<_> = listed.iter().filter(wanted).cloned().collect();
    ensure!(!asked.is_empty(), "no conformance test has such a name");
    let selection = match (args.tenth, args.focus.as_slice()) {
        (Some(share), _) => format!("share {share} of {SHARES}"),
        (None, []) => "all".into(),
        (None, focus) => focus.join(" or "),
    };
    let report = Report::new("conformance", &command(), args.tenth, json!({}));

    let name = args.lab.clone().unwrap_or("conformance".into());
    // Not removed when this ends: whoever asked for a lab of his own keeps it, and `main` removes ours.
    let lab = std::mem::ManuallyDrop::new(Lab { name });
    match args.lab {
        Some(_) => lab::is_usable(&lab, &labs)?,
        None => lab::grow(&lab, &lab::release(&cache, &payload, &images)?)?,
    }
    let nodes = lab::fetch(&lab)?;
    let out = tree.join("target/conformance");
    fs::create_dir_all(&out)?;
    let kubeconfig = run(&mut lab.lab(&["kubeconfig"]))?;
    let kubectl = suite::kubectl(&payload);
    let runner = Run {
        programs: &programs,
        kubeconfig: Path::new(kubeconfig.trim()),
        kubectl: &kubectl,
        nodes,
        out: &out,
    };
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let (serial, parallel): (Vec<_>, Vec<_>) = asked.iter().partition(|name| suite::is_serial(name));
    let within = Duration::from_secs(60 * args.within);
    let timed = |what: &str, names: &[&String], processes| -> Result<(Seen, Duration)> {
        let started = Instant::now();
        Ok((runner.run(what, names, processes, within)?, started.elapsed()))
    };
    let (mut seen, parallel_took) = timed("parallel", &parallel, args.processes.unwrap_or(2 * cores + 2))?;
    let (serial_seen, serial_took) = timed("serial", &serial, 1)?;
    seen.extend(serial_seen.into_iter().filter(|(name, _)| suite::is_serial(name)));

    let verdict = suite::judge(&asked, &seen);
    let facts = Facts {
        kubernetes: &programs.version,
        listed: listed.len(),
        asked: asked.len(),
        selection: &selection,
        nodes,
        components: &info.components,
        parallel: parallel_took,
        serial: serial_took,
    };
    let report = fill(report, &facts, &verdict);
    let whole = asked.len() == listed.len();
    let path = if whole { tree.join("docs/reports/conformance.json") } else { out.join("report.json") };
    report.write(&path)?;
    for (name, message) in &verdict.failed {
        println!("FAILED {name}\n  {message}");
    }
    for name in &verdict.missed {
        println!("MISSED {name}");
    }
    println!("{}\n{}", report.summary.join("\n"), path.display());
    Ok(verdict.green())
}

fn command() -> String {
    std::iter::once("conformance".to_string()).chain(std::env::args().skip(1)).collect::<Vec<_>>().join(" ")
}
