//! Stage 18: the version operator may manage again what the installer had reserved while it created it.

use crate::{Context, Outcome};
use anyhow::{Context as _, Result};
use kube::api::{Api, Patch, PatchParams};
use seedling_api::ClusterVersion;
use seedling_steps::{Condition, Probe, Stage, wait_for};
use seedling_types::ports;
use serde_json::Value;
use std::time::Duration;

pub const STAGE: Stage = Stage {
    name: "cvo-overrides",
    done: Some("cvo-overrides"),
    why: "while both create objects, the installer's must win; from now on the version operator looks after them",
    reads: &["original_cvo_overrides.patch", "auth/kubeconfig"],
    writes: &["ClusterVersion version, spec.overrides"],
    check: "the patch was accepted through the load balancer",
};

pub async fn run(c: &Context) -> Result<Outcome> {
    println!("Restoring CVO overrides");
    let patch: Value = serde_json::from_str(&c.read("original_cvo_overrides.patch")?).context("the patch")?;
    let client = seedling_cluster::connect(Some(&c.kubeconfig())).await?;
    let condition = Condition::new(
        "ClusterVersion version to take the original overrides",
        Duration::from_secs(600),
        format!("curl -k 'https://{}:{}/readyz?verbose'", c.config.domain.api_int(), ports::API),
    );
    wait_for(&condition, Duration::from_millis(500), async || {
        let api: Api<ClusterVersion> = Api::all(client.clone());
        match api.patch("version", &PatchParams::default(), &Patch::Merge(&patch)).await {
            Ok(_) => Probe::Met(()),
            Err(e) => Probe::Unmet(e.to_string()),
        }
    })
    .await?;
    Ok(Outcome::Done)
}
