//! What to do with etcd's members next. Pure.
//!
//! Invariants: never below quorum, never a second cluster, the leader moved off bootstrap before it is removed.

use seedling_cluster::etcd::Member;
use seedling_components::etcd::BOOTSTRAP_MEMBER;
use std::net::Ipv4Addr;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    pub members: Vec<Member>,
    /// Members whose own endpoint answered and knows a leader.
    pub healthy: Vec<u64>,
    pub leader: u64,
    pub masters: Vec<Ipv4Addr>,
    /// ConfigMap kube-system/bootstrap says complete.
    pub bootstrap_complete: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Peer URL.
    AddLearner(String),
    Promote(u64),
    MoveLeader(u64),
    /// The bootstrap member.
    Remove(u64),
}

/// Bootstrap and three masters, before bootstrap may leave.
const ENOUGH: usize = 4;

pub fn peer_url(address: Ipv4Addr) -> String {
    format!("https://{address}:{}", seedling_types::ports::ETCD_PEER)
}

impl State {
    fn voters(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|m| !m.learner)
    }
    pub fn bootstrap(&self) -> Option<&Member> {
        self.members.iter().find(|m| m.name == BOOTSTRAP_MEMBER)
    }
    fn is_healthy(&self, member: &Member) -> bool {
        self.healthy.contains(&member.id)
    }
    pub fn healthy_master_voters(&self) -> usize {
        self.voters().filter(|m| m.name != BOOTSTRAP_MEMBER && self.is_healthy(m)).count()
    }
    /// Enough members, and every voter but bootstrap's is healthy: the masters carry the cluster.
    pub fn running_in_cluster(&self) -> bool {
        let enough = match self.bootstrap() {
            Some(_) => self.voters().count() >= ENOUGH.min(self.masters.len() + 1),
            None => self.voters().count() >= (ENOUGH - 1).min(self.masters.len()),
        };
        enough && self.voters().filter(|m| m.name != BOOTSTRAP_MEMBER).all(|m| self.is_healthy(m))
    }
}

pub fn decide(state: &State) -> Vec<Action> {
    let mut actions: Vec<_> = (state.masters.iter().map(|ip| peer_url(*ip)))
        .filter(|url| !state.members.iter().any(|m| m.peer_urls.contains(url)))
        .map(Action::AddLearner)
        .collect();
    // All are added before any is promoted: a second voter that is not connected yet would hold up every further addition.
    if !actions.is_empty() {
        return actions;
    }
    // A voter that does not answer may cost the quorum: with two voters both are needed.
    let started = |m: &&Member| m.learner && state.is_healthy(m);
    actions.extend(state.members.iter().filter(started).map(|m| Action::Promote(m.id)));
    if let Some(bootstrap) = state.bootstrap()
        && state.bootstrap_complete
        && state.running_in_cluster()
    {
        let heir = state.voters().find(|m| m.id != bootstrap.id && state.is_healthy(m));
        match heir {
            Some(heir) if state.leader == bootstrap.id => actions.push(Action::MoveLeader(heir.id)),
            Some(_) if state.leader != 0 => actions.push(Action::Remove(bootstrap.id)),
            _ => {}
        }
    }
    actions
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ip(n: u8) -> Ipv4Addr {
        Ipv4Addr::new(192, 168, 100, n)
    }
    fn member(id: u64, name: &str, n: u8, learner: bool) -> Member {
        Member { id, name: name.into(), peer_urls: vec![peer_url(ip(n))], client_urls: vec![], learner }
    }
    fn grown(leader: u64, complete: bool) -> State {
        State {
            members: vec![
                member(1, BOOTSTRAP_MEMBER, 10, false),
                member(2, "master-0", 11, false),
                member(3, "master-1", 12, false),
                member(4, "master-2", 13, false),
            ],
            healthy: vec![1, 2, 3, 4],
            leader,
            masters: vec![ip(11), ip(12), ip(13)],
            bootstrap_complete: complete,
        }
    }

    #[test]
    fn all_learners_are_added_first() {
        let state = State {
            members: vec![member(1, BOOTSTRAP_MEMBER, 10, false), member(2, "master-0", 11, true)],
            ..grown(1, false)
        };
        let added = [12, 13].map(|n| Action::AddLearner(peer_url(ip(n))));
        assert_eq!(decide(&state), added);
    }

    #[test]
    fn only_started_learners_are_promoted() {
        let mut state = grown(1, false);
        state.members[2] = member(3, "", 12, true);
        state.members[3] = member(4, "master-2", 13, true);
        state.healthy = vec![1, 2];
        assert_eq!(decide(&state), []);
        state.healthy = vec![1, 2, 4];
        assert_eq!(decide(&state), [Action::Promote(4)]);
        assert!(!state.running_in_cluster());
    }

    #[test]
    fn bootstrap_leaves_last_and_without_the_lead() {
        assert_eq!(decide(&grown(1, false)), []);
        assert_eq!(decide(&grown(1, true)), [Action::MoveLeader(2)]);
        assert_eq!(decide(&grown(3, true)), [Action::Remove(1)]);
        let mut sick = grown(3, true);
        sick.healthy = vec![1, 2, 3];
        assert_eq!(decide(&sick), []);
    }

    proptest! {
        /// Whatever is healthy, learner or leader: a removal leaves a healthy majority, and never takes the leader.
        #[test]
        fn a_removal_never_costs_quorum(
            learners in proptest::collection::vec(any::<bool>(), 3),
            healthy in proptest::collection::vec(any::<bool>(), 4),
            leader in 0u64..5,
            complete: bool,
        ) {
            let mut state = grown(leader, complete);
            for (i, learner) in learners.iter().enumerate() {
                state.members[i + 1].learner = *learner;
            }
            state.healthy = (1..=4).filter(|id| healthy[*id as usize - 1]).collect();
            for action in decide(&state) {
                if let Action::Promote(id) = action {
                    prop_assert!(state.healthy.contains(&id));
                }
                if let Action::Remove(id) = action {
                    prop_assert!(complete && id == 1 && leader != 1);
                    let left: Vec<_> = state.members.iter().filter(|m| !m.learner && m.id != id).collect();
                    let alive = left.iter().filter(|m| state.healthy.contains(&m.id)).count();
                    prop_assert!(alive > left.len() / 2 && left.len() == 3);
                }
            }
        }
    }
}
