//! What to do with etcd's members next. Pure: time comes in as data.
//!
//! Invariants (`model.rs` walks them through): never below quorum by what is done here, never a second cluster, nobody is
//! removed who leads, two voters only on the way to three.

use crate::patience::enough;
use seedling_cluster::etcd::{Member, Space};
use seedling_components::etcd::{BOOTSTRAP_MEMBER, peer_url};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    pub members: Vec<Member>,
    /// How long a member's own endpoint has not answered, or known no leader. Who is not in here is healthy.
    pub silent: BTreeMap<u64, Duration>,
    pub leader: u64,
    /// Of members that answer.
    pub space: BTreeMap<u64, Space>,
    /// Members whose machines say that their data is gone or cannot be read.
    pub lost: BTreeSet<u64>,
    /// Members whose data is not what a majority has.
    pub wrong: BTreeSet<u64>,
    /// They differ, and nobody knows who is right.
    pub unclear: Option<String>,
    /// Of the inventory.
    pub masters: Vec<Master>,
    /// ConfigMap kube-system/bootstrap says complete.
    pub bootstrap_complete: bool,
    /// Nobody waits longer than this for what does not move.
    pub patience: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Master {
    pub name: String,
    pub address: IpAddr,
    pub step: Arrival,
    /// How long it has made no progress; zero while its member answers.
    pub stalled: Duration,
    /// Its member was removed, and it is no member since.
    pub removed: Option<Removed>,
}

/// How far a master has come on its way to a running member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Arrival {
    Absent,
    NotReady,
    NodeReady,
    PodThere,
    Runs,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Removed {
    pub why: String,
    /// Its Node is ready and its etcd was started since: it waits to be on the list again.
    pub came_back: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Action {
    /// Peer URL.
    AddLearner(String),
    Promote(u64),
    MoveLeader(u64),
    /// The bootstrap member.
    Remove(u64),
    /// The member of a master that does not come.
    GiveUp(u64),
    /// A member without its data, or with other data than a majority has; its master becomes another one.
    Replace(u64),
    /// A member's database has much room that nobody else can use; it answers nobody while it is written anew.
    Defragment(u64),
}

/// Voters that stand the loss of one.
const SAFE: usize = 3;

/// Upstream's: a small file is not worth it.
const FRAGMENTED_BYTES: u64 = 100 << 20;
const FRAGMENTED_PERCENT: u64 = 45;
/// Of the quota. There is time left to find out what takes the room.
const NEARLY_FULL_PERCENT: u64 = 80;

impl Arrival {
    fn lacks(self) -> &'static str {
        match self {
            Self::Absent => "it has no Node",
            Self::NotReady => "its Node is not ready",
            Self::NodeReady => "it has no etcd pod",
            Self::PodThere => "its etcd container does not run",
            Self::Runs => "its etcd member does not answer",
        }
    }
}

