//! helper.yaml: the one config of `seedling helper run`.

use crate::{ClusterDomain, Inventory};
use ipnet::Ipv4Net;
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HelperConfig {
    pub cluster_domain: ClusterDomain,
    /// Interface the nodes are on; DHCP binds to it.
    pub interface: String,
    /// The helper's own address: router, DNS server, load balancer, HTTP and registry.
    pub address: Ipv4Addr,
    pub network: Ipv4Net,
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
}

impl HelperConfig {
    /// What is known of a machine's door; beside the event log, since both must outlive the process.
    pub fn door(&self, host: &str) -> PathBuf {
        self.events.with_file_name("doors").join(format!("{host}.json"))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forward {
    pub fd: i32,
    pub to: SocketAddr,
}

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
        address: Option<Ipv4Addr>,
    },
    Http {
        method: String,
        path: String,
        status: u16,
        remote: Ipv4Addr,
        host: Option<String>,
        user_agent: String,
        bytes: u64,
    },
    Registry {
        method: String,
        path: String,
        status: u16,
        remote: Ipv4Addr,
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
        remote: Ipv4Addr,
        host: Option<String>,
        backend: String,
    },
    /// An Ignition config was not given.
    Refused {
        path: String,
        remote: Ipv4Addr,
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
        remote: Ipv4Addr,
        connections: u64,
        reason: String,
    },
    /// More happened than could be written down.
    Lost {
        events: u64,
    },
}
