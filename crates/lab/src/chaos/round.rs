//! One bring-up, and the strikes that share it.

use super::plans::Plan;
use super::run::Place;
use super::{Case, Fault, Killed, Progress, Seen, Step, Verdict, evidence, judge, strike};
use crate::{Lab, Result, at, members, probe};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};
use tokio::sync::{Mutex, watch};

/// How often the disk is looked at for the next step.
const LOOK: Duration = Duration::from_millis(10);

/// A bring-up that takes longer has waited for something besides what was struck.
const SLOW: Duration = Duration::from_secs(150);

/// The disk that is to be filled, with room for a cluster that has just grown; or that is to go bad.
fn disk_for(fault: Fault) -> &'static [&'static str] {
    match fault {
        Fault::FillDisk => &["--etcd-disk", "256"],
        Fault::FsyncErrors | Fault::TornWal => &["--bad-etcd-disk"],
        Fault::FillContainerd => &["--containerd-disk", "4096"],
        Fault::FillLogs => &["--log-disk", "64"],
        _ => &[],
    }
}

/// One bring-up: what was struck, and what its clients saw.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BringUp {
    pub number: usize,
    /// The commit that was struck: a run that is gone on with may have several.
    pub revision: String,
    pub seconds: f64,
    /// Its cases were meant together.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub together: bool,
    pub failed_requests: usize,
    pub longest_window_millis: i64,
    pub resent: usize,
    pub acknowledged: usize,
    pub stale: usize,
    pub lost: usize,
    /// On objects that several clients write to: operations, those of which nobody knows whether they happened, objects that were
    /// judged, and those whose answers no order explains.
    pub operations: usize,
    pub unknown: usize,
    pub objects_judged: usize,
    pub not_linearizable: usize,
    pub cases: Vec<Struck>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Struck {
    pub id: String,
    #[serde(flatten)]
    pub verdict: Verdict,
    /// What was done; nothing, if it was missed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub struck: Option<String>,
}

/// Of the bring-up that is being struck.
enum Now {
    At(Box<Progress>),
    Over,
}

/// One bring-up, with the cases that share it.
pub(super) struct Round<'a> {
    pub place: &'a Place,
    pub steps: &'a [Step],
    pub number: usize,
    pub plan: Plan,
    pub revision: &'a str,
    /// Hears of each case.
    pub told: &'a dyn Fn(&str),
}

