//! `make bench`: how long a bring-up takes and what a grown cluster costs at rest, Seedling's and kubeadm's, on the machine this runs on.
//! Prints tables, writes target/bench/{bring-up,rest,create-ignition-configs}.json and, with `--report`, the reports that are committed.
//! Leaves no lab behind, however it ends.

#[path = "../bench/mod.rs"]
mod bench;

use anyhow::{Context, Result, bail};
use bench::{Conditions, Contestant, Failed, Field, Report, RestReport, Store};
use clap::Parser;
use seedling_lab::Labs;
use seedling_observe::Report as Committed;
use serde::Serialize;
use serde_json::Value;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use tokio::signal::unix::{SignalKind, signal};

#[derive(Parser)]
struct Args {
    /// Bring-ups of each contestant; figures are medians
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..))]
    runs: u8,
    /// Only these contestants
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Contestant>,
    /// Quiet minutes over which the cost of a grown cluster is taken, after its last bring-up and one minute to settle; 0: not at all
    #[arg(long, default_value_t = 5)]
    rest_minutes: u32,
    /// Write bring-up.json and at-rest.json into this directory as well, as they are committed (docs/reports)
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Only `create ignition-configs`, no bring-up
    #[arg(long)]
    create: bool,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    // The one crypto provider, before anything speaks TLS.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let out = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bench");
    fs::create_dir_all(out.join("logs"))?;
    let out = out.canonicalize()?;
    // Two at a time would measure each other.
    let lock = File::create(out.join(".lock"))?;
    lock.try_lock().context("another benchmark runs")?;

    let labs = Labs::from_env();
    create(&labs, &out)?;
    if args.create {
        return Ok(());
    }
    bench::remove_labs(&labs).await?;
    let outcome = tokio::select! {
        outcome = compare(&args, &labs, &out) => outcome,
        outcome = interrupted() => outcome,
    };
    bench::remove_labs(&labs).await?;
    outcome
}

/// How long the assets take, into create-ignition-configs.json.
fn create(labs: &Labs, out: &Path) -> Result<()> {
    let release_dir = labs.cache.join("release");
    let release = seedling_release::load(&release_dir).context("run `seedling release build` first")?;
    let seedling = PathBuf::from(seedling_e2e::seedling().get_program()).canonicalize()?;
    let report = bench::create::measure(&seedling, &release_dir, 5, Conditions::now(&release))?;
    fs::write(out.join("create-ignition-configs.json"), serde_json::to_vec_pretty(&report)?)?;
    println!("{report}");
    Ok(())
}

async fn compare(args: &Args, labs: &Labs, out: &Path) -> Result<()> {
    let release_dir = labs.cache.join("release");
    let release = seedling_release::load(&release_dir).context("run `seedling release build` first")?;
    let field = Field {
        labs: labs.clone(),
        kubeadm_store: Store::make(&release_dir, &release, &labs.cache)?,
        release_dir,
        seedling: PathBuf::from(seedling_e2e::seedling().get_program()).canonicalize()?,
        logs: out.join("logs"),
        release,
    };
    let contestants = if args.only.is_empty() { Contestant::ALL.to_vec() } else { args.only.clone() };
    let conditions = Conditions::now(&field.release);
    let command = std::env::args().skip(1).fold("bench".to_string(), |all, arg| all + " " + &arg);
    // The work tree may move on while this runs.
    let committed = ["bring-up", "at-rest"].map(|name| Committed::new(name, &command, None, Value::Null));
    let (mut runs, mut rests, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    // In turns: what disturbs this machine for a while disturbs all of them.
    for number in 1..=args.runs {
        for &contestant in &contestants {
            eprint!("run {number} of {}, {}: ", args.runs, contestant.title());
            let rest_minutes = if number == args.runs && contestant.rests() { args.rest_minutes } else { 0 };
            let (run, rest) = match bench::run(&field, contestant, number.into(), rest_minutes).await {
                Ok(ran) => ran,
                Err(e) if contestant == Contestant::Ours => return Err(e),
                // Another's failure is a result: masters that join at the same time find each other's etcd member half added.
                Err(e) => {
                    eprintln!("failed: {e:#}");
                    failed.push(Failed { contestant, run: number.into(), error: format!("{e:#}") });
                    bench::remove_labs(labs).await?;
                    continue;
                }
            };
            eprintln!(
                "/readyz {:.1} s, 3 voters {:.1} s, everything works {:.1} s, {:.1} CPU seconds",
                run.first_readyz, run.three_voters, run.everything_works, run.cpu_seconds
            );
            if let Some(rest) = &rest {
                eprintln!("  at rest {:.1} CPU seconds a minute", rest.cpu_seconds_per_minute);
            }
            runs.push(run);
            rests.extend(rest);
        }
    }
    let [bring_up, at_rest] = committed;
    let report = Report::new(runs, failed, conditions.clone());
    println!("{report}");
    write(out, "bring-up.json", &report, args, bring_up.summarised(report.summary()))?;
    if !rests.is_empty() {
        let report = RestReport::new(rests, conditions);
        println!("{report}");
        write(out, "rest.json", &report, args, at_rest.summarised(report.summary()))?;
    }
    Ok(())
}

/// For whoever ran it, and for the repository if that was asked for.
fn write(out: &Path, name: &str, report: &impl Serialize, args: &Args, committed: Committed) -> Result<()> {
    let path = out.join(name);
    fs::write(&path, serde_json::to_vec_pretty(report)?)?;
    eprintln!("all figures are in {}", path.display());
    if let Some(dir) = &args.report {
        let path = dir.join(format!("{}.json", committed.name));
        Committed { results: serde_json::to_value(report)?, ..committed }.write(&path)?;
    }
    Ok(())
}

async fn interrupted() -> Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    bail!("interrupted")
}
