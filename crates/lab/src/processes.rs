//! Processes of a lab, recognised by the arguments they were started with, and ended by pid and start time.

use crate::{Result, conditions};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use seedling_steps::{Condition, Probe, wait_for};
use std::ffi::OsStr;
use std::fs;
use std::time::Duration;

pub(crate) struct Process {
    pub pid: i32,
    /// Clock ticks after the machine's boot: with the pid, a name that is never used twice.
    start: u64,
}

impl Process {
    /// Looked at again: a number can have gone to another process in between.
    pub(crate) fn signal(&self, signal: Signal) {
        if start_time(self.pid) == Some(self.start) {
            let _ = kill(Pid::from_raw(self.pid), signal);
        }
    }
}

/// All processes that were started with these arguments, one after the other.
pub(crate) fn find(arguments: &[&OsStr]) -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|e| e.ok()?.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| has(&line, arguments)))
        .filter_map(|pid| Some(Process { pid, start: start_time(pid)? }))
        .collect()
}

/// Signals them, and waits until they are gone.
pub(crate) async fn end(arguments: &[&OsStr], signal: Signal) -> Result<()> {
    find(arguments).iter().for_each(|process| process.signal(signal));
    let hint = "see `ps` and end them by hand";
    let condition = Condition::within(&conditions::PROCESSES_ENDED, Duration::from_secs(3), hint);
    let gone = wait_for(&condition, Duration::from_millis(20), async || {
        let left: Vec<_> = find(arguments).iter().map(|p| p.pid.to_string()).collect();
        if left.is_empty() { Probe::Met(()) } else { Probe::Unmet(format!("pid {}", left.join(", "))) }
    });
    Ok(gone.await?)
}

fn has(cmdline: &[u8], arguments: &[&OsStr]) -> bool {
    let args: Vec<_> = cmdline.split(|b| *b == 0).collect();
    args.windows(arguments.len()).any(|w| w.iter().zip(arguments).all(|(a, b)| *a == b.as_encoded_bytes()))
}

/// Field 22 of /proc/PID/stat; a process that only waits to be reaped has ended.
fn start_time(pid: i32) -> Option<u64> {
    start_of(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn start_of(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(") ")?;
    let mut fields = after_name.split(' ');
    let state = fields.next()?;
    if state == "Z" || state == "X" { None } else { fields.nth(18)?.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_labs_own_process_is_found() {
        let wanted: Vec<&OsStr> = ["helper", "run", "--config", "/s/a/helper.yaml"].map(AsRef::as_ref).into();
        let line = |args: &[&str]| args.join("\0").into_bytes();
        assert!(has(
            &line(&["/usr/bin/seedling", "helper", "run", "--config", "/s/a/helper.yaml", ""]),
            &wanted
        ));
        assert!(!has(&line(&["seedling", "helper", "run", "--config", "/s/a-b/helper.yaml"]), &wanted));
        assert!(!has(&line(&["less", "/s/a/helper.yaml"]), &wanted));
    }

    #[test]
    fn the_start_time_is_field_22_whatever_the_name() {
        let fields = "S 1 4 4 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 99";
        assert_eq!(start_of(&format!("42 (a) b) {fields}")), Some(4711));
        assert_eq!(start_of(&format!("42 (a) {}", fields.replacen('S', "Z", 1))), None);
    }
}
