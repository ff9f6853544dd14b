//! What runs on a node: as a service (first boot, kubelet join and recovery), in static pods (etcd join), in the pods of operators
//! (installer, network check), or as a person's command on a master (etcd backup and restore, recovery of certificates).
//!
//! In: the node's own files, and the API where there is one. Out: files on this node, and this node's part in the cluster.

pub mod approve_csr;
mod cni;
mod conditions;
mod error;
pub mod etcd;
pub mod first_boot;
pub mod installer;
pub mod kubelet_join;
pub mod mirrors;
pub mod network_check;
pub mod recover;

pub use conditions::CONDITIONS;
pub use error::{Error, Result};
