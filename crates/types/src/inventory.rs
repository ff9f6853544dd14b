//! hosts.yaml: which machines belong to the cluster. DHCP, DNS, the machine-config server and CSR approval read it.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use thiserror::Error;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Bootstrap,
    Master,
    Worker,
}

impl Role {
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Bootstrap => "bootstrap",
            Role::Master => "master",
            Role::Worker => "worker",
        }
    }
}

/// The largest control plane. Every further master makes each write slower, and upstream tests no more.
pub const MOST_MASTERS: u8 = 5;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Short host name, without the cluster domain; it is also the Node's name.
    pub name: String,
    pub role: Role,
    /// Lower case, colon separated.
    pub mac: String,
    pub address: IpAddr,
    /// In a dual-stack cluster: its address of the other family.
    #[serde(default, rename = "secondAddress", skip_serializing_if = "Option::is_none")]
    pub second_address: Option<IpAddr>,
}

impl Host {
    /// The first is where others reach it; then the one of the other family, if it has one.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> + use<> {
        std::iter::once(self.address).chain(self.second_address)
    }
    pub fn is_at(&self, address: IpAddr) -> bool {
        self.addresses().any(|own| own == address)
    }
    pub fn v4(&self) -> Option<Ipv4Addr> {
        self.addresses().find_map(v4)
    }
    pub fn v6(&self) -> Option<Ipv6Addr> {
        self.addresses().find_map(v6)
    }
}

pub fn v4(address: IpAddr) -> Option<Ipv4Addr> {
    if let IpAddr::V4(address) = address { Some(address) } else { None }
}

pub fn v6(address: IpAddr) -> Option<Ipv6Addr> {
    if let IpAddr::V6(address) = address { Some(address) } else { None }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inventory {
    pub hosts: Vec<Host>,
    /// Balancers before the machine-config server: they, and nobody else, may say (by PROXY protocol) for whom they ask.
    #[serde(default, rename = "loadBalancers", skip_serializing_if = "Vec::is_empty")]
    pub load_balancers: Vec<IpAddr>,
}

#[derive(Debug, Error, PartialEq, Eq)]
#[error("{path}{}: {message}", line.map(|l| format!(" (line {l})")).unwrap_or_default())]
pub struct InventoryError {
    /// Field path, e.g. `hosts[2].mac`.
    pub path: String,
    pub line: Option<u64>,
    pub message: String,
    pub hint: Option<String>,
}

impl Inventory {
    pub fn role(&self, role: Role) -> impl Iterator<Item = &Host> {
        self.hosts.iter().filter(move |h| h.role == role)
    }
    pub fn masters(&self) -> Vec<&Host> {
        self.role(Role::Master).collect()
    }
    pub fn bootstrap(&self) -> Option<&Host> {
        self.role(Role::Bootstrap).next()
    }
    pub fn by_name(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|h| h.name == name)
    }
    pub fn by_mac(&self, mac: &str) -> Option<&Host> {
        self.hosts.iter().find(|h| h.mac.eq_ignore_ascii_case(mac))
    }
    /// Where a server on one of the machines listens for all of them: with IPv6 among them `::`, which is both.
    pub fn any_address(&self) -> IpAddr {
        match self.hosts.iter().any(|host| host.v6().is_some()) {
            true => Ipv6Addr::UNSPECIFIED.into(),
            false => Ipv4Addr::UNSPECIFIED.into(),
        }
    }
    pub fn by_address(&self, address: IpAddr) -> Option<&Host> {
        self.hosts.iter().find(|h| h.is_at(address))
    }

    /// With one more machine, or with this one in the place of the one that has its name.
    pub fn with(&self, host: Host) -> Result<Self, Vec<InventoryError>> {
        let mut next = self.clone();
        match next.hosts.iter_mut().find(|known| known.name == host.name) {
            Some(known) => *known = host,
            None => next.hosts.push(host),
        }
        let errors = next.check();
        if errors.is_empty() { Ok(next) } else { Err(errors) }
    }

    pub fn without(&self, name: &str) -> Self {
        let hosts = self.hosts.iter().filter(|host| host.name != name).cloned().collect();
        Self { hosts, load_balancers: self.load_balancers.clone() }
    }

    /// Parses hosts.yaml; all errors at once.
    pub fn parse(yaml: &str) -> Result<Self, Vec<InventoryError>> {
        let mut inventory: Inventory = serde_saphyr::from_str(yaml).map_err(|e| {
            let line = e.location().map(|l| l.line());
            vec![InventoryError {
                path: "hosts.yaml".into(),
                line,
                message: e.to_string().lines().next().unwrap_or_default().to_string(),
                hint: Some("each host needs name, role (bootstrap, master, worker), mac and address".into()),
            }]
        })?;
        for host in &mut inventory.hosts {
            host.mac = host.mac.to_ascii_lowercase();
        }
        let errors = inventory.check();
        if errors.is_empty() { Ok(inventory) } else { Err(errors) }
    }

    fn check(&self) -> Vec<InventoryError> {
        let mut errors = Vec::new();
        let mut fail = |i: usize, field: &str, message: String, hint: &str| {
            errors.push(InventoryError {
                path: format!("hosts[{i}].{field}"),
                line: None,
                message,
                hint: Some(hint.into()),
            })
        };
        let mut seen: BTreeMap<(&str, String), usize> = BTreeMap::new();
        for (i, host) in self.hosts.iter().enumerate() {
            if !is_dns_label(&host.name) || host.name == "localhost" {
                let hint = "use lower-case letters, digits and '-', e.g. master-0";
                fail(i, "name", format!("{:?} is not a usable host name", host.name), hint);
            }
            if !is_mac(&host.mac) {
                fail(
                    i,
                    "mac",
                    format!("{:?} is not a MAC address", host.mac),
                    "write it like 52:54:00:12:34:56",
                );
            }
            if host.second_address.is_some_and(|second| second.is_ipv4() == host.address.is_ipv4()) {
                let message = "is of the same family as address".to_string();
                fail(i, "secondAddress", message, "one is to be IPv4, the other IPv6");
            }
            let unique = [
                ("name", "name", host.name.clone()),
                ("mac", "mac", host.mac.clone()),
                ("address", "address", host.address.to_string()),
            ];
            let second = host.second_address.map(|a| ("secondAddress", "address", a.to_string()));
            for (field, kind, value) in unique.into_iter().chain(second) {
                if let Some(first) = seen.insert((kind, value.clone()), i) {
                    fail(
                        i,
                        field,
                        format!("{value:?} is already used by hosts[{first}]"),
                        "each host needs its own",
                    );
                }
            }
        }
        for (i, host) in self.hosts.iter().enumerate() {
            if let Some(both) = host.addresses().find(|a| self.load_balancers.contains(a)) {
                let message = format!("{both} is also in loadBalancers");
                fail(i, "address", message, "a machine of the cluster could then speak for every other");
            }
        }
        if self.role(Role::Bootstrap).count() > 1 {
            fail(0, "role", "more than one bootstrap host".into(), "keep one; it leaves after the handoff");
        }
        errors
    }

    pub fn to_yaml(&self) -> String {
        serde_saphyr::to_string(self).unwrap_or_default()
    }
}

