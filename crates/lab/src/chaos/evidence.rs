//! What a person would ask for first after a bring-up that failed, lost something or took long, kept before its lab is removed.

use crate::Lab;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::process::Command;

/// Files beside the log, each beginning with `round-N-`. Whatever cannot be had is left out: the lab may be half gone.
pub(super) async fn keep(lab: &Lab, beside: impl Fn(&str) -> PathBuf) {
    let name = lab.record.spec.name.as_str();
    for host in &lab.record.spec.inventory.hosts {
        let journal = beside(&format!("{}.journal", host.name));
        ourselves(&["lab", "logs", "--name", name, "--journal", &host.name], &journal).await;
        if let Ok(machine) = lab.machine(&host.name) {
            // Also of containers that are gone.
            pod_logs(&machine.on_disk("/var/log"), &beside(&format!("{}-pods.tar.gz", host.name))).await;
        }
    }
    for file in [lab.dir.join("probe.json"), lab.probe_history()] {
        let _ = std::fs::copy(&file, beside(&file.file_name().unwrap_or_default().to_string_lossy()));
    }
    ourselves(&["lab", "journal", "--name", name], &beside("steps.txt")).await;
    for what in ["pods", "events", "clusteroperators"] {
        let ask = ["kubectl", "--lab", name, "get", what, "-A", "-o", "yaml", "--request-timeout=5s"];
        ourselves(&ask, &beside(&format!("{what}.yaml"))).await;
    }
}

async fn ourselves(args: &[&str], to: &Path) {
    let (Ok(program), Ok(file)) = (std::env::current_exe(), File::create(to)) else { return };
    let mut command = Command::new(program);
    let _ = command.args(args).stdin(Stdio::null()).stdout(file).stderr(Stdio::null()).status().await;
}

async fn pod_logs(log: &Path, to: &Path) {
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(log).arg("-czf").arg(to).arg("pods");
    let _ = tar.stdin(Stdio::null()).stderr(Stdio::null()).status().await;
}
