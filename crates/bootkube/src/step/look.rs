//! Where bootkube is, by the node's journal. Pure.

use super::PAUSED;
use crate::PLAN;
use seedling_steps::journal::{Event, Fate, Line, State, fold};

const WHO: &str = "bootkube";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum At {
    /// It has not begun.
    Before,
    /// It waits for leave to run this stage.
    Paused(&'static str),
    /// The stage, and what of it is under way.
    Works(&'static str, Option<String>),
    /// The run ended with this stage's error; its supervisor, if it has one, starts another.
    Failed(&'static str, String),
    /// Between two stages, or stopped.
    Between,
    /// The last stage is done.
    Complete,
}

/// Names of the plan only: the journal may be of another version.
pub fn at(lines: &[Line]) -> At {
    let state = fold(lines);
    let Some(service) = state.service(WHO) else { return At::Before };
    let step = |name: &str| service.steps.iter().find(|s| s.name == name);
    for stage in PLAN.iter().map(|planned| planned.stage.name) {
        if step(&format!("{stage}/{PAUSED}")).is_some_and(|s| s.fate == Fate::Open) {
            return At::Paused(stage);
        }
        if step(stage).is_some_and(|s| s.fate == Fate::Open) {
            return At::Works(stage, part(&state, stage));
        }
    }
    // An advisory stage may have failed long before.
    let failed = PLAN.iter().filter_map(|planned| Some((planned.stage.name, step(planned.stage.name)?)));
    let failed = failed.filter(|(_, s)| s.fate == Fate::Failed).max_by_key(|(_, s)| s.since);
    if let (Fate::Failed, Some((stage, s))) = (service.fate, failed) {
        return At::Failed(stage, s.note.clone().unwrap_or_default());
    }
    let last = PLAN.last().and_then(|last| step(last.stage.name));
    match last.is_some_and(|s| s.was_done || s.fate == Fate::Failed) {
        true => At::Complete,
        false => At::Between,
    }
}

fn part(state: &State, stage: &str) -> Option<String> {
    let steps = &state.service(WHO)?.steps;
    let parts = steps.iter().filter(|s| s.fate == Fate::Open);
    let parts = parts.filter_map(|s| Some((s.since, s.name.strip_prefix(stage)?.strip_prefix('/')?)));
    parts.max().map(|(_, name)| name.to_string())
}

/// How a stage ended in these lines, if it did, and with which note.
pub(super) fn ended(lines: &[Line], stage: &str) -> Option<(Event, Option<String>)> {
    let of_stage = |l: &&Line| l.who == WHO && l.step.as_deref() == Some(stage) && l.event != Event::Begin;
    lines.iter().rev().find(of_stage).map(|l| (l.event, l.note.clone()))
}

/// Parts of a stage that these lines begin, in order; waiting for a person is none.
pub(super) fn begun_parts(lines: &[Line], stage: &str) -> Vec<String> {
    let begun = lines.iter().filter(|l| l.who == WHO && l.event == Event::Begin);
    let part = |l: &Line| l.step.as_deref()?.strip_prefix(stage)?.strip_prefix('/').map(str::to_string);
    begun.filter_map(part).filter(|part| part != PAUSED).collect()
}
