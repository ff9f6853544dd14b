//! A master's etcd member: it joins the cluster before it starts, and is backed up and restored from its own machine.

mod join;
pub mod restore;

pub use join::{JoinArgs, join, leave_old_cluster, wait_for_voter};
