//! Can this machine run a lab? Everything that is missing is said at once, with what to do about it.

use nix::sys::statfs::{OVERLAYFS_SUPER_MAGIC, statfs};
use seedling_checks::{Check, Finding, Outcome};
use serde::Serialize;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

const GB: u64 = 1 << 30;
const MEMORY_NEEDED: u64 = 6 * GB;
const DISK_NEEDED: u64 = 10 * GB;
/// Program → Debian package.
const TOOLS: [(&str, &str); 7] = [
    ("runc", "runc"),
    ("ip", "iproute2"),
    ("nsenter", "util-linux"),
    ("unshare", "util-linux"),
    ("setsid", "util-linux"),
    ("setpriv", "util-linux"),
    ("mount", "mount"),
];
/// Makes the node image; `release load` brings one.
const IMAGE_TOOL: (&str, &str) = ("debootstrap", "debootstrap");
/// Kernel modules nodes cannot load themselves; where they are built in, there is nothing to load.
const MODULES: [&str; 4] = ["overlay", "br_netfilter", "nf_conntrack", "vxlan"];

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    pub problem: String,
    pub remedy: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.problem, self.remedy)
    }
}

/// What was seen of the machine.
#[derive(Clone, Debug)]
pub struct Facts {
    pub root: bool,
    pub missing_tools: Vec<(&'static str, &'static str)>,
    pub memory_available: u64,
    pub disk_free: u64,
    pub overlayfs: bool,
    /// The state directory lies on overlayfs itself, as in most containers.
    pub state_on_overlayfs: bool,
    pub state: PathBuf,
}

pub fn gather(state: &Path, image_is_there: bool) -> Facts {
    let there = state.ancestors().find(|p| p.exists()).unwrap_or(Path::new("/"));
    let stat = statfs(there).ok();
    Facts {
        root: nix::unistd::geteuid().is_root(),
        missing_tools: TOOLS
            .into_iter()
            .chain((!image_is_there).then_some(IMAGE_TOOL))
            .filter(|(tool, _)| !on_path(tool))
            .collect(),
        memory_available: memory_available(&fs::read_to_string("/proc/meminfo").unwrap_or_default()),
        disk_free: stat.map_or(0, |s| s.blocks_available() * s.block_size().unsigned_abs()),
        overlayfs: fs::read_to_string("/proc/filesystems").is_ok_and(|f| f.contains("\toverlay\n")),
        state_on_overlayfs: stat.is_some_and(|s| s.filesystem_type() == OVERLAYFS_SUPER_MAGIC),
        state: state.into(),
    }
}

const fn check(name: &'static str, what: &'static str, why: &'static str, next: &'static str) -> Check {
    Check { name, subject: "A lab on this machine", what, why, next }
}

const ROOT: Check = check(
    "lab-root",
    "is this root?",
    "only root can make network namespaces and mounts",
    "run it with sudo",
);
const PROGRAMS: Check = check(
    "lab-programs",
    "are the programs there that make machines and networks?",
    "machines are containers, and their network is made with iproute2",
    "install the missing packages: apt-get install runc iproute2 util-linux mount debootstrap",
);
const MEMORY: Check = check(
    "lab-memory",
    "are 6 GB of memory available?",
    "four machines with a control plane each use that much",
    "end other programs, or take a larger machine",
);
const ROOM: Check = check(
    "lab-disk",
    "are 10 GB free where labs are kept?",
    "each machine has a disk there",
    "make room, or set SEEDLING_STATE to another disk",
);
const OVERLAYFS: Check = check(
    "lab-overlayfs",
    "has the kernel overlayfs?",
    "machines' disks and containers' images are layers",
    "modprobe overlay",
);
const REAL_DISK: Check = check(
    "lab-state",
    "do labs lie on a real file system?",
    "an overlay cannot lie on another overlay",
    "set SEEDLING_STATE to a directory on a real file system or a volume",
);

/// In the order in which they are shown.
pub const CHECKS: &[Check] = &[ROOT, PROGRAMS, MEMORY, ROOM, OVERLAYFS, REAL_DISK];

