//! Shows each stage, asks, lets it run, and shows what came of it.

use super::look::{At, at, begun_parts, ended};
use super::{POLL, allow, allowed, end, forbid, tell};
use crate::{Error, PLAN, PlannedStage, Result};
use seedling_steps::Journal;
use seedling_steps::journal::{Event, Line};
use std::io;
use std::path::PathBuf;
use tokio::io::{AsyncBufRead, Lines};

/// The node on which bootkube runs, from wherever it is driven.
pub trait Node {
    /// Its file system.
    fn root(&self) -> impl Future<Output = Result<PathBuf>>;
    /// What the stage's check says now.
    fn verify(&self, stage: &str) -> impl Future<Output = String>;
    /// Ends when the person leaves it.
    fn shell(&self) -> impl Future<Output = io::Result<()>>;
    /// Whether somebody starts bootkube again after it failed.
    fn restarts(&self) -> bool;
}

/// How a person ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// There is no stage left.
    Complete,
    /// bootkube goes on without pauses.
    Continued,
    /// bootkube stays where it is.
    Quit,
    /// bootkube failed, and nobody starts it again.
    Failed,
}

enum Key {
    Run,
    Look(Option<String>),
    Shell,
    Continue,
    Quit,
    Unknown,
}

const KEYS: &str = "[Enter] run  [l] look  [s] shell  [c] continue without pauses  [q] quit > ";

fn key(line: &str) -> Key {
    let line = line.trim();
    match line.split_once(' ').map_or((line, ""), |(key, rest)| (key, rest.trim())) {
        ("" | "r" | "run", _) => Key::Run,
        ("l" | "look", "") => Key::Look(None),
        ("l" | "look", file) => Key::Look(Some(file.into())),
        ("s" | "shell", _) => Key::Shell,
        ("c" | "continue", _) => Key::Continue,
        ("q" | "quit", _) => Key::Quit,
        _ => Key::Unknown,
    }
}

/// Until there is nothing left to show, or the person ends it. `say` prints without adding an end of line.
pub async fn drive<N: Node, I: AsyncBufRead + Unpin>(
    node: &N,
    input: &mut Lines<I>,
    say: &mut dyn FnMut(&str),
) -> Result<Ended> {
    let mut last = At::Between;
    loop {
        let lines = journal(node).await?;
        let now = at(&lines);
        let news = now != last;
        match &now {
            At::Complete => return Ok(Ended::Complete),
            At::Paused(stage) => {
                if let Some(ended) = ask(node, input, stage, say).await? {
                    return Ok(ended);
                }
                follow(node, stage, lines.len(), say).await?;
            }
            At::Failed(stage, why) => {
                // What was let go was told when it failed.
                if news && !matches!(last, At::Paused(paused) if paused == *stage) {
                    say(&format!("{stage}: failed: {why}\n"));
                }
                if !node.restarts() {
                    return Ok(Ended::Failed);
                }
                if is_allowed(node, stage).await? {
                    // It is asked for again when bootkube is back.
                    forbid(&node.root().await?, stage)?;
                    say("bootkube is started again, and waits for you before this stage\n");
                }
            }
            At::Before if news => say("bootkube has not begun yet: the machine boots\n"),
            At::Works(stage, _) if news && !matches!(last, At::Works(..)) => {
                say(&format!("bootkube works on {stage}\n"))
            }
            _ => {}
        }
        last = now;
        tokio::time::sleep(POLL).await;
    }
}

async fn journal(node: &impl Node) -> Result<Vec<Line>> {
    Ok(Journal::of(&node.root().await?, "bootkube").read()?)
}

async fn is_allowed(node: &impl Node, stage: &str) -> Result<bool> {
    Ok(allowed(&node.root().await?)?.is_some_and(|stages| stages.iter().any(|name| name == stage)))
}

fn planned(stage: &str) -> Result<(usize, &'static PlannedStage)> {
    let found = PLAN.iter().enumerate().find(|(_, step)| step.stage.name == stage);
    found.ok_or_else(|| Error::Seen(format!("the plan has no stage {stage}")))
}

/// None: the stage may run now.
async fn ask<N: Node, I: AsyncBufRead + Unpin>(
    node: &N,
    input: &mut Lines<I>,
    stage: &str,
    say: &mut dyn FnMut(&str),
) -> Result<Option<Ended>> {
    let (number, step) = planned(stage)?;
    say(&tell::before(number + 1, PLAN.len(), step));
    loop {
        say(KEYS);
        // What ends without a word leaves everything as it is.
        let line = input.next_line().await.map_err(Error::Terminal)?;
        let Some(line) = line else { return Ok(Some(Ended::Quit)) };
        let root = node.root().await?;
        match key(&line) {
            Key::Run => {
                allow(&root, stage)?;
                return Ok(None);
            }
            Key::Look(None) => say(&tell::look(&root, &step.stage)),
            Key::Look(Some(file)) => say(&tell::show(&root, &file)),
            Key::Shell => {
                say("a shell on the node; `exit` leads back here\n");
                node.shell().await.map_err(Error::Terminal)?;
            }
            Key::Continue => {
                end(&root)?;
                return Ok(Some(Ended::Continued));
            }
            Key::Quit => return Ok(Some(Ended::Quit)),
            Key::Unknown => say("`l FILE` shows a file; bootkube waits meanwhile, without a deadline\n"),
        }
    }
}

/// Until the stage that was let go has ended; `from` is the journal's length before. Then what came of it.
async fn follow(node: &impl Node, stage: &str, from: usize, say: &mut dyn FnMut(&str)) -> Result<()> {
    let mut told = 0;
    let (event, note) = loop {
        let lines = journal(node).await?;
        let new = lines.get(from..).unwrap_or_default();
        let parts = begun_parts(new, stage);
        parts.iter().skip(told).for_each(|part| say(&format!("  … {part}\n")));
        told = parts.len();
        if let Some(ended) = ended(new, stage) {
            break ended;
        }
        tokio::time::sleep(POLL).await;
    };
    let note = note.map(|note| format!(": {note}")).unwrap_or_default();
    let word = match event {
        Event::Skipped => "nothing to do",
        Event::Failed => "failed",
        _ => "done",
    };
    say(&format!("{stage}: {word}{note}\n"));
    if event != Event::Skipped {
        say(&node.verify(stage).await);
    }
    Ok(())
}
