//! How long certificates live, and when they are renewed: an administrator's wishes, or what is always so.

use std::collections::BTreeMap;
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Certificates that operators make for servers and clients of the control plane.
    pub leaf: Duration,
    /// Signers that operators make in the place of old ones.
    pub signer: Duration,
    /// A leaf that expires within this time is renewed.
    pub renew_before: Duration,
    /// Certificates of kubelets, which renew them themselves after seven to nine tenths of it.
    pub kubelet: Duration,
    /// What was made before this moment is renewed, once.
    pub renew: Option<OffsetDateTime>,
}

/// A certificate's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    pub issued: OffsetDateTime,
    pub ends: OffsetDateTime,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            leaf: Duration::days(365),
            signer: Duration::days(5 * 365),
            renew_before: Duration::days(60),
            kubelet: Duration::days(365),
            renew: None,
        }
    }
}

const DURATIONS: [&str; 4] = ["leaf", "signer", "renew-before", "kubelet"];
pub const RENEW: &str = "renew-issued-before";
/// A kubelet asks for the next certificate when about two minutes of such a short one are left.
const SHORTEST_KUBELET: Duration = Duration::minutes(4);

impl Policy {
    /// Keys that are not there have their defaults; all that is wrong is said at once.
    pub fn parse(data: &BTreeMap<String, String>) -> Result<Self, Vec<String>> {
        let mut wrong: Vec<_> = (data.keys())
            .filter(|key| !DURATIONS.contains(&key.as_str()) && *key != RENEW)
            .map(|key| format!("{key}: there is no such key; there are {}, {RENEW}", DURATIONS.join(", ")))
            .collect();
        let mut policy = Self::default();
        let fields = [&mut policy.leaf, &mut policy.signer, &mut policy.renew_before, &mut policy.kubelet];
        for (key, field) in DURATIONS.into_iter().zip(fields) {
            match data.get(key).map(|text| duration(text).ok_or(text)) {
                Some(Ok(given)) => *field = given,
                Some(Err(text)) => wrong.push(format!("{key}: {text:?} is no duration like 365d, 12h or 5m")),
                None => {}
            }
        }
        if let Some(text) = data.get(RENEW) {
            match OffsetDateTime::parse(text.trim(), &Rfc3339) {
                Ok(moment) => policy.renew = Some(moment),
                Err(_) => wrong.push(format!("{RENEW}: {text:?} is no time like 2026-01-31T12:00:00Z")),
            }
        }
        if policy.leaf <= policy.renew_before {
            wrong.push("leaf: must be longer than renew-before".into());
        }
        if policy.signer <= policy.renew_before * 2 {
            wrong.push("signer: must be longer than twice renew-before".into());
        }
        if policy.kubelet < SHORTEST_KUBELET {
            wrong.push("kubelet: must be at least 4m".into());
        }
        if wrong.is_empty() { Ok(policy) } else { Err(wrong) }
    }

    /// Whether a leaf is made (anew), if the new one ends at `new_ends`. One that would not live longer is not worth it: its
    /// signer ends, and is replaced first.
    pub fn leaf_due(&self, have: Option<Life>, new_ends: OffsetDateTime, now: OffsetDateTime) -> bool {
        let Some(have) = have else { return true };
        self.asked(have, now) || (have.ends - now <= self.renew_before && new_ends > have.ends)
    }

    /// Twice as early as a leaf: leaves that are due find a signer that outlives them.
    pub fn signer_due(&self, have: Life, now: OffsetDateTime) -> bool {
        self.asked(have, now) || have.ends - now <= self.renew_before * 2
    }

    /// A moment that is still to come would be asked for again and again until then.
    pub fn asked(&self, have: Life, now: OffsetDateTime) -> bool {
        self.renew.is_some_and(|moment| have.issued < moment && moment <= now)
    }

    /// No leaf outlives its signer.
    pub fn leaf_ends(&self, signer_ends: OffsetDateTime, now: OffsetDateTime) -> OffsetDateTime {
        signer_ends.min(now + self.leaf)
    }
}

