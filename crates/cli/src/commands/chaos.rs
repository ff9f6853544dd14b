//! `seedling chaos handoff`: bring-ups in which something is struck at each step, and what became of them.

use super::lab::Format;
use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Subcommand, ValueEnum};
use seedling_lab::chaos::{
    self, Case, Killed, Progress, Seen, Selection, Step, Verdict, judge, rounds, steps, strike,
};
use seedling_lab::{Lab, Labs, default_inventory};
use seedling_steps::write_atomic;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};
use tokio::sync::watch;

/// How often the disk is looked at for the next step.
const LOOK: Duration = Duration::from_millis(10);

/// A bring-up that takes longer has waited for something besides what was struck.
const SLOW: Duration = Duration::from_secs(150);

/// Of a disk that is to be filled: room for a cluster that has just grown.
const ETCD_DISK_MIB: &str = "256";

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
    /// Where: bootstrap or master-N [default: bootstrap, and masters that the seed chooses]
    #[arg(long, value_name = "MACHINE")]
    on: Option<String>,
    /// The same seed makes the same cases again [default: by the clock]
    #[arg(long)]
    seed: Option<u64>,
    /// One case again, by its name in the report
    #[arg(long, value_name = "ID", conflicts_with_all = ["every_step", "victim", "fault", "on", "cases"])]
    case: Option<String>,
    /// At most so many cases, chosen by the seed
    #[arg(long, value_name = "N")]
    cases: Option<usize>,
    /// Name of the lab: made for each bring-up, and removed
    #[arg(long, default_value = "chaos")]
    name: String,
    #[arg(long, value_name = "FILE", default_value = "target/chaos/REPORT.json")]
    report: PathBuf,
    /// Only name the cases
    #[arg(long)]
    dry_run: bool,
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
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
words!(Victim: Bootkube, Kubelet, Etcd, Apiserver, Operator, Node);
words!(Fault: Kill, Freeze, CutNetwork, FillDisk, SlowDisk);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    id: String,
    /// Which bring-up it was part of, and how long that took.
    round: usize,
    seconds: f64,
    #[serde(flatten)]
    verdict: Verdict,
    /// What was done to whom.
    struck: String,
    /// Of the whole bring-up.
    failed_requests: usize,
    longest_window_millis: i64,
    acknowledged: usize,
    lost: usize,
}

