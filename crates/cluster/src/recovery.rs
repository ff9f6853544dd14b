//! The rules by which etcd's data is given up or moved away. Pure; `operators/etcd/recovery_model.rs` walks through them, with crashes,
//! cut cables and a person who accepts a loss.

use crate::etcd::{Member, Status};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

/// Where a member's log ends, as it is on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tail {
    /// Up to here this member knows that it was agreed on.
    pub commit: u64,
    pub last: u64,
    /// In which the last entry was proposed: the same number in another term is another entry.
    pub term: u64,
    /// Beyond `commit` a member is added, promoted or removed. If that was agreed on, the others may be a majority
    /// without this member, and going on alone would make two clusters: nobody can accept that.
    pub changes_members: bool,
}

impl Tail {
    /// Entries that a member drops when it continues alone. They may have been acknowledged to a client: the leader may have heard
    /// of this member's agreement, and died before it said so.
    pub fn may_lose(&self) -> u64 {
        self.last.saturating_sub(self.commit)
    }
}

impl fmt::Display for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.commit, self.last)
    }
}

/// What a forced start is good for: one log, and none that has grown since.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Allows {
    /// A log of which everything was agreed on, up to this entry.
    NothingLost { index: u64 },
    /// A person was shown this end of the log, and accepts that it loses what was not known to be agreed on.
    Loss(Tail),
}

impl Allows {
    /// Nothing is agreed on by two voters without an entry in both logs. So a log that still ends so was part of nothing since,
    /// neither of an election nor of a new member; and one that went on alone does not end so any more.
    pub fn fits(&self, tail: &Tail) -> bool {
        match self {
            Self::NothingLost { index } => tail.commit == *index && tail.last == *index,
            Self::Loss(accepted) => accepted == tail && !tail.changes_members,
        }
    }
}

/// What was seen of the two voters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// etcd leads, or this member must not continue alone.
    Well,
    Unclear,
    /// The only other voter has not answered for this long, and nobody leads.
    Lost {
        name: String,
        silent: Duration,
        committed: u64,
        applied: u64,
    },
}

/// An earlier try found that something may be lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// None: the log could not be read.
    pub tail: Option<Tail>,
    pub why: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    Wait,
    /// Nothing is under way any more.
    Close,
    GoAlone(String, Allows),
    Ask(String, Refusal),
}

/// Decided again at every look from who votes and who is silent now, whatever an earlier run had begun.
pub fn next(seen: Seen, refused: Option<Refusal>, accepted: Option<Tail>, patience: Duration) -> Next {
    let Seen::Lost { name, silent, committed, applied } = seen else {
        return if seen == Seen::Well { Next::Close } else { Next::Wait };
    };
    if silent < patience {
        return Next::Wait;
    }
    match refused {
        Some(Refusal { tail: Some(tail), .. })
            if committed <= tail.commit && accepted == Some(tail) && !tail.changes_members =>
        {
            Next::GoAlone(name, Allows::Loss(tail))
        }
        Some(refusal) if refusal.tail.is_none_or(|tail| committed <= tail.commit) => Next::Ask(name, refusal),
        // The members are those of what was applied.
        _ if applied != committed => Next::Wait,
        _ => Next::GoAlone(name, Allows::NothingLost { index: committed }),
    }
}

/// The one that this member cannot do without, if there is no leader and it is the only other voter. Of three voters the other two
/// may have agreed on something without this one.
pub fn other_voter<'a>(here: &Status, members: &'a [Member]) -> Option<&'a Member> {
    let mut others = members.iter().filter(|m| !m.learner && m.id != here.member);
    match (here.leader, others.next(), others.next()) {
        (0, Some(other), None) => Some(other),
        _ => None,
    }
}

/// A member's answer: who it is, of which cluster, and what its majority agrees on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub from: u64,
    pub cluster: u64,
    pub members: Vec<Member>,
    /// Clusters that a person gave up when this one was restored.
    pub given_up: BTreeSet<u64>,
}

/// Whether this member's cluster no longer exists: a person gave it up, and the one that was restored has it written down. Nobody else has
/// to say so: those who are of the old cluster may be a majority of it, and do not know.
pub fn was_given_up(cluster: u64, answers: &[Answer]) -> bool {
    answers.iter().any(|a| a.cluster != cluster && a.given_up.contains(&cluster))
}