fn is_dns_label(s: &str) -> bool {
    !s.is_empty()
        && s.len() <= 63
        && s.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !s.starts_with('-')
        && !s.ends_with('-')
}

fn is_mac(s: &str) -> bool {
    let parts: Vec<_> = s.split(':').collect();
    parts.len() == 6 && parts.iter().all(|p| p.len() == 2 && p.bytes().all(|b| b.is_ascii_hexdigit()))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        let yaml = "hosts:\n- {name: bootstrap, role: bootstrap, mac: '52:54:00:AA:00:01', address: 192.168.100.10}\n\
                    loadBalancers: [192.168.100.1]\n";
        let inventory = Inventory::parse(yaml).unwrap();
        assert_eq!(inventory.hosts[0].mac, "52:54:00:aa:00:01");
        assert_eq!(Inventory::parse(&inventory.to_yaml()).unwrap(), inventory);
    }

    #[test]
    fn a_machine_comes_and_goes() {
        let yaml = "hosts:\n- {name: master-0, role: master, mac: '52:54:00:aa:00:01', address: 10.0.0.1}\n\
                    loadBalancers: [10.0.0.9]\n";
        let before = Inventory::parse(yaml).unwrap();
        let host = |name: &str, last: u8| Host {
            name: name.into(),
            role: Role::Worker,
            mac: format!("52:54:00:aa:00:{last:02x}"),
            address: [10, 0, 0, last].into(),
            second_address: None,
        };
        let more = before.with(host("worker-0", 2)).unwrap();
        assert_eq!(more.with(host("worker-0", 2)).unwrap(), more, "twice is once");
        assert_eq!(
            more.with(host("worker-0", 3)).unwrap().by_name("worker-0").unwrap().v4().unwrap().octets()[3],
            3
        );
        assert_eq!(more.without("worker-0"), before);
        assert_eq!(before.without("nobody"), before);
        for (bad, path) in [(host("worker-0", 1), "hosts[1].mac"), (host("worker-0", 9), "hosts[1].address")]
        {
            assert_eq!(before.with(bad).unwrap_err()[0].path, path);
        }
    }

    #[test]
    fn a_machine_is_known_by_each_of_its_addresses() {
        let yaml = |second: &str| {
            format!(
                "hosts:\n- {{name: a, role: master, mac: '52:54:00:aa:00:01', address: 10.0.0.1, secondAddress: '{second}'}}\n\
             - {{name: b, role: master, mac: '52:54:00:aa:00:02', address: 'fd00::2'}}\n"
            )
        };
        let inventory = Inventory::parse(&yaml("fd00::1")).unwrap();
        assert_eq!(Inventory::parse(&inventory.to_yaml()).unwrap(), inventory);
        let name = |address: &str| inventory.by_address(address.parse().unwrap()).map(|h| h.name.as_str());
        assert_eq!(
            ["10.0.0.1", "fd00::1", "fd00::2", "fd00::3"].map(name),
            [Some("a"), Some("a"), Some("b"), None]
        );
        assert_eq!(Inventory::parse(&yaml("10.0.0.2")).unwrap_err()[0].path, "hosts[0].secondAddress");
        assert_eq!(Inventory::parse(&yaml("fd00::2")).unwrap_err()[0].path, "hosts[1].address");
    }

    #[test]
    fn all_errors_at_once() {
        let yaml = "hosts:\n- {name: Bad_Name, role: master, mac: 'x', address: 10.0.0.1}\n\
                    - {name: ok, role: master, mac: '52:54:00:aa:00:01', address: 10.0.0.1}\n\
                    - {name: lb, role: worker, mac: '52:54:00:aa:00:02', address: 10.0.0.2}\n\
                    loadBalancers: [10.0.0.2]\n";
        let errors = Inventory::parse(yaml).unwrap_err();
        let paths: Vec<_> = errors.iter().map(|e| e.path.as_str()).collect();
        assert_eq!(paths, ["hosts[0].name", "hosts[0].mac", "hosts[1].address", "hosts[2].address"]);
    }
}
