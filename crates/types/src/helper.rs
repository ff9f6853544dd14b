//! helper.yaml: the one config of `seedling helper run`.

use crate::boot::BootStep;
use crate::{ClusterDomain, Inventory};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HelperConfig {
    pub cluster_domain: ClusterDomain,
    /// Interface the nodes are on; DHCP binds to it.
    pub interface: String,
    /// The helper's own address: router, DNS server, load balancer, HTTP and registry.
    pub address: IpAddr,
    pub network: IpNet,
    /// In a dual-stack cluster: its address of the other family, with the length of that network's prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_address: Option<IpNet>,
    pub inventory: Inventory,
    /// Ignition files: `nodes/<host>.ign`, else by the host's role `bootstrap.ign`, `master.ign`, `worker.ign`; served as
    /// `/ign/<mac>`, each only to its machine.
    pub ignition_dir: PathBuf,
    /// Output of `seedling release build`: `oci/` is served by the registry, `bin/` under `/bin/`.
    pub release_dir: PathBuf,
    /// Event log, one JSON object a line: DHCP exchanges, Ignition fetches, load-balancer changes. See `HelperEvent`.
    pub events: PathBuf,
    /// Written (atomically) when every server listens.
    pub ready_file: PathBuf,
    #[serde(default)]
    pub lease_seconds: Option<u32>,
    /// Whoever switches machines on says so (see `door`), as a lab does. Otherwise a machine that asks for an address boots.
    #[serde(default)]
    pub told_of_power: bool,
    /// DHCP relays that are answered; without any, nobody's but the machines' own packets.
    #[serde(default)]
    pub relays: Vec<Ipv4Addr>,
    /// PEM: who signed the certificates of API servers and machine-config servers. Without it health checks take any certificate.
    #[serde(default)]
    pub server_ca: Option<PathBuf>,
    /// Listening sockets handed over as file descriptors; each connection is relayed to `to` (dialled from here).
    #[serde(default)]
    pub forwards: Vec<Forward>,
    /// The machines' way out; without it the helper, whether or not it forwards their packets.
    #[serde(default)]
    pub router: Option<Ipv4Addr>,
    /// Who is asked for names that are not the cluster's; without any they are refused at once.
    #[serde(default)]
    pub forwarders: Vec<IpAddr>,
    /// Clocks, for the machines (DHCP option 42).
    #[serde(default)]
    pub ntp_servers: Vec<Ipv4Addr>,
    /// Names `etcd-N` and `_etcd-server-ssl._tcp`, as OpenShift asked for before 4.4.
    #[serde(default)]
    pub etcd_srv: bool,
    /// Machines that nobody knows get an address here, so that they can be seen and enrolled; without it they get none.
    #[serde(default)]
    pub pool: Option<AddressPool>,
    /// The load balancer also takes 80 and 443, to the workers, or to the masters if there are none.
    #[serde(default)]
    pub ingress: bool,
    /// Servers that a site has already; see `seedling helper export`.
    #[serde(default)]
    pub without: Vec<HelperServer>,
    /// Network boot; without it nothing of it is served.
    #[serde(default)]
    pub boot: Option<BootConfig>,
}

impl HelperConfig {
    /// How far a machine's installation got; beside the event log, as doors are.
    pub fn boot_state(&self, host: &str) -> PathBuf {
        self.events.with_file_name("boots").join(format!("{host}.json"))
    }

    /// The addresses that were given out of the pool.
    pub fn lease_file(&self) -> PathBuf {
        self.events.with_file_name("leases.json")
    }

    /// The network boot of this machine, if it takes part in it.
    pub fn boot_of(&self, host: &str) -> Option<&BootConfig> {
        self.boot
            .as_ref()
            .filter(|boot| boot.hosts.as_ref().is_none_or(|of| of.iter().any(|name| name == host)))
    }

    /// The helper's own addresses; the first is the one of `address:`.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> + use<> {
        std::iter::once(self.address).chain(self.second_address.map(|second| second.addr()))
    }

    /// The machines' networks, each with the helper's own address in it.
    fn places(&self) -> impl Iterator<Item = (IpAddr, IpNet)> + use<> {
        let second = self.second_address.map(|second| (second.addr(), second.trunc()));
        std::iter::once((self.address, self.network)).chain(second)
    }

    pub fn networks(&self) -> impl Iterator<Item = IpNet> + use<> {
        self.places().map(|(_, network)| network)
    }

    pub fn v4(&self) -> Option<HelperV4> {
        self.places().find_map(|place| match place {
            (IpAddr::V4(address), IpNet::V4(network)) => {
                Some(HelperV4 { address, network, gateway: self.router.unwrap_or(address) })
            }
            _ => None,
        })
    }

    pub fn v6(&self) -> Option<(Ipv6Addr, Ipv6Net)> {
        self.places().find_map(|place| match place {
            (IpAddr::V6(address), IpNet::V6(network)) => Some((address, network)),
            _ => None,
        })
    }

    /// What is known of a machine's door; beside the event log, since both must outlive the process.
    pub fn door(&self, host: &str) -> PathBuf {
        self.events.with_file_name("doors").join(format!("{host}.json"))
    }
}

