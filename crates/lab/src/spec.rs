//! What a lab is to be. Kept as lab.json.

use crate::kinds::Kinds;
use crate::{LabError, MachineKind};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use seedling_machines::{Disk, Hardware};
use seedling_types::helper::HelperServer;
use seedling_types::{ClusterDomain, Host, Inventory, Role};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

/// Labs may share it: each has its own network namespaces.
const NETWORK: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(192, 168, 100, 0), 24);
const NETWORK6: Ipv6Net = Ipv6Net::new_assert(Ipv6Addr::new(0xfd5e, 0xed00, 0, 0x100, 0, 0, 0, 0), 64);
/// The helper, and with it the load balancer, of every lab with IPv4.
pub const HELPER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 168, 100, 1));
const HELPER_LAST: u8 = 1;
/// The last number of machines' addresses.
const BOOTSTRAP: u8 = 10;
const FIRST_WORKER: u8 = 21;
const LAST_MACHINE: u8 = 249;
/// Longest lab name; it is part of namespace names and paths.
const NAME_MAX: usize = 32;

/// Which addresses machines, pods and Services have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stack {
    #[default]
    Ipv4,
    Ipv6,
    /// Both, IPv4 first.
    Dual,
}

impl Stack {
    /// That of the machines, if it is the same of all.
    pub fn of(inventory: &Inventory) -> Result<Self, LabError> {
        let stack = |host: &Host| match (host.address, host.second_address) {
            (IpAddr::V4(_), None) => Some(Stack::Ipv4),
            (IpAddr::V6(_), None) => Some(Stack::Ipv6),
            (IpAddr::V4(_), Some(_)) => Some(Stack::Dual),
            (IpAddr::V6(_), Some(_)) => None,
        };
        let mut all = inventory.hosts.iter().map(stack);
        let first = all.next().unwrap_or(Some(Stack::Ipv4)).ok_or(LabError::Stack)?;
        if all.all(|other| other == Some(first)) { Ok(first) } else { Err(LabError::Stack) }
    }

    /// The n-th addresses of a lab's networks; in the IPv6 one its digits look the same.
    fn addresses(self, last: u8) -> (IpAddr, Option<IpAddr>) {
        let [a, b, c, _] = NETWORK.network().octets();
        let four = IpAddr::from([a, b, c, last]);
        let digits = u16::from_str_radix(&last.to_string(), 16).unwrap_or_default();
        let six = IpAddr::from(Ipv6Addr::from_bits(NETWORK6.network().to_bits() + u128::from(digits)));
        match self {
            Stack::Ipv4 => (four, None),
            Stack::Ipv6 => (six, None),
            Stack::Dual => (four, Some(six)),
        }
    }

    /// The helper's: its main address, and the other one.
    pub fn helper(self) -> (IpAddr, Option<IpAddr>) {
        self.addresses(HELPER_LAST)
    }

