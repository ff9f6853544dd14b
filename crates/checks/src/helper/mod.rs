//! `seedling helper check`: can the helper serve here, and does it? Asked before it is started, and while it runs.

mod judge;

pub use judge::judge;

use crate::check::check;
use crate::preflight::Resolved;
use crate::verify::Asked;
use crate::{Check, preflight};
use seedling_types::HelperConfig;
use std::net::IpAddr;

const CONFIG: &str = "Configuration";
const NETWORK: &str = "Network";
const SERVICE: &str = "Service";

pub(crate) const FIELDS: Check = check(
    CONFIG,
    "helper-config",
    "do the fields of helper.yaml fit together?",
    "an address outside its network, or a balancer that is not listed, is found only when machines wait",
    "correct helper.yaml; each line says what and where",
);
pub(crate) const FILES: Check = check(
    CONFIG,
    "helper-files",
    "is everything there that machines fetch?",
    "a machine that asks for a missing file tries for ever, or shows an error on a console that nobody sees",
    "make it: seedling create ignition-configs, seedling release build, seedling image build or helper images add",
);
pub(crate) const ADDRESS: Check = check(
    NETWORK,
    "helper-address",
    "has this machine the helper's address, on its interface?",
    "it listens there and nowhere else",
    "give the interface the address (ip address add), or correct `address` and `interface` in helper.yaml",
);
pub(crate) const ELSEWHERE: Check = check(
    NETWORK,
    "helper-dns-elsewhere",
    "do other DNS servers say the same of the cluster's names, or nothing?",
    "people and machines that ask them are sent elsewhere, and each sees another cluster",
    "correct the records there, or delegate the cluster's domain to the helper",
);
pub(crate) const FRONT: Check = check(
    NETWORK,
    "helper-balancer",
    "is nobody else the balancer of this cluster's names?",
    "who comes through another balancer meets servers that the helper knows nothing of",
    "point api and api-int at the helper, or leave the balancer to the other one (`without: [loadBalancer]`)",
);
pub(crate) const RUNS: Check = check(
    SERVICE,
    "helper-runs",
    "if the helper runs: does it answer, and by the config as it is on disk?",
    "a config that was changed and not read again is found by the machine that misses it",
    "seedling helper install starts it; systemctl reload seedling-helper, or a restart, makes it read its config",
);

/// In the order in which they are shown; the last ones are preflight's.
pub const CHECKS: &[Check] = &[
    FIELDS,
    FILES,
    ADDRESS,
    ELSEWHERE,
    FRONT,
    RUNS,
    preflight::PORTS,
    preflight::FOREIGN_DHCP,
    preflight::ADDRESS_CLASH,
    preflight::PULL,
];

/// How many of them are its own.
pub const OWN: usize = 6;

/// What was seen.
pub struct Facts {
    pub config: HelperConfig,
    /// Interface and address, of this machine.
    pub locals: Vec<(String, IpAddr)>,
    pub files: Vec<Needed>,
    /// The cluster's names, as others answer.
    pub elsewhere: Vec<Resolved>,
    pub fronts: Vec<Front>,
    pub running: Option<Running>,
}

/// A file or folder that must be there.
pub struct Needed {
    pub path: String,
    pub what: String,
    pub there: bool,
    /// What makes it.
    pub make: &'static str,
}

/// Somebody else's address for one of our names.
pub struct Front {
    pub name: String,
    pub address: IpAddr,
    pub port: u16,
    pub accepts: bool,
}

/// The helper, as its ready file and its answers say.
pub struct Running {
    pub pid: u32,
    pub up_to_date: bool,
    /// What it says on `/healthz`.
    pub http: Asked<()>,
    /// The address of api-int; none: DNS is another's.
    pub dns: Option<Asked<Vec<String>>>,
}

#[cfg(test)]
mod tests;
