//! What a grown cluster costs while nobody asks it anything: processor time a minute and memory, machine by machine and process by
//! process, the helper with its load balancer included, which both contestants use.

use super::processes::{self, Table, Used};
use super::usage::machine_cpu_seconds;
use super::{Contestant, rounded};
use seedling_lab::Lab;
use seedling_machines::cgroup;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// After everything works: what a bring-up leaves to do is done by then.
const SETTLE: Duration = Duration::from_secs(60);
pub(super) const HELPER: &str = "helper";
/// Programs that ran and ended between two looks: probes, hooks, runc.
const ENDED: &str = "(ended meanwhile)";

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Rest {
    pub contestant: Contestant,
    pub minutes: f64,
    /// All machines and the helper.
    pub cpu_seconds_per_minute: f64,
    /// Working sets of the machines.
    pub memory_bytes: u64,
    /// Of everything else on this machine, to judge how quiet it was.
    pub other_cpu_seconds_per_minute: f64,
    pub machines: BTreeMap<String, Cost>,
    /// The same of all machines together.
    pub processes: BTreeMap<String, Cost>,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cost {
    pub cpu_seconds_per_minute: f64,
    /// Of a machine its working set, of a process its own memory.
    pub memory_bytes: u64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub processes: BTreeMap<String, Cost>,
}

/// One look at a machine, or at the helper.
struct Look {
    cpu_seconds: f64,
    memory_bytes: u64,
    table: Table,
}

pub(super) async fn measure(contestant: Contestant, lab: &Lab, minutes: u32) -> Rest {
    sleep(SETTLE).await;
    let (clock, busy, before) = (Instant::now(), machine_cpu_seconds(), look(lab));
    sleep(Duration::from_secs(60 * u64::from(minutes))).await;
    let (after, busy, seconds) = (look(lab), machine_cpu_seconds() - busy, clock.elapsed().as_secs_f64());
    rest(contestant, &before, &after, busy, seconds)
}

fn look(lab: &Lab) -> BTreeMap<String, Look> {
    let mut all = BTreeMap::new();
    for machine in lab.machines() {
        let table = processes::table(&cgroup::processes(&machine.cgroup()));
        let usage = cgroup::usage(&machine.cgroup());
        let look = Look { cpu_seconds: usage.cpu_seconds, memory_bytes: usage.memory_bytes, table };
        // One that was switched off, as bootstrap is, costs nothing.
        if !look.table.is_empty() {
            all.insert(machine.name.clone(), look);
        }
    }
    let table = processes::table(&lab.helper_pids());
    let sum = |field: fn(&Used) -> f64| table.values().map(|(_, used)| field(used)).sum::<f64>();
    let (cpu_seconds, memory) = (sum(|u| u.cpu_seconds), sum(|u| u.memory_bytes as f64));
    all.insert(HELPER.into(), Look { cpu_seconds, memory_bytes: memory as u64, table });
    all
}

fn rest(
    contestant: Contestant,
    before: &BTreeMap<String, Look>,
    after: &BTreeMap<String, Look>,
    busy: f64,
    seconds: f64,
) -> Rest {
    let minutes = seconds / 60.0;
    let a_minute = |cpu_seconds: f64| rounded(cpu_seconds / minutes);
    let mut machines = BTreeMap::new();
    let mut processes: BTreeMap<String, Cost> = BTreeMap::new();
    let mut sum = 0.0;
    for (name, after) in after {
        let nothing = Look { cpu_seconds: 0.0, memory_bytes: 0, table: Table::new() };
        let before = before.get(name).unwrap_or(&nothing);
        let used = after.cpu_seconds - before.cpu_seconds;
        sum += used;
        let mut parts = processes::between(&before.table, &after.table);
        let known: f64 = parts.values().map(|p| p.cpu_seconds).sum();
        if name != HELPER {
            parts.insert(ENDED.into(), Used { cpu_seconds: (used - known).max(0.0), memory_bytes: 0 });
        }
        let cost = |used: &Used| Cost {
            cpu_seconds_per_minute: a_minute(used.cpu_seconds),
            memory_bytes: used.memory_bytes,
            processes: BTreeMap::new(),
        };
        for (process, used) in &parts {
            let all = processes.entry(process.clone()).or_default();
            all.cpu_seconds_per_minute = rounded(all.cpu_seconds_per_minute + used.cpu_seconds / minutes);
            all.memory_bytes += used.memory_bytes;
        }
        let processes = parts.iter().map(|(process, used)| (process.clone(), cost(used))).collect();
        let memory_bytes = after.memory_bytes;
        machines
            .insert(name.clone(), Cost { cpu_seconds_per_minute: a_minute(used), memory_bytes, processes });
    }
    Rest {
        contestant,
        minutes: rounded(minutes),
        cpu_seconds_per_minute: a_minute(sum),
        memory_bytes: machines.iter().filter(|(name, _)| *name != HELPER).map(|(_, c)| c.memory_bytes).sum(),
        other_cpu_seconds_per_minute: a_minute((busy - sum).max(0.0)),
        machines,
        processes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_process_has_used_was_used_by_those_that_ended() {
        let look = |cpu_seconds, kubelet| {
            let used = Used { cpu_seconds: kubelet, memory_bytes: 7 };
            let table = [((1, 1), ("kubelet".to_string(), used))].into();
            BTreeMap::from([("master-0".to_string(), Look { cpu_seconds, memory_bytes: 9, table })])
        };
        let rest = rest(Contestant::Ours, &look(10.0, 4.0), &look(16.0, 8.0), 20.0, 120.0);
        assert_eq!((rest.cpu_seconds_per_minute, rest.other_cpu_seconds_per_minute), (3.0, 7.0));
        let cost = |name: &str| rest.machines["master-0"].processes[name].cpu_seconds_per_minute;
        assert_eq!((cost("kubelet"), cost(ENDED), rest.memory_bytes), (2.0, 1.0, 9));
        assert_eq!(rest.processes["kubelet"].cpu_seconds_per_minute, 2.0);
    }
}
