//! The operators: each watches, decides (pure) and acts (small, named effects), and reports a ClusterOperator that is true.
//!
//! In: the cluster's API, the release, the inventory. Out: static pods by revision, daemon sets, approved CSRs, rendered configs.

pub mod cluster_version;
pub mod dns;
pub mod etcd;
pub mod kube_apiserver;
pub mod kube_controller_manager;
pub mod kube_scheduler;
pub mod machine_approver;
pub mod machine_config;
pub mod network;
pub mod owners;
mod patience;
pub mod stand_in;
pub mod static_pod;

use seedling_cluster::{admission, inventory};
