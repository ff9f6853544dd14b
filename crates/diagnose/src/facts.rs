//! A bundle as rules ask it: machines, the helper's events, and lines by what they say. Pure.

use crate::bundle::Bundle;
use crate::cause::Evidence;
use seedling_steps::journal::{State, fold, lines};
use seedling_types::helper::{HelperEvent, HelperEventKind};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What `machines.json` says of one; a bundle by ssh has only those that were asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Machine {
    pub name: String,
    pub role: String,
    pub mac: String,
    pub address: String,
    /// `on`, `off` or `paused`; empty if nobody knows.
    pub power: String,
    pub position: String,
    pub status: Option<u16>,
    pub first_boot_done: bool,
}

impl Machine {
    /// Its directory in the bundle.
    pub(crate) fn dir(&self) -> String {
        match self.role.as_str() {
            "bootstrap" => "bootstrap/".into(),
            _ => format!("control-plane/{}/", self.address),
        }
    }
}

pub(crate) struct Facts<'a> {
    texts: BTreeMap<&'a str, Cow<'a, str>>,
    pub machines: Vec<Machine>,
    pub events: Vec<HelperEvent>,
}

pub(crate) const MACHINES: &str = "machines.json";
pub(crate) const EVENTS: &str = "helper/events.jsonl";

impl<'a> Facts<'a> {
    pub(crate) fn of(bundle: &'a Bundle) -> Self {
        let texts: BTreeMap<_, _> =
            bundle.iter().map(|(path, content)| (path, String::from_utf8_lossy(content))).collect();
        let json = bundle.get(MACHINES).unwrap_or_default();
        let machines = serde_json::from_slice(json).unwrap_or_else(|_| by_directories(bundle));
        let events = texts.get(EVENTS).map(Cow::as_ref).unwrap_or_default();
        let events = events.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Self { texts, machines, events }
    }

    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(Cow::as_ref)
    }

    pub(crate) fn bootstrap(&self) -> Option<&Machine> {
        self.machines.iter().find(|machine| machine.role == "bootstrap")
    }

    pub(crate) fn masters(&self) -> impl Iterator<Item = &Machine> {
        self.machines.iter().filter(|machine| machine.role == "master")
    }

    /// Files whose path begins and ends so.
    pub(crate) fn files(&self, begin: &str, end: &str) -> impl Iterator<Item = (&str, &str)> {
        let chosen =
            self.texts.iter().filter(move |(path, _)| path.starts_with(begin) && path.ends_with(end));
        chosen.map(|(path, text)| (*path, text.as_ref()))
    }

    /// The last line of such a file that has one of the words.
    pub(crate) fn last(&self, begin: &str, end: &str, words: &[&str]) -> Option<Evidence> {
        self.last_where(begin, end, |line| words.iter().any(|word| line.contains(word)))
    }

    pub(crate) fn last_where(&self, begin: &str, end: &str, is: impl Fn(&str) -> bool) -> Option<Evidence> {
        self.files(begin, end).find_map(|(path, text)| {
            let lines: Vec<_> = text.lines().collect();
            let at = lines.iter().rposition(|line| is(line))?;
            Some(evidence(path, Some(at + 1), lines[at]))
        })
    }

    /// How many lines of such files have one of the words.
    pub(crate) fn count(&self, begin: &str, end: &str, words: &[&str]) -> usize {
        let said =
            |text: &str| text.lines().filter(|line| words.iter().any(|word| line.contains(word))).count();
        self.files(begin, end).map(|(_, text)| said(text)).sum()
    }

    /// The journal of Seedling's own steps.
    pub(crate) fn steps(&self, machine: &Machine) -> State {
        let text = self.text(&format!("{}journal.jsonl", machine.dir())).unwrap_or_default();
        fold(&lines(text.as_bytes()))
    }

    /// The last of the helper's events that is such a one.
    pub(crate) fn event(&self, is: impl Fn(&HelperEventKind) -> bool) -> Option<Evidence> {
        let at = self.events.iter().rposition(|event| is(&event.what))?;
        let line = serde_json::to_string(&self.events[at]).unwrap_or_default();
        self.last_where(EVENTS, "", |text| {
            serde_json::from_str::<HelperEvent>(text).is_ok_and(|e| e == self.events[at])
        })
        .or(Some(evidence(EVENTS, None, &line)))
    }
}

pub(crate) fn evidence(path: &str, line: Option<usize>, text: &str) -> Evidence {
    let text: String = text.trim().chars().take(400).collect();
    Evidence { file: path.into(), line, text }
}

fn by_directories(bundle: &Bundle) -> Vec<Machine> {
    let mut machines = BTreeMap::new();
    for (path, _) in bundle.iter() {
        let (role, address) = match path.split('/').collect::<Vec<_>>()[..] {
            ["bootstrap", _, ..] => ("bootstrap", "bootstrap"),
            ["control-plane", address, _, ..] => ("master", address),
            _ => continue,
        };
        let machine = Machine {
            name: address.into(),
            role: role.into(),
            address: address.into(),
            ..Machine::default()
        };
        // A kubelet runs after the first boot.
        let kubelet = format!("{}journals/kubelet.log", machine.dir());
        let machine = Machine { first_boot_done: bundle.get(&kubelet).is_some(), ..machine };
        machines.insert(address, machine);
    }
    machines.into_values().collect()
}
