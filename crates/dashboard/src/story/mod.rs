//! A bring-up as parts with times: which state each thing had from when on. What it looked like at a moment is then a lookup, and the page
//! does the same lookup for now and for any moment of a replay.
//!
//! Pure. Nothing in a part before a moment depends on what came after it: a replay shows what the live page showed.

mod members;
mod moments;
mod path;
mod pods;
mod steps;
#[cfg(test)]
mod tests;

pub use path::STATIONS;

use crate::inputs::{Certificate, Inputs, Revisions};
use seedling_observe::timeline::{self, Bar, timeline};
use seedling_steps::journal::fold;
use seedling_types::Role;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Parts by key. Keys stay, so that two stories can be compared (see [`crate::change`]).
pub type Story = BTreeMap<String, Part>;

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
pub enum Part {
    /// `seconds`: how long the bring-up took; none: it is under way.
    Lab {
        name: String,
        domain: String,
        started: i64,
        seconds: Option<f64>,
        api: bool,
    },
    Machine {
        place: usize,
        name: String,
        role: Role,
        address: String,
        mac: String,
        power: Option<String>,
    },
    /// Something that changes: it has the state of the last frame that is not later than the moment.
    Track(Track),
    /// Something that happened.
    Moment(Moment),
    Certificate {
        #[serde(flatten)]
        certificate: Certificate,
        /// Seconds since the start; before that there was none.
        at: f64,
    },
    /// What the operators say now.
    Revisions {
        pod: String,
        #[serde(flatten)]
        revisions: Revisions,
    },
    /// A machine's row of the timeline.
    Bars {
        place: usize,
        node: String,
        bars: Vec<Bar>,
    },
    Critical {
        parts: Vec<timeline::Part>,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Track {
    pub group: Group,
    /// Order within its group.
    pub place: usize,
    pub node: String,
    pub name: String,
    pub frames: Vec<Frame>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// A station of a machine on the path from power to the cluster.
    Station,
    /// A stage of bootkube.
    Stage,
    /// Any other line of a journal.
    Step,
    /// An etcd member.
    Member,
    /// A static pod.
    Pod,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Frame {
    /// Seconds since the machines were switched on.
    pub at: f64,
    pub state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Open,
    Done,
    Failed,
    Skipped,
    Interrupted,
    Learner,
    Voter,
    /// It ended as intended.
    Gone,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Moment {
    pub at: f64,
    pub source: Source,
    pub node: String,
    pub text: String,
    pub tone: Tone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// What `lab up` waited for.
    Milestone,
    /// A machine asked for its configuration.
    Config,
    Helper,
    Journal,
    Cluster,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tone {
    Plain,
    Good,
    Bad,
}

impl Frame {
    fn new(at: f64, state: State) -> Self {
        Self { at, state, note: None, revision: None }
    }
    fn note(self, note: impl Into<String>) -> Self {
        Self { note: Some(note.into()).filter(|note| !note.is_empty()), ..self }
    }
}

/// Everything, from what was read.
pub fn story(inputs: &Inputs) -> Story {
    let mut story = Story::new();
    story.insert(
        "lab".into(),
        Part::Lab {
            name: inputs.lab.clone(),
            domain: inputs.domain.clone(),
            started: inputs.started,
            seconds: inputs.finished.then(|| inputs.milestones.last().map(|(_, at)| *at)).flatten(),
            api: inputs.api,
        },
    );
    for (place, host) in inputs.inventory.hosts.iter().enumerate() {
        let machine = Part::Machine {
            place,
            name: host.name.clone(),
            role: host.role,
            address: host.address.to_string(),
            mac: host.mac.clone(),
            power: inputs.power.get(&host.name).cloned(),
        };
        story.insert(format!("machine/{}", host.name), machine);
    }
    let tracks = steps::tracks(inputs);
    let mut add = |kind: &str, track: Track| {
        story.insert(format!("{kind}/{}/{}", track.node, track.name), Part::Track(track));
    };
    path::stations(inputs, &tracks).into_iter().for_each(|track| add("station", track));
    members::members(inputs, &tracks).into_iter().for_each(|track| add("member", track));
    pods::pods(inputs, &tracks).into_iter().for_each(|track| add("pod", track));
    tracks.into_iter().for_each(|track| add("step", track));
    story.extend(moments::moments(inputs).into_iter().map(|(key, moment)| (key, Part::Moment(moment))));
    story.extend(certificates(inputs));
    story.extend(where_the_time_went(inputs));
    let revisions = inputs.cluster.iter().flat_map(|cluster| &cluster.revisions);
    story.extend(revisions.map(|(pod, revisions)| {
        (format!("revisions/{pod}"), Part::Revisions { pod: pod.clone(), revisions: revisions.clone() })
    }));
    story
}

fn certificates(inputs: &Inputs) -> impl Iterator<Item = (String, Part)> {
    let known = inputs.certificates.iter().chain(inputs.cluster.iter().flat_map(|c| &c.certificates));
    known.filter_map(|certificate| {
        // What the installer made was there before the machines.
        let at = seconds(inputs, &certificate.issued)?.max(0.0);
        let key = format!("certificate/{}/{}", certificate.place, certificate.name);
        Some((key, Part::Certificate { certificate: certificate.clone(), at }))
    })
}

fn where_the_time_went(inputs: &Inputs) -> Vec<(String, Part)> {
    if inputs.milestones.is_empty() {
        return Vec::new();
    }
    let journals = inputs.journals.iter().map(|(node, lines)| (node.clone(), fold(lines))).collect();
    let timeline = timeline(&timeline::Input {
        started: inputs.started,
        milestones: &inputs.milestones,
        journals: &journals,
        events: &inputs.events,
        inventory: &inputs.inventory,
    });
    let rows = timeline.rows.into_iter().enumerate().map(|(place, row)| {
        (format!("bars/{}", row.node), Part::Bars { place, node: row.node, bars: row.bars })
    });
    rows.chain([("critical".into(), Part::Critical { parts: timeline.critical })]).collect()
}

/// What each thing was at a moment, by key: the frame that held, or what had happened. The page's script does the same.
pub fn state_at(story: &Story, at: f64) -> BTreeMap<String, Value> {
    let held = story.iter().filter_map(|(key, part)| {
        let value = match part {
            Part::Track(track) => serde_json::to_value(track.at(at)?),
            Part::Moment(moment) if moment.at > at => return None,
            Part::Certificate { at: since, .. } if *since > at => return None,
            other => serde_json::to_value(other),
        };
        Some((key.clone(), value.ok()?))
    });
    held.collect()
}

impl Track {
    fn new(group: Group, place: usize, node: &str, name: &str) -> Self {
        Self { group, place, node: node.into(), name: name.into(), frames: Vec::new() }
    }

    pub fn at(&self, moment: f64) -> Option<&Frame> {
        self.frames.iter().rev().find(|frame| frame.at <= moment)
    }

    /// Frames are in the order of time, also when a machine's clock was put back; one that says the same as the last says nothing.
    fn push(&mut self, mut frame: Frame) {
        if let Some(last) = self.frames.last() {
            if (last.state, &last.note, last.revision) == (frame.state, &frame.note, frame.revision) {
                return;
            }
            frame.at = frame.at.max(last.at);
        }
        self.frames.push(frame);
    }

    /// The first time it was so.
    fn first(&self, state: State) -> Option<f64> {
        self.frames.iter().find(|frame| frame.state == state).map(|frame| frame.at)
    }
}

/// Since the machines were switched on; none: that is no time.
fn seconds(inputs: &Inputs, time: &str) -> Option<f64> {
    Some(since(inputs, time.parse::<jiff::Timestamp>().ok()?.as_millisecond()))
}

fn since(inputs: &Inputs, millis: i64) -> f64 {
    (millis - inputs.started) as f64 / 1000.0
}
