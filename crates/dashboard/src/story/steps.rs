//! Lines of journals as tracks: one a step of a service on a node. What a restart cuts short is as in `seedling_steps::journal::fold`.

use super::{Frame, Group, State, Track, since};
use crate::inputs::Inputs;
use seedling_bootkube::PLAN;
use seedling_steps::journal::{BOOT, Event, Line};
use seedling_types::Role;

pub(super) const BOOTKUBE: &str = "bootkube";

/// Of all nodes, by the order in which they were begun; bootkube's stages are all there from the beginning, in the plan's order.
pub(super) fn tracks(inputs: &Inputs) -> Vec<Track> {
    let mut tracks = Vec::new();
    for host in &inputs.inventory.hosts {
        let mut own = Node { name: &host.name, tracks: Vec::new(), stages: 0 };
        if host.role == Role::Bootstrap {
            let stage = |(place, step): (usize, &seedling_bootkube::PlannedStage)| {
                Track::new(Group::Stage, place, &host.name, &format!("{BOOTKUBE}/{}", step.stage.name))
            };
            own.tracks = PLAN.iter().enumerate().map(stage).collect();
            own.stages = PLAN.len();
        }
        for line in inputs.journals.get(&host.name).into_iter().flatten() {
            own.take(line, since(inputs, line.unix_millis()));
        }
        tracks.extend(own.tracks);
    }
    tracks
}

struct Node<'a> {
    name: &'a str,
    tracks: Vec<Track>,
    stages: usize,
}

impl Node<'_> {
    fn take(&mut self, line: &Line, at: f64) {
        let begins = line.event == Event::Begin;
        match &line.step {
            // A service that starts, or a machine, has left nothing open.
            None if begins && line.who == BOOT => self.interrupt("", at),
            None if begins => self.interrupt(&format!("{}/", line.who), at),
            Some(step) if !begins => self.interrupt(&format!("{}/{step}/", line.who), at),
            _ => {}
        }
        let name = line.step.as_ref().map_or_else(|| line.who.clone(), |step| format!("{}/{step}", line.who));
        let state = match line.event {
            Event::Begin => State::Open,
            Event::End => State::Done,
            Event::Failed => State::Failed,
            Event::Skipped => State::Skipped,
        };
        let facts = line.facts.iter().map(|(name, value)| format!("{name} {value}"));
        let said: Vec<_> = line.note.iter().cloned().chain(facts).collect();
        self.track(&name).push(Frame::new(at, state).note(said.join(", ")));
    }

    /// Everything open whose name begins so.
    fn interrupt(&mut self, prefix: &str, at: f64) {
        for track in self.tracks.iter_mut().filter(|t| t.name.starts_with(prefix)) {
            if track.frames.last().is_some_and(|frame| frame.state == State::Open) {
                track.push(Frame::new(at, State::Interrupted));
            }
        }
    }

    fn track(&mut self, name: &str) -> &mut Track {
        let index = self.tracks.iter().position(|t| t.name == name).unwrap_or_else(|| {
            let place = self.tracks.len() - self.stages;
            self.tracks.push(Track::new(Group::Step, place, self.name, name));
            self.tracks.len() - 1
        });
        &mut self.tracks[index]
    }
}

/// A step of a node, by its whole name.
pub(super) fn find<'a>(tracks: &'a [Track], node: &str, name: &str) -> Option<&'a Track> {
    tracks.iter().find(|t| t.node == node && t.name == name)
}
