//! The one table of ports.

/// kube-apiserver, on every control-plane node and on the load balancer.
pub const API: u16 = 6443;
/// Machine-config server, TLS.
pub const MCS: u16 = 22623;
/// Machine-config server, plain HTTP: loopback only (upstream listens everywhere).
pub const MCS_LOOPBACK: u16 = 22624;
pub const ETCD_CLIENT: u16 = 2379;
pub const ETCD_PEER: u16 = 2380;
/// etcd's plain health and metrics listener, loopback only.
pub const ETCD_METRICS: u16 = 2381;
pub const KUBELET: u16 = 10250;
pub const KUBE_CONTROLLER_MANAGER: u16 = 10257;
pub const KUBE_SCHEDULER: u16 = 10259;
pub const KUBE_PROXY_HEALTHZ: u16 = 10256;
/// Whether Service addresses and cluster DNS answer on this node: `seedling operator network-check`, on every node.
pub const NETWORK_CHECK: u16 = 9101;
/// Helper: Ignition files and node software.
pub const HELPER_HTTP: u16 = 8080;
/// Helper: OCI registry, plain HTTP; every pull is by digest.
pub const HELPER_REGISTRY: u16 = 5000;
pub const DNS: u16 = 53;
pub const DHCP_SERVER: u16 = 67;
pub const DHCP_CLIENT: u16 = 68;
