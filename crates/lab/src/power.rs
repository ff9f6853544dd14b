//! Power for several at once: everything goes dark at one moment, the helper with it, and comes back.

use crate::store::{Lab, Labs};
use crate::{LabError, Options, Pace, all, at, helper, processes, up};
use futures::future::join_all;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use seedling_machines::{Machine, Power, Progress};
use seedling_steps::write_atomic;
use seedling_types::Role;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What of a lab is meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Circuit {
    pub nodes: Vec<String>,
    pub helper: bool,
}

impl Circuit {
    /// The named machines; with none named, everything.
    pub fn of(lab: &Lab, nodes: &[String]) -> Result<Self, LabError> {
        let hosts = &lab.record.spec.inventory.hosts;
        if nodes.is_empty() {
            return Ok(Self { nodes: hosts.iter().map(|h| h.name.clone()).collect(), helper: true });
        }
        nodes.iter().try_for_each(|node| lab.machine(node).map(drop))?;
        Ok(Self { nodes: nodes.into(), helper: false })
    }

    /// What the last cut has switched off, if that was not restored since.
    pub fn cut(lab: &Lab) -> Option<Self> {
        let off: Self = serde_json::from_slice(&std::fs::read(file(lab)).ok()?).ok()?;
        // A machine may have been removed meanwhile.
        let nodes = off.nodes.into_iter().filter(|node| lab.machine(node).is_ok()).collect();
        Some(Self { nodes, ..off })
    }

    /// A second cut finds machines off that the first one has switched off.
    fn and(mut self, before: Option<Self>) -> Self {
        let Some(before) = before else { return self };
        self.nodes.extend(before.nodes);
        self.nodes.sort();
        self.nodes.dedup();
        Self { helper: self.helper || before.helper, ..self }
    }

    /// What is still off when some of it was switched on.
    fn without(self, on: &Self) -> Option<Self> {
        let nodes: Vec<_> = self.nodes.into_iter().filter(|node| !on.nodes.contains(node)).collect();
        let helper = self.helper && !on.helper;
        (helper || !nodes.is_empty()).then_some(Self { nodes, helper })
    }
}

fn remember(lab: &Lab, off: &Circuit) -> Result<(), LabError> {
    let path = file(lab);
    let json = serde_json::to_vec(off)
        .map_err(|e| LabError::Unreadable { path: path.clone(), message: e.to_string() })?;
    at(&path, write_atomic(&path, json, 0o644))
}

fn file(lab: &Lab) -> PathBuf {
    lab.dir.join("power-cut.json")
}

/// Who is killed is found out before the first is, so that nothing lies between the first and the last. What was on is written down, to be
/// switched on again; a machine that was off stays off.
pub async fn cut(lab: &Lab, circuit: &Circuit) -> Result<Circuit, LabError> {
    let machines: Vec<Machine> =
        circuit.nodes.iter().map(|node| lab.machine(node)).collect::<Result<_, _>>()?;
    let looked = join_all(machines.iter().map(async |m| Ok(m.inspect().await?))).await;
    let (machines, pids): (Vec<_>, Vec<_>) = (machines.iter().zip(all(looked)?))
        .filter(|(_, seen)| seen.power != Power::Off)
        .map(|(machine, seen)| (machine, seen.pid))
        .unzip();
    let was_on = Circuit { nodes: machines.iter().map(|m| m.name.clone()).collect(), ..circuit.clone() };
    remember(lab, &was_on.clone().and(Circuit::cut(lab)))?;
    let config = lab.helper_config();
    let commands = if circuit.helper { &helper::commands(&config)[..] } else { &[] };
    let helpers: Vec<_> = commands.iter().flat_map(|arguments| processes::find(arguments)).collect();
    let first = pids.iter().flatten().filter_map(|pid| i32::try_from(*pid).ok());
    // The first process of a machine takes all others along.
    for pid in helpers.iter().map(|process| process.pid).chain(first) {
        let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
    }
    all(join_all(machines.iter().map(async |m| Ok(m.cut_off().await?))).await)?;
    for arguments in commands {
        processes::end(arguments, Signal::SIGKILL).await?;
    }
    Ok(was_on)
}

