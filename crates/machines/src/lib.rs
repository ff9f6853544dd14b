//! Machines that can be switched on: container machines, a whole systemd with its own disk and network card in runc; and QEMU machines,
//! which have nothing but a disk and a network card.
//!
//! In: a node image (made here, from `node/` of the source tree), a name, a MAC address, a lab. Out: something that boots,
//! asks for an address by DHCP, runs Ignition once and then systemd, and that can be inspected, entered, switched off and cut
//! off. What it boots *into* is decided by the server that answers its DHCP request.

pub mod bad_disk;
pub mod bare_metal;
pub mod cgroup;
pub mod config;
mod confine;
pub mod container;
mod disk;
pub mod image;
mod machine;
pub mod network;
pub mod qemu;
mod run;
pub mod ssh;

pub use container::Container;
pub use disk::Disk;
pub use machine::{Inspection, Machine, Place, Power};
pub use qemu::{Boot, Firmware, Hardware, Qemu};
pub use run::{MachineError, Progress, Result};
