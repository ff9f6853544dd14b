//! Static pods by node and revision: a master's from its installers, bootstrap's from the stages that start and stop them.

use super::steps::find;
use super::{Frame, Group, State, Track};
use crate::inputs::Inputs;
use seedling_types::Role;

/// Pods of the control plane, in the order in which they can start.
const PODS: [&str; 4] = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"];

pub(super) fn pods(inputs: &Inputs, tracks: &[Track]) -> Vec<Track> {
    let hosts = inputs.inventory.hosts.iter().filter(|host| host.role != Role::Worker);
    let pods = hosts.flat_map(|host| {
        PODS.iter().enumerate().map(move |(place, pod)| {
            let mut track = Track::new(Group::Pod, place, &host.name, pod);
            let frames = match host.role {
                Role::Bootstrap => temporary(inputs, tracks, &host.name, pod),
                _ => installed(tracks, &host.name, pod),
            };
            frames.into_iter().for_each(|frame| track.push(frame));
            track
        })
    });
    pods.collect()
}

/// `installer/<pod>-pod/revision-3`: begun, done or failed.
fn installed(tracks: &[Track], node: &str, pod: &str) -> Vec<Frame> {
    let prefix = format!("installer/{pod}-pod/revision-");
    let mut frames = Vec::new();
    for track in tracks.iter().filter(|t| t.node == node) {
        // Parts of it, such as `revision-3/files`, are no numbers.
        let Some(revision) = track.name.strip_prefix(&prefix).and_then(|rest| rest.parse().ok()) else {
            continue;
        };
        let of = |frame: &Frame| Frame { revision: Some(revision), ..frame.clone() };
        frames.extend(track.frames.iter().map(of));
    }
    frames.sort_by(|a, b| a.at.total_cmp(&b.at));
    frames
}

/// Bootstrap's have no revision; they go when the masters carry the cluster.
fn temporary(inputs: &Inputs, tracks: &[Track], node: &str, pod: &str) -> Vec<Frame> {
    let at = |step: &str| find(tracks, node, &format!("bootkube/{step}")).and_then(|t| t.first(State::Done));
    let (start, stop) = match pod {
        "etcd" => ("etcd-bootstrap", None),
        "kube-apiserver" => ("cb-bootstrap/start", Some("cb-bootstrap/stop-api-server")),
        _ => ("cb-bootstrap/start", Some("cb-bootstrap/stop-clients")),
    };
    let off = inputs.milestones.iter().find(|(name, _)| name == "bootstrap node switched off");
    let gone = stop.and_then(at).or_else(|| off.map(|(_, at)| *at));
    let started = at(start).map(|at| Frame::new(at, State::Done).note("temporary"));
    started.into_iter().chain(gone.map(|at| Frame::new(at, State::Gone))).collect()
}
