//! Under which conditions the figures were taken: they mean nothing elsewhere.

use seedling_types::ReleaseInfo;
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Conditions {
    /// RFC 3339, UTC.
    pub date: String,
    pub cores: usize,
    pub memory_bytes: u64,
    pub kernel: String,
    pub masters: u8,
    pub workers: u8,
    pub images: &'static str,
    pub clock: &'static str,
    pub versions: BTreeMap<String, String>,
}

impl Conditions {
    pub(crate) fn now(release: &ReleaseInfo) -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let mut versions = release.components.clone();
        versions.insert("kubeadm".into(), release.kubernetes_version.clone());
        Self {
            date: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory_bytes: memory(&read("/proc/meminfo")),
            kernel: read("/proc/sys/kernel/osrelease").trim().into(),
            masters: 3,
            workers: 0,
            images: "on every machine's disk before it is switched on",
            clock: "from switching the machines on",
            versions,
        }
    }
}

fn memory(meminfo: &str) -> u64 {
    let line = meminfo.lines().find_map(|l| l.strip_prefix("MemTotal:"));
    let kilobytes: Option<u64> = line.and_then(|l| l.trim().trim_end_matches(" kB").parse().ok());
    kilobytes.unwrap_or_default() * 1024
}

#[cfg(test)]
mod tests {
    #[test]
    fn meminfo_is_read() {
        assert_eq!(super::memory("MemTotal:   2048 kB\nMemFree: 1 kB\n"), 2 << 20);
    }
}
