//! One fault after the other: a lab is prepared, broken, watched, gathered, judged and removed.

use super::faults::{Fault, Moment, PLANTED};
use super::inject::{Held, inject, release_with};
use super::score::{Case, Verdict, judge, summary};
use crate::chaos::{Progress, When};
use crate::{Lab, LabError, Labs, Result, at, conditions, gather};
use seedling_diagnose::{Bundle, diagnose};
use seedling_observe::Report;
use seedling_steps::{Condition, Probe, wait_for};
use serde_json::json;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};

const LOOK: Duration = Duration::from_millis(20);
/// A step that is not reached by then is not reached at all.
const STEP_WITHIN: Duration = Duration::from_secs(150);

pub struct Place {
    pub labs: Labs,
    pub name: String,
    pub report: PathBuf,
    /// Bundles and logs, one of each a fault.
    pub logs: PathBuf,
    pub release: PathBuf,
    /// As it was typed.
    pub command: String,
}

/// What an earlier run left of these faults is replaced, the rest is kept. `told` is called for each case.
pub async fn run(
    place: &Place,
    faults: &[&Fault],
    told: &dyn Fn(&Case),
    interrupted: impl AsyncFn(),
) -> Result<Report> {
    let name = &place.name;
    if place.labs.open(name).is_ok() {
        let hint = format!(
            "lab {name:?} exists; `seedling lab down --name {name}` removes it, --name chooses another"
        );
        return Err(LabError::Strike(hint));
    }
    at(&place.logs, fs::create_dir_all(&place.logs))?;
    let stem = place.report.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut report = Report::new(&stem, &place.command, None, json!(null));
    let mut cases: Vec<Case> = earlier(&place.report);
    for fault in faults {
        let started = Instant::now();
        let ended = tokio::select! {
            ended = one(place, fault) => ended,
            () = interrupted() => Err(LabError::Strike("interrupted".into())),
        };
        crate::down(&place.labs, name, &|_| ()).await?;
        remove(&release_copy(place))?;
        let mut case = ended?;
        case.seconds = (started.elapsed().as_secs_f64() * 10.0).round() / 10.0;
        case.revision.clone_from(&report.revision);
        told(&case);
        cases.retain(|other| other.fault != case.fault);
        cases.push(case);
        let right =
            cases.iter().filter(|case| case.verdict == Verdict::Right && !case.expected.is_empty()).count();
        report.summary = summary(&cases);
        report.results = json!({ "right": right, "of": cases.iter().filter(|c| !c.expected.is_empty()).count(), "cases": cases });
        report.write(&place.report).map_err(|e| LabError::Strike(e.to_string()))?;
    }
    Ok(report)
}

fn earlier(path: &Path) -> Vec<Case> {
    let cases = Report::read(path).ok().map(|mut report| report.results["cases"].take());
    cases.and_then(|cases| serde_json::from_value(cases).ok()).unwrap_or_default()
}

fn release_copy(place: &Place) -> PathBuf {
    place.labs.cache.join(format!("release-{}", place.name))
}

pub(super) fn remove(dir: &Path) -> Result<()> {
    at(dir, seedling_steps::if_there(fs::remove_dir_all(dir))).map(drop)
}

async fn one(place: &Place, fault: &Fault) -> Result<Case> {
    let mut case = Case {
        fault: fault.name.into(),
        what: fault.what.into(),
        expected: fault.expects.iter().map(ToString::to_string).collect(),
        verdict: Verdict::NotMade,
        rule: None,
        said: String::new(),
        evidence: vec![],
        also: vec![],
        seconds: 0.0,
        revision: String::new(),
    };
    match broken_lab(place, fault).await {
        Err(why) => case.said = why.to_string(),
        Ok((lab, _held, _child)) => {
            let bundle = gather::gather(&lab, &|_| ()).await?;
            let file = place.logs.join(format!("{}.tar.gz", fault.name));
            bundle
                .write(&file, &format!("log-bundle-{}", fault.name), &gather::known_secrets(&lab))
                .map_err(|e| LabError::Strike(e.to_string()))?;
            let causes = diagnose(&bundle);
            case.verdict = judge(fault.expects, &causes);
            if fault.expects.is_empty() {
                secrets_are_gone(&bundle)?;
            }
            let mut rules = causes.iter().map(|cause| cause.rule.to_string());
            case.rule = rules.next();
            case.also = rules.collect();
            if let Some(cause) = causes.first() {
                case.said = cause.sentence();
                case.evidence = cause.evidence.iter().map(|e| format!("{}: {}", e.place(), e.text)).collect();
            }
        }
    }
    Ok(case)
}

