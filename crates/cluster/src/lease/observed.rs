//! Who may hold a lease, by client-go's rules: what is seen of it, and when it was seen here. Pure.
//!
//! The times in the record are the holder's clock and only for people. Whether it still renews is judged by the changes of the
//! record and this process's monotonic clock, so that no clock that is off takes a lease from a holder that lives.

use super::DURATION;
use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use std::time::Duration;
use tokio::time::Instant;

/// The record, and since when it was seen like this.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    spec: LeaseSpec,
    since: Instant,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It names us: nobody else can have acquired it in between.
    Mine,
    /// Nobody holds it, or its holder has stood still for as long as it asked for.
    Free,
    Held(String),
}

impl Observed {
    /// `now`: when the answer was there. The record is older, so its holder is given rather too much time.
    pub(super) fn note(seen: Option<Self>, spec: LeaseSpec, now: Instant) -> Self {
        match seen {
            Some(seen) if seen.spec == spec => seen,
            _ => Self { spec, since: now },
        }
    }

    pub(super) fn verdict(&self, me: &str, now: Instant) -> Verdict {
        match holder(&self.spec) {
            None => Verdict::Free,
            Some(holder) if holder == me => Verdict::Mine,
            Some(_) if now.duration_since(self.since) >= duration(&self.spec) => Verdict::Free,
            Some(holder) => Verdict::Held(holder.into()),
        }
    }

    /// The record of a new holder.
    pub(super) fn taken(&self, me: &str, clock: Timestamp) -> LeaseSpec {
        let mut spec = renewed(&self.spec, me, clock);
        if holder(&self.spec) != Some(me) {
            spec.acquire_time = Some(MicroTime(clock));
            spec.lease_transitions = Some(self.spec.lease_transitions.unwrap_or(0) + 1);
        }
        spec
    }
}

pub(super) fn renewed(spec: &LeaseSpec, me: &str, clock: Timestamp) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(me.into()),
        lease_duration_seconds: Some(DURATION.as_secs() as i32),
        renew_time: Some(MicroTime(clock)),
        ..spec.clone()
    }
}

pub(super) fn holder(spec: &LeaseSpec) -> Option<&str> {
    spec.holder_identity.as_deref().filter(|holder| !holder.is_empty())
}

fn duration(spec: &LeaseSpec) -> Duration {
    let seconds = spec.lease_duration_seconds.and_then(|s| u64::try_from(s).ok()).filter(|s| *s > 0);
    seconds.map_or(DURATION, Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::super::RENEW_DEADLINE;
    use super::*;
    use proptest::prelude::*;

    /// Renewed when the holder's clock, which is `ahead` of ours, said so many seconds.
    fn record(holder: &str, clock: i64) -> LeaseSpec {
        let time = Timestamp::from_second(1_800_000_000 + clock).unwrap_or_default();
        Observed { spec: LeaseSpec::default(), since: Instant::now() }.taken(holder, time)
    }

    #[test]
    fn only_what_is_seen_here_counts() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let held = || Verdict::Held("b".into());
        // What is seen and when; then when it is judged, and how.
        type Look = (u64, LeaseSpec);
        let cases: [(&str, Vec<Look>, u64, Verdict); 8] = [
            ("nobody's", vec![(0, LeaseSpec::default())], 0, Verdict::Free),
            (
                "given up",
                vec![(0, LeaseSpec { holder_identity: Some("".into()), ..record("b", 0) })],
                0,
                Verdict::Free,
            ),
            ("ours, from before a restart", vec![(0, record("a", 0))], 0, Verdict::Mine),
            ("its clock is an hour behind ours, and it renews", vec![(0, record("b", -3600))], 0, held()),
            (
                "our clock is 46 s ahead of it",
                vec![(0, record("b", -46)), (15, record("b", -31))],
                46,
                held(),
            ),
            (
                "it stands still, but not for long",
                vec![(0, record("b", 0)), (44, record("b", 0))],
                44,
                held(),
            ),
            ("it stands still", vec![(0, record("b", 0)), (45, record("b", 0))], 45, Verdict::Free),
            (
                "its clock is a day ahead, and it stands still",
                vec![(0, record("b", 86400))],
                45,
                Verdict::Free,
            ),
        ];
        for (what, looks, judged, expected) in cases {
            let seen =
                looks.into_iter().fold(None, |seen, (when, spec)| Some(Observed::note(seen, spec, at(when))));
            assert_eq!(seen.map(|s| s.verdict("a", at(judged))), Some(expected), "{what}");
        }
    }

    #[test]
    fn a_new_holder_counts_a_transition() {
        let seen = Observed { spec: record("b", 0), since: Instant::now() };
        assert_eq!(seen.taken("a", Timestamp::UNIX_EPOCH).lease_transitions, Some(2));
        assert_eq!(seen.taken("b", Timestamp::UNIX_EPOCH).lease_transitions, Some(1));
        assert_eq!(seen.taken("b", Timestamp::UNIX_EPOCH).acquire_time, seen.spec.acquire_time);
    }

    proptest! {
        /// However their clocks differ and however late each request is served: when a follower may take the lease, its holder has
        /// stopped. The holder counts from before it asked, and the follower from after it was told.
        #[test]
        fn nobody_is_taken_for_gone_who_still_leads(
            renewals in proptest::collection::vec((0u64..30_000, 0u64..5_000), 1..20),
            looks in proptest::collection::vec(1u64..10_000, 1..100),
            ahead in -100_000i64..100_000,
        ) {
            let start = Instant::now();
            let at = |ms| start + Duration::from_millis(ms);
            // (asked, written): each within the deadline of the one before.
            let mut written = vec![(0u64, 0u64)];
            for (pause, takes) in renewals {
                let before = written[written.len() - 1].0;
                let (asked, done) = (before + pause, before + pause + takes);
                if done < before + RENEW_DEADLINE.as_millis() as u64 && done > written[written.len() - 1].1 {
                    written.push((asked, done));
                }
            }
            let stops = at(written[written.len() - 1].0) + RENEW_DEADLINE;
            let (mut now, mut seen) = (0, None);
            for look in looks {
                now += look;
                let live = written.iter().rfind(|(_, done)| *done <= now).map_or(0, |(asked, _)| *asked);
                let noted = Observed::note(seen.take(), record("b", ahead + live as i64), at(now));
                if noted.verdict("a", at(now)) == Verdict::Free {
                    prop_assert!(at(now) > stops);
                }
                seen = Some(noted);
            }
        }
    }
}
