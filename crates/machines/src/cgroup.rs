//! Control groups of a lab: `/seedling/<lab>/<node>`, on version 1 (one tree a controller), hybrid, and version 2 (one tree).

use crate::confine;
use crate::run::{Result, at};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const ROOT: &str = "/sys/fs/cgroup";
/// The group all labs share.
const SEEDLING: &str = "seedling";
/// All nodes together would count as one task (1024, or 100 on version 2) against each busy process beside the lab.
const CPU_SHARES: &str = "8192";
const CPU_WEIGHT: &str = "800";
/// How long the kernel may take to let the last processes of a killed machine go.
const EMPTY_WITHIN: Duration = Duration::from_secs(20);

/// The path below each tree, as the OCI config wants it.
pub fn path_of(lab: &str, node: &str) -> String {
    format!("/{SEEDLING}/{lab}/{node}")
}

/// The roots of all mounted trees.
fn trees() -> Vec<PathBuf> {
    trees_below(Path::new(ROOT))
}

fn is_version_2(root: &Path) -> bool {
    root.join("cgroup.controllers").exists()
}

fn trees_below(root: &Path) -> Vec<PathBuf> {
    if is_version_2(root) {
        return vec![root.into()];
    }
    let Ok(entries) = fs::read_dir(root) else { return Vec::new() };
    let mut trees: Vec<_> = entries
        .filter_map(Result::ok)
        .filter(|e| e.file_type().is_ok_and(|t| t.is_dir()) && e.path().join("cgroup.procs").exists())
        .map(|e| e.path())
        .collect();
    trees.sort();
    trees
}

/// Holds all nodes of a lab to the devices that they need. Version 2 has no group files for it: there runc's program does it, node by node.
pub fn hold_devices(lab: &str) -> Result<()> {
    let tree = Path::new(ROOT).join("devices");
    if is_version_2(Path::new(ROOT)) || !tree.join("devices.list").exists() {
        return Ok(());
    }
    confine::hold_devices(&tree.join(SEEDLING).join(lab))
}

/// Gives the labs their share of the processors. A machine that does not allow it only makes the lab slower.
pub fn raise_share() {
    let (tree, file, value) = match is_version_2(Path::new(ROOT)) {
        true => (ROOT.into(), "cpu.weight", CPU_WEIGHT),
        false => (format!("{ROOT}/cpu"), "cpu.shares", CPU_SHARES),
    };
    let group = Path::new(&tree).join(SEEDLING);
    let raised = fs::create_dir_all(&group).and_then(|()| fs::write(group.join(file), value));
    if let Err(error) = raised {
        tracing::warn!(group = %group.display(), %error, "cannot raise the lab's share of the processors");
    }
}

/// Controllers of version 1 that a single process cannot simply be put under: a new group of one has no processors, the other
/// knows only a container's devices.
const NOT_FOR_ONE: [&str; 2] = ["cpuset", "devices"];

/// Makes a machine's groups. Returns the files that a process writes its number to, to be in them.
pub fn make(path: &str) -> Result<Vec<PathBuf>> {
    let mut join = Vec::new();
    for tree in trees() {
        if tree.file_name().is_some_and(|name| NOT_FOR_ONE.iter().any(|one| name == *one)) {
            continue;
        }
        let group = tree.join(path.trim_start_matches('/'));
        at(&group, fs::create_dir_all(&group))?;
        // Version 2 counts only what the groups above let it count; without that, `lab status` knows less.
        for above in group.ancestors().skip(1).take_while(|above| above.starts_with(&tree)) {
            for controller in ["+cpu", "+memory", "+io", "+pids"] {
                let _ = fs::write(above.join("cgroup.subtree_control"), controller);
            }
        }
        join.push(group.join("cgroup.procs"));
    }
    Ok(join)
}

#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    pub cpu_seconds: f64,
    /// Now, without page cache that could be dropped at once.
    pub memory_bytes: u64,
    /// The most so far, page cache included.
    pub memory_peak_bytes: u64,
}

pub fn usage(path: &str) -> Usage {
    usage_below(Path::new(ROOT), path)
}

fn usage_below(root: &Path, path: &str) -> Usage {
    let read = |tree: &str, file: &str| {
        let file = root.join(tree).join(path.trim_start_matches('/')).join(file);
        fs::read_to_string(file).unwrap_or_default()
    };
    let number = |tree: &str, file: &str| read(tree, file).trim().parse::<u64>().unwrap_or_default();
    let field = |tree: &str, file: &str, name: &str| -> u64 {
        let text = read(tree, file);
        let line = text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|v| v.parse().ok()).unwrap_or_default()
    };
    if is_version_2(root) {
        let cache = field("", "memory.stat", "inactive_file");
        return Usage {
            cpu_seconds: field("", "cpu.stat", "usage_usec") as f64 / 1e6,
            memory_bytes: number("", "memory.current").saturating_sub(cache),
            memory_peak_bytes: number("", "memory.peak"),
        };
    }
    let cache = field("memory", "memory.stat", "total_inactive_file");
    Usage {
        cpu_seconds: number("cpuacct", "cpuacct.usage") as f64 / 1e9,
        memory_bytes: number("memory", "memory.usage_in_bytes").saturating_sub(cache),
        memory_peak_bytes: number("memory", "memory.max_usage_in_bytes"),
    }
}

