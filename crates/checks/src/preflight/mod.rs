//! `seedling preflight`: will a cluster grow here? Asked before the first machine boots, and again on a machine that has booted.

mod dhcp;
mod facts;
mod judge;
pub mod machine;
mod names;
mod network;
mod registry;

pub use dhcp::offers;
pub use facts::{
    Age, Answers, Clock, Disk, Facts, Machine, Neighbour, Offers, PortUse, Pull, Query, Resolved, Spec,
    Wanted,
};
pub use judge::judge;
pub use names::{ask_all, questions, system_servers};
pub use network::{answers, clock, clock_ahead, decoded, in_use, neighbours};
pub use registry::trial_pull;

use crate::Check;
use crate::check::check;

const NAMES: &str = "Names";
const NETWORK: &str = "Network";
const MACHINES: &str = "Machines";
const RELEASE: &str = "Release and assets";
const THIS: &str = "This machine";

pub(crate) const DNS_API: Check = check(
    NAMES,
    "dns-api",
    "do api.CLUSTER.DOMAIN and api-int.CLUSTER.DOMAIN resolve, to the load balancer?",
    "machines ask api-int for their configuration, for ever, if it leads nowhere",
    "add A records for both that name the load balancer (hosts.yaml: loadBalancers)",
);
pub(crate) const DNS_HOSTS: Check = check(
    NAMES,
    "dns-hosts",
    "does each machine's name resolve to its address?",
    "etcd and the kubelets know each other by name",
    "add an A record NAME.CLUSTER.DOMAIN for each machine of hosts.yaml",
);
pub(crate) const DNS_REVERSE: Check = check(
    NAMES,
    "dns-reverse",
    "does each machine's address resolve back to its name?",
    "a machine without a name from DHCP asks DNS for it, and calls itself localhost otherwise",
    "add a PTR record for each address of hosts.yaml",
);
pub(crate) const DNS_APPS: Check = check(
    NAMES,
    "dns-apps",
    "does any name below apps.CLUSTER.DOMAIN resolve?",
    "routes get names there that nobody adds one by one",
    "add a wildcard record *.apps.CLUSTER.DOMAIN that names the load balancer",
);
pub(crate) const DNS_WILDCARD: Check = check(
    NAMES,
    "dns-wildcard-trap",
    "does a name that nobody has, directly below CLUSTER.DOMAIN, not resolve?",
    "with a wildcard there, or a search domain that has one, every name in the cluster leads to the wrong place",
    "remove the wildcard record *.CLUSTER.DOMAIN; only *.apps.CLUSTER.DOMAIN may be one",
);
pub(crate) const BALANCER: Check = check(
    NETWORK,
    "balancer",
    "does somebody accept connections on api-int, ports 6443 and 22623, and who answers?",
    "without a balancer no machine gets its configuration; a foreign cluster behind it gives the wrong one",
    "start the load balancer (seedling helper run is one) and open both ports; remove a foreign cluster from it",
);
pub(crate) const PORTS: Check = check(
    NETWORK,
    "ports-free",
    "is each port that ours must listen on free, or held by ours?",
    "a server whose port is taken ends at once",
    "end the program that holds the port: ss -ltnup shows it",
);
pub(crate) const FOREIGN_DHCP: Check = check(
    NETWORK,
    "foreign-dhcp",
    "does no other DHCP server offer addresses on the machines' network?",
    "a machine takes the first offer; with a stranger's it boots the wrong thing or nothing",
    "switch that server off on this network, or let it ignore the machines' MAC addresses",
);
pub(crate) const INVENTORY: Check = check(
    MACHINES,
    "inventory",
    "has each machine of hosts.yaml a name, a MAC and an address of its own?",
    "DHCP, DNS, tokens and certificates go by them",
    "correct hosts.yaml; each line says what and where",
);
pub(crate) const ADDRESS_CLASH: Check = check(
    MACHINES,
    "address-clash",
    "is each address unused on the wire, or used by the machine it is for?",
    "two machines with one address: connections break at random",
    "give the machine another address in hosts.yaml, or take the address away from the other one",
);
pub(crate) const PULL: Check = check(
    RELEASE,
    "release-pull",
    "can the release image be pulled by its digest?",
    "a machine that cannot pull it stops on its first boot, without a word on the console",
    "start the registry (seedling helper run), or build or load the release: seedling release build|load",
);
pub(crate) const CERTIFICATES: Check = check(
    RELEASE,
    "certificate-ages",
    "do all certificates of the asset directory live long enough for an installation?",
    "some last 24 hours from `create`; booted later, the first machines refuse each other",
    "seedling certs refresh DIR renews them and keeps your edits",
);
pub(crate) const IGNITION: Check = check(
    RELEASE,
    "ignition-spec",
    "does the machines' Ignition understand the version of each config?",
    "Ignition refuses what is newer than itself, and the machine stops",
    "use an operating system with a newer Ignition, or make the configs with an older release",
);
pub(crate) const CLOCK: Check = check(
    THIS,
    "clock",
    "is this clock the helper's, to a few seconds?",
    "certificates, tokens and leases have times in them",
    "set the clock, and let chrony or timesyncd keep it",
);
pub(crate) const DISK: Check = check(
    THIS,
    "etcd-disk",
    "does 99 of 100 fdatasyncs in etcd's directory take less than 10 ms?",
    "etcd waits for the disk with each write; a slow one costs elections",
    "put the directory on an SSD of its own",
);
pub(crate) const MEMORY: Check = check(
    THIS,
    "memory",
    "has this machine enough memory for a node?",
    "the kernel kills etcd or the API server when it runs out",
    "give it more memory",
);
pub(crate) const CPU: Check = check(
    THIS,
    "cpu",
    "has this machine enough processors for a node?",
    "a control plane on one processor misses its own deadlines",
    "give it two processors at least",
);
pub(crate) const KERNEL: Check = check(
    THIS,
    "kernel-features",
    "has the kernel what containers, pods' networks and Services need?",
    "the runtime, flannel or kube-proxy fail without it",
    "load the module (modprobe NAME), or boot a kernel that has it",
);
pub(crate) const HOST_NAME: Check = check(
    THIS,
    "host-name",
    "does this machine have a name that is not localhost?",
    "all machines that call themselves localhost are one node for the cluster",
    "let DHCP or reverse DNS give it a name, or write /etc/hostname",
);

/// In the order in which they are shown.
pub const CHECKS: &[Check] = &[
    DNS_API,
    DNS_HOSTS,
    DNS_REVERSE,
    DNS_APPS,
    DNS_WILDCARD,
    BALANCER,
    PORTS,
    FOREIGN_DHCP,
    INVENTORY,
    ADDRESS_CLASH,
    PULL,
    CERTIFICATES,
    IGNITION,
    CLOCK,
    DISK,
    MEMORY,
    CPU,
    KERNEL,
    HOST_NAME,
];

#[cfg(test)]
mod tests;
