//! Tables and properties of `decide`.

use super::decide::*;
use proptest::prelude::*;
use seedling_cluster::etcd::{Member, Space};
use seedling_components::etcd::{BOOTSTRAP_MEMBER, peer_url};
use std::net::IpAddr;
use std::time::Duration;

pub(super) const PATIENCE: Duration = Duration::from_secs(300);
const LONG: Duration = Duration::from_secs(301);
const SHORT: Duration = Duration::from_secs(1);

pub(super) fn ip(n: u8) -> IpAddr {
    IpAddr::from([192, 168, 100, n])
}
pub(super) fn member(id: u64, name: &str, n: u8, learner: bool) -> Member {
    Member { id, name: name.into(), peer_urls: vec![peer_url(ip(n))], client_urls: vec![], learner }
}
pub(super) fn master(n: u8) -> Master {
    let name = format!("master-{}", n - 11);
    Master { name, address: ip(n), step: Arrival::Runs, stalled: Duration::ZERO, removed: None }
}
/// Bootstrap (1) and three masters (2, 3, 4), all voters, all healthy.
fn grown(leader: u64, complete: bool) -> State {
    State {
        members: vec![
            member(1, BOOTSTRAP_MEMBER, 10, false),
            member(2, "master-0", 11, false),
            member(3, "master-1", 12, false),
            member(4, "master-2", 13, false),
        ],
        leader,
        masters: vec![master(11), master(12), master(13)],
        bootstrap_complete: complete,
        patience: PATIENCE,
        ..State::default()
    }
}
/// Its member does not answer for that long; nor has it come any further.
fn silence(state: &mut State, id: u64, how_long: Duration) {
    state.silent.insert(id, how_long);
    if let Some(master) = state.masters.get_mut(id as usize - 2) {
        master.stalled = how_long;
    }
}
fn without(mut state: State, id: u64) -> State {
    state.members.retain(|m| m.id != id);
    state
}

/// One that was written anew has no unused room.
fn with_space(mut state: State, mb: [(u64, u64); 3]) -> State {
    let space = |(file, used)| Space { file: file << 20, used: used << 20, quota: 8 << 30 };
    state.space = (2..).zip(mb.map(space)).collect();
    state
}

#[test]
fn a_database_with_much_unused_room_is_written_anew() {
    let alone = without(grown(2, true), 1);
    let next = |state: &State| decide(state);
    assert_eq!(next(&with_space(alone.clone(), [(900, 90), (80, 8), (200, 120)])), [Action::Defragment(2)]);
    assert_eq!(
        next(&with_space(alone.clone(), [(900, 90), (900, 90), (900, 90)])),
        [Action::Defragment(3)],
        "2 leads"
    );
    assert_eq!(
        next(&with_space(alone.clone(), [(90, 90), (90, 9), (90, 90)])),
        [],
        "small ones stay as they are"
    );
    let full = with_space(alone.clone(), [(900, 90); 3]);
    let mut silent = full.clone();
    silent.silent.insert(4, Duration::ZERO);
    assert_eq!(next(&silent), [], "another one is down");
    let growing = with_space(grown(2, false), [(900, 90); 3]);
    assert_eq!(next(&growing), [], "the cluster grows");
}

#[test]
fn an_etcd_that_fills_up_is_told_of() {
    let state = with_space(without(grown(2, true), 1), [(8000, 6554), (8100, 6553), (1, 1)]);
    assert_eq!(
        state.nearly_full(),
        ["master-0: its database is 80 % full, and at 100 % nobody takes writes"]
    );
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
    state.members[3].learner = true;
    silence(&mut state, 3, SHORT);
    silence(&mut state, 4, SHORT);
    assert_eq!(decide(&state), []);
    state.silent.remove(&4);
    assert_eq!(decide(&state), [Action::Promote(4)]);
    assert!(!state.running_in_cluster());
}