/// The lines that were planted are there, their secrets are not.
fn secrets_are_gone(bundle: &Bundle) -> Result<()> {
    let (there, secret) = PLANTED;
    // Also inside what is packed.
    if let Some((path, _)) = bundle.leaks(&[secret.into()]).first() {
        return Err(LabError::Strike(format!("a planted secret is in {path} of the bundle")));
    }
    match bundle.iter().any(|(_, content)| String::from_utf8_lossy(content).contains(there)) {
        true => Ok(()),
        false => Err(LabError::Strike("what was planted was not gathered: this proves nothing".into())),
    }
}

/// Broken, and long enough for it to show. The bring-up goes on as long as the child is held.
async fn broken_lab(place: &Place, fault: &Fault) -> Result<(Lab, Held, Child)> {
    let copy = release_copy(place);
    let release = if release_with(fault, &place.release, &copy)? { &copy } else { &place.release };
    let prepared = up(place, fault, release, &["--prepare"])?.wait().await;
    if !at(Path::new("seedling lab up"), prepared)?.success() {
        return Err(LabError::Strike(format!("the lab was not made: see {}", log(place, fault).display())));
    }
    let lab = place.labs.open(&place.name)?;
    let mut held = Held::default();
    if fault.moment == Moment::Prepared {
        inject(&lab, fault, &mut held).await?;
    }
    let mut child = up(place, fault, release, &[])?;
    reached(place, &fault.moment.when(), &mut child).await?;
    if fault.moment != Moment::Prepared {
        inject(&lab, fault, &mut held).await?;
    }
    // It must show by itself: whoever looks for the symptom that it should have finds only that.
    let _ = tokio::time::timeout(Duration::from_secs(fault.shows_after), child.wait()).await;
    Ok((place.labs.open(&place.name)?, held, child))
}

async fn reached(place: &Place, when: &When, child: &mut Child) -> Result<()> {
    let condition =
        Condition::within(&conditions::FAULT_MOMENT, STEP_WITHIN, "the bring-up's log beside the report")
            .quiet();
    wait_for(&condition, LOOK, async || {
        let Ok(lab) = place.labs.open(&place.name) else { return Probe::Unmet("no lab".into()) };
        match (Progress::of(lab).reached(when, "master-0"), child.try_wait()) {
            (true, _) => Probe::Met(Ok(())),
            (false, Ok(None)) => Probe::Unmet("not yet".into()),
            (false, _) => {
                Probe::Met(Err(LabError::Strike("the bring-up ended before the moment of the fault".into())))
            }
        }
    })
    .await?
}

fn log(place: &Place, fault: &Fault) -> PathBuf {
    place.logs.join(format!("{}.log", fault.name))
}

/// As a user would, with a process of its own.
fn up(place: &Place, fault: &Fault, release: &Path, more: &[&str]) -> Result<Child> {
    let log = log(place, fault);
    let output = at(&log, File::options().create(true).append(true).open(&log))?;
    let program = at(Path::new("seedling"), std::env::current_exe())?;
    let mut command = Command::new(&program);
    command.args(["lab", "up", "--name", &place.name, "--masters", &fault.masters.to_string()]);
    command.arg("--release").arg(release).args(fault.with).args(more);
    command.stdin(Stdio::null()).stdout(at(&log, output.try_clone())?).stderr(output).kill_on_drop(true);
    at(&program, command.spawn())
}