pub async fn run(command: ChaosCommand) -> Result<ExitCode> {
    let ChaosCommand::Handoff(args) = command;
    let seed = args.seed.unwrap_or_else(|| u64::try_from(seedling_lab::probe::now()).unwrap_or_default());
    let steps = steps(seedling_bootkube::PLAN.iter().map(|step| step.stage.name));
    let cases = chosen(&args, seed, &steps)?;
    eprintln!("seed {seed}: {} cases in {} bring-ups", cases.len(), rounds(&cases).len());
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
    let mut outcomes = Vec::new();
    for (number, round) in rounds(&cases).into_iter().enumerate() {
        let round = Round { labs: &labs, args: &args, steps: &steps, number: number + 1, cases: round };
        let ended = tokio::select! {
            ended = round.run() => ended,
            () = super::log::interrupted() => Err(anyhow::anyhow!("interrupted")),
        };
        seedling_lab::down(&labs, &args.name, &|_| ()).await?;
        outcomes.extend(ended?);
        // Written after each bring-up: hours of them are not lost to the last.
        save(&args.report, &report(seed, &outcomes))?;
    }
    let summary = report(seed, &outcomes);
    if args.output == Format::Json {
        println!("{}", serde_json::to_string_pretty(&summary)?);
    }
    eprintln!(
        "seed {seed}: {} green, {} red, {} missed",
        summary["green"], summary["red"], summary["missed"]
    );
    Ok(if summary["red"] == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn report(seed: u64, outcomes: &[Outcome]) -> serde_json::Value {
    let count = |wanted: fn(&Verdict) -> bool| outcomes.iter().filter(|o| wanted(&o.verdict)).count();
    serde_json::json!({
        "seed": seed,
        "green": count(|v| *v == Verdict::Green),
        "red": count(|v| matches!(v, Verdict::Red(_))),
        "missed": count(|v| matches!(v, Verdict::Missed(_))),
        "cases": outcomes,
    })
}

fn save(path: &Path, report: &serde_json::Value) -> Result<()> {
    write_atomic(path, serde_json::to_vec_pretty(report)?, 0o644).with_context(|| path.display().to_string())
}

fn chosen(args: &HandoffArgs, seed: u64, steps: &[Step]) -> Result<Vec<Case>> {
    let inventory = default_inventory(3);
    let masters: Vec<_> = inventory.masters().iter().map(|m| m.name.clone()).collect();
    let bootstrap = inventory.bootstrap().map(|b| b.name.clone()).unwrap_or_default();
    if let Some(on) = args.on.as_ref().filter(|on| inventory.by_name(on).is_none()) {
        bail!("there is no machine {on:?}; there are {bootstrap}, {}", masters.join(", "));
    }
    if let Some(id) = &args.case {
        return Ok(vec![Case::parse(id, steps, &inventory).map_err(anyhow::Error::msg)?]);
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
        every_step: args.every_step,
        seed,
        at_most: args.cases,
    };
    let cases = chaos::cases(&selection, steps, &bootstrap, &masters);
    ensure!(!cases.is_empty(), "nothing to strike: no such victim lives on that machine");
    Ok(cases)
}

/// Of the bring-up that is being struck.
enum Now {
    At(Box<Progress>),
    Over,
}

/// One bring-up, with the cases that share it.
struct Round<'a> {
    labs: &'a Labs,
    args: &'a HandoffArgs,
    steps: &'a [Step],
    number: usize,
    cases: Vec<Case>,
}

impl Round<'_> {
    async fn run(&self) -> Result<Vec<Outcome>> {
        let started = Instant::now();
        let log = self.beside(&format!("round-{}.log", self.number));
        let mut child = self.bring_up(&log)?;
        let (strikes, ended) = self.strike_until_end(&mut child).await?;
        let took = started.elapsed();
        let lab = self.labs.open(&self.args.name).ok();
        let seen = match (ended.success(), &lab) {
            (true, Some(lab)) => {
                let etcd_clusters = etcd_clusters(lab).await;
                Seen { not_grown: None, report: probed(lab), etcd_clusters }
            }
            (_, lab) => {
                let report = lab.as_ref().and_then(probed);
                Seen { not_grown: Some(last_words(&log)), report, etcd_clusters: BTreeSet::new() }
            }
        };
        let explain = seen.not_grown.is_some() || took > SLOW;
        if let (true, Some(lab)) = (explain, &lab) {
            super::chaos_evidence::keep(lab, |name| self.beside(&format!("round-{}-{name}", self.number)))
                .await;
        }
        let seconds = (took.as_secs_f64() * 10.0).round() / 10.0;
        let any_struck = strikes.iter().any(Result::is_ok);
        let outcomes: Vec<_> = (self.cases.iter().zip(&strikes))
            .map(|(c, s)| self.outcome(c, s, judge(s, any_struck, &seen), &seen, seconds))
            .collect();
        if self.args.output == Format::Table {
            outcomes.iter().for_each(say);
        }
        Ok(outcomes)
    }

    fn outcome(
        &self,
        case: &Case,
        strike: &Result<String, String>,
        verdict: Verdict,
        seen: &Seen,
        seconds: f64,
    ) -> Outcome {
        let report = seen.report.clone().unwrap_or_default();
        Outcome {
            id: case.to_string(),
            round: self.number,
            seconds,
            verdict,
            struck: strike.clone().unwrap_or_else(|why| why),
            failed_requests: report.failures.len(),
            longest_window_millis: report.windows.iter().map(|w| w.millis).max().unwrap_or_default(),
            acknowledged: report.acknowledged,
            lost: report.lost.len(),
        }
    }

    /// As a user would, with a process of its own.
    fn bring_up(&self, log: &Path) -> Result<Child> {
        if let Some(dir) = log.parent() {
            std::fs::create_dir_all(dir)?;
        }
        let output = File::create(log).with_context(|| log.display().to_string())?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["lab", "up", "--probe", "--name", &self.args.name]);
        if self.cases.iter().any(|case| case.fault == chaos::Fault::FillDisk) {
            command.args(["--etcd-disk", ETCD_DISK_MIB]);
        }
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output).kill_on_drop(true);
        Ok(command.spawn()?)
    }

    /// Each strike as soon as its step is reached, beside the others.
    async fn strike_until_end(
        &self,
        child: &mut Child,
    ) -> Result<(Vec<Result<String, String>>, std::process::ExitStatus)> {
        let progress = watch::Sender::new(None);
        let killed = Killed::default();
        let strikes = self.cases.iter().map(|case| self.at_its_step(case, progress.subscribe(), &killed));
        let end = async {
            let mut look = tokio::time::interval(LOOK);
            loop {
                tokio::select! {
                    status = child.wait() => {
                        progress.send_replace(Some(Now::Over));
                        break status;
                    }
                    _ = look.tick() => if let Ok(lab) = self.labs.open(&self.args.name) {
                        progress.send_replace(Some(Now::At(Box::new(Progress::of(lab)))));
                    }
                }
            }
        };
        let (strikes, status) = tokio::join!(futures::future::join_all(strikes), end);
        Ok((strikes, status?))
    }

    async fn at_its_step(
        &self,
        case: &Case,
        mut progress: watch::Receiver<Option<Now>>,
        killed: &Killed,
    ) -> Result<String, String> {
        let step = self.steps.iter().find(|s| s.id == case.step).ok_or("no such step")?;
        let reached = progress.wait_for(|now| match now {
            Some(Now::At(progress)) => progress.reached(&step.when, &case.on),
            Some(Now::Over) => true,
            None => false,
        });
        let over = matches!(*reached.await.map_err(|e| e.to_string())?, Some(Now::Over));
        if over {
            return Err("the bring-up ended before this step".into());
        }
        let lab = self.labs.open(&self.args.name).map_err(|e| e.to_string())?;
        strike(&lab, case, killed).await.map_err(|e| e.to_string())
    }

    fn beside(&self, name: &str) -> PathBuf {
        self.args.report.with_file_name(name)
    }
}

