//! Stage 2: the kinds the cluster's own API will know.

use crate::{Context, Outcome};
use anyhow::{Context as _, Result};
use seedling_steps::Stage;
use serde_json::{Value, json};

pub const STAGE: Stage = Stage {
    name: "api-bootstrap",
    done: Some("api-bootstrap"),
    why: "operators keep their settings in kinds of their own, which must exist before their objects",
    reads: &["release-manifests/*.crd.yaml", "manifests/99_feature-gate.yaml", "release.json"],
    writes: &["manifests/*.crd.yaml", "manifests/99_feature-gate.yaml (status)"],
    check: "the release's CustomResourceDefinitions are in manifests/",
};

pub async fn run(c: &Context) -> Result<Outcome> {
    for entry in
        std::fs::read_dir(c.dir("release-manifests")).context("the release image was not unpacked")?
    {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.contains(".crd.") {
            c.write(&c.dir("manifests").join(&name), std::fs::read(&path)?, 0o644)?;
        }
    }
    let mut gate: Value = serde_saphyr::from_str(&c.read("manifests/99_feature-gate.yaml")?)?;
    gate["status"]["featureGates"] = json!([{"version": c.release.version, "enabled": [], "disabled": []}]);
    c.manifest("99_feature-gate.yaml", &gate)?;
    Ok(Outcome::Done)
}
