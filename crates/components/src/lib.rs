//! Pure: cluster config and payload in, files and objects out. Nothing here touches a disk or a network.

pub mod dns;
pub mod machine_config;
pub mod network;
pub mod node;

#[cfg(test)]
mod testing;
