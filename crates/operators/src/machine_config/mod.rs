//! The machine-config operator: pools, rendered configs, the server that hands them out, and what Nodes say of them.

mod nodes;
pub mod server;

pub use nodes::label_nodes;
pub use server::{serve_bootstrap, serve_cluster};
