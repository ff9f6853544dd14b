//! `seedling chaos handoff`: bring-ups in which something is struck at each step, and what became of them.

use super::lab::Format;
use anyhow::{Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use seedling_lab::Labs;
use seedling_lab::chaos::{self, Place, Run, Selection, Wish, steps};
use seedling_lab::diagnose::{self, FAULTS, Verdict};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Subcommand)]
pub(crate) enum ChaosCommand {
    /// Cause faults at the steps of installations, and check that each completes without lost writes or a second cluster
    Handoff(HandoffArgs),
    /// Break installations in known ways, one at a time, and score whether `analyze` names the cause
    Diagnose(DiagnoseArgs),
    /// Answer on a port as a broken server would
    #[command(hide = true)]
    Answer {
        #[arg(long)]
        port: u16,
        #[arg(long)]
        with: diagnose::Answer,
    },
}

#[derive(Args)]
pub(crate) struct DiagnoseArgs {
    /// Only this fault; may be repeated [default: all]
    #[arg(long, value_name = "NAME")]
    case: Vec<String>,
    /// The lab's name; it is created for each fault and removed afterwards
    #[arg(long, default_value = "diagnose")]
    name: String,
    /// The report to write (JSON), updated after each fault; what it has of other faults is kept
    #[arg(long, value_name = "FILE", default_value = "target/diagnose/diagnose.json")]
    report: PathBuf,
    /// Directory for each fault's log bundle and log
    #[arg(long, value_name = "DIR", default_value = "target/diagnose")]
    logs: PathBuf,
    /// Only list the faults
    #[arg(long)]
    dry_run: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

#[derive(Args)]
pub(crate) struct HandoffArgs {
    /// Try every fault on every victim at every step, and pairs of faults around a lost etcd majority; takes hours
    #[arg(long, conflicts_with_all = ["every_step", "victim", "fault", "on", "peer", "case", "cases", "masters", "patience", "lasts"])]
    whole: bool,
    /// Continue the run in the report file: cases that are green there are not repeated
    #[arg(long)]
    resume: bool,
    /// At every step, instead of one step per victim and machine chosen by the seed
    #[arg(long)]
    every_step: bool,
    /// What to break [default: all]; may be repeated
    #[arg(long, value_enum)]
    victim: Vec<Victim>,
    /// How to break it
    #[arg(long, value_enum, default_value_t = Fault::Kill)]
    fault: Fault,
    /// How long the fault lasts, for faults other than kill and for machines that are switched off
    #[arg(long, value_name = "SECONDS", default_value_t = chaos::LASTS.as_secs(),
        value_parser = clap::value_parser!(u64).range(1..=600))]
    lasts: u64,
    /// On which machine: bootstrap or master-N [default: bootstrap, and masters chosen by the seed]
    #[arg(long, value_name = "MACHINE")]
    on: Option<String>,
    /// For network faults, the other end of the link: a machine, helper, or masters [default: for cut-link chosen by the seed, else
    /// everybody]
    #[arg(long, value_name = "MACHINE")]
    peer: Option<String>,
    /// Number of control-plane machines: 1, 3, 4 or 5
    #[arg(long, default_value_t = 3, value_parser = super::up::masters)]
    masters: u8,
    /// How many minutes the cluster waits for a lost master before it continues without it [default: 5]
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u32).range(1..))]
    patience: Option<u32>,
    /// Seed of all random choices; the same seed gives the same cases [default: from the clock]
    #[arg(long)]
    seed: Option<u64>,
    /// Run this case, named as in the report; if repeated, all of them in one installation
    #[arg(long, value_name = "ID", conflicts_with_all = ["every_step", "victim", "fault", "on", "peer", "cases"])]
    case: Vec<String>,
    /// Run at most this many cases, chosen by the seed
    #[arg(long, value_name = "N")]
    cases: Option<usize>,
    /// How many cases may miss because their victim was not running; more, or all, fail the run [default: one in twenty, at least one]
    #[arg(long, value_name = "N")]
    missed_at_most: Option<usize>,
    /// The lab's name; it is created for each installation and removed afterwards
    #[arg(long, default_value = "chaos")]
    name: String,
    /// The report to write (JSON), updated after each installation
    #[arg(long, value_name = "FILE", default_value = "target/chaos/chaos.json")]
    report: PathBuf,
    /// Directory for each installation's log, and for evidence of those that failed or were slow
    #[arg(long, value_name = "DIR", default_value = "target/chaos")]
    logs: PathBuf,
    /// Only list the cases
    #[arg(long)]
    dry_run: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

