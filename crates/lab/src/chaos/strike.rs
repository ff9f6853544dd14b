//! The trouble itself, done to a machine of a lab from outside.

use super::links::{break_links, heal_links, is_of_links};
use super::{Case, Fault, Victim};
use crate::power::{self, Circuit};
use crate::{Lab, LabError, Labs, Options, Result, conditions};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use seedling_machines::bad_disk::Trouble;
use seedling_machines::{Disk, Machine};
use seedling_steps::{Condition, Probe, wait_for};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

/// How long a frozen process stays so, a machine off, a cable pulled, unless somebody says otherwise: longer than an etcd election
/// and a lease's renewal.
pub const LASTS: Duration = Duration::from_secs(8);
/// A victim that is just being restarted is waited for; several strikes on it, at steps that followed at once, wait for one restart each.
const APPEARS_WITHIN: Duration = Duration::from_secs(60);
const HINT: &str = "it may not live at this step";

/// Why a lab cannot do it.
pub fn refusal(victim: Victim, fault: Fault) -> Option<&'static str> {
    match (fault, victim) {
        (Fault::FillDisk, victim) if victim != Victim::Etcd => Some(
            "fill-disk strikes etcd, which gets a disk of its own for it: use it with --victim etcd; the rest of a lab machine's disk is part of yours",
        ),
        (Fault::FsyncErrors | Fault::TornWal, victim) if victim != Victim::Etcd => {
            Some("this strikes the disk below etcd: use it with --victim etcd")
        }
        (Fault::FillContainerd | Fault::FillLogs, victim) if victim != Victim::Node => Some(
            "this fills a disk that machines get for it: use it with --victim node; the rest of a lab machine's disk is part of yours",
        ),
        (Fault::SlowDisk, victim) if victim != Victim::Node => {
            Some("slow-disk strikes a machine: use it with --victim node")
        }
        (Fault::CutNetwork, victim) if victim != Victim::Node => {
            Some("cut-network strikes a machine: use it with --victim node")
        }
        (fault, victim) if is_of_links(fault) && victim != Victim::Node => {
            Some("this strikes a machine's links: use it with --victim node")
        }
        (fault, Victim::Everything) if fault != Fault::Kill => {
            Some("everything loses its power together: use it with --fault kill")
        }
        _ => None,
    }
}

/// Processes that were killed in this bring-up. Two cases never share one: the second waits for the next.
pub type Killed = Mutex<BTreeSet<i32>>;

/// Says what was done, and what the bring-up was at. When it returns, what was frozen runs again, what was off is on, and links are whole;
/// also when it could be done only in part.
pub async fn strike(labs: &Labs, lab: &Lab, case: &Case, lasts: Duration, killed: &Killed) -> Result<String> {
    let on = &case.on;
    let machine = || lab.machine(on);
    match (case.victim, case.fault) {
        (Victim::Everything, _) => {
            let everything = Circuit::of(lab, &[])?;
            let cut = power::cut(lab, &everything).await;
            let options = Options::this_program().map_err(|e| LabError::Strike(e.to_string()))?;
            for_a_while(&cut, lasts).await;
            let was_on = Circuit::cut(lab).unwrap_or(everything);
            power::restore(labs, lab, &was_on, &options).await?;
            cut.map(|was_on| format!("{} and the helper were off for {lasts:?}", was_on.nodes.join(", ")))
        }
        (Victim::Helper, Fault::Freeze) => {
            let pids = find_helper(lab, killed, false).await?;
            signal(&pids, Signal::SIGSTOP);
            tokio::time::sleep(lasts).await;
            signal(&pids, Signal::SIGCONT);
            Ok(format!("the helper was frozen for {lasts:?}, or until its parent noticed"))
        }
        (Victim::Helper, _) => {
            signal(&find_helper(lab, killed, true).await?, Signal::SIGKILL);
            Ok(format!("killed at {}", lab.stages().at(crate::probe::now())))
        }
        (_, fault) if is_of_links(fault) => {
            let peer = case.peer.as_deref();
            let broken = break_links(lab, fault, on, peer).await;
            for_a_while(&broken, lasts).await;
            heal_links(lab).await?;
            let whom = peer.unwrap_or("everybody");
            broken.map(|()| format!("{} between {on} and {whom} for {lasts:?}", fault.as_str()))
        }
        (Victim::Node, Fault::Kill) => {
            machine()?.cut_off().await?;
            tokio::time::sleep(lasts).await;
            lab.switch_on(on).await?;
            Ok(format!("{on} was off for {lasts:?}"))
        }
        (Victim::Node, Fault::Freeze) => {
            machine()?.pause().await?;
            tokio::time::sleep(lasts).await;
            machine()?.switch_on().await?;
            Ok(format!("{on} was frozen for {lasts:?}"))
        }
        (_, Fault::CutNetwork) => {
            machine()?.plug(false).await?;
            tokio::time::sleep(lasts).await;
            machine()?.plug(true).await?;
            Ok(format!("{on} was cut off for {lasts:?}"))
        }
        (_, Fault::FillDisk) => fill(&machine()?, Disk::Etcd, lasts).await,
        (_, Fault::FillContainerd) => fill(&machine()?, Disk::Containerd, lasts).await,
        (_, Fault::FillLogs) => fill(&machine()?, Disk::PodLogs, lasts).await,
        (victim, Fault::FsyncErrors) => {
            find(&machine()?, victim, killed, false).await?;
            let failing = machine()?.trouble_disk(Trouble::FailSyncs).await?;
            tokio::time::sleep(lasts).await;
            drop(failing);
            Ok(format!("syncs below etcd on {on} failed for {lasts:?}"))
        }
        (victim, Fault::TornWal) => {
            find(&machine()?, victim, killed, false).await?;
            let torn = machine()?.trouble_disk(Trouble::TearLog).await?;
            machine()?.cut_off().await?;
            tokio::time::sleep(lasts).await;
            lab.switch_on(on).await?;
            Ok(format!("{}, and {on} was off for {lasts:?}", torn.answer))
        }
        (_, Fault::SlowDisk) => {
            let slowed = machine()?.slow_disk(true);
            for_a_while(&slowed, lasts).await;
            machine()?.slow_disk(false)?;
            slowed?;
            Ok(format!("the disk of {on} was slow for {lasts:?}"))
        }
        (victim, Fault::Freeze) => {
            let pids = find(&machine()?, victim, killed, false).await?;
            signal(&pids, Signal::SIGSTOP);
            tokio::time::sleep(lasts).await;
            signal(&pids, Signal::SIGCONT);
            Ok(format!("pid {pids:?} was frozen for {lasts:?}"))
        }
        (victim, _) => {
            let pids = find(&machine()?, victim, killed, true).await?;
            signal(&pids, Signal::SIGKILL);
            Ok(format!("killed at {}", lab.stages().at(crate::probe::now())))
        }
    }
}

