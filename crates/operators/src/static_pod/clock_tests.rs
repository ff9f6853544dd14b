//! The leader's machine has a clock that is an hour off, ahead or behind; all others are right.

#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use seedling_pki::trust::{Cluster, SCHEDULER_CLIENT};
use seedling_pki::validity;
use seedling_types::ClusterDomain;
use time::Duration;

const TRUE: OffsetDateTime = OffsetDateTime::UNIX_EPOCH.saturating_add(Duration::days(20_000));
const OFF: [Duration; 3] = [Duration::HOUR, Duration::ZERO, Duration::hours(-1)];

#[test]
fn what_it_signs_is_valid_at_once_for_everybody() {
    let policy = Policy::default();
    let domain = ClusterDomain::new("ocp4", "alchemy.com");
    let cluster = Cluster {
        domain: &domain,
        service_addresses: vec![[172, 30, 0, 1].into()],
        api_vips: &[],
        hosts: &[],
    };
    for off in OFF {
        let theirs = TRUE + off;
        let signer = CSR_SIGNER.make_next(policy.signer, theirs).unwrap();
        let leaf = |now| {
            let files = SCHEDULER_CLIENT.make_files(&signer, &cluster, Duration::days(30), now);
            files.unwrap()["tls.crt"].clone()
        };
        for pem in [&signer.cert, &leaf(theirs)] {
            let (from, until) = validity(pem).unwrap();
            assert!(from < TRUE && until > TRUE + Duration::days(29), "{off}: {from} {until}");
        }
        // Signed the other way round: the clock was off when the signer was made, and is right again.
        let (from, _) = validity(&leaf(TRUE)).unwrap();
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
        let want = if off < Duration::ZERO { SignerStep::Keep } else { SignerStep::MakeNext };
        assert_eq!(step(old, None, false, &asked, now), want, "{off}");
        let moment = now.max(TRUE);
        let next = life(&CSR_SIGNER.make_next(asked.signer, moment).unwrap()).unwrap();
        for later in OFF.map(|other| moment + other + Duration::MINUTE) {
            assert_eq!(step(old, Some(next), true, &asked, later), SignerStep::Promote, "{off} {later}");
            assert_eq!(
                step(next, None, false, &asked, later),
                SignerStep::Keep,
                "{off} {later}: asked for once"
            );
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
