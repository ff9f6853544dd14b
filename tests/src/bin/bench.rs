//! `make bench`: how long a bring-up takes, Seedling's and kubeadm's, on the machine this runs on. Prints a table, writes
//! target/bench/bring-up.json and target/bench/create-ignition-configs.json (`--create`: only that), and leaves no lab behind, however it ends.

#[path = "../bench/mod.rs"]
mod bench;

use anyhow::{Context, Result, bail};
use bench::{Conditions, Contestant, Field, Report, Store};
use clap::Parser;
use seedling_lab::Labs;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use tokio::signal::unix::{SignalKind, signal};

#[derive(Parser)]
struct Args {
    /// Bring-ups of each contestant; figures are medians
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Only these contestants
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Contestant>,
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
    let mut runs = Vec::new();
    // In turns: what disturbs this machine for a while disturbs all of them.
    for number in 1..=args.runs {
        for &contestant in &contestants {
            eprint!("run {number} of {}, {contestant:?}: ", args.runs);
            let run = bench::run(&field, contestant, number).await?;
            eprintln!(
                "/readyz {:.1} s, 3 voters {:.1} s, everything works {:.1} s",
                run.first_readyz, run.three_voters, run.everything_works
            );
            runs.push(run);
        }
    }
    let report = Report::new(runs, conditions);
    let path = out.join("bring-up.json");
    fs::write(&path, serde_json::to_vec_pretty(&report)?)?;
    println!("{report}");
    eprintln!("all figures are in {}", path.display());
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
