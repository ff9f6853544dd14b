//! Where a machine stands on its way from power to configuration, derived from what the helper saw of it.

use seedling_types::boot::BootStep;
use seedling_types::helper::{HelperEvent, HelperEventKind};
use seedling_types::{Host, Role, ports};
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "position")]
pub enum Position {
    /// It never got an address.
    NoDhcp,
    /// It has an address, but never fetched its Ignition config from the helper.
    NoIgnitionFetch,
    /// It was given the live system that installs it, and has not said anything since.
    BootsLive,
    /// It puts itself on its disk.
    Installing,
    /// It could not, and said why: see its console.
    InstallFailed,
    /// The helper refused the Ignition config.
    IgnitionRefused { status: u16 },
    /// It has the pointer config, but never reached the machine-config server it points at.
    NoMcsFetch,
    /// A worker: the bootstrap machine serves masters only.
    WaitsForMasters,
    /// It starts from its pointer config again and again: the machine-config server gives it nothing.
    McsRefused,
    /// All it asks for on first boot was fetched.
    Fetched,
}

/// A machine whose Ignition gave up starts again with its pointer; once may be a power cut.
const REFUSED_AFTER: u32 = 3;

/// The furthest point the events prove. A machine that boots again does not fall back.
pub fn boot_chain(events: &[HelperEvent], host: &Host) -> Position {
    let mut dhcp = false;
    let mut ignition = None;
    let mut mcs = false;
    let mut software = false;
    let mut again = 0;
    let mut install = None;
    for event in events {
        match &event.what {
            HelperEventKind::Dhcp { message, mac, .. } if mac.eq_ignore_ascii_case(&host.mac) => {
                dhcp |= message == "ACK"
            }
            HelperEventKind::Http { path, status, remote, .. }
                if *remote == host.address && path.starts_with("/ign/") =>
            {
                again += u32::from(mcs);
                ignition = if ignition == Some(200) { ignition } else { Some(*status) };
            }
            // Node software is what a config asks for.
            HelperEventKind::Http { path, remote, .. }
                if *remote == host.address && path.starts_with("/bin/") =>
            {
                (again, software) = (0, true)
            }
            HelperEventKind::Connection { port, remote, .. } if *remote == host.address => {
                mcs |= *port == ports::MCS
            }
            HelperEventKind::Boot { host: of, state, .. } if *of == host.name => install = Some(*state),
            _ => {}
        }
    }
    // One that is installed again begins again.
    match install {
        Some(BootStep::Wanted | BootStep::Install) => return Position::BootsLive,
        Some(BootStep::Installing) => return Position::Installing,
        Some(BootStep::Failed) => return Position::InstallFailed,
        Some(BootStep::Installed | BootStep::Disk) | None => {}
    }
    match (ignition, host.role) {
        // The bootstrap node's config is whole: it asks no machine-config server, it becomes one.
        (Some(200), Role::Bootstrap) => Position::Fetched,
        (Some(200), _) if again >= REFUSED_AFTER => Position::McsRefused,
        (Some(200), Role::Worker) if mcs && !software => Position::WaitsForMasters,
        (Some(200), _) if mcs => Position::Fetched,
        (Some(200), _) => Position::NoMcsFetch,
        (Some(status), _) => Position::IgnitionRefused { status },
        (None, _) if dhcp => Position::NoIgnitionFetch,
        (None, _) => Position::NoDhcp,
    }
}

