//! `seedling chaos handoff`: bring-ups in which something is struck at each step, and what became of them.

mod evidence;
mod report;
mod round;

use super::lab::Format;
use anyhow::{Result, bail, ensure};
use clap::{Args, Subcommand, ValueEnum};
use round::{BringUp, Round};
use seedling_lab::chaos::{self, Case, Selection, Step, missed_at_most, pairs, rounds, steps};
use seedling_lab::{Labs, default_inventory};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Subcommand)]
pub enum ChaosCommand {
    /// Cause faults at the steps of installations, and check that each completes without lost writes or a second cluster
    Handoff(HandoffArgs),
}

#[derive(Args)]
pub struct HandoffArgs {
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
    /// Number of control-plane machines
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..))]
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

/// One bring-up that is to be struck, and the kind of cluster.
#[derive(Clone, Debug)]
struct Plan {
    cases: Vec<Case>,
    masters: u8,
    patience: Option<u32>,
    lasts: Duration,
    /// They are meant together: what one brings about, another strikes.
    together: bool,
}

impl HandoffArgs {
    fn plan(&self, cases: Vec<Case>, together: bool) -> Plan {
        let lasts = Duration::from_secs(self.lasts);
        Plan { cases, masters: self.masters, patience: self.patience, lasts, together }
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
    let (before, seed_before) = match args.resume {
        true => report::green(&args.report)?,
        false => (Vec::new(), None),
    };
    let by_clock = || u64::try_from(seedling_lab::probe::now()).unwrap_or_default();
    let seed = args.seed.or(seed_before).unwrap_or_else(by_clock);
    let steps = steps(seedling_bootkube::PLAN.iter().map(|step| step.stage.name));
    let plans = plans(&args, seed, &steps)?;
    let planned = plans.iter().map(|plan| plan.cases.len()).sum::<usize>();
    let plans = without(&before, plans);
    let count = plans.iter().map(|plan| plan.cases.len()).sum::<usize>();
    eprintln!("seed {seed}: {count} cases in {} bring-ups", plans.len());
    if args.dry_run {
        plans.iter().flat_map(|plan| &plan.cases).for_each(|case| println!("{case}"));
        return Ok(ExitCode::SUCCESS);
    }
    let labs = Labs::from_env();
    ensure!(
        labs.open(&args.name).is_err(),
        "lab {0:?} exists; `seedling lab down --name {0}` removes it, --name chooses another",
        args.name
    );
    let allowed = args.missed_at_most.unwrap_or_else(|| missed_at_most(planned));
    let mut report = report::begin(&args.report, seed);
    let first = 1 + before.iter().map(|bring_up| bring_up.number).max().unwrap_or_default();
    let mut bring_ups = before;
    for (number, plan) in (first..).zip(plans) {
        let round =
            Round { labs: &labs, args: &args, steps: &steps, number, plan, revision: &report.revision };
        let ended = tokio::select! {
            ended = round.run() => ended,
            () = super::log::interrupted() => Err(anyhow::anyhow!("interrupted")),
        };
        seedling_lab::down(&labs, &args.name, &|_| ()).await?;
        bring_ups.push(ended?);
        // Written after each bring-up: hours of them are not lost to the last.
        (report.results, report.summary) = report::results(&bring_ups, planned, allowed);
        report.write(&args.report)?;
    }
    if args.output == Format::Json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    }
    eprintln!("seed {seed}: {}", report.summary.join("\n"));
    match report::tally(&bring_ups).failed(allowed) {
        Some(why) => bail!("{why}; see {}", args.report.display()),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// The bring-ups, in their order.
fn plans(args: &HandoffArgs, seed: u64, steps: &[Step]) -> Result<Vec<Plan>> {
    let of_rounds = |cases: &[Case]| rounds(cases, steps).into_iter().map(|round| args.plan(round, false));
    if !args.whole {
        let cases = chosen(args, seed, steps)?;
        return Ok(match args.case.is_empty() {
            true => of_rounds(&cases).collect(),
            false => vec![args.plan(cases, true)],
        });
    }
    let inventory = default_inventory(pairs::MASTERS);
    let pairs = pairs::pairs(steps, &inventory).map_err(anyhow::Error::msg)?;
    let mut plans = Vec::new();
    for fault in chaos::Fault::ALL {
        let selection = Selection { every_step: true, ..selection(args, seed, fault)? };
        plans.extend(of_rounds(&cases(args, &selection, steps)));
    }
    plans.extend(pairs.into_iter().map(|pair| Plan {
        cases: pair.into(),
        masters: pairs::MASTERS,
        patience: Some(pairs::PATIENCE_MINUTES),
        lasts: pairs::LASTS,
        together: true,
    }));
    Ok(plans)
}

/// What is left of them. Of those that are meant together, all or none.
fn without(done: &[BringUp], plans: Vec<Plan>) -> Vec<Plan> {
    let ids = |bring_up: &BringUp| bring_up.cases.iter().map(|case| case.id.clone()).collect::<Vec<_>>();
    let (together, single): (Vec<_>, Vec<_>) = done.iter().partition(|bring_up| bring_up.together);
    let together: BTreeSet<_> = together.into_iter().map(ids).collect();
    let single: BTreeSet<_> = single.into_iter().flat_map(ids).collect();
    let left = |mut plan: Plan| {
        match plan.together {
            true if together.contains(&plan.cases.iter().map(Case::to_string).collect::<Vec<_>>()) => {
                plan.cases.clear();
            }
            true => {}
            false => plan.cases.retain(|case| !single.contains(&case.to_string())),
        }
        (!plan.cases.is_empty()).then_some(plan)
    };
    plans.into_iter().filter_map(left).collect()
}

fn chosen(args: &HandoffArgs, seed: u64, steps: &[Step]) -> Result<Vec<Case>> {
    let inventory = default_inventory(args.masters);
    let machines: Vec<_> =
        inventory.bootstrap().into_iter().chain(inventory.masters()).map(|m| m.name.as_str()).collect();
    let no_machine = |name: &&String| inventory.by_name(name).is_none();
    let no_end =
        |name: &&String| no_machine(name) && ![chaos::HELPER, chaos::MASTERS].contains(&name.as_str());
    if let Some(name) = args.on.as_ref().filter(no_machine).or(args.peer.as_ref().filter(no_end)) {
        bail!("there is no machine {name:?}; there are {}", machines.join(", "));
    }
    if !args.case.is_empty() {
        let parsed = args.case.iter().map(|id| Case::parse(id, steps, &inventory));
        return parsed.collect::<Result<_, _>>().map_err(anyhow::Error::msg);
    }
    let cases = cases(args, &selection(args, seed, args.fault.into())?, steps);
    ensure!(!cases.is_empty(), "nothing to strike: no such victim lives on that machine");
    Ok(cases)
}

fn cases(args: &HandoffArgs, selection: &Selection, steps: &[Step]) -> Vec<Case> {
    let inventory = default_inventory(args.masters);
    let masters: Vec<_> = inventory.masters().iter().map(|m| m.name.clone()).collect();
    let bootstrap = inventory.bootstrap().map(|b| b.name.clone()).unwrap_or_default();
    chaos::cases(selection, steps, &bootstrap, &masters)
}

/// Of those victims that can be struck so.
fn selection(args: &HandoffArgs, seed: u64, fault: chaos::Fault) -> Result<Selection> {
    let victims: Vec<chaos::Victim> = match args.victim.is_empty() {
        true => chaos::Victim::ALL.into(),
        false => args.victim.iter().map(|v| (*v).into()).collect(),
    };
    let (able, unable): (Vec<_>, Vec<_>) =
        victims.into_iter().partition(|victim| chaos::refusal(*victim, fault).is_none());
    if let (true, Some(victim)) = (able.is_empty(), unable.first()) {
        bail!("{}", chaos::refusal(*victim, fault).unwrap_or_default());
    }
    Ok(Selection {
        victims: able,
        fault,
        on: args.on.clone(),
        peer: args.peer.clone(),
        every_step: args.every_step,
        seed,
        at_most: args.cases,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use round::Struck;

    #[test]
    fn what_was_green_is_not_struck_again() {
        let steps = steps(["cb-bootstrap", "wait-for-ceo"]);
        let pairs = pairs::pairs(&steps, &default_inventory(1)).unwrap_or_else(|e| panic!("{e}"));
        let plan = |cases: &[Case], together| Plan {
            cases: cases.into(),
            masters: 1,
            patience: None,
            lasts: chaos::LASTS,
            together,
        };
        let done = |cases: &[Case], together| BringUp {
            together,
            cases: (cases.iter())
                .map(|c| Struck { id: c.to_string(), verdict: chaos::Verdict::Green, struck: None })
                .collect(),
            ..BringUp::default()
        };
        let [first, second] = [&pairs[0], &pairs[1]];
        let all = || vec![plan(first, false), plan(first, true), plan(second, true)];
        let left = |done: &[BringUp]| -> Vec<(usize, bool)> {
            without(done, all()).iter().map(|p| (p.cases.len(), p.together)).collect()
        };
        assert_eq!(left(&[]), [(2, false), (2, true), (2, true)]);
        assert_eq!(left(&[done(&first[..1], false)]), [(1, false), (2, true), (2, true)]);
        assert_eq!(left(&[done(first, true)]), [(2, false), (2, true)]);
        assert_eq!(left(&[done(first, false), done(first, true), done(second, true)]), []);
    }
}
