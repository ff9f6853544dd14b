//! Bootstrap and two masters, from the moment when two vote: writes, crashes, a cut cable, a killed bootkube, bootstrap's member going
//! on alone, members that come back and are told that they were removed, a person who accepts a loss. In every order.
//!
//! The rules are those of `seedling_cluster::recovery`; each can be put back to what it was, and then the walk finds what it cost.
//! etcd's own rules: an entry is agreed on when a majority has it on the disk; who leads has a log at least as long as those who
//! vote for it; what is known to be agreed on is on the disk with the next entry, or when a member ends in order.

use super::tests::{PATIENCE, member};
use seedling_cluster::etcd::{Member, Status};
use seedling_cluster::recovery::{Allows, Answer, Next, Refusal, Seen, Tail, next, other_voter, was_removed};
use stateright::{Checker, HasDiscoveries, Model, Property};
use std::collections::BTreeSet;

const B: usize = 0;
const HOSTS: [usize; 3] = [0, 1, 2];

/// A set of hosts, or of writes.
type Set = u8;

const fn only(n: usize) -> Set {
    1 << n
}
fn has(set: Set, n: usize) -> bool {
    set & only(n) != 0
}
fn majority(some: Set, of: Set) -> bool {
    (some & of).count_ones() > of.count_ones() / 2
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Entry {
    by: usize,
    term: u64,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum What {
    Write(usize),
    Voters(Set),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Host {
    up: bool,
    log: Vec<Entry>,
    /// How much of it is known to be agreed on; and what of that is on the disk.
    known: usize,
    saved: usize,
    /// Writes in data that was moved aside.
    aside: Set,
}

fn voters(log: &[Entry]) -> Set {
    let lists =
        log.iter().rev().filter_map(|e| if let What::Voters(set) = e.what { Some(set) } else { None });
    lists.take(1).sum()
}

impl Host {
    fn voters(&self) -> Set {
        voters(&self.log[..self.known])
    }
    fn reach(&self) -> (u64, usize) {
        (self.log.last().map_or(0, |e| e.term), self.log.len())
    }
    fn writes(&self) -> Set {
        let writes =
            self.log.iter().filter_map(|e| if let What::Write(n) = e.what { Some(only(n)) } else { None });
        writes.fold(0, |set, write| set | write)
    }
    fn tail(&self) -> Tail {
        let unknown = &self.log[self.saved..];
        Tail {
            commit: self.saved as u64,
            last: self.log.len() as u64,
            term: self.reach().0,
            changes_members: unknown.iter().any(|e| matches!(e.what, What::Voters(_))),
        }
    }
    fn append(&mut self, entry: Entry) {
        // An entry goes to the disk with what is known so far.
        self.saved = self.known;
        self.log.push(entry);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Bootkube {
    Watches,
    /// It is about to stop etcd.
    Stops,
    Killed,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    hosts: [Host; 3],
    /// Its cable is out.
    cut: Option<usize>,
    bootkube: Bootkube,
    order: Option<Allows>,
    /// In the journal: begun and not ended; what a start refused; what a person accepted.
    open: bool,
    refused: Option<Tail>,
    accepted: Option<Tail>,
    acknowledged: Set,
    /// Dropped with a person's word.
    forgiven: Set,
    went_alone: u8,
    left: Left,
    broken: Option<&'static str>,
}

/// How much may still happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Left {
    writes: usize,
    crashes: u8,
    cuts: u8,
    kills: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// By whom; late: the others do not hear that it was agreed on.
    Write(usize, bool),
    TakeIn(usize, usize, bool),
    Crash(usize),
    Start(usize),
    Cut(usize),
    Heal,
    Look,
    Stop,
    KillBootkube,
    StartBootkube,
    Accept,
}

/// True: as it is now.
#[derive(Clone, Copy)]
struct Rules {
    /// A forced start is for one start and one log.
    once: bool,
    /// Whatever was begun, who votes is asked again.
    asks_again: bool,
    /// etcd is stopped in order, and its log looked at.
    looks_at_log: bool,
    /// Data is moved aside.
    keeps_data: bool,
    /// A majority says that a member was removed, not whoever answers first.
    asks_majority: bool,
    /// With lists that a majority agrees on, not with what each one knows.
    agreed_lists: bool,
}

const NOW: Rules = Rules {
    once: true,
    asks_again: true,
    looks_at_log: true,
    keeps_data: true,
    asks_majority: true,
    agreed_lists: true,
};

impl World {
    fn new() -> Self {
        let founded = Entry { by: B, term: 1, what: What::Voters(only(0) | only(1)) };
        let voter = Host { up: true, log: vec![founded], known: 1, saved: 1, aside: 0 };
        Self {
            hosts: [voter.clone(), voter, Host { up: true, ..Host::default() }],
            cut: None,
            bootkube: Bootkube::Watches,
            order: None,
            open: false,
            refused: None,
            accepted: None,
            acknowledged: 0,
            forgiven: 0,
            went_alone: 0,
            left: Left { writes: 2, crashes: 2, cuts: 1, kills: 1 },
            broken: None,
        }
    }

    fn reach_each_other(&self, one: usize, other: usize) -> bool {
        let up = self.hosts[one].up && self.hosts[other].up;
        up && (one == other || self.cut != Some(one) && self.cut != Some(other))
    }

    /// Those who vote for it, if they are enough.
    fn led_by(&self, leader: usize) -> Option<Set> {
        let host = &self.hosts[leader];
        let agrees = |x: &&usize| {
            let other = &self.hosts[**x];
            has(host.voters(), **x)
                && self.reach_each_other(leader, **x)
                && has(other.voters(), leader)
                && other.reach() <= host.reach()
        };
        let agree = HOSTS.iter().filter(agrees).fold(0, |set, x| set | only(*x));
        (has(agree, leader) && majority(agree, host.voters())).then_some(agree)
    }

    /// The list that this host and a majority agree on. Who leads has made sure of all that is in its log before it answers.
    fn agreed(&self, host: usize) -> Option<Set> {
        let list = |leader: usize| {
            let set = self.led_by(leader).filter(|set| has(*set, host))?;
            let voters = voters(&self.hosts[leader].log);
            majority(set, voters).then_some((self.hosts[leader].reach(), voters))
        };
        HOSTS.into_iter().filter_map(list).max().map(|(_, voters)| voters)
    }

    fn agree_on(&mut self, leader: usize, what: What, late: bool) {
        let Some(set) = self.led_by(leader) else { return };
        let last = self.hosts[leader].log.last().copied();
        let highest =
            HOSTS.iter().filter(|x| has(set, **x)).map(|x| self.hosts[*x].reach().0).max().unwrap_or(0);
        let term = last.filter(|e| e.by == leader && e.term == highest).map_or(highest + 1, |e| e.term);
        self.hosts[leader].append(Entry { by: leader, term, what });
        let log = self.hosts[leader].log.clone();
        self.hosts[leader].known = log.len();
        for x in HOSTS.into_iter().filter(|x| has(set, *x) && *x != leader) {
            let host = &mut self.hosts[x];
            host.saved = host.known;
            host.log.clone_from(&log);
            host.known = if late { host.known } else { log.len() };
        }
        if let What::Write(n) = what {
            self.acknowledged |= only(n);
        }
    }

    fn take_in(&mut self, leader: usize, new: usize, late: bool) {
        self.agree_on(leader, What::Voters(self.hosts[leader].voters() | only(new)), late);
        let Host { log, known, .. } = self.hosts[leader].clone();
        let host = &mut self.hosts[new];
        (host.log, host.saved, host.known) = (log, known, known);
    }

    /// What bootkube sees.
    fn look(&mut self, rules: Rules) {
        let here = &self.hosts[B];
        let (known, voters) = (here.known as u64, here.voters());
        let leader = if self.agreed(B).is_some() { 1 } else { 0 };
        let status =
            Status { member: 1, cluster: 9, leader, committed: known, applied: known, ..Status::default() };
        let members = members(voters);
        let other = other_voter(&status, &members).filter(|m| !self.reach_each_other(B, m.id as usize - 1));
        let mut seen = match other {
            Some(m) => {
                Seen::Lost { name: m.name.clone(), silent: PATIENCE, committed: known, applied: known }
            }
            None => Seen::Well,
        };
        // As it was: what was begun is gone on with, unless somebody leads.
        if !rules.asks_again && self.open && leader == 0 {
            seen = Seen::Lost { name: String::new(), silent: PATIENCE, committed: known, applied: known };
        }
        let refused = self.refused.map(|tail| Refusal { tail: Some(tail), why: String::new() });
        match next(seen, refused, self.accepted, PATIENCE) {
            Next::Wait | Next::Ask(..) => {}
            Next::Close => (self.order, self.open, self.refused) = (None, false, None),
            Next::GoAlone(_, allows) => {
                (self.order, self.open) = (Some(allows), true);
                self.bootkube = Bootkube::Stops;
            }
        }
    }

    fn start_bootstrap(&mut self, rules: Rules) {
        let order = if rules.once { self.order.take() } else { self.order };
        let host = &mut self.hosts[B];
        (host.up, host.known) = (true, host.saved);
        let Some(allows) = order else { return };
        let tail = host.tail();
        if rules.looks_at_log && rules.once && !allows.fits(&tail) {
            self.refused = Some(tail);
            return;
        }
        let before = host.writes();
        host.log.truncate(host.saved);
        if matches!(allows, Allows::Loss(_)) {
            self.forgiven |= before & !host.writes();
        }
        let term = host.reach().0 + 1;
        host.append(Entry { by: B, term, what: What::Voters(only(B)) });
        (host.known, host.saved) = (host.log.len(), host.log.len());
        self.went_alone += 1;
    }

    /// `etcd-join`, with data.
    fn start_master(&mut self, me: usize, rules: Rules) {
        let host = &mut self.hosts[me];
        (host.up, host.known) = (true, host.saved);
        if host.log.is_empty() {
            return;
        }
        let others = HOSTS.into_iter().filter(|x| *x != me && self.reach_each_other(me, *x));
        let list = |x: usize| match rules.agreed_lists {
            true => self.agreed(x),
            false => Some(self.hosts[x].voters()).filter(|voters| *voters != 0),
        };
        let answer =
            |x: usize| Some(Answer { from: x as u64 + 1, members: members(list(x)?), ..Answer::default() });
        let answers: Vec<_> = others.filter_map(answer).collect();
        let known: BTreeSet<u64> = members(self.hosts[me].voters()).iter().map(|m| m.id).collect();
        let id = me as u64 + 1;
        let removed = match rules.asks_majority {
            true => was_removed(id, &known, &answers),
            false => answers.first().is_some_and(|a| !a.members.iter().any(|m| m.id == id)),
        };
        if removed {
            let votes = |x: &usize| *x != me && self.led_by(*x).is_some() && has(self.hosts[*x].voters(), me);
            if HOSTS.iter().any(votes) {
                self.broken = Some("a voter's data was taken away");
            }
            let host = &mut self.hosts[me];
            let writes = host.writes();
            host.aside |= if rules.keeps_data { writes } else { 0 };
            (host.log, host.known, host.saved) = (vec![], 0, 0);
        }
    }

    /// Whoever may lead, and those who follow it, have one in common.
    fn is_one(&self) -> bool {
        let led: Vec<Set> = HOSTS.iter().filter_map(|h| self.led_by(*h)).collect();
        led.iter().all(|one| led.iter().all(|other| one & other != 0))
    }

    /// Whoever may lead has everything that a client was told is kept.
    fn keeps_what_it_said(&self) -> bool {
        let must = self.acknowledged & !self.forgiven;
        HOSTS.iter().filter(|h| self.led_by(**h).is_some()).all(|h| must & !self.hosts[*h].writes() == 0)
    }

    fn is_on_a_disk(&self) -> bool {
        let kept = self.hosts.iter().fold(0, |set, host| set | host.writes() | host.aside);
        self.acknowledged & !kept == 0
    }
}

fn members(voters: Set) -> Vec<Member> {
    let one = |h: &usize| member(*h as u64 + 1, &format!("host-{h}"), 10 + *h as u8, false);
    HOSTS.iter().filter(|h| has(voters, **h)).map(one).collect()
}

impl Model for Rules {
    type State = World;
    type Action = Event;

    fn init_states(&self) -> Vec<World> {
        vec![World::new()]
    }

    fn actions(&self, world: &World, events: &mut Vec<Event>) {
        for host in HOSTS {
            if world.led_by(host).is_some() {
                if world.left.writes > 0 {
                    events.extend([false, true].map(|late| Event::Write(host, late)));
                }
                // A master whose etcd waits, with no data.
                let waits = |x: &usize| world.hosts[*x].log.is_empty() && world.reach_each_other(host, *x);
                for new in HOSTS.into_iter().filter(waits) {
                    events.extend([false, true].map(|late| Event::TakeIn(host, new, late)));
                }
            }
            match world.hosts[host].up {
                true if world.left.crashes > 0 => events.push(Event::Crash(host)),
                true => {}
                false => events.push(Event::Start(host)),
            }
            if world.cut.is_none() && world.left.cuts > 0 {
                events.push(Event::Cut(host));
            }
        }
        if world.cut.is_some() {
            events.push(Event::Heal);
        }
        match world.bootkube {
            Bootkube::Killed => events.push(Event::StartBootkube),
            Bootkube::Watches if world.hosts[B].up => events.push(Event::Look),
            Bootkube::Watches => {}
            Bootkube::Stops => events.push(Event::Stop),
        }
        if world.bootkube != Bootkube::Killed && world.left.kills > 0 {
            events.push(Event::KillBootkube);
        }
        if world.refused.is_some() && world.accepted != world.refused {
            events.push(Event::Accept);
        }
    }

    fn next_state(&self, world: &World, event: Event) -> Option<World> {
        let mut next = world.clone();
        match event {
            Event::Write(leader, late) => {
                next.left.writes -= 1;
                next.agree_on(leader, What::Write(next.left.writes), late);
            }
            Event::TakeIn(leader, new, late) => next.take_in(leader, new, late),
            Event::Crash(host) => {
                next.left.crashes -= 1;
                next.hosts[host].up = false;
            }
            Event::Start(B) => next.start_bootstrap(*self),
            Event::Start(host) => next.start_master(host, *self),
            Event::Cut(host) => {
                next.left.cuts -= 1;
                next.cut = Some(host);
            }
            Event::Heal => next.cut = None,
            Event::Look => next.look(*self),
            Event::Stop => {
                let host = &mut next.hosts[B];
                if self.looks_at_log && host.up {
                    host.saved = host.known;
                }
                host.up = false;
                next.bootkube = Bootkube::Watches;
            }
            Event::KillBootkube => {
                next.left.kills -= 1;
                next.bootkube = Bootkube::Killed;
            }
            Event::StartBootkube => {
                next.bootkube = Bootkube::Watches;
                if self.once {
                    next.order = None;
                }
            }
            Event::Accept => next.accepted = next.refused,
        }
        (next != *world).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONE, |_, world: &World| world.is_one()),
            Property::always(KEPT, |_, world: &World| world.keeps_what_it_said()),
            Property::always(ON_DISK, |_, world: &World| world.is_on_a_disk()),
            Property::always(UNBROKEN, |_, world: &World| world.broken.is_none()),
            Property::sometimes("it went on alone", |_, world: &World| world.went_alone > 0),
            Property::sometimes("a loss was accepted", |_, world: &World| world.forgiven != 0),
            Property::sometimes("one that was removed is back", |_, world: &World| {
                world.hosts[1].aside != 0 && has(world.hosts[B].voters(), 1)
            }),
        ]
    }

    fn within_boundary(&self, world: &World) -> bool {
        world.hosts.iter().all(|host| host.log.len() <= 6)
    }
}

const ONE: &str = "there is one cluster";
const KEPT: &str = "what was acknowledged is there";
const ON_DISK: &str = "what was acknowledged is on a disk";
const UNBROKEN: &str = "nobody who votes loses its data";
const DEPTH: usize = 12;

#[test]
fn no_order_of_events_loses_data_or_makes_two_clusters() {
    NOW.checker().target_max_depth(DEPTH).threads(2).spawn_bfs().join().assert_properties();
}

/// Each rule as it was, and what the walk finds then.
#[test]
fn the_rules_as_they_were_are_found_out() {
    let found = |rules: Rules, property: &'static str| {
        let checker = rules.checker().target_max_depth(DEPTH).threads(2);
        let checker = checker.finish_when(HasDiscoveries::AnyOf([property].into())).spawn_bfs().join();
        assert!(checker.discovery(property).is_some(), "{property}: nothing was found");
    };
    // bootkube killed, masters joined, etcd started again with the config that still says so.
    found(Rules { once: false, ..NOW }, ONE);
    // A step that was left open, and three voters since.
    found(Rules { asks_again: false, ..NOW }, ONE);
    // An entry that both had, and only the one that died knew to be agreed on.
    found(Rules { looks_at_log: false, ..NOW }, KEPT);
    // A person gave up the member that came back with what was lost.
    found(Rules { keeps_data: false, ..NOW }, ON_DISK);
    // A member that lags answers first, and does not know the one that asks.
    found(Rules { asks_majority: false, agreed_lists: false, ..NOW }, UNBROKEN);
}