impl Position {
    /// For people: what it waits for, and where to look.
    pub fn explain(self, node: &str) -> String {
        match self {
            Position::NoDhcp => format!("no address yet: DHCP has not answered it (`lab logs {node}`)"),
            Position::NoIgnitionFetch => {
                format!("has an address, fetched no Ignition config (`lab logs {node}`)")
            }
            Position::BootsLive => {
                format!("boots the system that installs it over the network (`lab logs {node}`)")
            }
            Position::Installing => "installs itself on its disk".into(),
            Position::InstallFailed => format!("could not install itself (`lab logs {node}`)"),
            Position::IgnitionRefused { status } => {
                format!("the helper answered {status} to its Ignition request (`lab logs`)")
            }
            Position::NoMcsFetch => {
                format!("has its pointer config, has not reached the machine-config server on {}", ports::MCS)
            }
            Position::WaitsForMasters => {
                "waits for the masters: the bootstrap machine serves no workers".into()
            }
            Position::McsRefused => {
                let log = seedling_types::paths::MCS_AUDIT_LOG;
                format!(
                    "asks the machine-config server in vain (`lab exec bootstrap -- tail {log}`, then the masters)"
                )
            }
            Position::Fetched => "fetched its configuration".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const MASTER: Ipv4Addr = Ipv4Addr::new(192, 168, 100, 11);

    fn host(role: Role) -> Host {
        Host { name: "n".into(), role, mac: "52:54:00:5e:ed:11".into(), address: MASTER }
    }
    fn event(what: HelperEventKind) -> HelperEvent {
        HelperEvent { time: "2026-01-01T00:00:00.000Z".into(), what }
    }
    fn dhcp(message: &str) -> HelperEvent {
        let mac = "52:54:00:5E:ED:11".into();
        event(HelperEventKind::Dhcp { message: message.into(), mac, host: None, address: None })
    }
    fn http(path: &str, status: u16, remote: Ipv4Addr) -> HelperEvent {
        let (method, user_agent) = ("GET".into(), "Ignition/2.14".into());
        event(HelperEventKind::Http {
            method,
            path: path.into(),
            status,
            remote,
            host: None,
            user_agent,
            bytes: 1,
        })
    }
    fn connection(port: u16) -> HelperEvent {
        event(HelperEventKind::Connection { port, remote: MASTER, host: None, backend: "bootstrap".into() })
    }

    fn boot(state: BootStep) -> HelperEvent {
        event(HelperEventKind::Boot { host: "n".into(), state, message: None })
    }

    #[test]
    fn a_machine_that_installs_itself_says_so() {
        let ign = || http("/ign/52:54:00:5e:ed:11", 200, MASTER);
        let install = || vec![dhcp("ACK"), boot(BootStep::Install)];
        let then = |more: Vec<HelperEvent>| install().into_iter().chain(more).collect::<Vec<_>>();
        let (installing, installed) = (|| boot(BootStep::Installing), || boot(BootStep::Installed));
        for (events, want) in [
            (install(), Position::BootsLive),
            (then(vec![ign(), installing()]), Position::Installing),
            (then(vec![ign(), installing(), boot(BootStep::Failed)]), Position::InstallFailed),
            (then(vec![ign(), installing(), installed()]), Position::NoMcsFetch),
            (
                then(vec![
                    ign(),
                    installed(),
                    boot(BootStep::Disk),
                    connection(22623),
                    http("/bin/x", 200, MASTER),
                ]),
                Position::Fetched,
            ),
            (then(vec![ign(), installed(), connection(22623), boot(BootStep::Wanted)]), Position::BootsLive),
        ] {
            assert_eq!(boot_chain(&events, &host(Role::Worker)), want, "{events:?}");
        }
    }

    #[test]
    fn the_furthest_point_is_named() {
        let other = Ipv4Addr::new(192, 168, 100, 12);
        let software = || http("/bin/kubelet", 200, MASTER);
        let ign = || http("/ign/52:54:00:5e:ed:11", 200, MASTER);
        let cases = [
            (Role::Master, vec![], Position::NoDhcp),
            (Role::Master, vec![dhcp("DISCOVER"), dhcp("OFFER")], Position::NoDhcp),
            (Role::Master, vec![dhcp("ACK")], Position::NoIgnitionFetch),
            (Role::Master, vec![dhcp("ACK"), http("/ign/x", 200, other)], Position::NoIgnitionFetch),
            (Role::Master, vec![dhcp("ACK"), http("/bin/kubelet", 200, MASTER)], Position::NoIgnitionFetch),
            (
                Role::Master,
                vec![dhcp("ACK"), http("/ign/x", 404, MASTER)],
                Position::IgnitionRefused { status: 404 },
            ),
            (Role::Master, vec![dhcp("ACK"), http("/ign/x", 404, MASTER), ign()], Position::NoMcsFetch),
            (Role::Master, vec![dhcp("ACK"), ign(), connection(6443)], Position::NoMcsFetch),
            (Role::Master, vec![dhcp("ACK"), ign(), connection(22623)], Position::Fetched),
            (Role::Master, vec![dhcp("ACK"), ign(), connection(22623), dhcp("DISCOVER")], Position::Fetched),
            (Role::Master, vec![ign(), connection(22623), ign(), connection(22623)], Position::Fetched),
            (Role::Master, vec![ign(), connection(22623), ign(), ign(), ign()], Position::McsRefused),
            (
                Role::Master,
                vec![ign(), connection(22623), ign(), ign(), ign(), software()],
                Position::Fetched,
            ),
            (Role::Worker, vec![dhcp("ACK"), ign()], Position::NoMcsFetch),
            (Role::Worker, vec![dhcp("ACK"), ign(), connection(22623)], Position::WaitsForMasters),
            (Role::Worker, vec![ign(), connection(22623), connection(22623), software()], Position::Fetched),
            (Role::Bootstrap, vec![dhcp("ACK"), ign()], Position::Fetched),
        ];
        for (role, events, want) in cases {
            assert_eq!(boot_chain(&events, &host(role)), want, "{role:?} {events:?}");
        }
    }
}