/// One for each check, as `seedling preflight --lab` shows them.
pub fn findings(facts: &Facts) -> Vec<Finding> {
    let (mut tools, mut packages): (Vec<_>, Vec<_>) = facts.missing_tools.iter().copied().unzip();
    tools.sort_unstable();
    packages.sort_unstable();
    packages.dedup();
    let state = facts.state.display();
    let judge = |check: &Check, wrong: Option<String>, well: String, hand: String| {
        Finding::of(check, "", well, wrong.into_iter().collect()).seen("", hand)
    };
    let (memory, room) = (gb(facts.memory_available), gb(facts.disk_free));
    vec![
        judge(&ROOT, (!facts.root).then(|| ROOT.why.into()), "root".into(), "id -u".into()),
        judge(
            &PROGRAMS,
            (!tools.is_empty()).then(|| format!("missing: {}", tools.join(", "))),
            "all are there".into(),
            "command -v runc ip nsenter unshare setsid setpriv mount".into(),
        )
        .or_next(|| format!("apt-get install {}", packages.join(" "))),
        judge(
            &MEMORY,
            (facts.memory_available < MEMORY_NEEDED)
                .then(|| format!("{memory} of memory are available, {} are needed", gb(MEMORY_NEEDED))),
            format!("{memory} are available"),
            "free -h".into(),
        ),
        judge(
            &ROOM,
            (facts.disk_free < DISK_NEEDED)
                .then(|| format!("{room} are free in {state}, {} are needed", gb(DISK_NEEDED))),
            format!("{room} are free in {state}"),
            format!("df -h {state}"),
        ),
        judge(
            &OVERLAYFS,
            (!facts.overlayfs).then(|| "the kernel has no overlayfs".into()),
            "the kernel has it".into(),
            "grep overlay /proc/filesystems".into(),
        ),
        judge(
            &REAL_DISK,
            facts
                .state_on_overlayfs
                .then(|| format!("{state} lies on overlayfs, which cannot hold the nodes' disks")),
            format!("{state} does"),
            format!("stat -f -c %T {state}"),
        ),
    ]
}

/// What `lab up` refuses for.
pub fn refusals(facts: &Facts) -> Vec<Refusal> {
    let failed = findings(facts).into_iter().filter(|finding| finding.result == Outcome::Failed);
    failed.map(|finding| Refusal { remedy: finding.next().into(), problem: finding.says }).collect()
}

/// Before looking: a kernel with modules shows overlayfs only once it is loaded.
pub fn load_modules() {
    // Not there, built in, or not allowed: what is really missing shows in the facts.
    let _ = std::process::Command::new("modprobe").arg("-aq").args(MODULES).output();
}

fn on_path(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(system).any(|dir| dir.join(tool).is_file())
}

fn memory_available(meminfo: &str) -> u64 {
    let line = meminfo.lines().find_map(|l| l.strip_prefix("MemAvailable:"));
    let kilobytes: Option<u64> = line.and_then(|l| l.trim().trim_end_matches(" kB").parse().ok());
    kilobytes.unwrap_or_default() * 1024
}

fn gb(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / GB as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Facts {
        Facts {
            root: true,
            missing_tools: Vec::new(),
            memory_available: 8 * GB,
            disk_free: 20 * GB,
            overlayfs: true,
            state_on_overlayfs: false,
            state: "/var/lib/seedling".into(),
        }
    }

    #[test]
    fn a_good_machine_is_not_refused() {
        assert_eq!(refusals(&good()), []);
    }

    #[test]
    fn everything_is_said_at_once() {
        let bad = Facts {
            root: false,
            missing_tools: vec![("unshare", "util-linux"), ("runc", "runc"), ("nsenter", "util-linux")],
            memory_available: GB,
            disk_free: GB,
            overlayfs: false,
            state_on_overlayfs: true,
            state: "/s".into(),
        };
        let said: Vec<_> = refusals(&bad).iter().map(ToString::to_string).collect();
        assert_eq!(said.len(), 6);
        assert_eq!(said[1], "missing: nsenter, runc, unshare; apt-get install runc util-linux");
        assert!(said[2].starts_with("1.0 GB of memory are available, 6.0 GB are needed"));
    }

    #[test]
    fn meminfo_is_read() {
        assert_eq!(memory_available("MemTotal: 9 kB\nMemAvailable:   2048 kB\n"), 2 << 20);
    }
}
