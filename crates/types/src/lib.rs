//! The vocabulary of Seedling: names, roles, ports, paths, the inventory, the release, the helper's config, the grammar
//! of templates, and the form in which things are described.
//!
//! Everything here is data that more than one station of the path must agree on. No I/O beyond parsing.

pub mod admission;
pub mod api;
pub mod boot;
pub mod csr;
pub mod description;
pub mod door;
pub mod helper;
pub mod hosts_file;
pub mod inventory;
pub mod names;
pub mod node_report;
pub mod paths;
pub mod ports;
pub mod proxy_protocol;
pub mod release;
pub mod template;

pub use admission::{Admission, NodeToken};
pub use helper::HelperConfig;
pub use inventory::{Host, Inventory, InventoryError, Role};
pub use names::ClusterDomain;
pub use release::ReleaseInfo;
