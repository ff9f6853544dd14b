//! etcd's members over time: bootstrap's from its own stages, a master's from the two programs that take it in.

use super::steps::find;
use super::{Frame, Group, State, Track};
use crate::inputs::Inputs;
use seedling_types::Role;

/// The milestone of `lab up` by which bootstrap's member is known to be gone.
const REMOVED: &str = "the bootstrap etcd member to be removed";

pub(super) fn members(inputs: &Inputs, tracks: &[Track]) -> Vec<Track> {
    let hosts = inputs.inventory.hosts.iter().filter(|host| host.role != Role::Worker);
    let members = hosts.enumerate().map(|(place, host)| {
        let mut member = Track::new(Group::Member, place, &host.name, "etcd");
        match host.role {
            Role::Bootstrap => {
                let founded =
                    find(tracks, &host.name, "bootkube/wait-for-etcd").and_then(|t| t.first(State::Done));
                founded
                    .into_iter()
                    .for_each(|at| member.push(Frame::new(at, State::Voter).note("founded the cluster")));
                let removed = inputs.milestones.iter().find(|(name, _)| name.starts_with(REMOVED));
                removed
                    .into_iter()
                    .for_each(|(_, at)| member.push(Frame::new(*at, State::Gone).note("removed from etcd")));
            }
            _ => {
                let mut frames = Vec::new();
                let frames_of =
                    |name: &str| find(tracks, &host.name, name).map_or(&[][..], |t| &t.frames).iter();
                frames.extend(frames_of("etcd-join/membership").filter_map(|frame| match frame.state {
                    State::Open => {
                        Some(Frame::new(frame.at, State::Open).note("waits to be on the member list"))
                    }
                    State::Done => {
                        Some(Frame::new(frame.at, State::Learner).note("on the list, gets the data"))
                    }
                    _ => None,
                }));
                frames.extend(
                    frames_of("etcd-wait/voter")
                        .filter(|f| f.state == State::Done)
                        .map(|frame| Frame::new(frame.at, State::Voter).note("has caught up and votes")),
                );
                frames.sort_by(|a, b| a.at.total_cmp(&b.at));
                frames.into_iter().for_each(|frame| member.push(frame));
            }
        }
        member
    });
    members.collect()
}