/// Whether this member was removed: everybody who answered says so, and they are a majority of all voters there are by anybody's
/// knowledge, this member's own included (`known`: who voted when it was last on a list).
pub fn was_removed(me: u64, known: &BTreeSet<u64>, answers: &[Answer]) -> bool {
    let listed = answers.iter().flat_map(|a| a.members.iter().filter(|m| !m.learner).map(|m| m.id));
    let voters: BTreeSet<u64> = known.iter().copied().chain(listed).filter(|id| *id != me).collect();
    let agree: BTreeSet<u64> = answers.iter().map(|a| a.from).filter(|id| voters.contains(id)).collect();
    let on_a_list = answers.iter().any(|a| a.members.iter().any(|m| m.id == me));
    !on_a_list && agree.len() > voters.len() / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(300);

    fn member(id: u64, learner: bool) -> Member {
        Member { id, name: format!("m{id}"), peer_urls: vec![], client_urls: vec![], learner }
    }
    fn lost(seconds: u64, committed: u64, applied: u64) -> Seen {
        Seen::Lost { name: "m0".into(), silent: Duration::from_secs(seconds), committed, applied }
    }
    fn tail(commit: u64, last: u64) -> Tail {
        Tail { commit, last, term: 4, changes_members: false }
    }
    fn refused(commit: u64, last: u64) -> Option<Refusal> {
        Some(Refusal { tail: Some(tail(commit, last)), why: String::new() })
    }

    #[test]
    fn it_goes_alone_only_when_nothing_can_be_lost_or_a_person_said_so() {
        let alone = |allows| Next::GoAlone("m0".into(), allows);
        assert_eq!(next(Seen::Well, None, None, PATIENCE), Next::Close);
        assert_eq!(next(Seen::Unclear, None, None, PATIENCE), Next::Wait);
        assert_eq!(next(lost(299, 7, 7), None, None, PATIENCE), Next::Wait);
        assert_eq!(next(lost(300, 7, 6), None, None, PATIENCE), Next::Wait, "its list of members is old");
        assert_eq!(next(lost(300, 7, 7), None, None, PATIENCE), alone(Allows::NothingLost { index: 7 }));
        let asks = |refusal: Option<Refusal>, accepted| next(lost(300, 7, 7), refusal, accepted, PATIENCE);
        assert!(matches!(asks(refused(7, 9), None), Next::Ask(..)));
        assert!(matches!(asks(refused(7, 9), Some(tail(7, 8))), Next::Ask(..)), "that was another loss");
        assert_eq!(asks(refused(7, 9), Some(tail(7, 9))), alone(Allows::Loss(tail(7, 9))));
        assert_eq!(
            asks(refused(5, 6), None),
            alone(Allows::NothingLost { index: 7 }),
            "m0 was back meanwhile"
        );
        let joins = Tail { changes_members: true, ..tail(7, 9) };
        let refusal = Refusal { tail: Some(joins), why: String::new() };
        assert!(matches!(asks(Some(refusal), Some(joins)), Next::Ask(..)), "the others may be a majority");
        assert!(!Allows::Loss(joins).fits(&joins));
        let unreadable = Some(Refusal { tail: None, why: "torn".into() });
        assert!(matches!(asks(unreadable, Some(tail(7, 9))), Next::Ask(..)));
        // However often it was begun: whoever leads, or answers, is not given up.
        assert_eq!(next(Seen::Well, refused(7, 9), Some(tail(7, 9)), PATIENCE), Next::Close);
    }

    #[test]
    fn an_order_fits_one_log() {
        let order = Allows::NothingLost { index: 7 };
        assert!(order.fits(&tail(7, 7)));
        for grown in [tail(7, 8), tail(8, 8), tail(6, 7), tail(6, 6)] {
            assert!(!order.fits(&grown), "{grown:?}");
        }
        let order = Allows::Loss(tail(7, 9));
        assert!(order.fits(&tail(7, 9)) && !order.fits(&Tail { term: 5, ..tail(7, 9) }));
        assert!(!order.fits(&tail(7, 10)) && !order.fits(&tail(9, 9)));
        assert_eq!((tail(7, 9).may_lose(), tail(7, 7).may_lose()), (2, 0));
    }

    #[test]
    fn only_of_two_voters_one_is_given_up() {
        let here =
            |leader| Status { member: 1, cluster: 9, leader, committed: 5, applied: 5, ..Status::default() };
        let two = [member(1, false), member(2, false), member(3, true)];
        assert_eq!(other_voter(&here(0), &two).map(|m| m.id), Some(2));
        assert_eq!(other_voter(&here(2), &two), None, "it has a leader");
        let three = [member(1, false), member(2, false), member(3, false)];
        assert_eq!(other_voter(&here(0), &three), None, "the others may have agreed without this one");
        assert_eq!(other_voter(&here(0), &two[..1]), None);
    }

    #[test]
    fn one_that_answers_first_does_not_decide() {
        let says = |from, ids: &[u64]| Answer {
            from,
            members: ids.iter().map(|id| member(*id, false)).collect(),
            ..Answer::default()
        };
        let known = BTreeSet::from([2, 3, 4]);
        assert!(!was_removed(2, &known, &[]), "nobody answers: all may be starting");
        assert!(
            !was_removed(2, &known, &[says(1, &[1])]),
            "one that went on alone, and 3 and 4 were not asked"
        );
        assert!(!was_removed(2, &known, &[says(1, &[1]), says(3, &[2, 3, 4])]), "3 knows it");
        assert!(!was_removed(2, &known, &[says(3, &[3, 4])]), "4 does not answer");
        assert!(was_removed(2, &known, &[says(3, &[3, 4]), says(4, &[3, 4])]));
        assert!(was_removed(2, &known, &[says(3, &[3, 4, 5]), says(4, &[3, 4, 5])]));
        // While it grows, the first member is the only voter that the others know.
        assert!(was_removed(2, &BTreeSet::from([1]), &[says(1, &[1])]));
        assert!(was_removed(2, &BTreeSet::new(), &[says(1, &[1, 3]), says(3, &[1, 3])]));
        assert!(!was_removed(2, &BTreeSet::new(), &[says(1, &[1, 3])]));
    }

    #[test]
    fn a_cluster_is_given_up_by_the_one_that_was_restored() {
        let of = |cluster, given_up: &[u64]| Answer {
            cluster,
            given_up: given_up.iter().copied().collect(),
            ..Answer::default()
        };
        assert!(!was_given_up(7, &[]) && !was_given_up(7, &[of(7, &[]), of(8, &[])]));
        assert!(was_given_up(7, &[of(7, &[]), of(8, &[6, 7])]), "whatever the old one says of itself");
        assert!(!was_given_up(8, &[of(8, &[6, 7])]));
        assert!(!was_given_up(7, &[of(7, &[7])]), "a snapshot of it was taken since, nothing else");
    }
}