async fn fill(machine: &Machine, disk: Disk, lasts: Duration) -> Result<String> {
    let filled = machine.fill_disk(disk, true).await;
    for_a_while(&filled, lasts).await;
    machine.fill_disk(disk, false).await?;
    filled?;
    Ok(format!("{} on {} was full for {lasts:?}", disk.path(), machine.name))
}

/// Undoes what a killed chaos run may have left. What is off needs nothing: it is made again when it boots.
pub(crate) async fn heal(lab: &Lab) {
    let _ = heal_links(lab).await;
    for machine in lab.machines() {
        let _ = machine.slow_disk(false);
        for (disk, _) in lab.record.spec.disks() {
            let _ = machine.fill_disk(disk, false).await;
        }
    }
}

/// What could be done only in part is undone at once.
async fn for_a_while<T, E>(done: &Result<T, E>, lasts: Duration) {
    if done.is_ok() {
        tokio::time::sleep(lasts).await;
    }
}

async fn find_helper(lab: &Lab, killed: &Killed, to_kill: bool) -> Result<Vec<i32>> {
    let runs = Condition::new(&conditions::HELPER_RUNS, APPEARS_WITHIN, HINT);
    found(runs, killed, to_kill, || lab.helper_pids()).await
}

async fn find(machine: &Machine, victim: Victim, killed: &Killed, to_kill: bool) -> Result<Vec<i32>> {
    let runs = Condition::new(&conditions::VICTIM_RUNS, APPEARS_WITHIN, HINT);
    let runs = runs.with("PROCESS", victim.as_str()).with("MACHINE", &machine.name);
    machine.processes()?;
    found(runs, killed, to_kill, || {
        let running =
            machine.processes().unwrap_or_default().into_iter().filter(|(_, args)| is(victim, args));
        running.map(|(pid, _)| pid).collect()
    })
    .await
}

async fn found(
    condition: Condition,
    killed: &Killed,
    to_kill: bool,
    running: impl Fn() -> Vec<i32>,
) -> Result<Vec<i32>> {
    let found = wait_for(&condition, Duration::from_millis(20), async || {
        let mut killed = killed.lock().unwrap_or_else(|e| e.into_inner());
        let pids: Vec<_> = running().into_iter().filter(|pid| !killed.contains(pid)).collect();
        if to_kill {
            killed.extend(&pids);
        }
        if pids.is_empty() { Probe::Unmet("no such process".into()) } else { Probe::Met(pids) }
    });
    Ok(found.await?)
}

/// The machine's own process, recognised by its arguments.
fn is(victim: Victim, args: &[String]) -> bool {
    let Some(program) = args.first().and_then(|a| Path::new(a).file_name()?.to_str()) else { return false };
    let command = args.get(1).map(String::as_str);
    match victim {
        Victim::Bootkube => program == "seedling" && command == Some("bootkube"),
        Victim::Operator => program == "seedling" && command == Some("operator"),
        Victim::Kubelet => program == "kubelet",
        Victim::Etcd => program == "etcd",
        Victim::Apiserver => program == "kube-apiserver",
        Victim::Node | Victim::Helper | Victim::Everything => false,
    }
}

fn signal(pids: &[i32], signal: Signal) {
    for pid in pids {
        // One may have ended by itself.
        let _ = kill(Pid::from_raw(*pid), signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn victims_are_told_by_their_arguments() {
        let cases: [(Victim, &[&str], bool); 8] = [
            (Victim::Bootkube, &["/usr/local/bin/seedling", "bootkube"], true),
            (Victim::Bootkube, &["/usr/local/bin/seedling", "report-progress"], false),
            (Victim::Operator, &["/seedling", "operator", "etcd"], true),
            (Victim::Etcd, &["etcd", "--config-file=/x"], true),
            (Victim::Etcd, &["/seedling", "operator", "etcd"], false),
            (Victim::Kubelet, &["/usr/local/bin/kubelet", "--v=2"], true),
            (Victim::Apiserver, &["kube-apiserver", "--advertise-address=1"], true),
            (Victim::Apiserver, &[], false),
        ];
        for (victim, args, want) in cases {
            let args: Vec<_> = args.iter().map(ToString::to_string).collect();
            assert_eq!(is(victim, &args), want, "{victim:?} {args:?}");
        }
    }
}
