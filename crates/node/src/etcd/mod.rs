//! A master's etcd member: it joins the cluster before it starts, is backed up and restored from its own machine, and gets room again
//! when it is full.

mod join;
mod last_words;
pub mod restore;
mod space;

pub use join::{JoinArgs, join, leave_old_cluster, wait_for_voter};
pub use space::{Freed, free_space};