impl Round<'_> {
    pub(super) async fn strike_and_judge(&self) -> Result<BringUp> {
        let started = Instant::now();
        let log = self.beside(&format!("round-{}.log", self.number));
        let mut child = self.bring_up(&log)?;
        let (strikes, ended) = self.strike_until_end(&mut child).await?;
        let took = started.elapsed();
        let lab = self.place.labs.open(&self.place.name).ok();
        let seen = match (ended.success(), &lab) {
            (true, Some(lab)) => {
                let one_cluster = members::agree(lab).await.map_err(|e| e.to_string());
                Seen { not_grown: None, report: probed(lab), one_cluster }
            }
            (_, lab) => {
                let report = lab.as_ref().and_then(probed);
                let one_cluster = Err("not asked".into());
                Seen { not_grown: Some(last_words(&log)), report, one_cluster }
            }
        };
        let explain = seen.broken().is_some() || took > SLOW;
        if let (true, Some(lab)) = (explain, &lab) {
            evidence::keep(lab, |name| self.beside(&format!("round-{}-{name}", self.number))).await;
        }
        let seconds = (took.as_secs_f64() * 10.0).round() / 10.0;
        let any_struck = strikes.iter().any(Result::is_ok);
        let struck = |(case, strike): (&Case, &Result<String, String>)| Struck {
            id: case.to_string(),
            verdict: judge(strike, any_struck, &seen),
            struck: strike.clone().ok(),
        };
        let cases = self.plan.cases.iter().zip(&strikes).map(struck).collect();
        let bring_up = self.summed_up(seen.report.clone().unwrap_or_default(), seconds, cases);
        bring_up.cases.iter().for_each(|case| (self.told)(&line(&bring_up, case)));
        Ok(bring_up)
    }

    fn summed_up(&self, report: probe::Report, seconds: f64, cases: Vec<Struck>) -> BringUp {
        BringUp {
            number: self.number,
            revision: self.revision.into(),
            seconds,
            together: self.plan.together,
            failed_requests: report.failures.len(),
            longest_window_millis: report.longest_window(),
            resent: report.resent,
            acknowledged: report.acknowledged,
            stale: report.stale.len(),
            lost: report.lost.len(),
            operations: report.writes.operations,
            unknown: report.writes.unknown,
            objects_judged: report.writes.judged,
            not_linearizable: report.writes.red.len(),
            cases,
        }
    }

    /// As a user would, with a process of its own.
    fn bring_up(&self, log: &Path) -> Result<Child> {
        let dir = &self.place.logs;
        at(dir, std::fs::create_dir_all(dir))?;
        let output = at(log, File::create(log))?;
        let program = at(Path::new("seedling"), std::env::current_exe())?;
        let mut command = Command::new(&program);
        command.args(["lab", "up", "--probe", "--name", &self.place.name]);
        command.args(["--masters", &self.plan.masters.to_string()]);
        if let Some(minutes) = self.plan.patience {
            let manifest = self.beside("patience.yaml");
            at(&manifest, std::fs::write(&manifest, patience(minutes)))?;
            command.arg("--manifest").arg(manifest);
        }
        let disks: BTreeSet<_> = self.plan.cases.iter().map(|case| disk_for(case.fault)).collect();
        command.args(disks.into_iter().flatten());
        command.stdin(Stdio::null()).stdout(at(log, output.try_clone())?).stderr(output).kill_on_drop(true);
        at(&program, command.spawn())
    }

    /// Each strike as soon as its step is reached, beside the others.
    async fn strike_until_end(&self, child: &mut Child) -> Result<(Vec<Result<String, String>>, ExitStatus)> {
        let progress = watch::Sender::new(None);
        let killed = Killed::default();
        let machines: BTreeMap<_, _> =
            self.plan.cases.iter().map(|case| (case.on.as_str(), Mutex::new(()))).collect();
        let strikes = self.plan.cases.iter().map(|case| {
            let machine = machines.get(case.on.as_str()).filter(|_| case.is_of_a_whole_machine());
            self.at_its_step(case, progress.subscribe(), &killed, machine)
        });
        let end = async {
            let mut look = tokio::time::interval(LOOK);
            loop {
                tokio::select! {
                    status = child.wait() => {
                        progress.send_replace(Some(Now::Over));
                        break status;
                    }
                    _ = look.tick() => if let Ok(lab) = self.place.labs.open(&self.place.name) {
                        progress.send_replace(Some(Now::At(Box::new(Progress::of(lab)))));
                    }
                }
            }
        };
        let (strikes, status) = tokio::join!(futures::future::join_all(strikes), end);
        Ok((strikes, at(Path::new("seedling lab up"), status)?))
    }

    async fn at_its_step(
        &self,
        case: &Case,
        mut progress: watch::Receiver<Option<Now>>,
        killed: &Killed,
        machine: Option<&Mutex<()>>,
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
        // What is off cannot be switched off.
        let _alone = match machine {
            Some(machine) => Some(machine.lock().await),
            None => None,
        };
        let lab = self.place.labs.open(&self.place.name).map_err(|e| e.to_string())?;
        strike(&self.place.labs, &lab, case, self.plan.lasts, killed).await.map_err(|e| e.to_string())
    }

    fn beside(&self, name: &str) -> PathBuf {
        self.place.logs.join(name)
    }
}

fn patience(minutes: u32) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: bring-up, namespace: openshift-config}}\n\
         data: {{patience-minutes: \"{minutes}\"}}\n"
    )
}

fn line(bring_up: &BringUp, case: &Struck) -> String {
    let (word, why) = match &case.verdict {
        Verdict::Green => ("green", case.struck.as_deref().unwrap_or_default()),
        Verdict::Red(why) => ("RED", why.as_str()),
        Verdict::Missed(why) => ("missed", why.as_str()),
    };
    let BringUp { number, seconds, failed_requests, longest_window_millis, lost, .. } = bring_up;
    format!(
        "{number:>3} {seconds:>6.1}s {word:<6} {:<56} {failed_requests:>4} failed, {longest_window_millis:>6} ms, {lost} lost  {why}",
        case.id
    )
}

fn probed(lab: &Lab) -> Option<probe::Report> {
    serde_json::from_slice(&std::fs::read(lab.dir.join("probe.json")).ok()?).ok()
}

fn last_words(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let error = text.lines().rev().find(|l| l.starts_with("error: ")).or(text.lines().last());
    error.unwrap_or("lab up said nothing").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_is_an_object_that_clusters_read() {
        let map: serde_json::Value = serde_saphyr::from_str(&patience(2)).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(map["data"]["patience-minutes"], "2");
        let named = (&map["metadata"]["namespace"], &map["metadata"]["name"]);
        assert_eq!(named, (&"openshift-config".into(), &"bring-up".into()));
    }

    #[test]
    fn only_what_is_struck_gets_a_disk() {
        assert_eq!(disk_for(Fault::FillLogs), ["--log-disk", "64"]);
        assert!(disk_for(Fault::FillDisk) != disk_for(Fault::FillContainerd));
        assert_eq!(
            (disk_for(Fault::FsyncErrors), disk_for(Fault::TornWal).len()),
            (disk_for(Fault::TornWal), 1)
        );
        assert!(disk_for(Fault::Kill).is_empty() && disk_for(Fault::Lossy).is_empty());
    }
}
