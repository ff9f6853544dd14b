//! The machine this runs on: its disk, memory, processors, kernel and name.

use super::facts::{Disk, Machine};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// What etcd's log writes at a time.
const WRITE: [u8; 2300] = [0x5e; 2300];
/// Enough for a 99th percentile.
const WRITES: usize = 300;

pub fn look() -> Machine {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    Machine {
        memory_bytes: memory(&read("/proc/meminfo")),
        processors: std::thread::available_parallelism().map_or(1, usize::from),
        host_name: read("/proc/sys/kernel/hostname").trim().to_string(),
        kernel: vec![
            ("overlayfs", read("/proc/filesystems").contains("\toverlay\n")),
            ("cgroups", cgroups(&read("/sys/fs/cgroup/cgroup.controllers"), &read("/proc/cgroups"))),
            ("br_netfilter", Path::new("/proc/sys/net/bridge/bridge-nf-call-iptables").exists()),
            ("nf_conntrack", Path::new("/proc/sys/net/netfilter/nf_conntrack_max").exists()),
            ("vxlan", there("vxlan")),
            ("ip_forward", read("/proc/sys/net/ipv4/ip_forward").trim() == "1"),
        ],
    }
}

/// The controllers that kubelets need, of version 2 or of version 1.
fn cgroups(v2: &str, v1: &str) -> bool {
    let of_v1 = |name: &str| v1.lines().any(|l| l.starts_with(&format!("{name}\t")) && l.ends_with("\t1"));
    ["cpu", "memory", "pids"].iter().all(|name| v2.split_whitespace().any(|c| c == *name) || of_v1(name))
}

/// Loaded, built in, or able to be loaded.
fn there(module: &str) -> bool {
    let built_in = || {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let list = format!("/lib/modules/{}/modules.builtin", release.trim());
        fs::read_to_string(list).is_ok_and(|list| list.contains(&format!("/{module}.ko")))
    };
    // A kernel without any module has it built in, or shows nothing of it.
    Path::new(&format!("/sys/module/{module}")).exists() || built_in() || !Path::new("/proc/modules").exists()
}

fn memory(meminfo: &str) -> u64 {
    let line = meminfo.lines().find_map(|l| l.strip_prefix("MemTotal:"));
    let kilobytes: Option<u64> = line.and_then(|l| l.trim().trim_end_matches(" kB").parse().ok());
    kilobytes.unwrap_or_default() * 1024
}

pub fn measure_etcd_disk(dir: &Path) -> Disk {
    let micros = measure_disk(dir, WRITES).map(|times| times.iter().map(|t| t.as_micros() as u64).collect());
    Disk { dir: dir.into(), micros: micros.map_err(|e| e.to_string()) }
}

/// How long each write to a file in `dir` took to be on the disk.
pub fn measure_disk(dir: &Path, writes: usize) -> io::Result<Vec<Duration>> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let path = dir.join(".disk-check");
    let mut file = OpenOptions::new().create(true).write(true).truncate(true).open(&path)?;
    let mut write = || {
        let start = Instant::now();
        file.write_all(&WRITE)?;
        file.sync_data()?;
        Ok(start.elapsed())
    };
    let times = (0..writes).map(|_| write()).collect();
    fs::remove_file(&path)?;
    times
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_disk_is_really_written_to() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(measure_disk(dir.path(), 7).unwrap().len(), 7);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(measure_etcd_disk(Path::new("/proc/none")).micros.is_err());
    }

    #[test]
    fn both_versions_of_cgroups_will_do() {
        assert!(cgroups("cpuset cpu io memory pids\n", ""));
        let v1 = "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t1\t9\t1\nmemory\t2\t9\t1\npids\t3\t9\t";
        assert!(cgroups("", &format!("{v1}1\n")) && !cgroups("", &format!("{v1}0\n")) && !cgroups("", ""));
    }

    #[test]
    fn this_machine_has_memory_and_processors() {
        let machine = look();
        assert!(machine.memory_bytes > 1 << 28 && machine.processors > 0 && !machine.host_name.is_empty());
        assert_eq!(memory("MemTotal:   2048 kB\nMemAvailable: 9 kB\n"), 2 << 20);
    }
}
