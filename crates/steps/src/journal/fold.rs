//! What a journal amounts to: which steps are done, which are open, how long each took.

use super::{BOOT, Event, Line};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct State {
    /// In the order of their first lines.
    pub services: Vec<Service>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Service {
    pub name: String,
    pub fate: Fate,
    /// In milliseconds since 1970: when it last began or ended.
    pub since: i64,
    /// In the order in which they were first begun.
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    pub name: String,
    pub fate: Fate,
    /// When it last began or ended.
    pub since: i64,
    /// Of all its runs; what a restart cut short counts until that restart.
    pub seconds: f64,
    /// It was done once, whatever came later.
    #[serde(skip)]
    pub was_done: bool,
    /// From when to when, run by run, in milliseconds since 1970.
    #[serde(skip)]
    pub runs: Vec<(i64, i64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    Open,
    Done,
    Failed,
    Skipped,
    /// The process that worked on it was killed, or its machine switched off.
    Interrupted,
}

impl State {
    pub fn service(&self, who: &str) -> Option<&Service> {
        self.services.iter().find(|s| s.name == who)
    }

    pub fn step(&self, who: &str, step: &str) -> Option<&Step> {
        self.service(who)?.steps.iter().find(|s| s.name == step)
    }

    /// Ended well, or had nothing to do.
    pub fn is_done(&self, who: &str, step: &str) -> bool {
        self.step(who, step).is_some_and(|s| matches!(s.fate, Fate::Done | Fate::Skipped))
    }

    /// How many steps were ever begun, and how many were ever done: what is tried again and again does not count.
    pub fn progress(&self) -> (usize, usize) {
        let steps = || self.services.iter().flat_map(|s| &s.steps);
        (steps().count(), steps().filter(|s| s.was_done).count())
    }

    /// What is being worked on: of each service the step that began last, with the service's name.
    pub fn open(&self) -> impl Iterator<Item = (&str, &Step)> {
        self.services.iter().filter_map(|service| {
            let open = service.steps.iter().filter(|s| s.fate == Fate::Open);
            Some((service.name.as_str(), open.max_by_key(|s| s.since)?))
        })
    }
}

pub fn fold(lines: &[Line]) -> State {
    let mut state = State::default();
    for line in lines {
        let at = line.unix_millis();
        let begins = line.step.is_none() && line.event == Event::Begin;
        if begins && line.who == BOOT {
            state.services.iter_mut().for_each(|s| s.interrupt(at));
        }
        let service = state.entry(&line.who, at);
        if begins {
            service.interrupt(at);
        }
        match &line.step {
            None => (service.fate, service.since) = (fate(line.event), at),
            Some(step) => {
                if line.event != Event::Begin {
                    service.give_up_parts(step, at);
                }
                service.step(step, at).take(line, at);
            }
        }
    }
    state
}

fn fate(event: Event) -> Fate {
    match event {
        Event::Begin => Fate::Open,
        Event::End => Fate::Done,
        Event::Failed => Fate::Failed,
        Event::Skipped => Fate::Skipped,
    }
}

impl State {
    fn entry(&mut self, who: &str, at: i64) -> &mut Service {
        let found = self.services.iter().position(|s| s.name == who);
        let index = found.unwrap_or_else(|| {
            self.services.push(Service { name: who.into(), fate: Fate::Open, since: at, steps: vec![] });
            self.services.len() - 1
        });
        &mut self.services[index]
    }
}

impl Service {
    fn interrupt(&mut self, at: i64) {
        if self.fate == Fate::Open {
            (self.fate, self.since) = (Fate::Interrupted, at);
        }
        for step in self.steps.iter_mut().filter(|s| s.fate == Fate::Open) {
            step.close(Fate::Interrupted, at);
        }
    }

    /// What ended has no open parts.
    fn give_up_parts(&mut self, stage: &str, at: i64) {
        let part = |s: &&mut Step| s.name.strip_prefix(stage).is_some_and(|rest| rest.starts_with('/'));
        let open = self.steps.iter_mut().filter(|s| s.fate == Fate::Open);
        open.filter(part).for_each(|s| s.close(Fate::Interrupted, at));
    }

    fn step(&mut self, name: &str, at: i64) -> &mut Step {
        let found = self.steps.iter().position(|s| s.name == name);
        let index = found.unwrap_or_else(|| {
            let (note, facts) = (None, BTreeMap::new());
            let (name, fate) = (name.into(), Fate::Interrupted);
            let (seconds, was_done, runs) = (0.0, false, vec![]);
            self.steps.push(Step { name, fate, since: at, seconds, was_done, runs, note, facts });
            self.steps.len() - 1
        });
        &mut self.steps[index]
    }
}

impl Step {
    fn take(&mut self, line: &Line, at: i64) {
        match line.event {
            Event::Begin => (self.fate, self.since) = (Fate::Open, at),
            event => self.close(fate(event), at),
        }
        self.note.clone_from(&line.note);
        self.facts.extend(line.facts.clone());
    }

    fn close(&mut self, fate: Fate, at: i64) {
        if self.fate == Fate::Open {
            self.seconds += (at - self.since) as f64 / 1000.0;
            self.runs.push((self.since, at));
        }
        (self.fate, self.since) = (fate, at);
        self.was_done |= matches!(fate, Fate::Done | Fate::Skipped);
    }
}
