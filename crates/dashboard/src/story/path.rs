//! The path of a machine, from power to a place in the cluster: nine stations, each known from what the helper saw, from the machine's
//! journal, from the machine-config servers, and the last from the API.

use super::moments::name;
use super::steps::find;
use super::{Frame, Group, State, Track, seconds};
use crate::inputs::Inputs;
use seedling_observe::Milestone;
use seedling_types::helper::HelperEventKind;
use seedling_types::{Host, Role, ports};

/// In the order of the path.
pub const STATIONS: [&str; 9] =
    ["power", "address", "ignition", "config", "software", "kubelet", "etcd", "api", "ready"];

/// What ends the fetching of software: systemd runs, and with it one of these.
const RUNS: [&str; 4] = ["first-boot", "kubelet-join", "release-image", "bootkube"];

/// Milestones of `lab up` that no machine reaches before its Node is Ready.
const WORKERS_READY: &str = Milestone::WorkersReady(0).awaited().sentence;
const OPERATORS_FINISHED: &str = Milestone::Initialized.awaited().sentence;

pub(super) fn stations(inputs: &Inputs, tracks: &[Track]) -> Vec<Track> {
    let stations = inputs.inventory.hosts.iter().flat_map(|host| {
        let machine = Machine { inputs, tracks, host };
        STATIONS.iter().enumerate().filter_map(move |(place, name)| {
            let mut frames = machine.frames(name)?;
            frames.sort_by(|a, b| a.at.total_cmp(&b.at));
            let mut track = Track::new(Group::Station, place, &host.name, name);
            frames.into_iter().for_each(|frame| track.push(frame));
            Some(track)
        })
    });
    stations.collect()
}

struct Machine<'a> {
    inputs: &'a Inputs,
    tracks: &'a [Track],
    host: &'a Host,
}

