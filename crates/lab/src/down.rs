//! `down`: nothing is left of a lab, whole or half-made: no process, mount, namespace, control group, setting or file.

use crate::store::{Labs, container};
use crate::{Result, all, at, autostart, helper, processes, sysctls};
use futures::future::join_all;
use nix::sys::signal::Signal;
use seedling_machines::network::Network;
use seedling_machines::{Machine, Progress, cgroup};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Returns whether there was anything to remove.
pub async fn down(labs: &Labs, name: &str, progress: Progress<'_>) -> Result<bool> {
    let lock = labs.lock(name, progress).await?;
    let dir = labs.dir(name);
    let existed = dir.exists();
    if existed {
        remove(labs, name, progress).await?;
    }
    lock.remove()?;
    // Only if no other lab is left.
    let _ = fs::remove_dir(labs.state.join("labs"));
    let _ = fs::remove_dir(&labs.state);
    Ok(existed)
}

async fn remove(labs: &Labs, name: &str, progress: Progress<'_>) -> Result<()> {
    let dir = labs.dir(name);
    let network = Network::of_lab(name);
    // A runc whose `up` was killed would still start a machine that is removed here.
    processes::end(&[dir.join("runc").as_os_str()], Signal::SIGKILL).await?;
    // In order of the boot, backwards. An error leaves lab.json in place, so that `down` can be tried again.
    all(join_all(machines(labs, name).iter().map(|m| remove_machine(m, progress))).await)?;
    helper::stop(&dir.join("helper.yaml")).await?;
    network.remove_bridge().await?;
    cgroup::remove_lab(name);
    sysctls::put_back(&dir).await?;
    autostart::remove(name).await?;
    at(&dir, fs::remove_dir_all(&dir))?;
    progress(&format!("lab {name:?} is gone"));
    Ok(())
}

async fn remove_machine(machine: &Machine, progress: Progress<'_>) -> Result<()> {
    // What waits for a disk that chaos made slow does not end before it is done.
    let _ = machine.slow_disk(false);
    machine.remove().await?;
    progress(&format!("{} is gone", machine.name));
    Ok(())
}

/// Those of lab.json, and those with a directory should lab.json be unreadable: whatever is left of a QEMU machine, its control groups
/// have its process, and the lab's namespace takes its port along.
fn machines(labs: &Labs, name: &str) -> Vec<Machine> {
    let dir = labs.dir(name);
    let (mut names, mut machines) = (BTreeSet::new(), Vec::new());
    match labs.find(name) {
        Ok(Some(lab)) => machines = lab.machines(),
        Ok(None) => {}
        Err(error) => tracing::warn!(%error, "going by the directories of the machines"),
    }
    if let Ok(entries) = fs::read_dir(dir.join("nodes")) {
        names.extend(entries.filter_map(|e| e.ok()?.file_name().into_string().ok()));
    }
    names.retain(|name| !machines.iter().any(|known| known.name == *name));
    let others = names.iter().map(|node| container(&dir, name, node, "", Path::new("")));
    machines.extend(others.map(Machine::Container));
    machines
}