impl HandoffArgs {
    fn wish(&self) -> Wish {
        let selection = Selection {
            victims: self.victim.iter().map(|v| (*v).into()).collect(),
            fault: self.fault.into(),
            on: self.on.clone(),
            peer: self.peer.clone(),
            every_step: self.every_step,
            seed: 0,
            at_most: self.cases,
        };
        let (lasts, named) = (Duration::from_secs(self.lasts), self.case.clone());
        Wish { whole: self.whole, named, selection, lasts, masters: self.masters, patience: self.patience }
    }
}

/// One list of words for clap and for the library.
macro_rules! words {
    ($name:ident: $($word:ident),+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
        enum $name { $($word),+ }
        impl From<$name> for chaos::$name {
            fn from(word: $name) -> Self {
                match word { $($name::$word => chaos::$name::$word),+ }
            }
        }
    };
}
words!(Victim: Bootkube, Kubelet, Etcd, Apiserver, Operator, Node, Helper, Everything);
words!(Fault: Kill, Freeze, CutNetwork, FillDisk, SlowDisk, CutLink, Deaf, Mute, Lossy, FillContainerd,
    FillLogs, FsyncErrors, TornWal);

pub(crate) async fn run(command: ChaosCommand) -> Result<ExitCode> {
    let args = match command {
        ChaosCommand::Handoff(args) => args,
        ChaosCommand::Diagnose(args) => return diagnose(args).await,
        ChaosCommand::Answer { port, with } => {
            tokio::task::spawn_blocking(move || diagnose::answer(port, with)).await??;
            return Ok(ExitCode::SUCCESS);
        }
    };
    let wish = args.wish();
    let steps = steps(seedling_bootkube::PLAN.iter().map(|step| step.stage.name));
    let HandoffArgs { seed, resume, name, report: path, logs, output, .. } = args;
    let command = typed();
    let place = Place { labs: Labs::from_env(), name, report: path.clone(), logs, command };
    let run = Run::prepare(wish, seed, resume, steps, place)?;
    let seed = run.seed;
    eprintln!("seed {seed}: {} cases in {} bring-ups", run.cases().count(), run.plans.len());
    if args.dry_run {
        run.cases().for_each(|case| println!("{case}"));
        return Ok(ExitCode::SUCCESS);
    }
    let told = |line: &str| match output {
        Format::Table => println!("{line}"),
        Format::Json => {}
    };
    let (report, failed) = run.carry_out(args.missed_at_most, &told, super::log::interrupted).await?;
    if output == Format::Json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    }
    eprintln!("seed {seed}: {}", report.summary.join("\n"));
    match failed {
        Some(why) => bail!("{why}; see {}", path.display()),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// The command as it was typed, for the report.
fn typed() -> String {
    std::iter::once("seedling".to_string()).chain(std::env::args().skip(1)).collect::<Vec<_>>().join(" ")
}

async fn diagnose(args: DiagnoseArgs) -> Result<ExitCode> {
    let chosen = chosen(&args.case)?;
    if args.dry_run {
        chosen.iter().for_each(|fault| println!("{:<22} {}", fault.name, fault.what));
        return Ok(ExitCode::SUCCESS);
    }
    let release = super::release::ensure_release(None).await?;
    let DiagnoseArgs { name, report, logs, output, .. } = args;
    let place = diagnose::Place { labs: Labs::from_env(), name, report, logs, release, command: typed() };
    let told = |case: &diagnose::Case| {
        if output == Format::Table {
            let word = match case.verdict {
                Verdict::Right => "right",
                Verdict::Wrong => "WRONG",
                Verdict::NotMade => "not made",
            };
            println!("{:>6.1}s {word:<8} {:<22} {}", case.seconds, case.fault, case.said);
        }
    };
    let report = diagnose::run(&place, &chosen, &told, super::log::interrupted).await?;
    if output == Format::Json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    }
    eprintln!("{}", report.summary.join("\n"));
    Ok(ExitCode::SUCCESS)
}

fn chosen(names: &[String]) -> Result<Vec<&'static diagnose::Fault>> {
    if names.is_empty() {
        return Ok(FAULTS.iter().collect());
    }
    let by_name = |name: &String| match FAULTS.iter().find(|fault| fault.name == name.as_str()) {
        Some(fault) => Ok(fault),
        None => bail!("there is no fault {name:?}; `seedling chaos diagnose --dry-run` lists them"),
    };
    names.iter().map(by_name).collect()
}
