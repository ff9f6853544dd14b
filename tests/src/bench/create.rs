//! `create ignition-configs` from an install-config in an empty directory: seconds and memory, against a recorded peer.

use super::{Conditions, rounded};
use anyhow::{Result, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use serde::Serialize;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// The recorded case `base`.
const CONFIG: &str = include_str!("../../../crates/assets/tests/data/base/install-config.yaml");
const PEER: &str = "openshift-install 5.0.0 (commit 1966debed), recorded on an idle machine with 2 cores: the same install-config, an \
                    empty directory, five runs; not measured here";
const PEER_SECONDS: [f64; 5] = [2.56, 1.90, 2.12, 1.99, 2.37];
/// The least of 158 to 161 MB.
const PEER_PEAK_BYTES: u64 = 158_000_000;

/// Seconds are medians.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    ours: f64,
    peer: f64,
    /// ours / peer; at most a tenth is wanted.
    ratio: f64,
    ours_peak_bytes: u64,
    peer_peak_bytes: u64,
    /// At most a fifth is wanted.
    memory_ratio: f64,
    peer_recorded: &'static str,
    runs: Vec<f64>,
    peer_runs: [f64; 5],
    key_algorithm: &'static str,
    conditions: Conditions,
}

pub(crate) fn measure(
    seedling: &Path,
    release: &Path,
    runs: usize,
    conditions: Conditions,
) -> Result<Report> {
    let mut seconds = Vec::new();
    for _ in 0..runs.max(5) {
        let dir = tempfile::tempdir()?;
        std::fs::write(dir.path().join("install-config.yaml"), CONFIG)?;
        let clock = Instant::now();
        let mut create = Command::new(seedling);
        create.args(["create", "ignition-configs", "--dir"]).arg(dir.path()).arg("--release").arg(release);
        let status = create.stderr(Stdio::null()).status()?;
        seconds.push((clock.elapsed().as_secs_f64() * 1000.0).round() / 1000.0);
        ensure!(
            status.success() && dir.path().join("bootstrap.ign").exists(),
            "create ignition-configs failed"
        );
    }
    // Of the largest child so far: nothing else was started before.
    let kilobytes = u64::try_from(getrusage(UsageWho::RUSAGE_CHILDREN)?.max_rss()).unwrap_or_default();
    let (ours, peer) = (median(&seconds), median(&PEER_SECONDS));
    let peak = kilobytes * 1024;
    Ok(Report {
        ours,
        peer,
        ratio: (ours / peer * 1000.0).round() / 1000.0,
        ours_peak_bytes: peak,
        peer_peak_bytes: PEER_PEAK_BYTES,
        memory_ratio: rounded(peak as f64 / PEER_PEAK_BYTES as f64),
        peer_recorded: PEER,
        runs: seconds,
        peer_runs: PEER_SECONDS,
        key_algorithm: "the default, ecdsa-p256; the peer's is rsa-2048",
        conditions,
    })
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { ours, peer, ratio, memory_ratio, .. } = self;
        let peak = self.ours_peak_bytes / 1_000_000;
        write!(
            f,
            "create ignition-configs: {ours} s, {peak} MB; recorded peer {peer} s, 158 MB; ratios {ratio}, {memory_ratio}"
        )
    }
}