fn say(outcome: &Outcome) {
    let (word, why) = match &outcome.verdict {
        Verdict::Green => ("green", outcome.struck.as_str()),
        Verdict::Red(why) => ("RED", why.as_str()),
        Verdict::Missed(why) => ("missed", why.as_str()),
    };
    let Outcome { id, round, seconds, failed_requests, longest_window_millis, lost, .. } = outcome;
    println!(
        "{round:>3} {seconds:>6.1}s {word:<6} {id:<56} {failed_requests:>4} failed, {longest_window_millis:>6} ms, {lost} lost  {why}"
    );
}

fn probed(lab: &Lab) -> Option<seedling_lab::probe::Report> {
    serde_json::from_slice(&std::fs::read(lab.dir.join("probe.json")).ok()?).ok()
}

/// What each master's etcd says of the members it knows.
async fn etcd_clusters(lab: &Lab) -> BTreeSet<String> {
    const ASK: &str = "crictl exec $(crictl ps -q --name '^etcd$') etcdctl endpoint status --cluster -w json";
    let mut ids = BTreeSet::new();
    for master in lab.record.spec.inventory.masters() {
        let Ok(machine) = lab.machine(&master.name) else { continue };
        let answer = machine.exec_output(&["sh", "-c", ASK]).await.unwrap_or_default();
        let members: Vec<serde_json::Value> = serde_json::from_str(&answer).unwrap_or_default();
        ids.extend(members.iter().map(|m| m["Status"]["header"]["cluster_id"].to_string()));
    }
    ids
}

fn last_words(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let error = text.lines().rev().find(|l| l.starts_with("error: ")).or(text.lines().last());
    error.unwrap_or("lab up said nothing").to_string()
}