/// Where the helper is in the machines' IPv4 network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HelperV4 {
    pub address: Ipv4Addr,
    pub network: Ipv4Net,
    /// Where machines leave their network.
    pub gateway: Ipv4Addr,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forward {
    pub fd: i32,
    pub to: SocketAddr,
}

/// What machines boot over the network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BootConfig {
    /// The boot image: TFTP and HTTP serve exactly the files of this folder.
    pub image_dir: PathBuf,
    #[serde(default)]
    pub kind: ImageKind,
    /// `auto` is the first disk, `none` boots live from memory and leaves the disks alone.
    #[serde(default = "auto")]
    pub install_device: String,
    /// Disks of single machines, by name.
    #[serde(default)]
    pub install_devices: BTreeMap<String, String>,
    /// What firmware with a BIOS fetches: `undionly.kpxe`, or `pxelinux.0`, which fetches everything by TFTP.
    #[serde(default = "undionly")]
    pub bios_loader: String,
    /// Kernel arguments, behind all others.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// Only these machines; without a list all of the inventory.
    #[serde(default)]
    pub hosts: Option<Vec<String>>,
}

impl BootConfig {
    pub fn device(&self, host: &str) -> &str {
        self.install_devices.get(host).unwrap_or(&self.install_device)
    }
}

fn undionly() -> String {
    "undionly.kpxe".into()
}

fn auto() -> String {
    "auto".into()
}

/// Which kernel arguments an image understands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageKind {
    /// Of `seedling image build`.
    #[default]
    Seedling,
    /// Fedora CoreOS or RHCOS.
    Coreos,
}

/// What the helper can leave to others. HTTP it cannot: Ignition configs are given once, to whom they belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HelperServer {
    Dhcp,
    Dns,
    Tftp,
    Registry,
    LoadBalancer,
}

/// Both ends are given out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AddressPool {
    pub from: Ipv4Addr,
    pub to: Ipv4Addr,
}

/// How the MAC begins from which `helper check` and `preflight` ask who offers addresses. Locally administered: no machine has it.
pub const PROBE_MAC: [u8; 3] = [0x02, 0x5e, 0xed];

/// One line of the helper's event log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HelperEvent {
    /// RFC 3339, UTC, milliseconds.
    pub time: String,
    #[serde(flatten)]
    pub what: HelperEventKind,
}

impl HelperEvent {
    /// Where a log goes that has become too long: what came before the log at `path`.
    pub fn older(path: &Path) -> PathBuf {
        let mut name = path.as_os_str().to_owned();
        name.push(".1");
        name.into()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "event")]
pub enum HelperEventKind {
    /// `message` is DISCOVER, OFFER, REQUEST, ACK, NAK, REFUSED; ELSEWHERE when a machine took another server's offer.
    Dhcp {
        message: String,
        mac: String,
        host: Option<String>,
        address: Option<IpAddr>,
    },
    Http {
        method: String,
        path: String,
        status: u16,
        remote: IpAddr,
        host: Option<String>,
        user_agent: String,
        bytes: u64,
    },
    Registry {
        method: String,
        path: String,
        status: u16,
        remote: IpAddr,
        host: Option<String>,
    },
    /// A load-balancer backend went up or down.
    Backend {
        port: u16,
        host: String,
        healthy: bool,
        reason: String,
    },
    /// A connection through the load balancer on the machine-config server's port.
    Connection {
        port: u16,
        remote: IpAddr,
        host: Option<String>,
        backend: String,
    },
    /// An Ignition config was not given.
    Refused {
        path: String,
        remote: IpAddr,
        host: Option<String>,
        reason: String,
    },
    /// A door was opened (a machine boots) or shut (it has its config, or nobody needs it any more).
    Door {
        host: String,
        open: bool,
        reason: String,
    },
    /// A server that ended, or the helper itself, was started again.
    Restarted {
        what: String,
        reason: String,
    },
    /// The config was read again; the servers know so many machines now.
    Reloaded {
        machines: usize,
    },
    /// The config was read again and cannot be used: everything is as before.
    NotReloaded {
        reason: String,
    },
    /// Connections that were closed at once, since there were too many; said once a second at most.
    Limited {
        service: String,
        remote: IpAddr,
        connections: u64,
        reason: String,
    },
    /// A file was asked for by TFTP. `status` is `ok`, `not found`, `refused` or what stopped it.
    Tftp {
        file: String,
        remote: IpAddr,
        host: Option<String>,
        bytes: u64,
        status: String,
    },
    /// How far a machine's installation got: its own report, or what it was given to boot.
    Boot {
        host: String,
        state: BootStep,
        message: Option<String>,
    },
    /// More happened than could be written down.
    Lost {
        events: u64,
    },
}
