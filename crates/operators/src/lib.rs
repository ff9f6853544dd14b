//! The operators: each watches, decides (pure) and acts (small, named effects), and reports a ClusterOperator that is true. `runtime` has
//! the loop that they share, `table` all of them.
//!
//! In: the cluster's API, the release, the inventory. Out: static pods by revision, daemon sets, approved CSRs, rendered configs.

pub mod cluster_version;
pub mod daemon_set;
pub mod describe;
mod error;
pub mod etcd;
pub mod kube_apiserver;
pub mod kube_controller_manager;
pub mod kube_scheduler;
pub mod machine_approver;
pub mod machine_config;
pub mod owners;
mod patience;
pub mod runtime;
pub mod stand_in;
pub mod static_pod;
mod table;

pub use error::{OperatorError, Result};
pub use table::OPERATORS;

use seedling_cluster::{admission, inventory};
