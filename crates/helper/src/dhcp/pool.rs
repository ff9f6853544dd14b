//! Addresses for machines that nobody knows yet, so that they can be seen and enrolled; they get nothing to boot. In: what was given before, and
//! what is asked. Out: which address, if any. Kept in a file, so that a killed helper gives no address twice.

use seedling_types::helper::AddressPool;
use seedling_types::{HelperConfig, Inventory};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Short: an enrolled machine soon asks again, and gets the address that it has in the inventory.
pub const LEASE_SECONDS: u32 = 600;
/// Somebody else was seen with the address.
const DECLINED_SECONDS: i64 = 3600;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Leases {
    /// By MAC address.
    pub given: BTreeMap<String, Lease>,
    /// Until when an address is left alone.
    #[serde(default)]
    pub declined: BTreeMap<Ipv4Addr, i64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    pub address: Ipv4Addr,
    /// Seconds since 1970.
    pub since: i64,
    pub until: i64,
}

/// Addresses that are somebody's.
fn is_taken(config: &HelperConfig, address: Ipv4Addr) -> bool {
    let here = config.v4().is_some_and(|here| [here.address, here.gateway].contains(&address));
    here || has(&config.inventory, address)
}

fn has(inventory: &Inventory, address: Ipv4Addr) -> bool {
    inventory.by_address(address.into()).is_some() || inventory.load_balancers.contains(&address.into())
}

fn addresses(pool: &AddressPool) -> impl Iterator<Item = Ipv4Addr> + use<> {
    (u32::from(pool.from)..=u32::from(pool.to)).map(Ipv4Addr::from)
}

impl Leases {
    /// The address for this machine: the one it had, else the one it wishes for, else one that nobody had, else the one that has been
    /// free for longest.
    pub fn choose(
        &self,
        config: &HelperConfig,
        mac: &str,
        wish: Option<Ipv4Addr>,
        now: i64,
    ) -> Option<Ipv4Addr> {
        let pool = config.pool.as_ref()?;
        let lease_of = |address| {
            self.given
                .iter()
                .filter(move |(of, lease)| *of != mac && lease.address == address)
                .map(|(_, lease)| lease.until)
                .max()
        };
        let usable = |address: Ipv4Addr| {
            (pool.from..=pool.to).contains(&address)
                && !is_taken(config, address)
                && self.declined.get(&address).is_none_or(|until| *until <= now)
        };
        let free =
            |address: &Ipv4Addr| usable(*address) && lease_of(*address).is_none_or(|until| until <= now);
        let had = self.given.get(mac).map(|lease| lease.address);
        had.into_iter()
            .chain(wish)
            .find(free)
            .or_else(|| addresses(pool).find(|address| usable(*address) && lease_of(*address).is_none()))
            .or_else(|| addresses(pool).filter(free).min_by_key(|address| lease_of(*address)))
    }

    /// True: there is something to write down. A lease that is renewed is written when half of it is over.
    pub fn take(&mut self, mac: &str, address: Ipv4Addr, now: i64) -> bool {
        let until = now + i64::from(LEASE_SECONDS);
        let since = self.given.get(mac).filter(|lease| lease.address == address).map(|lease| lease.since);
        let fresh =
            |lease: &Lease| lease.address == address && lease.until - now > i64::from(LEASE_SECONDS) / 2;
        if self.given.get(mac).is_some_and(fresh) {
            return false;
        }
        self.given.retain(|of, lease| of == mac || lease.address != address);
        self.given.insert(mac.into(), Lease { address, since: since.unwrap_or(now), until });
        true
    }

    pub fn release(&mut self, mac: &str, now: i64) -> bool {
        match self.given.get_mut(mac) {
            Some(lease) if lease.until > now => {
                lease.until = now;
                true
            }
            _ => false,
        }
    }

    pub fn decline(&mut self, config: &HelperConfig, mac: &str, address: Ipv4Addr, now: i64) -> bool {
        // Only of what it was given: nobody can empty the pool by declining all of it.
        if self.given.get(mac).is_none_or(|lease| lease.address != address) || config.pool.is_none() {
            return false;
        }
        self.given.remove(mac);
        self.declined.retain(|_, until| *until > now);
        self.declined.insert(address, now + DECLINED_SECONDS);
        true
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::testing::config;

    fn with_pool() -> HelperConfig {
        let pool = AddressPool { from: [192, 168, 100, 20].into(), to: [192, 168, 100, 23].into() };
        HelperConfig { pool: Some(pool), ..config() }
    }

    /// Words `what:machine[:address]`, a minute apart; the last numbers of addresses come out. worker-0 has .21.
    fn story(words: &str) -> String {
        let (config, mut leases, mut said) = (with_pool(), Leases::default(), Vec::new());
        for (minute, word) in (0..).zip(words.split(' ')) {
            let now = 1_000_000 + minute * 60;
            let mut parts = word.split(':');
            let (what, mac) = (parts.next().unwrap(), parts.next().unwrap());
            let address = parts.next().map(|last| Ipv4Addr::new(192, 168, 100, last.parse().unwrap()));
            match what {
                "ask" => {
                    let chosen = leases.choose(&config, mac, address, now);
                    if let Some(chosen) = chosen {
                        leases.take(mac, chosen, now);
                    }
                    said.push(chosen.map_or("none".into(), |chosen| chosen.octets()[3].to_string()));
                }
                "release" => drop(leases.release(mac, now)),
                "decline" => drop(leases.decline(&config, mac, address.unwrap(), now)),
                "wait" => {}
                other => panic!("{other}"),
            }
        }
        said.join(" ")
    }

    #[test]
    fn addresses_are_given_once_and_again_when_they_are_free() {
        let wait = ["wait:x"; 9].join(" ");
        let table = [
            ("ask:a ask:b ask:c ask:d".to_string(), "20 22 23 none"),
            ("ask:a ask:a".into(), "20 20"),
            ("ask:a:22 ask:b:22 ask:c:21 ask:d:99".into(), "22 20 23 none"),
            (format!("ask:a ask:b ask:c {wait} ask:d ask:a"), "20 22 23 20 22"),
            ("ask:a ask:b ask:c release:b ask:d ask:b".into(), "20 22 23 22 none"),
            ("ask:a decline:a:20 ask:a ask:b".into(), "20 22 23"),
            ("ask:a decline:b:20 ask:b".into(), "20 22"),
            ("ask:a decline:a:23 ask:b ask:c".into(), "20 22 23"),
        ];
        for (words, want) in table {
            assert_eq!(story(&words), want, "{words}");
        }
    }

    #[test]
    fn renewals_are_not_written_every_time() {
        let mut leases = Leases::default();
        let address = Ipv4Addr::new(192, 168, 100, 20);
        assert_eq!(
            [0, 10, 299, 301, 302].map(|now| leases.take("a", address, now)),
            [true, false, false, true, false]
        );
        assert_eq!(leases.given["a"], Lease { address, since: 0, until: 901 });
        let json = serde_json::to_string(&leases).unwrap();
        assert_eq!(serde_json::from_str::<Leases>(&json).unwrap(), leases);
        assert_eq!(Leases::default().choose(&config(), "a", None, 0), None, "no pool");
    }
}
