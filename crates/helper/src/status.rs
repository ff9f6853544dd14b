//! How far each machine's boot got, as far as the helper can see: a chain of links, and the first that is broken. Pure: in the config, the
//! events and the states of installations; out a row a machine, known or not.

use crate::boot::script::{INITRAMFS, KERNEL, NO_DEVICE};
use crate::dhcp::pool::Leases;
use seedling_types::boot::{BootState, BootStep, Install};
use seedling_types::helper::{HelperEvent, HelperEventKind as Kind, PROBE_MAC};
use seedling_types::{HelperConfig, Host, Role, ports};
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::IpAddr;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    pub machines: Vec<Machine>,
    pub unknown: Vec<Unknown>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    pub name: String,
    pub role: Role,
    pub mac: String,
    pub address: IpAddr,
    pub links: Vec<Link>,
    /// The first link that is not there yet, by its name.
    pub broken: Option<&'static str>,
    /// What was seen last, and what to do.
    pub says: String,
    /// When it was last heard of.
    pub seen: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install: Option<BootState>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Link {
    pub name: &'static str,
    /// When it was first there, since the machine last began to boot.
    pub since: Option<String>,
}

/// A machine that is not in the inventory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unknown {
    pub mac: String,
    pub seen: String,
    pub asked: u64,
    /// Of the pool.
    pub address: Option<IpAddr>,
}

pub fn status(
    config: &HelperConfig,
    events: &[HelperEvent],
    installs: impl Fn(&str) -> BootState,
    leases: &Leases,
) -> Status {
    let machines =
        config.inventory.hosts.iter().map(|host| machine(config, events, host, &installs)).collect();
    let mut unknown: BTreeMap<&str, Unknown> = BTreeMap::new();
    for event in events {
        let Kind::Dhcp { message, mac, .. } = &event.what else { continue };
        // Somebody who was enrolled since is known, and a check's own question is nobody's.
        if message != "DISCOVER" || config.inventory.by_mac(mac).is_some() || is_probe(mac) {
            continue;
        }
        let address = leases.given.get(mac).map(|lease| lease.address.into());
        let row = unknown.entry(mac).or_insert_with(|| Unknown {
            mac: mac.clone(),
            seen: String::new(),
            asked: 0,
            address,
        });
        row.seen.clone_from(&event.time);
        row.asked += 1;
    }
    Status { machines, unknown: unknown.into_values().collect() }
}

fn is_probe(mac: &str) -> bool {
    let begins = PROBE_MAC.map(|byte| format!("{byte:02x}")).join(":");
    mac.to_lowercase().starts_with(&begins)
}

fn machine(
    config: &HelperConfig,
    events: &[HelperEvent],
    host: &Host,
    installs: &impl Fn(&str) -> BootState,
) -> Machine {
    let boot = config.boot_of(&host.name);
    let installs_itself = boot.is_some_and(|boot| boot.device(&host.name) != NO_DEVICE);
    let mut names = vec!["address"];
    if boot.is_some() {
        names.extend(["boot loader", "script", "kernel", "initramfs"]);
    }
    if installs_itself {
        names.push("installed");
    }
    names.push("config");
    if host.role != Role::Bootstrap {
        names.extend(["machine-config", "software"]);
    }
    let mut links: Vec<_> = names.into_iter().map(|name| Link { name, since: None }).collect();
    let (mut seen, mut refused) = (None, None);
    for event in events {
        let Some(heard) = heard(host, &event.what) else { continue };
        seen = Some(event.time.clone());
        let name = match heard {
            Heard::Link(name) => name,
            Heard::Refused(why) => {
                refused = Some(why);
                continue;
            }
            Heard::Something => continue,
        };
        refused = None;
        // A link proves those before it: what came earlier may be in a log that is gone.
        if let Some(at) = links.iter().position(|link| link.name == name) {
            for link in links.iter_mut().take(at + 1).filter(|link| link.since.is_none()) {
                link.since = Some(event.time.clone());
            }
        }
    }
    let install = boot.map(|_| installs(&host.name));
    let broken = links.iter().find(|link| link.since.is_none()).map(|link| link.name);
    let says = says(host, broken, refused, install.as_ref().filter(|_| installs_itself));
    let Host { name, role, mac, address, .. } = host.clone();
    Machine { name, role, mac, address, links, broken, says, seen, install }
}

