//! What a container machine may not do to the machine below.
//!
//! Root on a node has CAP_SYS_ADMIN without a user namespace, since the kubelet and containerd need it: who means harm still finds a way
//! out, and docs/security.md says so. What is closed here is what is tried first, and what happens by accident.

use crate::run::{Result, at};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::path::Path;

/// Kernel modules, the clock, raw I/O, files by handle (which need no path, so a container's root does not hold them back), attributes
/// that would outlive the lab, and what no namespace divides.
#[rustfmt::skip]
const WITHHELD: [&str; 13] = [
    "CAP_AUDIT_CONTROL", "CAP_AUDIT_READ", "CAP_BLOCK_SUSPEND", "CAP_DAC_READ_SEARCH", "CAP_LINUX_IMMUTABLE",
    "CAP_MAC_ADMIN", "CAP_MAC_OVERRIDE", "CAP_PERFMON", "CAP_SYS_MODULE", "CAP_SYS_PACCT", "CAP_SYS_RAWIO",
    "CAP_SYS_TIME", "CAP_WAKE_ALARM",
];

pub(crate) fn is_withheld(capability: &str) -> bool {
    WITHHELD.contains(&capability)
}

/// A device: kind, major, minor (`None`: all), what may be done to it.
type Device = (char, Option<u32>, Option<u32>, &'static str);

/// All that a node and its containers open. Any device may be made (runc says so for every container) but none of the others opened.
const DEVICES: [Device; 14] = [
    ('c', None, None, "m"),
    ('b', None, None, "m"),
    ('c', Some(1), Some(3), "rwm"),    // null
    ('c', Some(1), Some(5), "rwm"),    // zero
    ('c', Some(1), Some(7), "rwm"),    // full
    ('c', Some(1), Some(8), "rwm"),    // random
    ('c', Some(1), Some(9), "rwm"),    // urandom
    ('c', Some(1), Some(11), "rm"),    // kmsg: the kubelet looks for kills for want of memory
    ('c', Some(5), Some(0), "rwm"),    // tty
    ('c', Some(5), Some(1), "rwm"),    // console
    ('c', Some(5), Some(2), "rwm"),    // ptmx
    ('c', Some(136), None, "rwm"),     // pts
    ('c', Some(10), Some(200), "rwm"), // net/tun
    ('c', Some(10), Some(229), "rwm"), // fuse
];

/// For the OCI config: everything is denied, then these.
pub(crate) fn device_rules() -> Vec<Value> {
    let listed = DEVICES.iter().map(|(kind, major, minor, access)| {
        let mut rule = json!({ "allow": true, "type": kind, "access": access });
        for (name, number) in [("major", major), ("minor", minor)] {
            if let Some(number) = number {
                rule[name] = json!(number);
            }
        }
        rule
    });
    std::iter::once(json!({ "allow": false, "access": "rwm" })).chain(listed).collect()
}

/// The same, as the lines that version 1 of control groups takes.
fn device_lines() -> impl Iterator<Item = String> {
    let number = |n: &Option<u32>| n.map_or("*".into(), |n| n.to_string());
    DEVICES.iter().map(move |(kind, major, minor, access)| {
        format!("{kind} {}:{} {access}", number(major), number(minor))
    })
}

/// On version 1 a node could lift what holds for its own group, whose files it sees: so its lab's group is held to the same, and no group
/// can be given more than the one above. Before the lab's first machine; afterwards it changes nothing.
pub(crate) fn hold_devices(lab_group: &Path) -> Result<()> {
    at(lab_group, fs::create_dir_all(lab_group))?;
    // Machines are switched on side by side, and between the two writes none may be.
    let group = at(lab_group, File::open(lab_group))?;
    at(lab_group, group.lock())?;
    let list = lab_group.join("devices.list");
    if !at(&list, fs::read_to_string(&list))?.starts_with("a ") {
        return Ok(());
    }
    at(lab_group, fs::write(lab_group.join("devices.deny"), "a"))?;
    device_lines().try_for_each(|line| at(lab_group, fs::write(lab_group.join("devices.allow"), line)))
}

/// Calls that act on the whole machine, whatever namespaces say, and that nothing on a node makes.
#[rustfmt::skip]
const REFUSED_CALLS: [&str; 16] = [
    "acct", "delete_module", "finit_module", "init_module", "ioperm", "iopl", "kexec_file_load", "kexec_load",
    "lookup_dcookie", "nfsservctl", "open_by_handle_at", "perf_event_open", "quotactl", "swapoff", "swapon",
    "userfaultfd",
];

pub(crate) fn seccomp() -> Value {
    json!({
        "defaultAction": "SCMP_ACT_ALLOW",
        "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"],
        "syscalls": [{ "names": REFUSED_CALLS, "action": "SCMP_ACT_ERRNO", "errnoRet": 1 }],
    })
}

/// Shows memory, keys or hardware of the machine below.
#[rustfmt::skip]
pub(crate) const MASKED: [&str; 8] = [
    "/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/sched_debug", "/proc/scsi", "/proc/timer_list",
    "/sys/firmware", "/sys/kernel/debug",
];

/// A word written there makes the machine below run a program, or stop.
#[rustfmt::skip]
pub(crate) const READ_ONLY: [&str; 7] = [
    "/proc/bus", "/proc/irq", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hotplug",
    "/proc/sys/kernel/modprobe", "/proc/sysrq-trigger", "/sys/kernel/uevent_helper",
];

/// A pod with a user namespace may mount a /proc and a /sys of its own only where whole ones can be seen.
pub(crate) const WHOLE: [(&str, &str); 2] = [("/dev/.whole/proc", "proc"), ("/dev/.whole/sys", "sysfs")];

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn no_disk_can_be_opened() {
        let rules = device_rules();
        assert_eq!(rules[0], json!({ "allow": false, "access": "rwm" }), "the first denies all");
        let disks = rules[1..].iter().filter(|r| r["type"] == "b");
        assert!(disks.clone().count() == 1 && disks.clone().all(|r| r["access"] == "m"));
        assert!(
            rules[1..].iter().all(|r| r["major"].is_u64() || r["access"] == "m"),
            "all of a kind: made only"
        );
    }

    #[test]
    fn both_forms_say_the_same() {
        let lines: Vec<_> = device_lines().collect();
        assert!(lines.contains(&"b *:* m".into()) && lines.contains(&"c 136:* rwm".into()));
        assert_eq!(lines.len() + 1, device_rules().len());
    }

    #[test]
    fn a_lab_that_is_held_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("devices.list"), "c 1:3 rwm\n").unwrap();
        hold_devices(dir.path()).unwrap();
        assert!(!dir.path().join("devices.deny").exists());
        fs::write(dir.path().join("devices.list"), "a *:* rwm\n").unwrap();
        hold_devices(dir.path()).unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("devices.deny")).unwrap(), "a");
    }
}
