//! The trouble itself, done to a machine of a lab from outside.

use super::{Case, Fault, Victim};
use crate::{Lab, LabError};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use seedling_machines::Machine;
use seedling_steps::{Condition, Probe, wait_for};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

/// How long a frozen process stays so, a machine off, a cable pulled, unless somebody says otherwise: longer than an etcd election
/// and a lease's renewal.
pub const LASTS: Duration = Duration::from_secs(8);
/// A victim that is just being restarted is waited for.
const APPEARS_WITHIN: Duration = Duration::from_secs(20);

/// Why a lab cannot do it.
pub fn refusal(victim: Victim, fault: Fault) -> Option<&'static str> {
    match (fault, victim) {
        (Fault::FillDisk, victim) if victim != Victim::Etcd => Some(
            "fill-disk strikes etcd, which gets a disk of its own for it: use it with --victim etcd; the rest of a lab machine's disk is part of yours",
        ),
        (Fault::SlowDisk, victim) if victim != Victim::Node => {
            Some("slow-disk strikes a machine: use it with --victim node")
        }
        (Fault::CutNetwork, victim) if victim != Victim::Node => {
            Some("cut-network strikes a machine: use it with --victim node")
        }
        _ => None,
    }
}

/// Processes that were killed in this bring-up. Two cases never share one: the second waits for the next.
pub type Killed = Mutex<BTreeSet<i32>>;

/// Says what was done, and what the bring-up was at. When it returns, what was frozen runs again, and what was off is on.
pub async fn strike(lab: &Lab, case: &Case, lasts: Duration, killed: &Killed) -> Result<String, LabError> {
    let machine = lab.machine(&case.on)?;
    match (case.victim, case.fault) {
        (Victim::Node, Fault::Kill) => {
            machine.cut_off().await?;
            tokio::time::sleep(lasts).await;
            lab.switch_on(&case.on).await?;
            Ok(format!("{} was off for {lasts:?}", case.on))
        }
        (Victim::Node, Fault::Freeze) => {
            machine.pause().await?;
            tokio::time::sleep(lasts).await;
            machine.switch_on().await?;
            Ok(format!("{} was frozen for {lasts:?}", case.on))
        }
        (_, Fault::CutNetwork) => {
            machine.plug(false).await?;
            tokio::time::sleep(lasts).await;
            machine.plug(true).await?;
            Ok(format!("{} was cut off for {lasts:?}", case.on))
        }
        (_, Fault::FillDisk) => {
            machine.fill_etcd_disk(true).await?;
            tokio::time::sleep(lasts).await;
            machine.fill_etcd_disk(false).await?;
            Ok(format!("etcd's disk on {} was full for {lasts:?}", case.on))
        }
        (_, Fault::SlowDisk) => {
            machine.slow_disk(true)?;
            tokio::time::sleep(lasts).await;
            machine.slow_disk(false)?;
            Ok(format!("the disk of {} was slow for {lasts:?}", case.on))
        }
        (victim, Fault::Freeze) => {
            let pids = find(&machine, victim, killed, false).await?;
            signal(&pids, Signal::SIGSTOP);
            tokio::time::sleep(lasts).await;
            signal(&pids, Signal::SIGCONT);
            Ok(format!("pid {pids:?} was frozen for {lasts:?}"))
        }
        (victim, _) => {
            let pids = find(&machine, victim, killed, true).await?;
            signal(&pids, Signal::SIGKILL);
            Ok(format!("killed at {}", lab.stages().at(crate::probe::now())))
        }
    }
}

async fn find(
    machine: &Machine,
    victim: Victim,
    killed: &Killed,
    to_kill: bool,
) -> Result<Vec<i32>, LabError> {
    let what = format!("{} to run on {}", victim.as_str(), machine.name);
    let condition = Condition::new(what, APPEARS_WITHIN, "it may not live at this step");
    let found = wait_for(&condition, Duration::from_millis(20), async || {
        let mut killed = killed.lock().unwrap_or_else(|e| e.into_inner());
        let running = machine.processes().into_iter().filter(|(_, args)| is(victim, args));
        let pids: Vec<_> = running.map(|(pid, _)| pid).filter(|pid| !killed.contains(pid)).collect();
        if to_kill {
            killed.extend(&pids);
        }
        if pids.is_empty() { Probe::Unmet("no such process".into()) } else { Probe::Met(pids) }
    });
    Ok(found.await?)
}

/// The machine's own process, told by its arguments.
fn is(victim: Victim, args: &[String]) -> bool {
    let Some(program) = args.first().and_then(|a| Path::new(a).file_name()?.to_str()) else { return false };
    let command = args.get(1).map(String::as_str);
    match victim {
        Victim::Bootkube => program == "seedling" && command == Some("bootkube"),
        Victim::Operator => program == "seedling" && command == Some("operator"),
        Victim::Kubelet => program == "kubelet",
        Victim::Etcd => program == "etcd",
        Victim::Apiserver => program == "kube-apiserver",
        Victim::Node => false,
    }
}

fn signal(pids: &[i32], signal: Signal) {
    for pid in pids {
        // One that has ended by itself meanwhile is no loss.
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