enum Heard {
    Link(&'static str),
    Refused(String),
    Something,
}

fn heard(host: &Host, what: &Kind) -> Option<Heard> {
    let own = |remote: &IpAddr| host.is_at(*remote);
    Some(match what {
        Kind::Dhcp { mac, message, .. } if mac.eq_ignore_ascii_case(&host.mac) => match message.as_str() {
            "ACK" => Heard::Link("address"),
            "ELSEWHERE" => Heard::Refused("it took another DHCP server's address".into()),
            "DECLINE" => Heard::Refused(format!("somebody else has its address {}", host.address)),
            "NAK" => Heard::Refused("it wanted another address than its own, and starts over".into()),
            _ => Heard::Something,
        },
        Kind::Tftp { remote, file, status, .. } if own(remote) => match status.as_str() {
            "ok" if file.contains("pxelinux.cfg/") => Heard::Link("script"),
            "ok" if file.ends_with(KERNEL) => Heard::Link("kernel"),
            "ok" if file.ends_with(INITRAMFS) => Heard::Link("initramfs"),
            "ok" => Heard::Link("boot loader"),
            // Firmware asks for the size, stops, and asks again; PXELINUX tries names until one is there.
            why if why.starts_with("the machine stopped it") || file.contains("pxelinux.cfg/") => {
                Heard::Something
            }
            why => Heard::Refused(format!("TFTP of {file}: {why}")),
        },
        Kind::Boot { host: name, state, message } if *name == host.name => match state {
            BootStep::Install | BootStep::Disk => Heard::Link("script"),
            BootStep::Installed => Heard::Link("installed"),
            BootStep::Failed => Heard::Refused(format!(
                "it cannot install itself: {}",
                message.as_deref().unwrap_or("it did not say why")
            )),
            BootStep::Wanted | BootStep::Installing => Heard::Something,
        },
        Kind::Http { remote, path, status, .. } if own(remote) => match (path.as_str(), status) {
            (path, 200..=299) if path == format!("/boot/{KERNEL}") => Heard::Link("kernel"),
            (path, 200..=299) if path == format!("/boot/{INITRAMFS}") => Heard::Link("initramfs"),
            (path, 200..=299) if path.starts_with("/boot/") && path.ends_with(".efi") => {
                Heard::Link("boot loader")
            }
            (path, 200..=299) if path.starts_with("/ign/") => Heard::Link("config"),
            (path, 200..=299) if path.starts_with("/bin/") => Heard::Link("software"),
            (path, 400..) => Heard::Refused(format!("{path} was answered {status}")),
            _ => Heard::Something,
        },
        Kind::Refused { remote, reason, .. } if own(remote) => Heard::Refused(reason.clone()),
        Kind::Connection { remote, port, .. } if own(remote) && *port == ports::MCS => {
            Heard::Link("machine-config")
        }
        _ => return None,
    })
}

fn says(
    host: &Host,
    broken: Option<&'static str>,
    refused: Option<String>,
    install: Option<&BootState>,
) -> String {
    if let Some(why) = refused {
        return why;
    }
    let waits = match broken {
        None => "it has everything that the helper gives",
        Some("address") => {
            "it never asked for an address: is it on, on this network, and is its MAC address right?"
        }
        Some("boot loader") => "it fetched no boot loader: does it boot from the network first?",
        Some("script") => "its boot loader fetched no script: see its console",
        Some("kernel" | "initramfs") => "it did not fetch its kernel whole: see its console",
        Some("installed") => "it has not installed itself yet: see its console",
        Some("config") => "it fetched no Ignition config: see its console",
        Some("machine-config") => "it did not reach the machine-config server: is 22623 open to it?",
        Some(_) => match host.role {
            Role::Worker => "it waits for the masters, or the machine-config server refuses it",
            _ => "it waits for the machine-config server",
        },
    };
    match install.filter(|state| state.since > 0) {
        Some(BootState { install: Install::Installed, .. })
            if broken.is_some_and(|link| link != "installed") =>
        {
            format!("{waits} (it is installed, and boots from its disk)")
        }
        Some(BootState { install: Install::Wanted, .. }) => format!("it is to be installed again; {waits}"),
        _ => waits.into(),
    }
}

impl Status {
    pub fn table(&self) -> String {
        let mut rows = vec![["MACHINE", "ADDRESS", "REACHED", "WAITS FOR", "SEEN", ""].map(String::from)];
        for machine in &self.machines {
            let reached =
                machine.links.iter().rev().find(|link| link.since.is_some()).map_or("-", |link| link.name);
            let seen = machine.seen.clone().map_or("never".into(), short);
            let broken = machine.broken.unwrap_or("-");
            rows.push([
                machine.name.clone(),
                machine.address.to_string(),
                reached.into(),
                broken.into(),
                seen,
                machine.says.clone(),
            ]);
        }
        for unknown in &self.unknown {
            let address = unknown.address.map_or("-".into(), |address| address.to_string());
            let says = format!(
                "unknown, asked {} times: seedling node add NAME --mac {}",
                unknown.asked, unknown.mac
            );
            rows.push(["?".into(), address, "-".into(), "-".into(), short(unknown.seen.clone()), says]);
        }
        let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or_default();
        let widths: Vec<_> = (0..5).map(width).collect();
        let line = |row: &[String; 6]| {
            let cells = row.iter().take(5).zip(&widths).map(|(cell, width)| format!("{cell:<width$}  "));
            format!("{}{}", cells.collect::<String>(), row[5]).trim_end().to_string() + "\n"
        };
        rows.iter().map(line).collect()
    }
}

/// Without date and parts of seconds.
fn short(time: String) -> String {
    time.get(11..19).map_or(time.clone(), String::from)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
#[path = "status_tests.rs"]
mod tests;