fn duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let units = [("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)];
    let (number, seconds) =
        units.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, *seconds)))?;
    let number = number.parse::<u32>().ok().filter(|n| *n > 0)?;
    Some(Duration::seconds(i64::from(number) * seconds))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    const DAY: Duration = Duration::DAY;
    const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH.saturating_add(Duration::days(20_000));

    fn data(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect()
    }

    #[test]
    fn what_is_not_given_is_as_always() {
        assert_eq!(Policy::parse(&data(&[])).unwrap(), Policy::default());
        let given =
            Policy::parse(&data(&[("kubelet", "5m"), ("leaf", " 400d "), (RENEW, "2026-01-31T12:00:00Z")]));
        let given = given.unwrap();
        assert_eq!((given.kubelet, given.leaf), (Duration::minutes(5), DAY * 400));
        assert_eq!(given.renew.unwrap().unix_timestamp(), 1_769_860_800);
        assert_eq!((given.signer, given.renew_before), (DAY * 1825, DAY * 60));
    }

    #[test]
    fn all_that_is_wrong_is_said_at_once() {
        let bad = data(&[
            ("leaf", "1y"),
            ("signer", "100d"),
            ("kubelet", "30s"),
            ("leaves", "1d"),
            (RENEW, "soon"),
        ]);
        let wrong = Policy::parse(&bad).unwrap_err();
        for (part, said) in ["leaves", "leaf", RENEW, "signer", "kubelet"].iter().zip(&wrong) {
            assert!(said.starts_with(&format!("{part}:")), "{said}");
        }
        assert_eq!(wrong.len(), 5);
        for text in ["", "d", "0d", "-1d", "1.5h", "5", "99999999999d"] {
            assert!(duration(text).is_none(), "{text:?}");
        }
        assert!(Policy::parse(&data(&[("renew-before", "365d")])).is_err());
    }

    #[test]
    fn a_leaf_is_due_when_it_ends_soon_or_somebody_asked() {
        let life = |age: i32, left: i32| Some(Life { issued: NOW - DAY * age, ends: NOW + DAY * left });
        let asked = |days_ago: i32| Policy { renew: Some(NOW - DAY * days_ago), ..Policy::default() };
        let usual = Policy::default();
        let new_ends = NOW + DAY * 365;
        for (policy, have, new_ends, due) in [
            (&usual, None, new_ends, true),
            (&usual, life(300, 65), new_ends, false),
            (&usual, life(305, 60), new_ends, true),
            (&usual, life(366, -1), new_ends, true),
            // The signer ends with it: a new one would be due at once, again and again.
            (&usual, life(305, 60), NOW + DAY * 60, false),
            (&asked(1), life(2, 363), new_ends, true),
            (&asked(1), life(1, 364), new_ends, false),
            (&asked(1), life(0, 365), new_ends, false),
            (&asked(-1), life(2, 363), new_ends, false),
            // A signer's nearness to its end is no reason to leave a request undone.
            (&asked(1), life(2, 30), NOW + DAY * 30, true),
        ] {
            assert_eq!(policy.leaf_due(have, new_ends, NOW), due, "{policy:?} {have:?}");
        }
    }

    /// Ten years, day by day: nothing that is in use ever ends, and nothing is made twice for one reason.
    #[test]
    fn over_ten_years_no_leaf_comes_near_its_end() {
        for (leaf, before) in [(365, 60), (400, 380), (90, 30), (30, 1)] {
            let policy = Policy { leaf: DAY * leaf, renew_before: DAY * before, ..Policy::default() };
            let new_signer = |now| Life { issued: now, ends: now + policy.signer };
            let (mut signer, mut have) = (Life { issued: NOW, ends: NOW + DAY * 365 }, None);
            let mut made = 0;
            for day in 0..3650 {
                let now = NOW + DAY * day;
                if policy.signer_due(signer, now) {
                    signer = new_signer(now);
                }
                let ends = policy.leaf_ends(signer.ends, now);
                if policy.leaf_due(have, ends, now) {
                    have = Some(Life { issued: now, ends });
                    made += 1;
                }
                let have = have.unwrap();
                assert!(have.ends - now > DAY * before, "day {day}: {have:?}");
                assert!(signer.ends >= have.ends || have.issued < signer.issued, "day {day}");
                assert!(!policy.leaf_due(Some(have), ends, now), "day {day}: due again at once");
            }
            assert!(made <= 2 + 3650 / (leaf - before), "{made} leaves of {leaf} days");
        }
    }
}
