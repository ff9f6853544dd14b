//! The OCI runtime config of a container machine: what makes a systemd in runc believe it has a machine of its own.

use crate::confine;
use crate::disk::Disk;
use crate::network::namespace_path;
use serde_json::{Value, json};
use std::path::Path;

/// Where PID 1 starts: see node/rootfs.
const PREINIT: &str = "/usr/local/sbin/preinit";

/// Directories of the node that live beside its disk and not on it: overlayfs refuses an upper layer on overlayfs, and
/// containerd makes one; etcd and the kubelet are spared the copying up.
pub const OWN_DIRECTORIES: &[(&str, &str)] =
    &[("containerd", "/var/lib/containerd"), ("etcd", "/var/lib/etcd"), ("kubelet", "/var/lib/kubelet")];

pub struct Parts<'a> {
    pub dir: &'a Path,
    pub namespace: &'a str,
    pub cgroup: &'a str,
    pub capabilities: &'a [&'static str],
    /// How many machines share what this one has.
    pub sharing: usize,
    /// Which addresses it asks for: ipv4, ipv6 or dual.
    pub stack: &'a str,
    /// Whether what pods say has a disk of its own.
    pub pod_logs: bool,
}

pub fn oci(parts: &Parts) -> Value {
    let caps = parts.capabilities;
    // `container` makes systemd leave hardware alone; `SHARING` and `STACK` are for preinit
    let mut env = vec![
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_string(),
        "container=oci".into(),
        "TERM=xterm".into(),
        "LANG=C.UTF-8".into(),
        format!("SHARING={}", parts.sharing),
    ];
    if parts.stack != "ipv4" {
        env.push(format!("STACK={}", parts.stack));
    }
    json!({
        "ociVersion": "1.0.2",
        "hostname": "localhost", // DHCP brings the name
        "root": { "path": parts.dir.join("root"), "readonly": false },
        "process": {
            "terminal": false,
            "user": { "uid": 0, "gid": 0 },
            "args": [PREINIT],
            "cwd": "/",
            "env": env,
            "capabilities": { "bounding": caps, "effective": caps, "permitted": caps },
            // no rlimits: raising them needs CAP_SYS_RESOURCE, which not every machine gives
            "noNewPrivileges": false,
        },
        "mounts": mounts(parts.dir, parts.pod_logs),
        "linux": {
            "cgroupsPath": parts.cgroup,
            "rootfsPropagation": "shared", // what kubelet and containerd mount must reach their containers
            "resources": { "devices": confine::device_rules() },
            "seccomp": confine::seccomp(),
            "maskedPaths": confine::MASKED,
            "readonlyPaths": confine::READ_ONLY,
            "devices": [
                { "path": "/dev/kmsg", "type": "c", "major": 1, "minor": 11, "fileMode": 0o644, "uid": 0, "gid": 0 },
                { "path": "/dev/fuse", "type": "c", "major": 10, "minor": 229, "fileMode": 0o666, "uid": 0, "gid": 0 },
            ],
            // The control-group namespace makes the node's own group the root of the tree it sees, on both versions.
            "namespaces": [
                { "type": "pid" }, { "type": "ipc" }, { "type": "uts" }, { "type": "mount" }, { "type": "cgroup" },
                { "type": "network", "path": namespace_path(parts.namespace) },
            ],
        },
    })
}

fn mounts(dir: &Path, pod_logs: bool) -> Vec<Value> {
    let tmpfs = |to: &str, options: &[&str]| json!({ "destination": to, "type": "tmpfs", "source": "tmpfs", "options": options });
    let kernel = |to: &str, kind: &str, options: &[&str]| json!({ "destination": to, "type": kind, "source": kind, "options": options });
    let mut mounts = vec![
        kernel("/proc", "proc", &["nosuid", "noexec", "nodev"]),
        tmpfs("/dev", &["nosuid", "strictatime", "mode=755", "size=65536k"]),
        kernel(
            "/dev/pts",
            "devpts",
            &["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"],
        ),
        tmpfs("/dev/shm", &["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"]),
        kernel("/dev/mqueue", "mqueue", &["nosuid", "noexec", "nodev"]),
        kernel("/sys", "sysfs", &["nosuid", "noexec", "nodev"]),
        // runc mounts version 1 or 2, whichever the machine has
        kernel("/sys/fs/cgroup", "cgroup", &["nosuid", "noexec", "nodev", "rw"]),
        tmpfs("/run", &["nosuid", "nodev", "mode=755"]),
        tmpfs("/tmp", &["nosuid", "nodev", "mode=1777"]),
    ];
    mounts.extend(confine::WHOLE.iter().map(|(to, kind)| kernel(to, kind, &["nosuid", "noexec", "nodev"])));
    let logs = (Disk::PodLogs.directory(), Disk::PodLogs.path());
    mounts.extend(OWN_DIRECTORIES.iter().chain(pod_logs.then_some(&logs)).map(|(from, to)| {
        json!({ "destination": to, "type": "bind", "source": dir.join(from), "options": ["rbind", "rw"] })
    }));
    mounts
}