impl State {
    fn voters(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|m| !m.learner)
    }
    pub(super) fn bootstrap(&self) -> Option<&Member> {
        self.members.iter().find(|m| m.name == BOOTSTRAP_MEMBER)
    }
    pub(super) fn is_healthy(&self, id: u64) -> bool {
        self.members.iter().any(|m| m.id == id) && !self.silent.contains_key(&id)
    }
    fn member_of(&self, master: &Master) -> Option<&Member> {
        let url = peer_url(master.address);
        self.members.iter().find(|m| m.peer_urls.contains(&url))
    }
    fn carries(&self, master: &Master) -> bool {
        self.member_of(master).is_some_and(|m| !m.learner && self.is_healthy(m.id))
    }
    pub(super) fn carrying(&self) -> usize {
        self.masters.iter().filter(|m| self.carries(m)).count()
    }
    /// Nobody waits for it.
    fn is_lost(&self, master: &Master) -> bool {
        master.stalled >= self.patience && !self.member_of(master).is_some_and(|m| self.is_healthy(m.id))
    }
    /// The masters carry the cluster: all of them, or enough of them and the others are lost. A lost one's voter is removed
    /// before that is said, so that every voter but bootstrap's is healthy.
    pub(super) fn running_in_cluster(&self) -> bool {
        if self.bootstrap().is_none() {
            return self.carrying() > self.voters().count() / 2;
        }
        let mut voters = self.voters().filter(|m| m.name != BOOTSTRAP_MEMBER);
        self.carrying() >= enough(self.masters.len())
            && voters.all(|m| self.is_healthy(m.id))
            && self.masters.iter().all(|m| self.carries(m) || self.is_lost(m))
    }
    /// Which masters are missing and why, each in a sentence.
    pub(super) fn missing(&self) -> Vec<String> {
        let sentence = |m: &Master| match &m.removed {
            Some(removed) => Some(format!("{}: its etcd member was removed: {}", m.name, removed.why)),
            None if self.is_lost(m) => Some(format!("{}: {}", m.name, self.why(m))),
            None => None,
        };
        self.masters.iter().filter_map(sentence).collect()
    }
    fn why(&self, master: &Master) -> String {
        format!("no progress for {} min: {}", self.patience.as_secs() / 60, master.step.lacks())
    }
    /// Whose member this is, and why it is given up.
    pub(super) fn given_up(&self, id: u64) -> Option<(&Master, String)> {
        let master = self.masters.iter().find(|m| self.member_of(m).is_some_and(|m| m.id == id))?;
        Some((master, self.why(master)))
    }
    /// The others keep a majority without it, and it does not lead them.
    fn can_lose(&self, member: &Member) -> bool {
        let staying: Vec<_> = self.voters().filter(|m| m.id != member.id).collect();
        let healthy = staying.iter().filter(|m| self.is_healthy(m.id)).count();
        healthy > staying.len() / 2 && self.leader != member.id && self.is_healthy(self.leader)
    }
    /// It may have agreed to what it no longer knows, so it must not continue as the same member.
    fn to_replace(&self) -> Option<&Member> {
        let lost = |m: &Member| self.lost.contains(&m.id) && !self.is_healthy(m.id);
        let bad = |m: &&Member| lost(m) || self.wrong.contains(&m.id);
        self.members.iter().filter(bad).find(|m| self.can_lose(m))
    }
    /// Who leads instead of a leader with wrong data.
    fn better_leader(&self) -> Option<&Member> {
        let right = |m: &&Member| !self.wrong.contains(&m.id) && self.is_healthy(m.id);
        self.voters().filter(|_| self.wrong.contains(&self.leader)).find(right)
    }
    /// One at a time, the leader last, and only while all others could do without it.
    fn to_defragment(&self) -> Option<u64> {
        let whole =
            self.bootstrap().is_none() && self.members.iter().all(|m| !m.learner && self.is_healthy(m.id));
        let fragmented =
            |space: &Space| space.file >= FRAGMENTED_BYTES && space.unused_percent() >= FRAGMENTED_PERCENT;
        let members = self.space.iter().filter(|(_, space)| whole && fragmented(space)).map(|(id, _)| *id);
        members.min_by_key(|id| *id == self.leader)
    }
    /// Who has hardly any room left, in a sentence each.
    pub(super) fn nearly_full(&self) -> Vec<String> {
        let full = self.members.iter().filter_map(|m| Some((m, self.space.get(&m.id)?)));
        let full = full.filter(|(_, space)| space.used_percent() >= NEARLY_FULL_PERCENT);
        full.map(|(m, space)| {
            format!(
                "{}: its database is {} % full, and at 100 % nobody takes writes",
                m.name,
                space.used_percent()
            )
        })
        .collect()
    }
    /// A learner that never starts, at any time. A voter only while the cluster grows: later its master may be repaired.
    fn to_give_up(&self) -> Option<&Member> {
        let over = |m: &&Member| self.silent.get(&m.id).is_some_and(|silent| *silent >= self.patience);
        let lost = self.masters.iter().filter(|m| self.is_lost(m));
        let mut members = lost.filter_map(|m| self.member_of(m)).filter(over);
        members.find(|m| (m.learner || self.bootstrap().is_some()) && self.can_lose(m))
    }
}

pub(super) fn decide(state: &State) -> Vec<Action> {
    // One at a time: what is safe after it has to be decided again.
    if let Some(member) = state.to_replace() {
        return vec![Action::Replace(member.id)];
    }
    if let Some(member) = state.better_leader() {
        return vec![Action::MoveLeader(member.id)];
    }
    if let Some(member) = state.to_give_up() {
        return vec![Action::GiveUp(member.id)];
    }
    let comes = |m: &&Master| m.removed.as_ref().is_none_or(|removed| removed.came_back);
    let wanting = state.masters.iter().filter(|m| state.member_of(m).is_none()).filter(comes);
    let added: Vec<_> = wanting.map(|m| Action::AddLearner(peer_url(m.address))).collect();
    // All are added before any is promoted: a second voter that is not connected yet would hold up every further addition.
    // etcd refuses them while a voter is silent; what else can be done does not wait for them.
    if !added.is_empty() && state.voters().all(|m| state.is_healthy(m.id)) {
        return added;
    }
    let mut actions = promotions(state);
    if let Some(bootstrap) = state.bootstrap()
        && state.bootstrap_complete
        && state.running_in_cluster()
    {
        let heir = state.voters().find(|m| m.id != bootstrap.id && state.is_healthy(m.id));
        match heir {
            Some(heir) if state.leader == bootstrap.id => actions.push(Action::MoveLeader(heir.id)),
            Some(_) if state.can_lose(bootstrap) => actions.push(Action::Remove(bootstrap.id)),
            _ => {}
        }
    }
    if actions.is_empty() {
        actions.extend(state.to_defragment().map(Action::Defragment));
    }
    actions
}

/// Only learners that answer. Of two voters both are needed, so the second is made when the third can follow at once, and from
/// then on one is promoted at a time.
fn promotions(state: &State) -> Vec<Action> {
    let started = state.members.iter().filter(|m| m.learner && state.is_healthy(m.id));
    let mut started: Vec<_> = started.map(|m| Action::Promote(m.id)).collect();
    let voters = state.voters().count();
    let at_once = SAFE.saturating_sub(voters).max(1);
    if voters == 1 && started.len() < at_once.min(state.masters.len()) {
        return vec![];
    }
    started.truncate(at_once);
    started
}
