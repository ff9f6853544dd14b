//! Do all members have the same data? etcd's pages carry no sums: what a disk gives back otherwise than it was written is noticed only by
//! comparing. A member with wrong data answers as if nothing were the matter.

use crate::Result;
use seedling_cluster::etcd::{Etcd, EtcdTls, Sum};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// And at once when a member was started or added: that is when a disk is read.
const EVERY: Duration = Duration::from_secs(120);
/// All that a member has is read; while it is, everybody else goes on.
const SUMMED_WITHIN: Duration = Duration::from_secs(60);

type Sums = BTreeMap<u64, Sum>;

#[derive(Default)]
pub(super) struct Comparison {
    /// At most one; it ends with this.
    running: JoinSet<Result<Sums>>,
    last: Option<Instant>,
    /// Who was compared last.
    of: BTreeSet<u64>,
    /// Who differed last. One comparison is not enough to lose one's seat.
    suspects: BTreeSet<u64>,
    wrong: BTreeSet<u64>,
    unclear: Option<String>,
}

impl Comparison {
    /// Members whose data was found to differ twice. `members`: all of them, with their addresses, if all vote and are healthy.
    pub(super) fn wrong(
        &mut self,
        members: Option<&BTreeMap<u64, String>>,
        tls: &EtcdTls,
        now: Instant,
    ) -> BTreeSet<u64> {
        if let Some(ended) = self.running.try_join_next() {
            self.judge(ended.unwrap_or_else(|_| Ok(Sums::new())));
        }
        if let Some(members) = members.filter(|_| self.running.is_empty())
            && self.is_due(&members.keys().copied().collect(), now)
        {
            self.of = members.keys().copied().collect();
            self.last = Some(now);
            self.running.spawn(sums(members.clone(), tls.clone()));
        }
        // Who is silent is nobody's concern here, and is compared when it is back.
        if members.is_none() {
            self.of.clear();
        }
        self.wrong.clone()
    }

    /// Why nobody knows whose data is right.
    pub(super) fn unclear(&self) -> Option<&String> {
        self.unclear.as_ref()
    }

    fn is_due(&self, members: &BTreeSet<u64>, now: Instant) -> bool {
        self.of != *members
            || !self.suspects.is_empty()
            || self.last.is_none_or(|last| now.duration_since(last) >= EVERY)
    }

    fn judge(&mut self, compared: Result<Sums>) {
        match compared.map(|sums| verdict(&sums, self.of.len())) {
            Ok(Verdict::Wrong(found)) => {
                for id in &found {
                    tracing::warn!("etcd members: the data of {id:x} is not what the others have");
                }
                self.wrong = &found & &self.suspects;
                self.suspects = found;
                self.unclear = None;
            }
            Ok(Verdict::Unclear) => {
                self.unclear = Some("the members have different data, and no majority agrees".into());
                self.suspects.clear();
                self.wrong.clear();
            }
            Ok(Verdict::NotComparable) => {}
            Err(e) => tracing::warn!("etcd members: cannot compare their data: {}", e.in_full()),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// Members that differ from a majority: usually none.
    Wrong(BTreeSet<u64>),
    /// There is no majority that agrees.
    Unclear,
    /// Somebody did not answer, or forgot old revisions meanwhile.
    NotComparable,
}

fn verdict(sums: &Sums, members: usize) -> Verdict {
    let forgotten: BTreeSet<_> = sums.values().map(|sum| sum.forgotten).collect();
    if sums.len() < members || forgotten.len() != 1 {
        return Verdict::NotComparable;
    }
    let count = |sum: &Sum| sums.values().filter(|other| *other == sum).count();
    match sums.values().find(|sum| count(sum) > members / 2) {
        Some(right) => {
            Verdict::Wrong(sums.iter().filter(|(_, sum)| *sum != right).map(|(id, _)| *id).collect())
        }
        None => Verdict::Unclear,
    }
}

/// All at the same revision, one that all have.
async fn sums(members: BTreeMap<u64, String>, tls: EtcdTls) -> Result<Sums> {
    let mut connected = Vec::new();
    let mut revision = i64::MAX;
    for (id, url) in members {
        let mut etcd = Etcd::connect_for(SUMMED_WITHIN, &[url], &tls).await?;
        revision = revision.min(etcd.known_revision().await?);
        connected.push((id, etcd));
    }
    let asked = connected.iter_mut().map(async |(id, etcd)| Ok((*id, etcd.sum(revision).await?)));
    futures::future::try_join_all(asked).await.map(|sums| sums.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(sums: &[(i64, u32)]) -> Sums {
        (1..).zip(sums.iter().map(|&(forgotten, hash)| Sum { forgotten, hash })).collect()
    }
    fn wrong(ids: &[u64]) -> Verdict {
        Verdict::Wrong(ids.iter().copied().collect())
    }

    #[test]
    fn a_majority_is_right() {
        let cases = [
            (sums(&[(5, 1), (5, 1), (5, 1)]), 3, wrong(&[])),
            (sums(&[(5, 1), (5, 2), (5, 1)]), 3, wrong(&[2])),
            (sums(&[(5, 1), (5, 2), (5, 3)]), 3, Verdict::Unclear),
            (sums(&[(5, 1), (5, 2)]), 2, Verdict::Unclear),
            (sums(&[(5, 1), (5, 1), (5, 2), (5, 3), (5, 1)]), 5, wrong(&[3, 4])),
            (sums(&[(5, 1), (6, 2), (5, 1)]), 3, Verdict::NotComparable),
            (sums(&[(5, 1), (5, 1)]), 3, Verdict::NotComparable),
            (sums(&[]), 3, Verdict::NotComparable),
            (sums(&[(5, 1)]), 1, wrong(&[])),
        ];
        for (seen, members, expected) in cases {
            assert_eq!(verdict(&seen, members), expected, "{seen:?}");
        }
    }

    #[test]
    fn nobody_loses_its_seat_after_one_comparison() {
        let mut comparison =
            Comparison { of: [1, 2, 3].into(), last: Some(Instant::now()), ..Default::default() };
        let all = BTreeSet::from([1, 2, 3]);
        assert!(!comparison.is_due(&all, Instant::now()));
        let differs = || Ok(sums(&[(5, 1), (5, 2), (5, 1)]));
        comparison.judge(differs());
        assert!(
            comparison.wrong.is_empty() && comparison.is_due(&all, Instant::now()),
            "compared again at once"
        );
        comparison.judge(Ok(sums(&[(5, 1), (6, 2), (5, 1)])));
        assert!(comparison.wrong.is_empty(), "nothing was compared");
        comparison.judge(differs());
        assert_eq!(comparison.wrong, [2].into());
        comparison.judge(Ok(sums(&[(5, 1), (5, 1), (5, 1)])));
        assert!(comparison.wrong.is_empty());
    }

    #[test]
    fn one_that_was_started_is_compared_at_once() {
        let all = BTreeSet::from([1, 2, 3]);
        let comparison = Comparison { of: [1, 2].into(), last: Some(Instant::now()), ..Default::default() };
        assert!(comparison.is_due(&all, Instant::now()));
        let earlier = Comparison { of: all.clone(), last: Some(Instant::now()), ..Default::default() };
        assert!(earlier.is_due(&all, Instant::now() + EVERY) && !earlier.is_due(&all, Instant::now()));
    }
}
