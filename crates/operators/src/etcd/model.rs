//! Four machines join, fail, come back and leave in every order up to a depth, with `decide` in the loop.
//!
//! A look and what is done after it are separate steps: anything may happen between. etcd's own rules are those of its code: a
//! change needs a majority of voters that run, an addition all of them.

use super::decide::{Action, Arrival, Master, Removed, State, decide};
use super::tests::{PATIENCE, ip, master, member};
use seedling_components::etcd::{BOOTSTRAP_MEMBER, peer_url};
use stateright::{Checker, Model, Property};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const BOOTSTRAP: usize = 0;
const HOSTS: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Host {
    Down,
    /// Its etcd waits to be on the list.
    Waits,
    /// It waits, and its disk is a new one.
    Empty,
    /// With the data of this member.
    Runs(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Seat {
    id: u64,
    host: usize,
    learner: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    hosts: [Host; HOSTS],
    seats: Vec<Seat>,
    leader: u64,
    /// Patience with this host is over; begins anew when its member answers.
    over: [bool; HOSTS],
    /// Its member was removed; true: it was started since.
    removed: [Option<bool>; HOSTS],
    complete: bool,
    plan: Vec<Action>,
    /// Members that answered at the look, and who led.
    seen: (Vec<u64>, u64),
    next_id: u64,
    /// Members that had data.
    ran: BTreeSet<u64>,
    failures: u8,
    /// What must never be.
    broken: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Fail(usize),
    Start(usize),
    /// With a new disk.
    StartEmpty(usize),
    Join(usize),
    PatienceOver(usize),
    Elect(u64),
    Complete,
    Look,
    Act,
}

impl World {
    fn new() -> Self {
        let mut hosts = [Host::Down; HOSTS];
        hosts[BOOTSTRAP] = Host::Runs(1);
        Self {
            hosts,
            seats: vec![Seat { id: 1, host: BOOTSTRAP, learner: false }],
            leader: 1,
            over: [false; HOSTS],
            removed: [None; HOSTS],
            complete: false,
            plan: vec![],
            seen: (vec![], 0),
            next_id: 2,
            ran: [1].into(),
            failures: 0,
            broken: None,
        }
    }
    /// What the operator does by itself when nothing fails: everybody started, then so many looks.
    fn after(looks: usize) -> Self {
        let mut world = Self::new();
        (1..HOSTS).for_each(|host| world.start(host));
        for _ in 0..looks {
            world.look();
            while !world.plan.is_empty() {
                world.act();
            }
            (1..HOSTS).for_each(|host| world.join(host));
        }
        world
    }
    fn answers(&self, seat: &Seat) -> bool {
        self.hosts[seat.host] == Host::Runs(seat.id)
    }
    fn voters(&self) -> impl Iterator<Item = &Seat> {
        self.seats.iter().filter(|s| !s.learner)
    }
    fn leads(&self) -> bool {
        self.voters().any(|s| s.id == self.leader && self.answers(s)) && self.has_quorum()
    }
    fn has_quorum(&self) -> bool {
        self.voters().filter(|s| self.answers(s)).count() > self.voters().count() / 2
    }
    fn seat_of(&self, host: usize) -> Option<&Seat> {
        self.seats.iter().find(|s| s.host == host)
    }
    fn is_well(&self, host: usize) -> bool {
        self.seat_of(host).is_some_and(|s| self.answers(s))
    }

    /// What the operator sees.
    fn state(&self) -> State {
        let waited = |host: usize| if self.over[host] { PATIENCE } else { Duration::ZERO };
        let name = |host: usize| if host == BOOTSTRAP { BOOTSTRAP_MEMBER } else { "master" };
        let members = self.seats.iter().map(|s| member(s.id, name(s.host), 10 + s.host as u8, s.learner));
        let silent = self.seats.iter().filter(|s| !self.answers(s)).map(|s| (s.id, waited(s.host)));
        let masters = (1..HOSTS).map(|host| Master {
            step: Arrival::Absent,
            stalled: if self.is_well(host) { Duration::ZERO } else { waited(host) },
            removed: self.removed[host].map(|came_back| Removed { why: String::new(), came_back }),
            ..master(10 + host as u8)
        });
        State {
            members: members.collect(),
            silent: silent.collect(),
            leader: self.leader,
            lost: self.seats.iter().filter(|s| self.is_lost(s)).map(|s| s.id).collect(),
            masters: masters.collect(),
            bootstrap_complete: self.complete,
            patience: PATIENCE,
            space: BTreeMap::new(),
            wrong: BTreeSet::new(),
            unclear: None,
        }
    }

    fn look(&mut self) {
        let answering = self.seats.iter().filter(|s| self.answers(s)).map(|s| s.id);
        self.seen = (answering.collect(), self.leader);
        self.plan = decide(&self.state());
        let promotions = self.plan.iter().filter(|a| matches!(a, Action::Promote(_))).count();
        self.demand(promotions <= [0, 2, 1, 1, 1][self.voters().count()], "too many promotions at once");
    }

    fn demand(&mut self, holds: bool, what: &'static str) {
        if !holds {
            self.broken = Some(what);
        }
    }

    /// The next step of the plan. What etcd refuses ends the plan.
    fn act(&mut self) {
        let action = self.plan.remove(0);
        if !self.leads() || self.leader != self.seen.1 || !self.apply(&action) {
            self.plan.clear();
            return;
        }
        // Had nobody failed since the look, there would be a majority now.
        let seen = self.voters().filter(|s| self.seen.0.contains(&s.id)).count();
        self.demand(seen > self.voters().count() / 2, "below quorum by an action");
        let alone = self.voters().count() == 2
            && matches!(action, Action::Promote(_))
            && !matches!(self.plan.first(), Some(Action::Promote(_)));
        self.demand(!alone, "two voters and no third on the way");
    }

    /// False: refused.
    fn apply(&mut self, action: &Action) -> bool {
        match action {
            Action::AddLearner(url) => {
                let host = (1..HOSTS).find(|h| peer_url(ip(10 + *h as u8)) == *url).unwrap_or(BOOTSTRAP);
                if !self.voters().all(|s| self.answers(s)) {
                    return false;
                }
                self.demand(self.seat_of(host).is_none(), "two members of one master");
                self.demand(self.removed[host] != Some(false), "added before it came");
                self.seats.push(Seat { id: self.next_id, host, learner: true });
                self.next_id += 1;
                self.removed[host] = None;
                self.over[host] = false;
            }
            Action::Promote(id) => {
                let Some(seat) = self.seats.iter_mut().find(|s| s.id == *id) else { return false };
                seat.learner = false;
            }
            Action::Defragment(_) => self.demand(false, "no member's size is in this model"),
            Action::MoveLeader(id) => {
                if !self.voters().any(|s| s.id == *id && self.answers(s)) {
                    return false;
                }
                self.leader = *id;
            }
            Action::Remove(id) | Action::GiveUp(id) | Action::Replace(id) => {
                self.demand(*id != self.leader, "the leader was removed");
                let Some(seat) = self.seats.iter().find(|s| s.id == *id).copied() else { return false };
                self.seats.retain(|s| s.id != *id);
                self.demand(self.voters().count() > 0, "the last voter was removed");
                if seat.host == BOOTSTRAP {
                    self.demand(self.complete, "bootstrap left before it was complete");
                    self.demand(self.voters().count() >= 2, "one master was left alone");
                } else if !matches!(action, Action::Replace(_)) {
                    // A member that finds itself removed ends, and is started again.
                    let ended = self.hosts[seat.host] == Host::Runs(*id);
                    self.removed[seat.host] = Some(ended);
                }
                if self.hosts[seat.host] == Host::Runs(*id) {
                    self.hosts[seat.host] = if seat.host == BOOTSTRAP { Host::Down } else { Host::Waits };
                }
            }
        }
        true
    }

    fn start(&mut self, host: usize) {
        // With the data of a member that still is one it goes on; other data is thrown away.
        self.hosts[host] = Host::Waits;
        if let Some(removed) = &mut self.removed[host] {
            *removed = true;
        }
    }

    fn waits(&self, host: usize) -> bool {
        matches!(self.hosts[host], Host::Waits | Host::Empty)
    }
    /// It has run, and its machine has nothing of what it agreed to.
    fn is_lost(&self, seat: &Seat) -> bool {
        self.hosts[seat.host] == Host::Empty && self.ran.contains(&seat.id)
    }
    fn join(&mut self, host: usize) {
        if let Some(id) = self.seat_of(host).map(|s| s.id) {
            let forgets = self.hosts[host] == Host::Empty && self.ran.contains(&id);
            self.demand(!forgets, "a member votes that has forgotten what it agreed to");
            self.ran.insert(id);
            self.hosts[host] = Host::Runs(id);
            self.over[host] = false;
        }
    }

    /// If nothing fails any more, and there is a majority and two masters: bootstrap leaves, every living master votes, and no
    /// learner is left that does not start.
    fn settles(&self) -> bool {
        let mut world = self.clone();
        let alive = |w: &Self| (1..HOSTS).filter(|h| w.hosts[*h] != Host::Down).count();
        if !world.has_quorum() || alive(&world) < 2 {
            return true;
        }
        world.complete = true;
        world.plan.clear();
        for _ in 0..40 {
            if !world.leads() {
                let heir = world.voters().find(|s| world.answers(s)).map(|s| s.id);
                world.leader = heir.unwrap_or_default();
            }
            for host in 1..HOSTS {
                let lost = world.seat_of(host).is_some_and(|s| world.is_lost(s));
                if world.waits(host) && !lost {
                    world.join(host);
                }
                world.over[host] = !world.is_well(host);
                // Whoever waits and is not let in is restarted one day.
                if world.waits(host) && world.removed[host] == Some(false) {
                    world.removed[host] = Some(true);
                }
            }
            world.look();
            while !world.plan.is_empty() {
                world.act();
            }
        }
        let votes = |h: usize| world.seat_of(h).is_some_and(|s| !s.learner) && world.is_well(h);
        let idle = |s: &Seat| s.learner && !world.answers(s);
        world.broken.is_none()
            && world.seat_of(BOOTSTRAP).is_none()
            && (1..HOSTS).all(|h| world.hosts[h] == Host::Down || votes(h))
            && !world.seats.iter().any(idle)
    }
}

/// How many failures may happen on one path.
struct Growth {
    failures: u8,
}

impl Model for Growth {
    type State = World;
    type Action = Event;

    /// Nothing, three learners, three voters and a learner, four voters.
    fn init_states(&self) -> Vec<World> {
        vec![World::new(), World::after(1), World::after(2), World::after(3)]
    }

    fn actions(&self, world: &World, events: &mut Vec<Event>) {
        for host in 0..HOSTS {
            match world.hosts[host] {
                Host::Down if host != BOOTSTRAP || world.seat_of(host).is_some() => {
                    events.push(Event::Start(host));
                    if host != BOOTSTRAP && world.seat_of(host).is_some_and(|s| world.ran.contains(&s.id)) {
                        events.push(Event::StartEmpty(host));
                    }
                }
                Host::Waits if world.seat_of(host).is_some() => events.push(Event::Join(host)),
                Host::Empty if world.seat_of(host).is_some_and(|s| !world.is_lost(s)) => {
                    events.push(Event::Join(host))
                }
                _ => {}
            }
            if world.hosts[host] != Host::Down && world.failures < self.failures {
                events.push(Event::Fail(host));
            }
            if !world.is_well(host) && !world.over[host] {
                events.push(Event::PatienceOver(host));
            }
        }
        if !world.leads() && world.has_quorum() {
            events.extend(world.voters().filter(|s| world.answers(s)).map(|s| Event::Elect(s.id)));
        }
        if !world.complete && world.state().running_in_cluster() {
            events.push(Event::Complete);
        }
        match world.plan.is_empty() {
            true if world.leads() => events.push(Event::Look),
            true => {}
            false => events.push(Event::Act),
        }
    }

    fn next_state(&self, world: &World, event: Event) -> Option<World> {
        let mut next = world.clone();
        match event {
            Event::Fail(host) => {
                next.hosts[host] = Host::Down;
                next.failures += 1;
            }
            Event::Start(host) => next.start(host),
            Event::StartEmpty(host) => {
                next.start(host);
                next.hosts[host] = Host::Empty;
            }
            Event::Join(host) => next.join(host),
            Event::PatienceOver(host) => next.over[host] = true,
            Event::Elect(id) => next.leader = id,
            Event::Complete => next.complete = true,
            Event::Look => next.look(),
            Event::Act => next.act(),
        }
        (next != *world).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("nothing is broken", |_, world: &World| world.broken.is_none()),
            Property::always("it settles", |_, world: &World| world.settles()),
            Property::sometimes("all masters carry it", |_, world: &World| {
                world.seat_of(BOOTSTRAP).is_none() && world.voters().count() == 3
            }),
            Property::sometimes("two masters carry it", |_, world: &World| {
                world.seat_of(BOOTSTRAP).is_none() && world.voters().count() == 2
            }),
            Property::sometimes("a removed one is back", |_, world: &World| world.next_id > 5),
        ]
    }
}

#[test]
fn no_order_of_events_breaks_the_cluster() {
    let voters = |looks| World::after(looks).voters().count();
    assert_eq!([0, 1, 2, 3].map(voters), [1, 1, 3, 4]);
    let checker = Growth { failures: 2 }.checker().target_max_depth(14).threads(2).spawn_bfs().join();
    checker.assert_properties();
}
