//! Step mode at a terminal: on the node itself, and of a lab's bootstrap machine from outside.

use super::lab::say;
use crate::conditions;
use anyhow::{Context, Result, bail};
use seedling_bootkube::step::{self, At, Ended, Node, at, drive};
use seedling_bootkube::{Error, PLAN};
use seedling_lab::{Lab, LabError};
use seedling_steps::{Condition, Probe, wait_for};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::sync::Mutex;

/// A person, or a program that writes what a person would into a pipe. Anything else cannot be asked.
pub(crate) fn ensure_somebody_to_ask() -> Result<()> {
    let pipe = || std::fs::metadata("/dev/stdin").is_ok_and(|stdin| stdin.file_type().is_fifo());
    if !io::stdin().is_terminal() && !pipe() {
        bail!("--step asks before each stage and needs a terminal; without one take --until STAGE");
    }
    Ok(())
}

async fn drive_from_stdin(node: &impl Node) -> Result<Ended> {
    let mut input = BufReader::new(tokio::io::stdin()).lines();
    let mut print = |text: &str| {
        print!("{text}");
        let _ = io::stdout().flush();
    };
    Ok(drive(node, &mut input, &mut print).await?)
}

/// This machine.
struct Here {
    root: PathBuf,
    /// Somebody else runs bootkube, and starts it again.
    restarts: bool,
}

impl Node for Here {
    async fn root(&self) -> Result<PathBuf, Error> {
        Ok(self.root.clone())
    }
    async fn verify(&self, stage: &str) -> String {
        let Ok(planned) = super::stage::planned(stage) else { return String::new() };
        match seedling_bootkube::verify(&self.root, planned).await {
            Ok(verdict) => verdict.text(),
            Err(e) => format!("  ✗ {e}\n"),
        }
    }
    async fn shell(&self) -> io::Result<()> {
        let shell = std::env::var("SHELL").unwrap_or("bash".into());
        Command::new(shell).status().await.map(drop)
    }
    fn restarts(&self) -> bool {
        self.restarts
    }
}

/// Drives the bootkube that runs, or runs one itself.
pub(crate) async fn bootkube(root: &Path) -> Result<()> {
    ensure_somebody_to_ask()?;
    let lock = seedling_bootkube::lock(root)?;
    if step::allowed(root)?.is_none() {
        step::begin(root, &[])?;
    }
    let here = Here { root: root.into(), restarts: lock.is_none() };
    if lock.is_none() {
        say("bootkube.service runs: it waits for you before the next stage");
        return drive_from_stdin(&here).await.map(tell);
    }
    let run = async {
        let _lock = lock;
        seedling_bootkube::run_plan(root, PLAN).await
    };
    let drive = drive_from_stdin(&here);
    tokio::pin!(run, drive);
    tokio::select! {
        ran = &mut run => {
            // What came of the last stage is still to be shown.
            drive.await.map(tell)?;
            Ok(ran?)
        }
        ended = &mut drive => match ended? {
            Ended::Quit => {
                tell(Ended::Quit);
                Ok(())
            }
            _ => Ok(run.await?),
        },
    }
}

fn tell(ended: Ended) {
    match ended {
        Ended::Quit => say(
            "bootkube stays where it is: `seedling bootkube --step` asks again, `rm /opt/openshift/step/allowed` lets it go on",
        ),
        Ended::Continued => say("bootkube goes on without pauses"),
        Ended::Complete | Ended::Failed => {}
    }
}

/// A lab's bootstrap machine.
struct Bootstrap<'a> {
    lab: &'a Lab,
    /// As it was found last: it changes when the machine is switched off and on.
    root: Mutex<Option<PathBuf>>,
}

impl Node for Bootstrap<'_> {
    async fn root(&self) -> Result<PathBuf, Error> {
        let mut root = self.root.lock().await;
        if let Some(known) = root.as_ref().filter(|root| root.exists()) {
            return Ok(known.clone());
        }
        let found = self.lab.bootstrap_root().await.map_err(|e| Error::Seen(e.to_string()))?;
        Ok(root.insert(found).clone())
    }
    async fn verify(&self, stage: &str) -> String {
        let command = ["seedling", "stage", "verify", stage].map(String::from);
        let Ok(machine) = self.lab.bootstrap() else { return String::new() };
        match machine.exec(&command, false).stdin(std::process::Stdio::null()).output().await {
            // Its first line has the stage's name, which was just said.
            Ok(output) if !output.stdout.is_empty() => {
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                text.split_once('\n').map(|(_, rest)| rest.to_string()).unwrap_or_default()
            }
            Ok(output) => format!("  {}\n", String::from_utf8_lossy(&output.stderr).trim()),
            Err(e) => format!("  cannot ask the machine: {e}\n"),
        }
    }
    async fn shell(&self) -> io::Result<()> {
        let machine = self.lab.bootstrap().map_err(io::Error::other)?;
        machine.exec(&["bash".into(), "-l".into()], io::stdin().is_terminal()).status().await.map(drop)
    }
    fn restarts(&self) -> bool {
        true
    }
}

/// Whether the bring-up goes on.
pub(crate) async fn lab(lab: &Lab) -> Result<bool> {
    match drive_from_stdin(&Bootstrap { lab, root: Mutex::default() }).await? {
        Ended::Quit => {
            let name = lab.name();
            say(&format!(
                "the machines stay on, and bootkube waits; `seedling lab up --name {name} --step` asks again, `seedling lab up --name {name}` goes on without pauses"
            ));
            Ok(false)
        }
        Ended::Continued => {
            say("bootkube goes on without pauses");
            Ok(true)
        }
        Ended::Complete | Ended::Failed => Ok(true),
    }
}

/// Until bootkube has ended the stage.
pub(crate) async fn until(lab: &Lab, stage: &str) -> Result<()> {
    let bootstrap =
        lab.record.spec.inventory.bootstrap().context("the lab has no bootstrap machine")?.name.clone();
    let place = |name: &str| PLAN.iter().position(|step| step.stage.name == name);
    let name = lab.name();
    let hint = format!("seedling lab journal --name {name}");
    let condition = Condition::new(&conditions::STAGE_ENDED, Duration::from_secs(600), hint)
        .with("STAGE", stage)
        .on(&bootstrap)
        .quiet();
    let ended =
        wait_for(&condition, Duration::from_millis(250), async || match at(&lab.journal(&bootstrap)) {
            At::Complete => Probe::Met(()),
            At::Paused(next) if place(next) > place(stage) => Probe::Met(()),
            other => Probe::Unmet(format!("{other:?}")),
        });
    ended.await.map_err(LabError::from)?;
    say(&format!(
        "bootkube has ended {stage}; the machines stay on, and `seedling lab up --name {name}` goes on"
    ));
    Ok(())
}
