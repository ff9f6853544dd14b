//! From power to configuration: addresses, names, Ignition.

use super::{Facts, Finding, Link, Rule};
use crate::Evidence;
use crate::facts::{EVENTS, Machine};
use seedling_types::helper::HelperEventKind as Kind;

/// Machines that are on and have not come through their first boot, by where the helper saw them last.
fn stands_at<'a>(facts: &'a Facts, position: &'a str) -> impl Iterator<Item = &'a Machine> {
    let there = move |machine: &&Machine| {
        machine.power == "on" && !machine.first_boot_done && machine.position == position
    };
    facts.machines.iter().filter(there)
}

fn console(facts: &Facts, machine: &Machine, words: &[&str]) -> Option<Evidence> {
    facts
        .last(&format!("{}console.log", machine.dir()), "", words)
        .or_else(|| facts.last(&format!("{}ignition.log", machine.dir()), "", words))
}

/// Machines whose first boot does not end, with a line of their console that says such a thing.
fn stuck<'a>(facts: &'a Facts, words: &'a [&str]) -> Option<(&'a Machine, Evidence)> {
    let stuck = facts.machines.iter().filter(|machine| !machine.first_boot_done && machine.power != "off");
    stuck.filter_map(|machine| Some((machine, console(facts, machine, words)?))).next()
}

pub(super) const MAC_UNKNOWN: Rule = Rule {
    name: "mac-unknown",
    link: Link::Address,
    cause: "a machine's MAC address is not in the inventory, so DHCP does not answer it",
    next: "write the MAC address that the machine has into hosts.yaml, and make the helper read it again",
    messages: &[
        "DHCP REFUSED unknown MAC",
        "no address yet: DHCP has not answered it",
        "wrong MAC address in the inventory",
        "PXE MAC mismatch",
    ],
    find: |facts| {
        let unknown = |kind: &Kind| matches!(kind, Kind::Dhcp { message, host: None, .. } if matches!(message.as_str(), "DISCOVER" | "REQUEST" | "REFUSED"));
        let said = facts.event(unknown)?;
        let waiting: Vec<_> = stands_at(facts, "noDhcp").collect();
        let mac = facts.events.iter().rev().find_map(|event| match &event.what {
            Kind::Dhcp { mac, .. } if unknown(&event.what) => Some(mac.clone()),
            _ => None,
        })?;
        let who = waiting.first().map_or_else(|| "a machine".to_string(), |machine| machine.name.clone());
        let says = format!("{who} asks for an address with MAC {mac}, which is not in the inventory");
        (!waiting.is_empty()).then(|| Finding::new(says, [said]))
    },
};

pub(super) const NO_DHCP: Rule = Rule {
    name: "no-dhcp",
    link: Link::Address,
    cause: "no DHCP server answers the machines",
    next: "look whether the helper runs (`seedling lab status`) and whether UDP port 67 reaches it",
    messages: &["no answer to DHCP yet", "udhcpc: no lease, failing", "DHCP server does not answer"],
    find: |facts| {
        let waiting: Vec<_> = stands_at(facts, "noDhcp").collect();
        let everybody = !facts.machines.is_empty() && waiting.len() == facts.machines.len();
        let machine = waiting.first()?;
        let said = console(facts, machine, &["no answer to DHCP", "no lease", "broadcasting discover"]);
        everybody.then(|| Finding::new("no DHCP server answers: no machine has an address", said))
    },
};

pub(super) const CABLE: Rule = Rule {
    name: "machine-unreachable",
    link: Link::Address,
    cause: "a machine is on, and nothing of what it sends arrives",
    next: "look at its network card, cable and switch port; `ip addr` on the machine",
    messages: &["no carrier", "network is unreachable", "NO-CARRIER", "no route to host"],
    find: |facts| {
        facts.machines.iter().filter(|machine| machine.power == "on").find_map(|machine| {
            let file = format!("{}network/ip-addr.txt", machine.dir());
            let down = facts.last_where(&file, "", |line| {
                line.contains("NO-CARRIER")
                    && !line.contains(" cni")
                    && !line.contains(" flannel")
                    && !line.contains("docker")
            });
            let waits = || {
                let waiting: Vec<_> = stands_at(facts, "noDhcp").collect();
                let alone =
                    waiting.len() < facts.machines.len() && waiting.iter().any(|m| m.name == machine.name);
                alone.then(|| console(facts, machine, &["no answer to DHCP"])).flatten()
            };
            let said = down.or_else(waits)?;
            Some(Finding::new(
                format!(
                    "{} is on, but its network cable is out: nothing that it sends arrives",
                    machine.name
                ),
                [said],
            ))
        })
    },
};

const SILENT: &[&str] = &[
    "Temporary failure in name resolution",
    "Try again",
    ":53: i/o timeout",
    "connection timed out; no servers could be reached",
];

