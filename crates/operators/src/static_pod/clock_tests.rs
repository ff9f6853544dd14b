//! The leader's machine has a clock that is an hour off, ahead or behind; all others are right.

#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::static_pod::certificates::client_leaf;
use seedling_pki::{LeafSpec, issue, validity};
use time::Duration;

const TRUE: OffsetDateTime = OffsetDateTime::UNIX_EPOCH.saturating_add(Duration::days(20_000));
const OFF: [Duration; 3] = [Duration::HOUR, Duration::ZERO, Duration::hours(-1)];

#[test]
fn what_it_signs_is_valid_at_once_for_everybody() {
    let policy = Policy::default();
    for off in OFF {
        let theirs = TRUE + off;
        let signer = made(&CSR, &policy, theirs).unwrap();
        let spec = LeafSpec { validity: Duration::days(30), ..client_leaf("system:kube-scheduler", &[]) };
        let leaf = issue(&signer, &spec, KeyAlgorithm::default(), theirs).unwrap();
        for pem in [&signer.cert, &leaf.cert] {
            let (from, until) = validity(pem).unwrap();
            assert!(from < TRUE && until > TRUE + Duration::days(29), "{off}: {from} {until}");
        }
        // Signed the other way round: the clock was off when the signer was made, and is right again.
        let (from, _) =
            validity(&issue(&signer, &spec, KeyAlgorithm::default(), TRUE).unwrap().cert).unwrap();
        assert!(from < TRUE, "{off}: {from}");
        let lives = life(&signer).unwrap();
        assert_eq!((lives.issued, lives.ends), (theirs, theirs + policy.signer), "{off}");
    }
}

#[test]
fn it_makes_nothing_twice_and_nothing_much_too_early() {
    let asked = Policy { renew: Some(TRUE), ..Policy::default() };
    for off in OFF {
        let now = TRUE + off + Duration::MINUTE;
        let old = Life { issued: TRUE - Duration::days(10), ends: TRUE + Duration::days(1800) };
        // A clock that is behind comes to it an hour later.
        let want = if off < Duration::ZERO { Step::Keep } else { Step::MakeNext };
        assert_eq!(step(old, None, false, &asked, now), want, "{off}");
        let moment = now.max(TRUE);
        let next = life(&made(&CSR, &asked, moment).unwrap()).unwrap();
        for later in OFF.map(|other| moment + other + Duration::MINUTE) {
            assert_eq!(step(old, Some(next), true, &asked, later), Step::Promote, "{off} {later}");
            assert_eq!(step(next, None, false, &asked, later), Step::Keep, "{off} {later}: asked for once");
        }
        // An hour is nothing to what is left when it is due.
        let ends = TRUE + asked.renew_before * 2;
        assert!(ends - now > asked.renew_before, "{off}");
    }
}

/// What was made by a clock that is ahead is younger than it says, and who asks for another one in that hour is not heard.
#[test]
fn who_asks_within_the_hour_asks_again_later() {
    let leaf = |off| Life { issued: TRUE + off, ends: TRUE + Duration::days(300) };
    let new_ends = TRUE + Duration::days(365);
    for (off, minutes, heard) in [(1, 30, false), (1, 61, true), (0, 30, true), (-1, 30, true)] {
        let moment = TRUE + Duration::minutes(minutes);
        let policy = Policy { renew: Some(moment), ..Policy::default() };
        let due = policy.leaf_due(Some(leaf(Duration::hours(off))), new_ends, moment + Duration::MINUTE);
        assert_eq!(due, heard, "{off} h off, asked after {minutes} min");
    }
}
