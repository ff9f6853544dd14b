//! Pure: cluster config and payload in, files and objects out. Nothing here touches a disk or a network.
//!
//! The control plane comes twice from the same functions: as the bootstrap node's static pods, and as the templates that
//! installer pods write on the masters.

pub mod cluster_config;
pub mod describe;
pub mod dns;
pub mod etcd;
pub mod kube_apiserver;
pub mod kube_controller_manager;
pub mod kube_scheduler;
pub mod machine_config;
pub mod network;
pub mod node;
pub mod outside;
pub mod pod;
mod template;

pub use cluster_config::{ClusterConfig, ClusterConfigError};
pub use outside::Outside;
pub use pod::Place;
pub use template::BadTemplate;

#[cfg(test)]
mod testing;
