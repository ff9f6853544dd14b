//! Stage 19: the masters serve machine configs now.

use crate::{Context, Outcome};
use anyhow::{Result, ensure};
use seedling_steps::Stage;
use seedling_types::paths;
use std::path::PathBuf;

pub const STAGE: Stage = Stage {
    name: "stop-machine-config-server",
    done: Some("stop-machine-config-server"),
    why: "two servers with different ideas of a pool would hand out different nodes",
    reads: &[],
    writes: &["/etc/kubernetes/manifests/machineconfigoperator-bootstrap-pod.yaml (removed)"],
    check: "the manifest is gone",
};

fn manifest(c: &Context) -> PathBuf {
    c.path(paths::STATIC_PODS).join("machineconfigoperator-bootstrap-pod.yaml")
}

pub async fn run(c: &Context) -> Result<Outcome> {
    match std::fs::remove_file(manifest(c)) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e.into()),
        _ => Ok(Outcome::Done),
    }
}

pub async fn check(c: &Context) -> Result<()> {
    ensure!(!manifest(c).exists(), "{} is still there", manifest(c).display());
    Ok(())
}