pub(super) const DNS_SILENT: Rule = Rule {
    name: "dns-silent",
    link: Link::Names,
    cause: "the DNS server does not answer",
    next: "look whether the DNS server in the machine's /etc/resolv.conf runs and whether UDP port 53 reaches it",
    messages: &[
        "Temporary failure in name resolution",
        "lookup api-int on :53: i/o timeout",
        "DNS server does not answer",
    ],
    find: |facts| {
        let (machine, said) = stuck(facts, SILENT)?;
        Some(Finding::new(format!("the DNS server does not answer {}", machine.name), [said]))
    },
};

/// The last is what Go says when a server refuses to answer for a domain that it does not know.
const NO_SUCH_NAME: &[&str] = &[
    "no such host",
    "Name or service not known",
    "Could not resolve host",
    "NXDOMAIN",
    "server misbehaving",
];

pub(super) const DNS_MISSING: Rule = Rule {
    name: "dns-record-missing",
    link: Link::Names,
    cause: "a name that machines need has no DNS record",
    next: "make the records api, api-int and *.apps of the cluster's domain; `dig api-int.DOMAIN` from the machine shows them",
    messages: &[
        "no such host",
        "lookup api-int: no such host",
        "Name or service not known",
        "Could not resolve host",
        "NXDOMAIN",
        "server misbehaving",
        "DNS record missing",
    ],
    find: |facts| {
        let (machine, said) = stuck(facts, NO_SUCH_NAME)?;
        let name = said.text.split_once("lookup ").and_then(|(_, rest)| rest.split([' ', ':']).next());
        let name = name.map_or_else(|| "a name".to_string(), str::to_string);
        Some(Finding::new(format!("{name} has no DNS record: {} cannot resolve it", machine.name), [said]))
    },
};

pub(super) const DNS_WRONG: Rule = Rule {
    name: "dns-record-wrong",
    link: Link::Names,
    cause: "DNS answers with an address at which no load balancer is",
    next: "let api and api-int point at the load balancer; `dig api-int.DOMAIN` from the machine shows where they point",
    messages: &[
        "dial tcp: connect: no route to host",
        "wrong DNS answer",
        "api-int points at the wrong address",
        "DNS record wrong address",
    ],
    find: |facts| {
        let balancers: Vec<_> = facts.text("helper/address.txt")?.split_whitespace().collect();
        let (machine, said) = stuck(facts, &["dial tcp"])?;
        let dialled = said
            .text
            .split_once("dial tcp ")
            .and_then(|(_, rest)| rest.split(':').next())
            .unwrap_or_default();
        let name = said
            .text
            .split_once("://")
            .and_then(|(_, rest)| rest.split([':', '/']).next())
            .unwrap_or("api-int");
        let says = format!(
            "DNS gives {} the address {dialled} for {name}, and the load balancer is {}",
            machine.name,
            balancers.join(", ")
        );
        (!dialled.is_empty() && !balancers.contains(&dialled)).then(|| Finding::new(says, [said]))
    },
};

pub(super) const IGNITION_FILE_MISSING: Rule = Rule {
    name: "ignition-file-missing",
    link: Link::Ignition,
    cause: "the server has no Ignition config for a machine",
    next: "make the Ignition files again (`seedling create ignition-configs`) and put them where the server looks",
    messages: &[
        "the helper answered 404 to its Ignition request",
        "GET /ign/ 404",
        "HTTP 404 config not found",
    ],
    find: |facts| {
        let machine = stands_at(facts, "ignitionRefused").find(|machine| machine.status == Some(404))?;
        let said = facts
            .event(|kind| matches!(kind, Kind::Http { status: 404, path, .. } if path.starts_with("/ign/")));
        Some(Finding::new(
            format!("the helper has no Ignition config for {}: it answered 404", machine.name),
            said,
        ))
    },
};

pub(super) const IGNITION_UNREACHABLE: Rule = Rule {
    name: "ignition-server-unreachable",
    link: Link::Ignition,
    cause: "machines have addresses, and the server of their Ignition configs does not answer",
    next: "look whether the HTTP server runs and whether its port reaches it from the machines",
    messages: &[
        "has an address, fetched no Ignition config",
        "Ignition could not fetch",
        "GET /ign/ i/o timeout",
        "HTTP server down",
    ],
    find: |facts| {
        let waiting: Vec<_> = stands_at(facts, "noIgnitionFetch").collect();
        let machine = waiting.first()?;
        let said = console(facts, machine, &["could not fetch", "GET error", "timeout", "refused"])
            .or_else(|| facts.last(EVENTS, "", &["\"ACK\""]));
        let says = format!(
            "the HTTP server does not answer: {} has an address and gets no Ignition config",
            machine.name
        );
        Some(Finding::new(says, said))
    },
};
