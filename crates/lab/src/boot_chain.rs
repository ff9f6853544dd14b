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
    /// It boots over the network: it has its boot loader or its script, and fetches the live system.
    NetworkBoot,
    /// The live system puts itself on the disk.
    Installing,
    /// It could not.
    InstallFailed,
    /// It is on its disk, and boots from there.
    Installed,
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
    let mut boot = None;
    for event in events {
        match &event.what {
            HelperEventKind::Dhcp { message, mac, .. } if mac.eq_ignore_ascii_case(&host.mac) => {
                dhcp |= message == "ACK"
            }
            HelperEventKind::Http { path, status, remote, .. }
                if host.is_at(*remote) && path.starts_with("/ign/") =>
            {
                again += u32::from(mcs);
                ignition = if ignition == Some(200) { ignition } else { Some(*status) };
            }
            // Node software is what a config asks for.
            HelperEventKind::Http { path, remote, .. }
                if host.is_at(*remote) && path.starts_with("/bin/") =>
            {
                (again, software) = (0, true)
            }
            HelperEventKind::Connection { port, remote, .. } if host.is_at(*remote) => {
                mcs |= *port == ports::MCS
            }
            HelperEventKind::Tftp { remote, status, .. } if host.is_at(*remote) && status == "ok" => {
                boot = boot.or(Some(Position::NetworkBoot))
            }
            HelperEventKind::Boot { host: name, state, .. } if *name == host.name => {
                boot = match state {
                    // One that is installed anew begins again.
                    BootStep::Wanted => {
                        (ignition, mcs, software, again) = (None, false, false, 0);
                        None
                    }
                    BootStep::Install => Some(Position::NetworkBoot),
                    BootStep::Installing => Some(Position::Installing),
                    BootStep::Failed => Some(Position::InstallFailed),
                    BootStep::Installed | BootStep::Disk => Some(Position::Installed),
                }
            }
            _ => {}
        }
    }
    // The live system fetches the config for the disk: until that is booted, its report says more.
    match boot {
        Some(Position::Installed) if mcs || software => {}
        Some(position @ (Position::Installing | Position::InstallFailed | Position::Installed)) => {
            return position;
        }
        Some(position) if ignition.is_none() => return position,
        _ => {}
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
        let logs = format!("`lab logs {node}`");
        let hint = match self {
            Position::NoDhcp | Position::NoIgnitionFetch | Position::NetworkBoot | Position::Installed => {
                logs
            }
            Position::InstallFailed => format!("`helper status`, {logs}"),
            Position::IgnitionRefused { .. } => "`lab logs`".into(),
            Position::McsRefused => {
                let log = seedling_types::paths::MCS_AUDIT_LOG;
                format!("`lab exec bootstrap -- tail {log}`, then the masters")
            }
            _ => return self.says(),
        };
        format!("{} ({hint})", self.says())
    }

    /// Without where to look in a lab.
    pub fn says(self) -> String {
        match self {
            Position::NoDhcp => "no address yet: DHCP has not answered it".into(),
            Position::NoIgnitionFetch => "has an address, fetched no Ignition config".into(),
            Position::NetworkBoot => "boots over the network, and fetches its system".into(),
            Position::Installing => "installs itself to its disk".into(),
            Position::InstallFailed => "could not install itself".into(),
            Position::Installed => "is installed, and boots from its disk".into(),
            Position::IgnitionRefused { status } => {
                format!("the helper answered {status} to its Ignition request")
            }
            Position::NoMcsFetch => {
                format!("has its pointer config, has not reached the machine-config server on {}", ports::MCS)
            }
            Position::WaitsForMasters => {
                "waits for the masters: the bootstrap machine serves no workers".into()
            }
            Position::McsRefused => "asks the machine-config server in vain".into(),
            Position::Fetched => "fetched its configuration".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    const MASTER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 168, 100, 11));

    fn host(role: Role) -> Host {
        Host {
            name: "n".into(),
            role,
            mac: "52:54:00:5e:ed:11".into(),
            address: MASTER,
            second_address: None,
        }
    }
    fn event(what: HelperEventKind) -> HelperEvent {
        HelperEvent { time: "2026-01-01T00:00:00.000Z".into(), what }
    }
    fn dhcp(message: &str) -> HelperEvent {
        let mac = "52:54:00:5E:ED:11".into();
        event(HelperEventKind::Dhcp { message: message.into(), mac, host: None, address: None })
    }
    fn http(path: &str, status: u16, remote: IpAddr) -> HelperEvent {
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

    #[test]
    fn a_machine_that_installs_itself_is_followed() {
        let boot = |state| event(HelperEventKind::Boot { host: "n".into(), state, message: None });
        let tftp = || {
            let (file, status) = ("undionly.kpxe".into(), "ok".into());
            event(HelperEventKind::Tftp { file, remote: MASTER, host: None, bytes: 1, status })
        };
        let ign = || http("/ign/52:54:00:5e:ed:11", 200, MASTER);
        let software = || http("/bin/kubelet", 200, MASTER);
        let installed = || {
            vec![
                dhcp("ACK"),
                tftp(),
                boot(BootStep::Install),
                ign(),
                boot(BootStep::Installing),
                boot(BootStep::Installed),
            ]
        };
        let with = |more: Vec<HelperEvent>| [installed(), more].concat();
        let cases = [
            (vec![dhcp("ACK"), tftp()], Position::NetworkBoot),
            (vec![dhcp("ACK"), boot(BootStep::Install)], Position::NetworkBoot),
            (
                vec![dhcp("ACK"), boot(BootStep::Install), ign(), boot(BootStep::Installing)],
                Position::Installing,
            ),
            (vec![boot(BootStep::Install), ign(), boot(BootStep::Failed)], Position::InstallFailed),
            (installed(), Position::Installed),
            (with(vec![dhcp("ACK"), boot(BootStep::Disk)]), Position::Installed),
            (with(vec![connection(22623)]), Position::WaitsForMasters),
            (with(vec![connection(22623), software()]), Position::Fetched),
            (
                with(vec![connection(22623), software(), boot(BootStep::Wanted), dhcp("ACK")]),
                Position::NoIgnitionFetch,
            ),
            (with(vec![connection(22623), software(), boot(BootStep::Disk)]), Position::Fetched),
            // Live, without a disk.
            (vec![dhcp("ACK"), boot(BootStep::Install), ign()], Position::NoMcsFetch),
        ];
        for (events, want) in cases {
            assert_eq!(boot_chain(&events, &host(Role::Worker)), want, "{events:?}");
        }
    }

    #[test]
    fn the_furthest_point_is_named() {
        let other = IpAddr::from([192, 168, 100, 12]);
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
