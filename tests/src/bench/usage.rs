//! Processor time and memory: of a lab from its control groups, of the whole machine from /proc/stat.

use super::{processes, rounded};
use seedling_lab::Lab;
use seedling_machines::cgroup;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub(super) struct Usage {
    pub cpu_seconds: f64,
    pub cpu_per_node: BTreeMap<String, f64>,
    pub peak_memory: BTreeMap<String, u64>,
}

impl Usage {
    /// Looks again; a machine that has left keeps its peak, and its processor time is in the lab's.
    pub(super) fn sample(&mut self, lab: &Lab) {
        self.cpu_seconds = cgroup::usage(&cgroup::path_of(lab.name(), "")).cpu_seconds.max(self.cpu_seconds);
        for machine in lab.machines() {
            let now = cgroup::usage(&machine.cgroup());
            let cpu = self.cpu_per_node.entry(machine.name.clone()).or_default();
            *cpu = now.cpu_seconds.max(*cpu);
            let peak = self.peak_memory.entry(machine.name.clone()).or_default();
            *peak = now.memory_bytes.max(*peak);
        }
    }
}

/// What runs on the lab's machines and in its helper has used so far. What has ended is not in it.
pub(super) fn by_program(lab: &Lab) -> BTreeMap<String, f64> {
    let mut pids = lab.helper_pids();
    lab.machines().iter().for_each(|machine| pids.extend(cgroup::processes(&machine.cgroup())));
    let used = processes::between(&processes::Table::new(), &processes::table(&pids));
    used.into_iter().map(|(name, used)| (name, rounded(used.cpu_seconds))).collect()
}

/// Since this machine was started, all processors together.
pub(super) fn machine_cpu_seconds() -> f64 {
    busy(&std::fs::read_to_string("/proc/stat").unwrap_or_default())
}

/// The kernel tells times to programs in hundredths of a second.
fn busy(stat: &str) -> f64 {
    let line = stat.lines().next().unwrap_or_default();
    let ticks: Vec<f64> = line.split_whitespace().skip(1).filter_map(|t| t.parse().ok()).collect();
    // user nice system idle iowait irq softirq; steal is others' time, guest is in user already
    let at = |i: usize| ticks.get(i).copied().unwrap_or_default();
    (at(0) + at(1) + at(2) + at(5) + at(6)) / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_not_busy() {
        assert_eq!(busy("cpu  100 10 40 9000 500 0 50 7 3 0\ncpu0 1 2 3\n"), 2.0);
        assert_eq!(busy(""), 0.0);
    }
}
