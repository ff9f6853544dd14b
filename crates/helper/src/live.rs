//! The config that the servers go by. Read again (SIGHUP), it takes the place of the one before as a whole; connections notice nothing.

use crate::HelperError;
use crate::dns::Zones;
use seedling_types::HelperConfig;
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::watch;

/// Every server asks anew for each packet, request or connection.
#[derive(Clone)]
pub struct Live {
    state: Arc<RwLock<State>>,
    changes: Arc<watch::Sender<()>>,
}

#[derive(Clone)]
struct State {
    config: Arc<HelperConfig>,
    zones: Arc<Zones>,
}

impl State {
    fn of(config: HelperConfig, serial: u32) -> Result<Self, HelperError> {
        Ok(Self { zones: Arc::new(Zones::of(&config, serial)?), config: Arc::new(config) })
    }
}

/// The time, so that it also grows over restarts; and more than before, if two changes come in one second.
fn next_serial(before: u32, seconds: i64) -> u32 {
    u32::try_from(seconds).unwrap_or(u32::MAX).max(before.saturating_add(1))
}

impl Live {
    pub fn new(config: HelperConfig) -> Result<Self, HelperError> {
        let state = State::of(config, next_serial(0, jiff::Timestamp::now().as_second()))?;
        Ok(Self { state: Arc::new(RwLock::new(state)), changes: Arc::new(watch::Sender::new(())) })
    }

    pub fn config(&self) -> Arc<HelperConfig> {
        self.now().config
    }

    /// Of the same moment.
    pub(crate) fn config_and_zones(&self) -> (Arc<HelperConfig>, Arc<Zones>) {
        let State { config, zones } = self.now();
        (config, zones)
    }

    pub(crate) fn zones(&self) -> Arc<Zones> {
        self.now().zones
    }

    /// For those who keep something that was made of the config.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    fn now(&self) -> State {
        self.state.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on by this config; one that cannot be taken over leaves everything as it was.
    pub(crate) fn replace(&self, next: HelperConfig) -> Result<(), HelperError> {
        if let Some(what) = needs_restart(&self.config(), &next) {
            return Err(HelperError::Restart(what));
        }
        let serial = next_serial(self.zones().serial(), jiff::Timestamp::now().as_second());
        let next = State::of(next, serial)?;
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = next;
        self.changes.send_replace(());
        Ok(())
    }
}

/// What a running helper cannot change: where it listens, where it writes, and whom its health checks believe.
fn needs_restart(before: &HelperConfig, next: &HelperConfig) -> Option<&'static str> {
    let different = [
        (
            before.interface != next.interface || before.addresses().ne(next.addresses()),
            "the address or the interface",
        ),
        (before.events != next.events || before.ready_file != next.ready_file, "the place of its files"),
        (before.server_ca != next.server_ca, "serverCa"),
        (before.forwards != next.forwards, "a forward"),
        (before.ingress != next.ingress, "ingress"),
        (before.without != next.without, "which servers it has"),
        (before.boot.is_some() != next.boot.is_some(), "whether machines boot over the network"),
    ];
    different.iter().find(|(different, _)| *different).map(|(_, what)| *what)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::dns::Found;
    use crate::testing::config;
    use hickory_proto::rr::{Name, RecordType};
    use seedling_types::helper::BootConfig;
    use seedling_types::{Host, Role};

    fn worker(name: &str, last: u8) -> Host {
        let mac = format!("52:54:00:00:00:{last:02}");
        Host {
            name: name.into(),
            role: Role::Worker,
            mac,
            address: [192, 168, 100, last].into(),
            second_address: None,
        }
    }

    #[test]
    fn machines_come_and_go_and_another_address_needs_a_restart() {
        let before = config();
        let with = |inventory| HelperConfig { inventory, ..config() };
        let master = Host { role: Role::Master, ..worker("master-3", 14) };
        let boot: BootConfig = serde_saphyr::from_str("{imageDir: /b}").unwrap();
        let cases = [
            (with(before.inventory.with(worker("worker-1", 22)).unwrap()), None),
            (with(before.inventory.without("worker-0")), None),
            (config(), None),
            (with(before.inventory.with(master).unwrap()), None),
            (with(before.inventory.without("bootstrap")), None),
            (HelperConfig { forwarders: vec![[9, 9, 9, 9].into()], etcd_srv: true, ..config() }, None),
            (HelperConfig { router: Some([192, 168, 100, 254].into()), ..config() }, None),
            (HelperConfig { interface: "br1".into(), ..config() }, Some("interface")),
            (HelperConfig { ingress: true, ..config() }, Some("ingress")),
            (HelperConfig { boot: Some(boot), ..config() }, Some("boot")),
        ];
        for (next, wanted) in cases {
            let found = needs_restart(&before, &next);
            assert_eq!(found.is_some(), wanted.is_some(), "{found:?}");
            assert!(wanted.is_none_or(|part| found.is_some_and(|text| text.contains(part))), "{found:?}");
        }
    }

    #[test]
    fn serials_grow() {
        assert_eq!(next_serial(0, 1_700_000_000), 1_700_000_000);
        assert_eq!(next_serial(1_700_000_000, 1_700_000_000), 1_700_000_001);
        assert_eq!(next_serial(1_700_000_005, 1_600_000_000), 1_700_000_006, "the clock was set back");
        let live = Live::new(config()).unwrap();
        let before = live.zones().serial();
        live.replace(config()).unwrap();
        assert!(live.zones().serial() > before && before > 1_700_000_000);
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