/// Lets all that runs in a node's groups write to a disk at most so often a second; `None` ends that. Groups that are made
/// later are not held to it.
pub fn limit_writes(path: &str, device: &str, a_second: Option<u32>) -> Result<()> {
    let (tree, file, limit) = match is_version_2(Path::new(ROOT)) {
        true => ("", "io.max", a_second.map_or("wiops=max".into(), |n| format!("wiops={n}"))),
        // 0 is no limit there.
        false => ("blkio", "blkio.throttle.write_iops_device", a_second.unwrap_or_default().to_string()),
    };
    let top = Path::new(ROOT).join(tree).join(path.trim_start_matches('/'));
    let set = |group: &Path| at(group, fs::write(group.join(file), format!("{device} {limit}")));
    set(&top)?;
    // On version 1 a group's limit is not its children's.
    for group in groups_below(&top) {
        let _ = set(&group); // it may have ended meanwhile
    }
    Ok(())
}

fn groups_below(group: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(group).into_iter().flatten().filter_map(Result::ok);
    let children = entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path());
    children.flat_map(|child| [groups_below(&child), vec![child]].concat()).collect()
}

/// Removes the node's groups with all below, in every tree. What still runs in them is killed: nothing but the machine ever
/// does, and a runc that was killed at the wrong moment may have left a part of it.
pub async fn remove(path: &str) -> Result<()> {
    let deadline = Instant::now() + EMPTY_WITHIN;
    for group in trees().iter().map(|t| t.join(path.trim_start_matches('/'))) {
        while let Err(error) = remove_group(&group) {
            if Instant::now() > deadline {
                return at(&group, Err(error));
            }
            kill_members(&group);
            // There is no event when a group of version 1 becomes empty: look again.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    Ok(())
}

fn kill_members(group: &Path) {
    for pid in members(group) {
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL);
    }
}

/// Every process of a node, by its number outside.
pub fn processes(path: &str) -> Vec<i32> {
    // A process is in every tree; one that has some of them is enough.
    let groups = trees().into_iter().map(|tree| tree.join(path.trim_start_matches('/')));
    groups.map(|group| members(&group)).max_by_key(Vec::len).unwrap_or_default()
}

fn members(group: &Path) -> Vec<i32> {
    let mut pids = own_members(group);
    for child in groups_below(group) {
        pids.extend(own_members(&child));
    }
    pids
}

fn own_members(group: &Path) -> Vec<i32> {
    let listed = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    // 0 stands for a process that cannot be seen from here, and to `kill` for ourselves.
    listed.lines().filter_map(|l| l.parse::<i32>().ok()).filter(|pid| *pid > 1).collect()
}

/// Removes the lab's group, and the one of all labs if this was the last.
pub fn remove_lab(lab: &str) {
    for tree in trees() {
        let labs = tree.join(SEEDLING);
        let _ = remove_group(&labs.join(lab));
        let _ = fs::remove_dir(&labs); // refused while another lab is in it
    }
}

/// Deepest first: a group can be removed when it has no children. Its files go with it.
fn remove_group(group: &Path) -> std::io::Result<()> {
    let entries = match fs::read_dir(group) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e),
    };
    for entry in entries.filter_map(Result::ok) {
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            remove_group(&entry.path())?;
        }
    }
    match fs::remove_dir(group) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn file(root: &Path, path: &str, contents: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }

    #[test]
    fn both_versions_are_read() {
        let v1 = tempfile::tempdir().unwrap();
        file(v1.path(), "cpuacct/cgroup.procs", "");
        file(v1.path(), "unified/cgroup.procs", "");
        file(v1.path(), "cpuacct/seedling/a/n/cpuacct.usage", "1500000000\n");
        file(v1.path(), "memory/seedling/a/n/memory.usage_in_bytes", "100\n");
        file(v1.path(), "memory/seedling/a/n/memory.stat", "inactive_file 7\ntotal_inactive_file 40\n");
        file(v1.path(), "memory/seedling/a/n/memory.max_usage_in_bytes", "120\n");
        let trees: Vec<_> =
            trees_below(v1.path()).iter().map(|t| t.file_name().unwrap().to_owned()).collect();
        assert_eq!(trees, ["cpuacct", "unified"]);
        let want = Usage { cpu_seconds: 1.5, memory_bytes: 60, memory_peak_bytes: 120 };
        assert_eq!(usage_below(v1.path(), &path_of("a", "n")), want);

        let v2 = tempfile::tempdir().unwrap();
        file(v2.path(), "cgroup.controllers", "cpu memory\n");
        file(v2.path(), "seedling/a/n/cpu.stat", "usage_usec 1500000\nuser_usec 3\n");
        file(v2.path(), "seedling/a/n/memory.current", "100\n");
        file(v2.path(), "seedling/a/n/memory.stat", "anon 1\ninactive_file 40\n");
        file(v2.path(), "seedling/a/n/memory.peak", "120\n");
        assert_eq!(trees_below(v2.path()), [v2.path()]);
        assert_eq!(usage_below(v2.path(), &path_of("a", "n")), want);
    }
}