impl Machine<'_> {
    /// None: this machine does not pass here.
    fn frames(&self, station: &str) -> Option<Vec<Frame>> {
        let role = self.host.role;
        Some(match station {
            "power" => self.power(),
            "address" => self.address(),
            "ignition" => self.ignition(),
            "config" if role != Role::Bootstrap => self.config(),
            "software" => self.software(),
            "kubelet" if role != Role::Bootstrap => self.copy("kubelet-join"),
            "etcd" if role == Role::Master => self.two("etcd-join", "etcd-wait/voter"),
            "etcd" if role == Role::Bootstrap => {
                self.two("bootkube/etcd-bootstrap", "bootkube/wait-for-etcd")
            }
            "api" if role != Role::Worker => self.api(),
            "ready" if role == Role::Bootstrap => self.copy("bootkube"),
            "ready" => self.ready(),
            _ => return None,
        })
    }

    fn track(&self, name: &str) -> Option<&Track> {
        find(self.tracks, &self.host.name, name)
    }

    /// What the helper saw of this machine.
    fn seen<T>(&self, what: impl Fn(&HelperEventKind) -> Option<T>) -> Vec<(f64, T)> {
        let seen =
            self.inputs.events.iter().filter_map(|e| Some((seconds(self.inputs, &e.time)?, what(&e.what)?)));
        seen.collect()
    }

    fn power(&self) -> Vec<Frame> {
        let mut frames = Vec::new();
        if self.inputs.started > 0 {
            frames.push(Frame::new(0.0, State::Open));
        }
        let asks =
            self.seen(|e| matches!(e, HelperEventKind::Dhcp { mac, .. } if self.is(mac)).then_some(()));
        frames.extend(asks.first().map(|(at, ())| Frame::new(*at, State::Done)));
        if self.host.role == Role::Bootstrap {
            let off = self.inputs.milestones.iter().find(|(name, _)| name == "bootstrap node switched off");
            frames.extend(off.map(|(_, at)| {
                Frame::new(*at, State::Gone).note("switched off: the masters carry the cluster")
            }));
        }
        frames
    }

    fn is(&self, mac: &str) -> bool {
        mac.eq_ignore_ascii_case(&self.host.mac)
    }

    fn address(&self) -> Vec<Frame> {
        let asked = self.seen(|e| match e {
            HelperEventKind::Dhcp { message, mac, .. } if self.is(mac) => Some(message.clone()),
            _ => None,
        });
        let mut frames: Vec<Frame> =
            asked.first().map(|(at, _)| Frame::new(*at, State::Open)).into_iter().collect();
        // A lease that is renewed is no news.
        let acked = asked.iter().find(|(_, message)| message == "ACK");
        let refused = asked
            .iter()
            .filter(|(at, m)| (m == "NAK" || m == "REFUSED") && acked.is_none_or(|(acked, _)| at < acked));
        frames.extend(
            refused.map(|(at, message)| Frame::new(*at, State::Failed).note(format!("DHCP {message}"))),
        );
        frames.extend(acked.map(|(at, _)| Frame::new(*at, State::Done).note(self.host.address.to_string())));
        frames
    }

    /// Ignition's first file: bootstrap's whole config, the others' pointer.
    fn ignition(&self) -> Vec<Frame> {
        let fetched = self.seen(|e| match e {
            HelperEventKind::Http { path, status, remote, bytes, .. }
                if self.host.is_at(*remote) && path.starts_with("/ign/") =>
            {
                Some((*status == 200, format!("{bytes} bytes, {status}")))
            }
            HelperEventKind::Refused { remote, reason, .. } if self.host.is_at(*remote) => {
                Some((false, reason.clone()))
            }
            _ => None,
        });
        let mut frames: Vec<Frame> = self.address().into_iter().filter(|f| f.state == State::Done).collect();
        frames.iter_mut().for_each(|frame| *frame = Frame::new(frame.at, State::Open));
        frames.extend(fetched.into_iter().map(|(at, (good, note))| {
            Frame::new(at, if good { State::Done } else { State::Failed }).note(note)
        }));
        frames
    }

    /// The rest, from a machine-config server.
    fn config(&self) -> Vec<Frame> {
        let pointer = self.ignition().into_iter().find(|f| f.state == State::Done);
        let mut frames: Vec<Frame> = pointer.map(|f| Frame::new(f.at, State::Open)).into_iter().collect();
        for (server, asked) in &self.inputs.configs {
            let own = asked.iter().filter(|asked| name(self.inputs, asked) == self.host.name);
            frames.extend(own.filter_map(|asked| {
                let at = seconds(self.inputs, &asked.time)?;
                let status = asked.request.as_ref().map_or(0, |request| request.status);
                let (state, note) = match asked.verdict.as_str() {
                    "allowed" if status == 200 => (State::Done, format!("{server}: {}", asked.reason)),
                    // Let in, but there is nothing for it yet: it asks again.
                    "allowed" => (State::Open, format!("{server} answers {status}")),
                    _ => (State::Failed, format!("{server}: {}", asked.reason)),
                };
                Some(Frame::new(at, state).note(note))
            }));
        }
        frames
    }

    fn software(&self) -> Vec<Frame> {
        let fetched = self.seen(|e| match e {
            HelperEventKind::Http { path, remote, .. } if self.host.is_at(*remote) => {
                path.strip_prefix("/bin/").map(str::to_string)
            }
            _ => None,
        });
        let runs = RUNS.iter().filter_map(|name| self.track(name)?.frames.first()).map(|frame| frame.at);
        let runs = runs.min_by(f64::total_cmp);
        let mut frames: Vec<Frame> =
            fetched.first().map(|(at, _)| Frame::new(*at, State::Open)).into_iter().collect();
        frames.extend(runs.filter(|_| !fetched.is_empty()).map(|at| Frame::new(at, State::Done)));
        frames
    }

    /// As the journal has it.
    fn copy(&self, name: &str) -> Vec<Frame> {
        self.track(name).map(|track| track.frames.clone()).unwrap_or_default()
    }

    /// Begins with one and is done with the other.
    fn two(&self, first: &str, last: &str) -> Vec<Frame> {
        let begun = self.track(first).and_then(|t| t.frames.first()).map(|f| Frame::new(f.at, State::Open));
        let ends = self.track(last).map_or(&[][..], |t| &t.frames).iter().filter(|f| f.state != State::Open);
        begun.into_iter().chain(ends.cloned()).collect()
    }

    /// Until the load balancer takes it; bootstrap's leaves in the end.
    fn api(&self) -> Vec<Frame> {
        let start = match self.host.role {
            Role::Bootstrap => self.track("bootkube/cb-bootstrap/start"),
            _ => self.track("installer/kube-apiserver-pod"),
        };
        let mut frames: Vec<Frame> =
            start.and_then(|t| t.frames.first()).map(|f| Frame::new(f.at, State::Open)).into_iter().collect();
        let health = self.seen(|e| match e {
            HelperEventKind::Backend { port, host, healthy, reason }
                if *port == ports::API && *host == self.host.name =>
            {
                Some((*healthy, reason.clone()))
            }
            _ => None,
        });
        let mut was_up = false;
        for (at, (healthy, reason)) in health {
            let state = match (healthy, self.host.role) {
                (true, _) => State::Done,
                (false, Role::Bootstrap) if was_up => State::Gone,
                (false, _) if was_up => State::Interrupted,
                // Not up yet is no news.
                (false, _) => continue,
            };
            was_up |= healthy;
            frames.push(Frame::new(at, state).note(reason));
        }
        frames
    }

    /// The kubelet runs; the rest only the API knows, or whoever asked it then.
    fn ready(&self) -> Vec<Frame> {
        let joined = self.track("kubelet-join").and_then(|t| t.first(State::Done));
        let mut frames: Vec<Frame> = joined.map(|at| Frame::new(at, State::Open)).into_iter().collect();
        let nodes = self.inputs.cluster.iter().flat_map(|c| &c.nodes);
        match nodes.into_iter().find(|node| node.name == self.host.name) {
            Some(node) => frames.extend(seconds(self.inputs, &node.since).map(|at| match node.ready {
                true => Frame::new(at, State::Done).note("Node is Ready"),
                false => Frame::new(at, State::Open).note("Node is not Ready"),
            })),
            None => {
                let told = if self.host.role == Role::Worker { WORKERS_READY } else { OPERATORS_FINISHED };
                let reached = self.inputs.milestones.iter().find(|(name, _)| name.starts_with(told));
                frames.extend(reached.map(|(name, at)| Frame::new(*at, State::Done).note(name.as_str())));
            }
        }
        frames
    }
}
