//! A signer's replacement in any order of events, crashes between any two writes included: each write is an event of its own.

use super::{SignerStep, step};
use proptest::prelude::*;
use seedling_pki::{Life, Policy};
use std::collections::BTreeSet;
use time::{Duration, OffsetDateTime};

const START: OffsetDateTime = OffsetDateTime::UNIX_EPOCH.saturating_add(Duration::days(20_000));
const MASTERS: usize = 3;

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The owner looks at its Secret.
    Look,
    /// The bundle follows the Secret.
    Publish,
    /// An API server gets the bundle of the newest revision.
    Trust(usize),
    /// A controller manager gets the signer of the newest revision.
    Sign(usize),
    Days(i64),
    /// Somebody asks for new certificates.
    Ask,
}

struct World {
    now: OffsetDateTime,
    policy: Policy,
    /// By number, which is their name.
    signers: Vec<Life>,
    signs: usize,
    next: Option<usize>,
    bundle: BTreeSet<usize>,
    trusted: [BTreeSet<usize>; MASTERS],
    used: [usize; MASTERS],
}

impl World {
    fn new() -> Self {
        let first = BTreeSet::from([0]);
        Self {
            now: START,
            policy: Policy::default(),
            signers: vec![Life { issued: START, ends: START + Policy::default().signer }],
            signs: 0,
            next: None,
            bundle: first.clone(),
            trusted: [first.clone(), first.clone(), first],
            used: [0; MASTERS],
        }
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Look => self.look(),
            Event::Publish => {
                let wanted: BTreeSet<_> = [Some(self.signs), self.next].into_iter().flatten().collect();
                if !wanted.is_subset(&self.bundle) {
                    self.bundle.retain(|n| self.signers[*n].ends > self.now);
                    self.bundle.extend(wanted);
                }
            }
            Event::Trust(master) => self.trusted[master] = self.bundle.clone(),
            Event::Sign(master) => self.used[master] = self.signs,
            Event::Days(days) => self.now += Duration::days(days),
            Event::Ask => {
                self.now += Duration::SECOND;
                self.policy.renew = Some(self.now);
            }
        }
    }

    fn look(&mut self) {
        let next = self.next.map(|n| self.signers[n]);
        let trusted = self.next.is_some_and(|n| self.trusted.iter().all(|bundle| bundle.contains(&n)));
        match step(self.signers[self.signs], next, trusted, &self.policy, self.now) {
            SignerStep::Keep => {}
            SignerStep::MakeNext => {
                self.next = Some(self.signers.len());
                self.signers.push(Life { issued: self.now, ends: self.now + self.policy.signer });
            }
            SignerStep::Promote => self.signs = self.next.take().unwrap_or(self.signs),
        }
    }

    fn lives(&self, signer: usize) -> bool {
        self.signers[signer].ends > self.now
    }
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => Just(Event::Look),
        3 => Just(Event::Publish),
        4 => (0..MASTERS).prop_map(Event::Trust),
        3 => (0..MASTERS).prop_map(Event::Sign),
        2 => (1..400i64).prop_map(Event::Days),
        1 => Just(Event::Ask),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whoever signs, and whatever still lives of what was signed before, is trusted by every API server at every moment.
    #[test]
    fn what_signs_is_trusted_everywhere(events in prop::collection::vec(event(), 0..80)) {
        let mut world = World::new();
        let mut ever = BTreeSet::new();
        for event in events {
            world.happens(event);
            ever.extend(world.used);
            ever.insert(world.signs);
            for bundle in &world.trusted {
                let missing = ever.iter().find(|n| world.lives(**n) && !bundle.contains(n));
                prop_assert!(missing.is_none(), "{missing:?} after {event:?}");
            }
        }
        // However it stands: when everybody does his part again, the end is a signer that is not due, and no next one.
        for _ in 0..3 {
            world.happens(Event::Look);
            world.happens(Event::Publish);
            (0..MASTERS).for_each(|master| world.happens(Event::Trust(master)));
        }
        prop_assert!(world.next.is_none());
        prop_assert!(!world.policy.signer_due(world.signers[world.signs], world.now));
    }
}
