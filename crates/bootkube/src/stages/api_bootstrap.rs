//! Stage 2: the kinds the cluster's own API will know.

use super::{names, parsed, release_manifests};
use crate::error::{ensure, in_file};
use crate::{Context, Outcome, Result};
use seedling_steps::Stage;
use serde_json::{Value, json};

pub(crate) const STAGE: Stage = Stage {
    name: "api-bootstrap",
    done: Some("api-bootstrap"),
    what: "Takes the release's CustomResourceDefinitions into manifests/ and writes the feature gate's status.",
    why: "operators keep their settings in kinds of their own, which must exist before their objects",
    reads: &["release-manifests/*.crd.yaml", "manifests/99_feature-gate.yaml", "release.json"],
    writes: &["manifests/*.crd.yaml", "manifests/99_feature-gate.yaml (status)"],
    check: "the release's CustomResourceDefinitions are in manifests/, and the feature gate has a status for the release",
    fails: &[
        "`the release image was not unpacked`: release-image.service has not ended; journalctl -u release-image.service",
    ],
    upstream: "podman run … cluster-config-api render --asset-output-dir /assets/api-bootstrap, then cp api-bootstrap/manifests/* manifests/",
    see: &["component.release-image", "seed.003.2", "component.cluster-version-operator"],
};

pub(crate) async fn run(c: &Context) -> Result<Outcome> {
    for name in crds(c)? {
        let crd = c.read(&format!("release-manifests/{name}"))?;
        c.write(&c.dir("manifests").join(&name), crd, 0o644)?;
    }
    const GATE: &str = "manifests/99_feature-gate.yaml";
    let mut gate: Value = serde_saphyr::from_str(&c.read(GATE)?).map_err(in_file(GATE))?;
    gate["status"]["featureGates"] = json!([{"version": c.release.version, "enabled": [], "disabled": []}]);
    c.manifest("99_feature-gate.yaml", &gate)?;
    Ok(Outcome::Done)
}

fn crds(c: &Context) -> Result<Vec<String>> {
    let mut names = release_manifests(c)?;
    names.retain(|name| name.contains(".crd."));
    Ok(names)
}

/// The CRDs are large: cb-bootstrap is the one that parses them.
pub(crate) async fn check(c: &Context) -> Result<()> {
    let there = names(&c.dir("manifests"))?;
    let missing: Vec<_> = crds(c)?.into_iter().filter(|name| !there.contains(name)).collect();
    ensure!(missing.is_empty(), "manifests/ lacks {}", missing.join(", "));
    let gate = parsed(&c.dir("manifests/99_feature-gate.yaml"))?;
    let version = &gate["status"]["featureGates"][0]["version"];
    ensure!(*version == c.release.version.as_str(), "the feature gate's status is for version {version}");
    Ok(())
}