    fn network(self) -> IpNet {
        if self == Stack::Ipv6 { NETWORK6.into() } else { NETWORK.into() }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Stack::Ipv4 => "ipv4",
            Stack::Ipv6 => "ipv6",
            Stack::Dual => "dual",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LabSpec {
    pub name: String,
    pub cluster_domain: ClusterDomain,
    pub network: IpNet,
    /// The helper's address: router, DNS, load balancer, HTTP, registry.
    pub helper: IpAddr,
    /// In a dual-stack lab: its address of the other family, with its network's prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_helper: Option<IpNet>,
    pub inventory: Inventory,
    /// The asset directory; its `.ign` files are served to the machines.
    pub assets: PathBuf,
    pub release_dir: PathBuf,
    /// A containerd directory with the release's images, given to each node by hard links.
    pub seed_store: Option<PathBuf>,
    /// Loopback port for the API; 0 takes a free one.
    pub api_port: u16,
    /// etcd's own disk on every machine; without it, etcd writes where everything does.
    pub etcd_disk_mib: Option<u32>,
    /// The same for containerd, and for what pods say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub containerd_disk_mib: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_disk_mib: Option<u32>,
    /// etcd's disk on every machine can go bad, and is not one of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bad_etcd_disk: bool,
    /// Machines that are no containers.
    #[serde(default, skip_serializing_if = "Kinds::is_empty")]
    pub kinds: Kinds,
    /// Servers that others run in the lab's network, in the helper's place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<HelperServer>,
}

impl LabSpec {
    pub fn new(
        name: &str,
        cluster_domain: ClusterDomain,
        inventory: Inventory,
        assets: PathBuf,
        release_dir: PathBuf,
    ) -> Result<Self, LabError> {
        check_name(name)?;
        let stack = Stack::of(&inventory)?;
        let (helper, second) = stack.helper();
        Ok(Self {
            name: name.into(),
            cluster_domain,
            network: stack.network(),
            helper,
            second_helper: second.map(|address| IpNet::new_assert(address, NETWORK6.prefix_len())),
            inventory,
            assets,
            release_dir,
            seed_store: None,
            api_port: 0,
            etcd_disk_mib: None,
            containerd_disk_mib: None,
            log_disk_mib: None,
            bad_etcd_disk: false,
            kinds: Kinds::new(),
            without: Vec::new(),
        })
    }

    /// The helper's addresses, each with the prefix of its network.
    pub(crate) fn helper_places(&self) -> Vec<(IpAddr, u8)> {
        let second = self.second_helper.map(|second| (second.addr(), second.prefix_len()));
        std::iter::once((self.helper, self.network.prefix_len())).chain(second).collect()
    }

    pub fn stack(&self) -> Stack {
        Stack::of(&self.inventory).unwrap_or_default()
    }

    pub fn kind(&self, host: &str) -> MachineKind {
        self.kinds.get(host).cloned().unwrap_or_default()
    }

    /// Of the QEMU machines.
    pub(crate) fn hardware(&self) -> impl Iterator<Item = &Hardware> {
        self.kinds.values().filter_map(|kind| match kind {
            MachineKind::Qemu(hardware) => Some(hardware),
            MachineKind::Container => None,
        })
    }

    /// Every machine's own, and their sizes.
    pub(crate) fn disks(&self) -> impl Iterator<Item = (Disk, u32)> {
        let disks = [
            (Disk::Etcd, self.etcd_disk_mib),
            (Disk::Containerd, self.containerd_disk_mib),
            (Disk::PodLogs, self.log_disk_mib),
        ];
        disks.into_iter().filter_map(|(disk, mib)| Some((disk, mib?)))
    }

    /// Whether a lab made from `self` is the lab `other` describes: same machines on the same network.
    pub(crate) fn is_same_lab(&self, other: &Self) -> bool {
        (&self.inventory, &self.kinds, self.network, self.helper, &self.cluster_domain)
            == (&other.inventory, &other.kinds, other.network, other.helper, &other.cluster_domain)
    }
}

/// bootstrap at .10, masters from .11 on, with MAC addresses that stay the same.
pub fn default_inventory(masters: u8) -> Inventory {
    inventory_of(Stack::Ipv4, masters)
}

/// The same with addresses of these families.
pub fn inventory_of(stack: Stack, masters: u8) -> Inventory {
    let host = |name: &str, role, last| host(stack, name, role, last);
    let bootstrap = host("bootstrap", Role::Bootstrap, BOOTSTRAP);
    let masters = (0..masters).map(|i| host(&format!("master-{i}"), Role::Master, BOOTSTRAP + 1 + i));
    let (helper, second) = stack.helper();
    let load_balancers = std::iter::once(helper).chain(second).collect();
    Inventory { hosts: std::iter::once(bootstrap).chain(masters).collect(), load_balancers }
}

/// The same with so many workers, worker-0 at .21.
pub fn with_workers(inventory: Inventory, workers: u8) -> Result<Inventory, LabError> {
    (0..workers).try_fold(inventory, |before, i| {
        let host = new_machine(&before, &format!("worker-{i}"), Role::Worker)?;
        before.with(host).map_err(LabError::Machines)
    })
}

/// A machine that is not there yet, at the first free address.
pub fn new_machine(inventory: &Inventory, name: &str, role: Role) -> Result<Host, LabError> {
    let stack = Stack::of(inventory)?;
    let taken = |host: &Host| {
        let same =
            |known: &Host| host.addresses().any(|address| known.is_at(address)) || known.mac == host.mac;
        inventory.hosts.iter().any(same) || host.addresses().any(|a| inventory.load_balancers.contains(&a))
    };
    let mut free =
        (FIRST_WORKER..=LAST_MACHINE).map(|last| host(stack, name, role, last)).filter(|host| !taken(host));
    free.next().ok_or(LabError::NoAddress { first: FIRST_WORKER, last: LAST_MACHINE })
}

/// At addresses of the lab's networks; the MAC address comes from them.
fn host(stack: Stack, name: &str, role: Role, last: u8) -> Host {
    let mac = format!("52:54:00:5e:ed:{:02x}", last + 6);
    let (address, second_address) = stack.addresses(last);
    Host { name: name.into(), role, mac, address, second_address }
}

pub fn check_name(name: &str) -> Result<(), LabError> {
    let usable = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let good = !name.is_empty()
        && name.len() <= NAME_MAX
        && name.bytes().all(usable)
        && !name.starts_with('-')
        && !name.ends_with('-');
    if good { Ok(()) } else { Err(LabError::Name(name.into())) }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_default_inventory_is_a_valid_one() {
        let inventory = default_inventory(3);
        assert_eq!(Inventory::parse(&inventory.to_yaml()).unwrap(), inventory);
        let last = inventory.hosts.last().unwrap();
        assert_eq!((last.name.as_str(), last.address), ("master-2", IpAddr::from([192, 168, 100, 13])));
        assert!(inventory.hosts.iter().all(|h| NETWORK.contains(&h.v4().unwrap())));
        assert_eq!(last.mac, "52:54:00:5e:ed:13");
    }

    #[test]
    fn every_stack_has_its_addresses() {
        for (stack, first, second) in [
            (Stack::Ipv4, "192.168.100.21", None),
            (Stack::Ipv6, "fd5e:ed00:0:100::21", None),
            (Stack::Dual, "192.168.100.21", Some("fd5e:ed00:0:100::21")),
        ] {
            let inventory = with_workers(inventory_of(stack, 3), 1).unwrap();
            assert_eq!(Inventory::parse(&inventory.to_yaml()).unwrap(), inventory);
            let worker = inventory.by_name("worker-0").unwrap();
            assert_eq!(worker.address.to_string(), first);
            assert_eq!(worker.second_address.map(|a| a.to_string()).as_deref(), second);
            let domain = ClusterDomain("lab.seedling.lab".into());
            let spec = LabSpec::new("a", domain, inventory.clone(), "/a".into(), "/r".into()).unwrap();
            assert!(spec.network.contains(&worker.address) && spec.network.contains(&spec.helper));
            assert_eq!(
                spec.second_helper.map(|net| net.to_string()),
                second.map(|_| "fd5e:ed00:0:100::1/64".into())
            );
            assert_eq!(Stack::of(&inventory).unwrap(), stack);
        }
        let mut mixed = inventory_of(Stack::Dual, 1);
        mixed.hosts[1].second_address = None;
        assert!(Stack::of(&mixed).is_err());
    }

    #[test]
    fn workers_take_free_places() {
        let two = with_workers(default_inventory(1), 2).unwrap();
        let places: Vec<_> = two
            .role(Role::Worker)
            .map(|w| (w.name.as_str(), w.v4().unwrap().octets()[3], w.mac.as_str()))
            .collect();
        assert_eq!(places, [("worker-0", 21, "52:54:00:5e:ed:1b"), ("worker-1", 22, "52:54:00:5e:ed:1c")]);
        assert_eq!(Inventory::parse(&two.to_yaml()).unwrap(), two);
        let again = new_machine(&two.without("worker-0"), "w", Role::Worker).unwrap();
        assert_eq!(again.v4().unwrap().octets()[3], 21);
        let full = with_workers(default_inventory(1), 229).unwrap();
        assert!(new_machine(&full, "w", Role::Worker).unwrap_err().to_string().contains("21 to 249"));
    }

    /// lab.json of a lab that was made before there were other machines than containers.
    #[test]
    fn an_old_lab_is_still_read() {
        let domain = ClusterDomain("lab.seedling.lab".into());
        let mut spec =
            LabSpec::new("a", domain, default_inventory(1), "/assets".into(), "/release".into()).unwrap();
        let old = serde_json::to_value(&spec).unwrap();
        assert!(old.get("kinds").is_none());
        assert_eq!(serde_json::from_value::<LabSpec>(old).unwrap(), spec);
        spec.kinds.insert("master-0".into(), MachineKind::Qemu(Hardware::default()));
        let new = serde_json::to_value(&spec).unwrap();
        assert_eq!(new["kinds"]["master-0"]["kind"], "qemu");
        assert_eq!(serde_json::from_value::<LabSpec>(new).unwrap(), spec);
        assert_eq!((spec.kind("master-0").as_str(), spec.kind("bootstrap").as_str()), ("qemu", "container"));
    }

    #[test]
    fn names_are_checked() {
        for (name, good) in
            [("default", true), ("a-1", true), ("", false), ("A", false), ("../x", false), ("a-", false)]
        {
            assert_eq!(check_name(name).is_ok(), good, "{name:?}");
        }
    }
}
