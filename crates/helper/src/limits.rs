//! How many connections each server may have, and each caller of it. File descriptors are one budget for the whole process: every
//! server has its share, so that slow requests to one can never take what another needs.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Refused connections are told of once in this time.
const SAY_EVERY: Duration = Duration::from_secs(1);

/// A server's share.
struct Share {
    service: &'static str,
    /// Of all descriptors.
    percent: usize,
    /// Descriptors a connection: it and the file or the backend it is relayed to.
    each_takes: usize,
    most: usize,
    /// By one caller; never more than a quarter of what there is.
    most_of_one: usize,
}

const API: Share = share("the API load balancer", 35, 2, 8192, 2048);
const MACHINE_CONFIG: Share = share("the machine-config load balancer", 12, 2, 1200, 64);
const INGRESS: Share = share("the load balancer of applications", 7, 2, 2048, 512);
const FORWARD: Share = share("forwards", 8, 2, 1024, 1024);
const REGISTRY: Share = share("the registry", 10, 2, 512, 96);
const HTTP: Share = share("HTTP", 12, 2, 1200, 32);
const TFTP: Share = share("TFTP", 3, 2, 256, 8);
const DNS: Share = share("DNS (TCP)", 3, 1, 256, 32);

const fn share(
    service: &'static str,
    percent: usize,
    each_takes: usize,
    most: usize,
    most_of_one: usize,
) -> Share {
    Share { service, percent, each_takes, most, most_of_one }
}

impl Share {
    fn of(&self, descriptors: usize) -> Arc<Slots> {
        let most = (descriptors * self.percent / 100 / self.each_takes).min(self.most).max(1);
        // All of a forward's connections come from the one machine outside.
        let quarter = if self.most_of_one == self.most { most } else { (most / 4).max(1) };
        let most_of_one = self.most_of_one.min(quarter);
        Arc::new(Slots { service: self.service, most, most_of_one, taken: Mutex::default() })
    }
}

/// Kept over restarts of a server: its connections live on without it.
#[derive(Clone)]
pub(crate) struct Limits {
    pub api: Arc<Slots>,
    pub machine_config: Arc<Slots>,
    pub ingress: Arc<Slots>,
    pub forward: Arc<Slots>,
    pub registry: Arc<Slots>,
    pub http: Arc<Slots>,
    pub tftp: Arc<Slots>,
    pub dns: Arc<Slots>,
}

impl Limits {
    pub(crate) fn of(descriptors: usize) -> Self {
        Self {
            api: API.of(descriptors),
            machine_config: MACHINE_CONFIG.of(descriptors),
            ingress: INGRESS.of(descriptors),
            forward: FORWARD.of(descriptors),
            registry: REGISTRY.of(descriptors),
            http: HTTP.of(descriptors),
            tftp: TFTP.of(descriptors),
            dns: DNS.of(descriptors),
        }
    }
}

pub(crate) struct Slots {
    pub service: &'static str,
    most: usize,
    most_of_one: usize,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    all: usize,
    of: HashMap<IpAddr, usize>,
    refused: u64,
    said: Option<Instant>,
}

/// One connection's place, given back when it ends.
pub(crate) struct Slot {
    slots: Arc<Slots>,
    caller: IpAddr,
}

/// No place is free. `say`: how many were refused since this was last told of, if it is time to tell.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full {
    pub say: Option<u64>,
    pub reason: String,
}

impl Slots {
    pub(crate) fn take(self: &Arc<Self>, caller: IpAddr, now: Instant) -> Result<Slot, Full> {
        let mut taken = self.lock();
        let of_one = taken.of.get(&caller).copied().unwrap_or(0);
        let reason = if of_one >= self.most_of_one {
            format!("{of_one} connections from this address")
        } else if taken.all >= self.most {
            format!("{} connections", taken.all)
        } else {
            taken.all += 1;
            taken.of.insert(caller, of_one + 1);
            return Ok(Slot { slots: self.clone(), caller });
        };
        taken.refused += 1;
        let due = taken.said.is_none_or(|said| now.duration_since(said) >= SAY_EVERY);
        let say = due.then(|| {
            taken.said = Some(now);
            std::mem::take(&mut taken.refused)
        });
        Err(Full { say, reason })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.slots.lock();
        taken.all = taken.all.saturating_sub(1);
        if let Some(count) = taken.of.get_mut(&self.caller) {
            *count -= 1;
            if *count == 0 {
                taken.of.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [&Share; 8] = [&API, &MACHINE_CONFIG, &INGRESS, &FORWARD, &REGISTRY, &HTTP, &TFTP, &DNS];

    proptest! {
        /// Whoever fills one server's share leaves the others theirs, and some for listeners, checks and logs.
        #[test]
        fn shares_never_add_up_to_more_than_there_is(descriptors in 256usize..2_000_000) {
            let used: usize = ALL.iter().map(|s| s.of(descriptors).most * s.each_takes).sum();
            prop_assert!(used <= descriptors / 10 * 9 + 10, "{used} of {descriptors}");
            for share in ALL {
                let slots = share.of(descriptors);
                prop_assert!(slots.most >= 1 && slots.most_of_one >= 1 && slots.most_of_one <= slots.most);
            }
        }
    }

    #[test]
    fn one_caller_never_takes_everybodys_place() {
        let now = Instant::now();
        let slots = Limits::of(1024).http;
        let [bad, good] = [[192, 168, 100, 11], [192, 168, 100, 12]].map(IpAddr::from);
        let held: Vec<_> = std::iter::from_fn(|| slots.take(bad, now).ok()).collect();
        assert_eq!((held.len(), slots.most_of_one), (15, 15));
        let first = slots.lock().refused;
        assert_eq!(first, 0, "the first refusal is told of at once");
        let Err(quiet) = slots.take(bad, now) else { panic!("a place too many") };
        assert_eq!(quiet.say, None);
        let Err(told) = slots.take(bad, now + SAY_EVERY) else { panic!("a place too many") };
        assert_eq!(told, Full { say: Some(2), reason: "15 connections from this address".into() });
        let other = slots.take(good, now).unwrap_or_else(|_| panic!("no place for others"));
        drop(held);
        assert!(slots.take(bad, now).is_ok());
        drop(other);
        let taken = slots.lock();
        assert_eq!((taken.all, taken.of.len()), (0, 0));
    }

    #[test]
    fn a_full_server_says_so() {
        let slots = Limits::of(1024).dns;
        let now = Instant::now();
        let caller = |n: u8| IpAddr::from([10, 0, n, 1]);
        let held: Vec<_> = (0..=255).map_while(|n| slots.take(caller(n), now).ok()).collect();
        assert_eq!(held.len(), 30);
        let full = slots.take(caller(200), now + SAY_EVERY).err().unwrap();
        assert_eq!(full.reason, "30 connections");
    }
}