/// Capability names by bit.
#[rustfmt::skip]
const CAPABILITIES: [&str; 41] = [
    "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_SETGID",
    "CAP_SETUID", "CAP_SETPCAP", "CAP_LINUX_IMMUTABLE", "CAP_NET_BIND_SERVICE", "CAP_NET_BROADCAST", "CAP_NET_ADMIN",
    "CAP_NET_RAW", "CAP_IPC_LOCK", "CAP_IPC_OWNER", "CAP_SYS_MODULE", "CAP_SYS_RAWIO", "CAP_SYS_CHROOT",
    "CAP_SYS_PTRACE", "CAP_SYS_PACCT", "CAP_SYS_ADMIN", "CAP_SYS_BOOT", "CAP_SYS_NICE", "CAP_SYS_RESOURCE",
    "CAP_SYS_TIME", "CAP_SYS_TTY_CONFIG", "CAP_MKNOD", "CAP_LEASE", "CAP_AUDIT_WRITE", "CAP_AUDIT_CONTROL",
    "CAP_SETFCAP", "CAP_MAC_OVERRIDE", "CAP_MAC_ADMIN", "CAP_SYSLOG", "CAP_WAKE_ALARM", "CAP_BLOCK_SUSPEND",
    "CAP_AUDIT_READ", "CAP_PERFMON", "CAP_BPF", "CAP_CHECKPOINT_RESTORE",
];

/// Everything we have ourselves (runc cannot give more), but for what is withheld. `status` is /proc/self/status.
pub fn capabilities(status: &str) -> Vec<&'static str> {
    let mask = status.lines().find_map(|l| l.strip_prefix("CapEff:"));
    let mask = mask.and_then(|m| u64::from_str_radix(m.trim(), 16).ok()).unwrap_or_default();
    let held = CAPABILITIES.iter().enumerate().filter(|(bit, _)| mask >> bit & 1 == 1);
    held.map(|(_, name)| *name).filter(|name| !confine::is_withheld(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_follow_our_own() {
        let caps = capabilities("Name:\tx\nCapEff:\t000001fffeffffff\n");
        assert_eq!(caps.len(), 41 - 13 - 1, "all but the withheld and the missing CAP_SYS_RESOURCE");
        assert!(!caps.contains(&"CAP_SYS_RESOURCE") && caps.contains(&"CAP_BPF"));
        assert!(capabilities("").is_empty());
    }

    #[test]
    fn the_config_names_the_nodes_own_places() {
        let parts = Parts {
            dir: Path::new("/n"),
            namespace: "seedling-a-m",
            cgroup: "/seedling/a/m",
            capabilities: &[],
            sharing: 3,
            stack: "ipv4",
            pod_logs: false,
        };
        let config = oci(&parts);
        assert_eq!(config["linux"]["namespaces"][5]["path"], "/run/netns/seedling-a-m");
        assert_eq!(config["linux"]["cgroupsPath"], "/seedling/a/m");
        assert_eq!(config["process"]["env"][4], "SHARING=3");
        let sources: Vec<_> =
            config["mounts"].as_array().into_iter().flatten().filter_map(|m| m["source"].as_str()).collect();
        assert!(sources.contains(&"/n/etcd") && !sources.contains(&"/n/pod-logs"));
        let config = oci(&Parts { pod_logs: true, ..parts });
        let last = config["mounts"].as_array().and_then(|mounts| mounts.last());
        assert_eq!(
            last.map(|m| (&m["source"], &m["destination"])),
            Some((&json!("/n/pod-logs"), &json!("/var/log/pods")))
        );
    }
}
