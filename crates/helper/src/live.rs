//! The config that the servers go by. Read again (SIGHUP), it takes the place of the one before as a whole; connections notice nothing.

use crate::HelperError;
use crate::dns::Zones;
use seedling_types::{HelperConfig, Host, Role};
use std::sync::{Arc, PoisonError, RwLock};

/// Every server asks anew for each packet, request or connection.
#[derive(Clone)]
pub struct Live(Arc<RwLock<State>>);

#[derive(Clone)]
struct State {
    config: Arc<HelperConfig>,
    zones: Arc<Zones>,
}

impl State {
    fn of(config: HelperConfig) -> Result<Self, HelperError> {
        Ok(Self { zones: Arc::new(Zones::of(&config)?), config: Arc::new(config) })
    }
}

impl Live {
    pub fn new(config: HelperConfig) -> Result<Self, HelperError> {
        Ok(Self(Arc::new(RwLock::new(State::of(config)?))))
    }

    pub fn config(&self) -> Arc<HelperConfig> {
        self.now().config
    }

    pub(crate) fn zones(&self) -> Arc<Zones> {
        self.now().zones
    }

    fn now(&self) -> State {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on by this config; one that cannot be taken over leaves everything as it was.
    pub(crate) fn replace(&self, next: HelperConfig) -> Result<(), HelperError> {
        if let Some(what) = needs_restart(&self.config(), &next) {
            return Err(HelperError::Restart(what));
        }
        let next = State::of(next)?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = next;
        Ok(())
    }
}

/// What a running helper cannot change: where it listens, what it serves, and whom the load balancer checks.
fn needs_restart(before: &HelperConfig, next: &HelperConfig) -> Option<&'static str> {
    let control_plane = |config: &HelperConfig| -> Vec<Host> {
        config.inventory.hosts.iter().filter(|host| host.role != Role::Worker).cloned().collect()
    };
    let rest = HelperConfig { inventory: before.inventory.clone(), ..next.clone() };
    if rest != *before {
        return Some("something else than the inventory is different");
    }
    (control_plane(before) != control_plane(next)).then_some("the bootstrap machine or a master is different")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::dns::Found;
    use crate::testing::config;
    use hickory_proto::rr::{Name, RecordType};

    fn worker(name: &str, last: u8) -> Host {
        let mac = format!("52:54:00:00:00:{last:02}");
        Host { name: name.into(), role: Role::Worker, mac, address: [192, 168, 100, last].into() }
    }

    #[test]
    fn workers_come_and_go_and_anything_else_needs_a_restart() {
        let before = config();
        let with = |inventory| HelperConfig { inventory, ..config() };
        let master = Host { role: Role::Master, ..worker("master-3", 14) };
        let cases = [
            (with(before.inventory.with(worker("worker-1", 22)).unwrap()), None),
            (with(before.inventory.without("worker-0")), None),
            (config(), None),
            (with(before.inventory.with(master).unwrap()), Some("a master")),
            (with(before.inventory.without("master-2")), Some("a master")),
            (with(before.inventory.without("bootstrap")), Some("bootstrap")),
            (HelperConfig { interface: "br1".into(), ..config() }, Some("something else")),
        ];
        for (next, wanted) in cases {
            let found = needs_restart(&before, &next);
            assert_eq!(found.is_some(), wanted.is_some(), "{found:?}");
            assert!(wanted.is_none_or(|part| found.is_some_and(|text| text.contains(part))), "{found:?}");
        }
    }

    #[test]
    fn names_follow_and_a_refused_config_changes_nothing() {
        let live = Live::new(config()).unwrap();
        let known = |name: &str| {
            let name = Name::from_ascii(format!("{name}.ocp4.example.com.")).unwrap();
            matches!(live.zones().lookup(&name, RecordType::A), Found::Records(_))
        };
        let inventory = config().inventory.without("worker-0").with(worker("worker-1", 22)).unwrap();
        live.replace(HelperConfig { inventory, ..config() }).unwrap();
        assert_eq!((known("worker-0"), known("worker-1")), (false, true));
        let refused = live.replace(HelperConfig { interface: "br1".into(), ..config() });
        assert!(refused.unwrap_err().to_string().contains("restart"));
        assert_eq!((known("worker-0"), known("worker-1")), (false, true));
        assert_eq!(live.config().interface, "br0");
    }
}