/// Shuts everything down, workers first and the helper last. What was on is written down, to be switched on again.
pub async fn stop(labs: &Labs, lab: &Lab, progress: Progress<'_>) -> Result<Circuit, LabError> {
    let _lock = labs.lock(lab.name(), progress).await?;
    let machines = lab.machines();
    let looked = all(join_all(machines.iter().map(async |m| Ok(m.inspect().await?))).await)?;
    let running = machines.iter().zip(&looked).filter(|(_, seen)| seen.power != Power::Off);
    let nodes: Vec<_> = running.map(|(machine, _)| machine.name.clone()).collect();
    let was_on = Circuit { nodes, helper: true };
    remember(lab, &was_on.clone().and(Circuit::cut(lab)))?;
    for role in [Role::Worker, Role::Master, Role::Bootstrap] {
        let of_role = |m: &&Machine| {
            was_on.nodes.contains(&m.name) && lab.host(&m.name).is_ok_and(|host| host.role == role)
        };
        let off = async |machine: &Machine| {
            machine.switch_off().await?;
            progress(&format!("{} is off", machine.name));
            Ok(())
        };
        all(join_all(machines.iter().filter(of_role).map(off)).await)?;
    }
    helper::stop(&lab.helper_config()).await?;
    Ok(was_on)
}

/// What `stop` or `cut` has switched off, also after this computer was booted again: whatever is missing is made. Returns what is on.
pub async fn start(
    labs: &Labs,
    lab: &Lab,
    options: &Options,
    progress: Progress<'_>,
) -> Result<Circuit, LabError> {
    let masters_and_workers = || {
        let hosts = lab.record.spec.inventory.hosts.iter().filter(|host| host.role != Role::Bootstrap);
        Circuit { nodes: hosts.map(|host| host.name.clone()).collect(), helper: true }
    };
    let circuit = Circuit::cut(lab).unwrap_or_else(masters_and_workers);
    let off = Options { switch_on: false, helper_program: options.helper_program.clone(), pace: Pace::Free };
    let lab = up(labs, lab.record.spec.clone(), &off, progress).await?;
    restore(labs, &lab, &circuit, options).await?;
    Ok(circuit)
}

/// The helper first: machines boot from it.
pub async fn restore(labs: &Labs, lab: &Lab, circuit: &Circuit, options: &Options) -> Result<(), LabError> {
    if circuit.helper {
        let _lock = labs.lock(lab.name(), &|_| ()).await?;
        let mut lab = lab.clone();
        let api = helper::ensure(&lab, &options.helper_program).await?;
        if lab.record.api.replace(api) != Some(api) {
            lab.save()?;
        }
    }
    all(join_all(circuit.nodes.iter().map(|node| lab.switch_on(node))).await)?;
    match Circuit::cut(lab).and_then(|off| off.without(circuit)) {
        Some(still) => remember(lab, &still),
        None => helper::remove_if_there(&file(lab)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_off_is_remembered() {
        let of = |nodes: &[&str], helper| Circuit {
            nodes: nodes.iter().map(ToString::to_string).collect(),
            helper,
        };
        let all = || of(&["bootstrap", "master-0"], true);
        assert_eq!(all().without(&all()), None);
        assert_eq!(all().without(&of(&["master-0"], false)), Some(of(&["bootstrap"], true)));
        assert_eq!(all().without(&of(&[], true)), Some(of(&["bootstrap", "master-0"], false)));
        assert_eq!(of(&["master-0"], false).without(&all()), None);
        assert_eq!(of(&[], false).and(Some(all())), all(), "cut twice, and nothing was on any more");
        assert_eq!(of(&["master-0"], true).and(Some(of(&["bootstrap"], false))), all());
        assert_eq!(all().and(None), all());
    }
}