#[test]
fn two_voters_are_only_on_the_way_to_three() {
    let mut state = grown(1, false);
    state.members[1..].iter_mut().for_each(|m| m.learner = true);
    silence(&mut state, 3, SHORT);
    silence(&mut state, 4, SHORT);
    assert_eq!(decide(&state), []);
    state.silent.remove(&4);
    assert_eq!(decide(&state), [Action::Promote(2), Action::Promote(4)]);
    state.silent.clear();
    assert_eq!(decide(&state), [Action::Promote(2), Action::Promote(3)]);
    state.members[1].learner = false;
    assert_eq!(decide(&state), [Action::Promote(3)]);
    // A cluster of one master has no third to wait for.
    state.members.truncate(2);
    state.members[1].learner = true;
    state.masters.truncate(1);
    assert_eq!(decide(&state), [Action::Promote(2)]);
}

#[test]
fn bootstrap_leaves_last_and_without_the_lead() {
    assert_eq!(decide(&grown(1, false)), []);
    assert_eq!(decide(&grown(1, true)), [Action::MoveLeader(2)]);
    assert_eq!(decide(&grown(3, true)), [Action::Remove(1)]);
    let mut sick = grown(3, true);
    silence(&mut sick, 4, SHORT);
    assert_eq!(decide(&sick), []);
    assert!(!sick.running_in_cluster());
}

#[test]
fn a_member_with_wrong_data_is_replaced_and_does_not_lead() {
    let mut state = without(grown(2, true), 1);
    state.wrong = [4].into();
    assert_eq!(decide(&state), [Action::Replace(4)], "although it answers");
    silence(&mut state, 3, SHORT);
    assert_eq!(decide(&state), [], "the others could not do without it");
    state.silent.clear();
    state.wrong = [2].into();
    assert_eq!(decide(&state), [Action::MoveLeader(3)], "the leader is not removed");
}

#[test]
fn a_member_without_its_data_is_replaced_if_the_others_can_do_without() {
    let mut state = without(grown(2, true), 1);
    state.lost = [4].into();
    assert_eq!(decide(&state), [], "it answers: somebody is wrong");
    silence(&mut state, 4, SHORT);
    assert_eq!(decide(&state), [Action::Replace(4)], "without any patience: its machine waits");
    let mut weak = state.clone();
    silence(&mut weak, 3, SHORT);
    assert_eq!(decide(&weak), [], "it takes two to agree on it");
    // It is no member any more: it is added as another one.
    let state = without(state, 4);
    assert_eq!(decide(&state), [Action::AddLearner(peer_url(ip(13)))]);
}

#[test]
fn a_learner_that_never_starts_is_removed_and_named() {
    let mut state = grown(2, true);
    state.members[3] = member(4, "", 13, true);
    silence(&mut state, 4, Duration::from_secs(299));
    assert_eq!(decide(&state), []);
    silence(&mut state, 4, PATIENCE);
    state.masters[2].step = Arrival::Absent;
    assert_eq!(decide(&state), [Action::GiveUp(4)]);
    assert_eq!(state.missing(), ["master-2: no progress for 5 min: it has no Node"]);
    assert_eq!(state.given_up(4).map(|(m, why)| (m.name.as_str(), why)).map(|g| g.0), Some("master-2"));
    // One whose machine still moves is waited for.
    state.masters[2].stalled = SHORT;
    assert_eq!(decide(&state), []);
    // After bring-up too.
    silence(&mut state, 4, LONG);
    assert_eq!(decide(&without(state, 1)), [Action::GiveUp(4)]);
}

#[test]
fn two_masters_are_enough_when_the_third_is_lost() {
    let mut state = without(grown(2, true), 4);
    state.masters[2].removed = Some(Removed { why: "gone".into(), came_back: false });
    assert!(!state.running_in_cluster());
    assert_eq!(decide(&state), []);
    state.masters[2].stalled = LONG;
    assert!(state.running_in_cluster());
    assert_eq!(decide(&state), [Action::Remove(1)]);
    assert_eq!(state.missing(), ["master-2: its etcd member was removed: gone"]);
    // Not with one.
    assert!(!without(state.clone(), 3).running_in_cluster());
    let two = without(state, 1);
    assert!(two.running_in_cluster());
    assert_eq!(decide(&two), []);
}

