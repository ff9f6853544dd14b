//! `seedling chaos handoff`: bring-ups in which something is struck at each step, and what became of them.

mod evidence;
mod report;
mod round;

use super::lab::Format;
use anyhow::{Result, bail, ensure};
use clap::{Args, Subcommand, ValueEnum};
use round::Round;
use seedling_lab::chaos::{self, Case, Selection, Step, missed_at_most, rounds, steps};
use seedling_lab::{Labs, default_inventory};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Subcommand)]
pub enum ChaosCommand {
    /// Strike at the steps of bring-ups, and check that each completes with nothing lost and no second cluster
    Handoff(HandoffArgs),
}

#[derive(Args)]
pub struct HandoffArgs {
    /// At each step, instead of at one that the seed chooses for each victim and machine
    #[arg(long)]
    every_step: bool,
    /// What is struck [default: all]; may be given several times
    #[arg(long, value_enum)]
    victim: Vec<Victim>,
    /// How
    #[arg(long, value_enum, default_value_t = Fault::Kill)]
    fault: Fault,
    /// How long what is frozen, off, cut off, lossy, full, slow or failing stays so, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = chaos::LASTS.as_secs(),
        value_parser = clap::value_parser!(u64).range(1..=600))]
    lasts: u64,
    /// Where: bootstrap or master-N [default: bootstrap, and masters that the seed chooses]
    #[arg(long, value_name = "MACHINE")]
    on: Option<String>,
    /// The other end of a link that is struck: a machine, helper, or masters [default: one that the seed chooses for cut-link, else
    /// everybody]
    #[arg(long, value_name = "MACHINE")]
    peer: Option<String>,
    /// Number of control-plane machines
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..))]
    masters: u8,
    /// How long the cluster waits for a master that is lost [default: as clusters do]
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u32).range(1..))]
    patience: Option<u32>,
    /// The same seed makes the same cases again [default: by the clock]
    #[arg(long)]
    seed: Option<u64>,
    /// One case again, by its name in the report; given several times, all of them in one bring-up
    #[arg(long, value_name = "ID", conflicts_with_all = ["every_step", "victim", "fault", "on", "peer", "cases"])]
    case: Vec<String>,
    /// At most so many cases, chosen by the seed
    #[arg(long, value_name = "N")]
    cases: Option<usize>,
    /// So many cases may find nobody to strike; more, or all of them, fail the run [default: one in twenty, and always one]
    #[arg(long, value_name = "N")]
    missed_at_most: Option<usize>,
    /// Name of the lab: made for each bring-up, and removed
    #[arg(long, default_value = "chaos")]
    name: String,
    /// Revision, machine, seed, counts and cases, as JSON; written after each bring-up
    #[arg(long, value_name = "FILE", default_value = "target/chaos/chaos.json")]
    report: PathBuf,
    /// Where each bring-up's log goes, and what explains one that failed or was slow
    #[arg(long, value_name = "DIR", default_value = "target/chaos")]
    logs: PathBuf,
    /// Only name the cases
    #[arg(long)]
    dry_run: bool,
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

impl HandoffArgs {
    fn lasts(&self) -> Duration {
        Duration::from_secs(self.lasts)
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

pub async fn run(command: ChaosCommand) -> Result<ExitCode> {
    let ChaosCommand::Handoff(args) = command;
    let seed = args.seed.unwrap_or_else(|| u64::try_from(seedling_lab::probe::now()).unwrap_or_default());
    let steps = steps(seedling_bootkube::PLAN.iter().map(|step| step.stage.name));
    let cases = chosen(&args, seed, &steps)?;
    // Cases that were named are meant together: what one brings about, another strikes.
    let rounds = if args.case.is_empty() { rounds(&cases) } else { vec![cases.clone()] };
    eprintln!("seed {seed}: {} cases in {} bring-ups", cases.len(), rounds.len());
    if args.dry_run {
        cases.iter().for_each(|case| println!("{case}"));
        return Ok(ExitCode::SUCCESS);
    }
    let labs = Labs::from_env();
    ensure!(
        labs.open(&args.name).is_err(),
        "lab {0:?} exists; `seedling lab down --name {0}` removes it, --name chooses another",
        args.name
    );
    let allowed = args.missed_at_most.unwrap_or_else(|| missed_at_most(cases.len()));
    let mut report = report::begin(&args.report, seed);
    let mut outcomes = Vec::new();
    for (number, round) in rounds.into_iter().enumerate() {
        let round = Round { labs: &labs, args: &args, steps: &steps, number: number + 1, cases: round };
        let ended = tokio::select! {
            ended = round.run() => ended,
            () = super::log::interrupted() => Err(anyhow::anyhow!("interrupted")),
        };
        seedling_lab::down(&labs, &args.name, &|_| ()).await?;
        outcomes.extend(ended?);
        // Written after each bring-up: hours of them are not lost to the last.
        (report.results, report.summary) = report::results(&outcomes, allowed);
        report.write(&args.report)?;
    }
    if args.output == Format::Json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    }
    eprintln!("seed {seed}: {}", report.summary.join("\n"));
    match report::tally(&outcomes).failed(allowed) {
        Some(why) => bail!("{why}; see {}", args.report.display()),
        None => Ok(ExitCode::SUCCESS),
    }
}

fn chosen(args: &HandoffArgs, seed: u64, steps: &[Step]) -> Result<Vec<Case>> {
    let inventory = default_inventory(args.masters);
    let masters: Vec<_> = inventory.masters().iter().map(|m| m.name.clone()).collect();
    let bootstrap = inventory.bootstrap().map(|b| b.name.clone()).unwrap_or_default();
    let no_machine = |name: &&String| inventory.by_name(name).is_none();
    let no_end =
        |name: &&String| no_machine(name) && ![chaos::HELPER, chaos::MASTERS].contains(&name.as_str());
    if let Some(name) = args.on.as_ref().filter(no_machine).or(args.peer.as_ref().filter(no_end)) {
        bail!("there is no machine {name:?}; there are {bootstrap}, {}", masters.join(", "));
    }
    if !args.case.is_empty() {
        let parsed = args.case.iter().map(|id| Case::parse(id, steps, &inventory));
        return parsed.collect::<Result<_, _>>().map_err(anyhow::Error::msg);
    }
    let victims: Vec<chaos::Victim> = match args.victim.is_empty() {
        true => chaos::Victim::ALL.into(),
        false => args.victim.iter().map(|v| (*v).into()).collect(),
    };
    let fault = args.fault.into();
    let (able, unable): (Vec<_>, Vec<_>) =
        victims.into_iter().partition(|victim| chaos::refusal(*victim, fault).is_none());
    if let (true, Some(victim)) = (able.is_empty(), unable.first()) {
        bail!("{}", chaos::refusal(*victim, fault).unwrap_or_default());
    }
    let selection = Selection {
        victims: able,
        fault,
        on: args.on.clone(),
        peer: args.peer.clone(),
        every_step: args.every_step,
        seed,
        at_most: args.cases,
    };
    let cases = chaos::cases(&selection, steps, &bootstrap, &masters);
    ensure!(!cases.is_empty(), "nothing to strike: no such victim lives on that machine");
    Ok(cases)
}
