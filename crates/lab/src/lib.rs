//! A lab by name: machines (containers, or QEMU), the network between them and the helper they boot from, on one Linux machine.
//!
//! In: a [`LabSpec`] with the inventory, the asset directory (Ignition files) and the release. Out: machines that were
//! switched on, a loopback address for the API, and a directory that remembers all of it, so that any later process can
//! look into the lab, repair it (`up` again) or remove it without a trace (`down`).

pub mod autostart;
pub mod boot_chain;
mod bring_up;
mod change;
pub mod chaos;
mod conditions;
pub mod diagnose;
mod down;
pub mod gather;
mod helper;
pub mod history;
mod kinds;
pub mod members;
pub mod overview;
pub mod power;
pub mod preflight;
pub mod probe;
mod processes;
mod seed;
mod spec;
mod status;
mod step;
mod store;
mod sysctls;
mod up;

pub use boot_chain::{Position, boot_chain};
pub use bring_up::BringUp;
pub use change::{Change, may_leave, write_hosts};
pub use conditions::CONDITIONS;
pub use down::down;
pub use helper::{listens, reload_config};
pub use kinds::{Kinds, MachineKind, Machines};
pub use overview::{Overview, overview};
pub use seed::seed;
pub use spec::{
    HELPER, LabSpec, Stack, check_name, default_inventory, inventory_of, new_machine, with_workers,
};
pub use status::{HelperStatus, NodeStatus, Open, Place, Status, open, read_events, status};
pub use step::Pace;
pub use store::{Lab, Labs, Record, ssh_key};
pub use up::{Options, up};

use seedling_types::InventoryError;
use std::path::{Path, PathBuf};

pub type Result<T, E = LabError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum LabError {
    #[error("this machine cannot run a lab:\n{}", .0.iter().map(|r| format!("  - {r}")).collect::<Vec<_>>().join("\n"))]
    Preflight(Vec<preflight::Refusal>),
    #[error("no lab is called {0:?}; `seedling lab list` shows those that exist")]
    Unknown(String),
    #[error("lab {lab:?} has no node {node:?}; it has {}", .known.join(", "))]
    UnknownNode { lab: String, node: String, known: Vec<String> },
    #[error("{0:?} is not a valid name for a lab: use up to 32 lower-case letters, digits and '-'")]
    Name(String),
    #[error("{}", .0.iter().map(told).collect::<Vec<_>>().join("\n"))]
    Machines(Vec<InventoryError>),
    #[error("{name} is a {role} of this lab; take another name")]
    OtherRole { name: String, role: &'static str },
    #[error(
        "{name} is a {kind} machine of this lab; remove it first (seedling lab remove {name}), or take another name"
    )]
    OtherKind { name: String, kind: &'static str },
    #[error("{name} cannot be removed: {why}")]
    Stays { name: String, why: &'static str },
    #[error("the lab has no free address: {first} to {last} are taken; remove a machine first")]
    NoAddress { first: u8, last: u8 },
    #[error(
        "a lab's machines have all of them an IPv4 address, an IPv6 address, or an IPv4 one with an IPv6 secondAddress"
    )]
    Stack,
    #[error(
        "lab {0:?} exists with other machines or another network; `seedling lab add` and `lab remove` change its workers, `seedling lab \
         down --name {0}` removes it"
    )]
    Differs(String),
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{}: {message}", path.display())]
    Unreadable { path: PathBuf, message: String },
    #[error("cannot listen on 127.0.0.1:{port} for the API: {source}")]
    Port { port: u16, source: std::io::Error },
    #[error(
        "this machine was not booted by systemd, which would start the lab; `seedling lab start` does it by hand"
    )]
    NoSystemd,
    #[error("{0}")]
    Strike(String),
    #[error("{0}")]
    NotGrown(String),
    #[error("the helper ended at once: {0}")]
    Helper(String),
    #[error(transparent)]
    Unmet(#[from] seedling_steps::Unmet),
    #[error(transparent)]
    Image(#[from] seedling_image::ImageError),
    #[error(transparent)]
    Machine(#[from] seedling_machines::MachineError),
    #[error(transparent)]
    Probe(#[from] Box<probe::ProbeError>),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Several(Vec<LabError>),
}

fn told(error: &InventoryError) -> String {
    let hint = error.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    format!("{error}{hint}")
}

/// Adds the path to an I/O error.
fn at<T>(path: &Path, result: std::io::Result<T>) -> Result<T> {
    result.map_err(|source| LabError::Io { path: path.into(), source })
}

/// Whole or not at all.
fn write_json(path: &Path, value: &impl serde::Serialize, mode: u32) -> Result<()> {
    let json = serde_json::to_vec_pretty(value)
        .map_err(|e| LabError::Unreadable { path: path.into(), message: e.to_string() })?;
    at(path, seedling_steps::write_atomic(path, json, mode))
}

/// All of them, whatever fails on the way: the errors come together.
fn all<T>(results: Vec<Result<T>>) -> Result<Vec<T>> {
    let (mut done, mut errors) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(value) => done.push(value),
            Err(error) => errors.push(error),
        }
    }
    match errors.len() {
        0 => Ok(done),
        1 => Err(errors.remove(0)),
        _ => Err(LabError::Several(errors)),
    }
}