#[test]
fn a_removed_master_is_taken_in_when_it_comes() {
    let mut state = without(without(grown(2, true), 4), 1);
    state.masters[2].removed = Some(Removed { why: String::new(), came_back: false });
    assert_eq!(decide(&state), []);
    state.masters[2].removed = Some(Removed { why: String::new(), came_back: true });
    assert_eq!(decide(&state), [Action::AddLearner(peer_url(ip(13)))]);
    state.members.push(member(5, "master-2", 13, true));
    state.masters[2].removed = None;
    // Its new member has not been silent for long, however long the master was away.
    state.masters[2].stalled = LONG;
    state.silent.insert(5, SHORT);
    assert_eq!(decide(&state), []);
    state.silent.clear();
    assert_eq!(decide(&state), [Action::Promote(5)]);
}

#[test]
fn a_voter_is_given_up_only_while_the_cluster_grows_and_can_spare_it() {
    let mut state = grown(2, false);
    silence(&mut state, 4, LONG);
    assert_eq!(decide(&state), [Action::GiveUp(4)]);
    assert_eq!(decide(&without(state.clone(), 1)), []);
    state.leader = 4;
    assert_eq!(decide(&state), []);
    let mut two = without(without(grown(1, false), 4), 3);
    two.masters.truncate(1);
    silence(&mut two, 2, LONG);
    assert_eq!(decide(&two), [Action::GiveUp(2)], "bootstrap alone is a majority of itself");
}

/// Any member may be a learner, away, silent for any time; any master stalled, removed, back.
fn any_state() -> impl Strategy<Value = State> {
    let of_member = (any::<bool>(), any::<bool>(), 0u64..4, any::<bool>());
    let of_master = (0u64..4, proptest::option::of(any::<bool>()));
    let members = proptest::collection::vec(of_member, 4);
    let masters = proptest::collection::vec(of_master, 3);
    (members, masters, 0u64..5, any::<bool>()).prop_map(|(members, masters, leader, complete)| {
        let mut state = grown(leader, complete);
        let minutes = |n: u64| Duration::from_secs(120 * n);
        for (id, (there, learner, silent, healthy)) in (1..).zip(members) {
            state.members.retain(|m| m.id != id || there || id == 1);
            state.members.iter_mut().filter(|m| m.id == id && id != 1).for_each(|m| m.learner = learner);
            if !healthy && state.members.iter().any(|m| m.id == id) {
                state.silent.insert(id, minutes(silent));
            }
        }
        for (master, (stalled, removed)) in state.masters.iter_mut().zip(masters) {
            master.stalled = minutes(stalled);
            master.removed = removed.map(|came_back| Removed { why: String::new(), came_back });
        }
        state
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]
    /// Whoever is healthy, learner or leader: whoever is removed does not lead, and those who stay have a healthy majority.
    #[test]
    fn a_removal_never_costs_quorum(state in any_state()) {
        for action in decide(&state) {
            let (Action::Remove(id) | Action::GiveUp(id)) = action else { continue };
            prop_assert!(id != state.leader);
            let left: Vec<_> = state.members.iter().filter(|m| !m.learner && m.id != id).collect();
            prop_assert!(left.iter().filter(|m| state.is_healthy(m.id)).count() > left.len() / 2);
            if action == Action::Remove(id) {
                prop_assert!(id == 1 && state.bootstrap_complete && state.carrying() >= 2);
            } else {
                prop_assert!(state.silent[&id] >= PATIENCE);
            }
        }
    }

    /// Only healthy learners are promoted, and never one alone to be the second of two voters.
    #[test]
    fn a_promotion_needs_a_healthy_learner_and_a_third(state in any_state()) {
        let promoted: Vec<_> = decide(&state).into_iter().filter_map(|a| match a {
            Action::Promote(id) => Some(id),
            _ => None,
        }).collect();
        let voters = state.members.iter().filter(|m| !m.learner).count();
        prop_assert!(promoted.iter().all(|id| state.is_healthy(*id)));
        prop_assert!(voters > 1 || promoted.is_empty() || promoted.len() == 2);
        prop_assert!(voters < 2 || promoted.len() <= 1);
    }

    /// Nobody is added twice, nobody who was removed and has not come back.
    #[test]
    fn only_who_comes_is_added(state in any_state()) {
        for action in decide(&state) {
            let Action::AddLearner(url) = action else { continue };
            prop_assert!(!state.members.iter().any(|m| m.peer_urls.contains(&url)));
            let master = state.masters.iter().find(|m| peer_url(m.address) == url);
            prop_assert!(master.is_some_and(|m| m.removed.as_ref().is_none_or(|r| r.came_back)));
        }
    }
}
