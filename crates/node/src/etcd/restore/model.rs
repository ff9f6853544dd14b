//! Three masters after the handoff: writes, crashes, new disks, a person who restores on one of them while the others may come back at any
//! moment, and joins. In every order.
//!
//! The rules are `decide::question`, `was_given_up`, and what is asked again before data is touched; each can be left out, and then the walk finds
//! what it costs. So is what people are asked to keep: that old disks do not come back while no restored member is on.

use super::decide::{Log, Seen, question};
use seedling_cluster::recovery::{Answer, Tail, was_given_up};
use stateright::{Checker, HasDiscoveries, Model, Property};

const HOSTS: [usize; 3] = [0, 1, 2];

/// A set of hosts, of writes, or of clusters.
type Set = u8;

fn has(set: Set, n: usize) -> bool {
    set & (1 << n) != 0
}
fn members(set: Set) -> impl Iterator<Item = u64> {
    (0..8).filter(move |n| has(set, *n)).map(|n| n as u64)
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Host {
    up: bool,
    /// Of which cluster, and which writes.
    data: Option<(usize, Set)>,
    /// Writes in data that was moved aside.
    aside: Set,
    /// A restore was ordered, and is not carried out.
    order: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Cluster {
    voters: Set,
    given_up: Set,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    hosts: [Host; 3],
    clusters: Vec<Cluster>,
    acknowledged: Set,
    /// A person was told that they may be lost.
    forgiven: Set,
    /// On disks that are no more.
    burnt: Set,
    writes: usize,
    crashes: u8,
    disks: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Write(usize),
    Crash(usize),
    Start(usize),
    NewDisk(usize),
    Join(usize, usize),
    Order(usize),
    CarryOut(usize),
}

/// True: as it is.
#[derive(Clone, Copy)]
struct Rules {
    refuses: bool,
    asks_again: bool,
    tells: bool,
    /// People: old disks come back only while a member of the restored cluster is on.
    stays_on: bool,
}

const NOW: Rules = Rules { refuses: true, asks_again: true, tells: true, stays_on: true };

impl World {
    fn new() -> Self {
        let host = Host { up: true, data: Some((0, 0)), aside: 0, order: false };
        Self {
            hosts: [host.clone(), host.clone(), host],
            clusters: vec![Cluster { voters: 0b111, given_up: 0 }],
            acknowledged: 0,
            forgiven: 0,
            burnt: 0,
            writes: 2,
            crashes: 6,
            disks: 2,
        }
    }
    fn is_of(&self, host: usize, cluster: usize) -> bool {
        self.hosts[host].data.is_some_and(|(of, _)| of == cluster)
    }
    fn serving(&self, cluster: usize) -> Vec<usize> {
        let voters = self.clusters[cluster].voters;
        HOSTS
            .into_iter()
            .filter(|h| self.hosts[*h].up && has(voters, *h) && self.is_of(*h, cluster))
            .collect()
    }
    fn leads(&self, cluster: usize) -> bool {
        self.serving(cluster).len() > self.clusters[cluster].voters.count_ones() as usize / 2
    }
    /// Who of the others answers a master that looks.
    fn answer(&self, host: usize) -> Vec<String> {
        let others =
            HOSTS.into_iter().filter(|h| *h != host && self.hosts[*h].up && self.hosts[*h].data.is_some());
        others.map(|h| format!("master-{h}")).collect()
    }
    fn answers(&self, host: usize) -> Vec<Answer> {
        let others = HOSTS.into_iter().filter(|h| *h != host && self.hosts[*h].up);
        let leads = others.filter_map(|h| self.hosts[h].data.map(|(of, _)| of).filter(|of| self.leads(*of)));
        let given_up = |of: usize| members(self.clusters[of].given_up).collect();
        leads.map(|of| Answer { cluster: of as u64, given_up: given_up(of), ..Answer::default() }).collect()
    }
    /// There is a newer cluster, and nobody of it is on.
    fn would_not_be_told(&self, host: usize) -> bool {
        let Some((of, _)) = self.hosts[host].data else { return false };
        let newer: Vec<_> =
            (0..self.clusters.len()).filter(|c| has(self.clusters[*c].given_up, of)).collect();
        !newer.is_empty() && !newer.iter().any(|c| self.leads(*c))
    }
    fn move_aside(&mut self, host: usize) {
        let host = &mut self.hosts[host];
        host.aside |= host.data.take().map_or(0, |(_, writes)| writes);
    }

    fn may_order(&self, host: usize, rules: Rules) -> bool {
        let tail = Tail { commit: 1, last: 1, term: 1, changes_members: false };
        let seen = Seen {
            node: format!("master-{host}"),
            answer: if rules.refuses { self.answer(host) } else { vec![] },
            log: self.hosts[host].data.map(|_| Ok(Log { tail, written: String::new() })),
            ..Seen::default()
        };
        let leads = self.hosts[host].data.is_some_and(|(of, _)| self.leads(of));
        question(&seen).is_ok() && !(leads && rules.refuses) && !self.hosts[host].order
    }

    fn carry_out(&mut self, host: usize, rules: Rules) {
        self.hosts[host].order = false;
        let Some((of, writes)) = self.hosts[host].data else { return };
        if rules.asks_again && rules.refuses && !self.answer(host).is_empty() {
            return;
        }
        let given_up = self.clusters[of].given_up | 1 << of;
        self.move_aside(host);
        self.hosts[host].data = Some((self.clusters.len(), writes));
        self.clusters.push(Cluster { voters: 1 << host, given_up });
        self.forgiven |= self.acknowledged & !writes;
    }

    /// What was given up agrees on nothing any more, and one cluster at a time does.
    fn is_one(&self) -> bool {
        (0..self.clusters.len()).filter(|c| self.leads(*c)).count() <= 1
    }
    fn keeps_what_it_said(&self) -> bool {
        let leading = (0..self.clusters.len()).filter(|c| self.leads(*c));
        leading.flat_map(|c| self.serving(c)).all(|h| {
            let writes = self.hosts[h].data.map_or(0, |(_, writes)| writes);
            self.acknowledged & !self.forgiven & !writes == 0
        })
    }
    fn is_on_a_disk(&self) -> bool {
        let kept = self.hosts.iter().fold(self.burnt, |all, h| all | h.aside | h.data.map_or(0, |(_, w)| w));
        self.acknowledged & !kept == 0
    }
}

impl Model for Rules {
    type State = World;
    type Action = Event;

    fn init_states(&self) -> Vec<World> {
        vec![World::new()]
    }

    fn actions(&self, world: &World, events: &mut Vec<Event>) {
        let leading: Vec<_> = (0..world.clusters.len()).filter(|c| world.leads(*c)).collect();
        if world.writes > 0 {
            events.extend(leading.iter().map(|c| Event::Write(*c)));
        }
        for host in HOSTS {
            let Host { up, data, order, .. } = &world.hosts[host];
            match up {
                true if world.crashes > 0 => events.push(Event::Crash(host)),
                true => {}
                false if self.stays_on && world.would_not_be_told(host) => {}
                // Its start carries the order out first.
                false if *order => events.push(Event::CarryOut(host)),
                false => events.push(Event::Start(host)),
            }
            if !up && world.disks > 0 {
                events.push(Event::NewDisk(host));
            }
            if *up && data.is_none() {
                events.extend(leading.iter().map(|c| Event::Join(host, *c)));
            }
            let untold = self.stays_on && world.would_not_be_told(host);
            if world.clusters.len() < 3 && !untold && world.may_order(host, *self) {
                events.push(Event::Order(host));
            }
        }
    }

    fn next_state(&self, world: &World, event: Event) -> Option<World> {
        let mut next = world.clone();
        match event {
            Event::Write(cluster) => {
                next.writes -= 1;
                // The leader is one of the newest; those who serve all hear of it.
                let all = world.serving(cluster).iter().fold(1 << next.writes, |all, h| {
                    all | world.hosts[*h].data.map_or(0, |(_, writes)| writes)
                });
                for h in world.serving(cluster) {
                    next.hosts[h].data = Some((cluster, all));
                }
                next.acknowledged |= 1 << next.writes;
            }
            Event::Crash(host) => {
                next.crashes -= 1;
                next.hosts[host].up = false;
            }
            Event::Start(host) | Event::CarryOut(host) => {
                if event == Event::CarryOut(host) {
                    next.carry_out(host, *self);
                }
                next.hosts[host].up = true;
                let of = next.hosts[host].data.map(|(of, _)| of as u64);
                if self.tells && of.is_some_and(|of| was_given_up(of, &world.answers(host))) {
                    next.move_aside(host);
                }
                // A follower gets what it missed.
                if let Some((of, writes)) = next.hosts[host].data
                    && next.leads(of)
                {
                    let writes = next
                        .serving(of)
                        .iter()
                        .filter_map(|h| next.hosts[*h].data)
                        .fold(writes, |all, (_, w)| all | w);
                    next.serving(of).into_iter().for_each(|h| next.hosts[h].data = Some((of, writes)));
                }
            }
            Event::NewDisk(host) => {
                next.disks -= 1;
                let gone = &mut next.hosts[host];
                next.burnt |= gone.aside | gone.data.map_or(0, |(_, writes)| writes);
                (gone.data, gone.aside, gone.order) = (None, 0, false);
            }
            Event::Join(host, cluster) => {
                let staying = world.clusters[cluster].voters & !(1 << host);
                let serving = world.serving(cluster);
                // The one it was is removed first: those who stay must do without it.
                if serving.len() <= staying.count_ones() as usize / 2 {
                    return None;
                }
                let writes =
                    serving.iter().filter_map(|h| world.hosts[*h].data).fold(0, |all, (_, w)| all | w);
                next.clusters[cluster].voters |= 1 << host;
                next.hosts[host].data = Some((cluster, writes));
            }
            Event::Order(host) => {
                next.hosts[host].order = true;
                // The command starts the static pods anew.
                next.hosts[host].up = false;
            }
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONE, |_, world: &World| world.is_one()),
            Property::always(KEPT, |_, world: &World| world.keeps_what_it_said()),
            Property::always("what was acknowledged is on a disk", |_, world: &World| world.is_on_a_disk()),
            Property::sometimes("all three carry what was restored", |_, world: &World| {
                world.clusters.len() > 1 && (1..world.clusters.len()).any(|c| world.serving(c).len() == 3)
            }),
            Property::sometimes("it is restored twice", |_, world: &World| world.clusters.len() == 3),
            Property::sometimes("something was lost, as was said", |_, world: &World| world.forgiven != 0),
        ]
    }
}

const ONE: &str = "one cluster agrees at a time";
const KEPT: &str = "what was acknowledged is there, or was said to be lost";
const DEPTH: usize = 18;

#[test]
fn a_restore_never_makes_two_clusters() {
    NOW.checker().target_max_depth(DEPTH).threads(2).spawn_bfs().join().assert_properties();
}

#[test]
fn each_rule_is_needed() {
    let found = |rules: Rules, property: &'static str| {
        let checker = rules.checker().target_max_depth(DEPTH).threads(2);
        let checker = checker.finish_when(HasDiscoveries::AnyOf([property].into())).spawn_bfs().join();
        assert!(checker.discovery(property).is_some(), "{property}: nothing was found");
    };
    // Beside a majority.
    found(Rules { refuses: false, ..NOW }, ONE);
    // They came back after it was asked, and before it was done.
    found(Rules { asks_again: false, ..NOW }, ONE);
    // Two old disks are two of three.
    found(Rules { tells: false, ..NOW }, ONE);
    // And nobody is there to tell them: what people are told to keep.
    found(Rules { stays_on: false, ..NOW }, ONE);
}
