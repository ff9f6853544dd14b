//! helper.yaml: the one config of `seedling helper run`.

use crate::{ClusterDomain, Inventory};
use ipnet::Ipv4Net;
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

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
    /// Listening sockets handed over as file descriptors; each connection is relayed to `to` (dialled from here).
    #[serde(default)]
    pub forwards: Vec<Forward>,
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

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "event")]
pub enum HelperEventKind {
    /// `message` is DISCOVER, OFFER, REQUEST, ACK, NAK, REFUSED.
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
}
