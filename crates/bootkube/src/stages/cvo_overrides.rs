//! Stage 18: the version operator may manage again what the installer had reserved while it created it.

use crate::error::{ensure, in_file};
use crate::{Context, Error, Outcome, Result, conditions};
use kube::api::{Api, Patch, PatchParams};
use seedling_api::ClusterVersion;
use seedling_steps::{Awaited, Condition, Stage, wait_for};
use seedling_types::ports;
use serde_json::Value;
use std::time::Duration;

pub(crate) const STAGE: Stage = Stage {
    name: "cvo-overrides",
    done: Some("cvo-overrides"),
    what: "Gives ClusterVersion back the overrides that were set aside while the installer's objects were created.",
    why: "while both create objects, the installer's must win; from now on the version operator looks after them",
    reads: &["original_cvo_overrides.patch", "auth/kubeconfig"],
    writes: &["ClusterVersion version, spec.overrides"],
    check: "ClusterVersion version, asked through the load balancer, has as many overrides as the patch",
    fails: &[
        "the API is asked through the load balancer from here on: if it does not answer, look at api-int first",
    ],
    upstream: "oc patch clusterversion.config.openshift.io version --type merge --patch-file original_cvo_overrides.patch",
    see: &["component.cluster-version-operator", "condition.overrides-taken", "seed.003.14"],
};

fn patch(c: &Context) -> Result<Value> {
    serde_json::from_str(&c.read("original_cvo_overrides.patch")?).map_err(in_file("the patch"))
}

fn condition(c: &Context, awaited: &'static Awaited) -> Condition {
    let hint = format!("curl -k 'https://{}:{}/readyz?verbose'", c.config.domain.api_int(), ports::API);
    Condition::new(awaited, Duration::from_secs(600), hint)
}

pub(crate) async fn run(c: &Context) -> Result<Outcome> {
    println!("Restoring CVO overrides");
    let patch = patch(c)?;
    let client = seedling_cluster::connect(Some(&c.kubeconfig())).await?;
    let condition = condition(c, &conditions::OVERRIDES_TAKEN);
    wait_for(&condition, Duration::from_millis(500), async || {
        let api: Api<ClusterVersion> = Api::all(client.clone());
        api.patch("version", &PatchParams::default(), &Patch::Merge(&patch)).await.into()
    })
    .await?;
    Ok(Outcome::Done)
}

/// One question. It is asked again only while nobody answers, since the load balancer has just lost a server.
pub(crate) async fn check(c: &Context) -> Result<()> {
    let client = seedling_cluster::connect(Some(&c.kubeconfig())).await?;
    let condition = condition(c, &conditions::VERSION_READ);
    let version = wait_for(&condition, Duration::from_millis(500), async || {
        seedling_cluster::get::<ClusterVersion>(&client, None, "version").await.into()
    });
    let version = version.await?.ok_or_else(|| Error::Seen("there is no ClusterVersion version".into()))?;
    let has = version.spec.and_then(|spec| spec.overrides).map_or(0, |overrides| overrides.len());
    let wanted = patch(c)?["spec"]["overrides"].as_array().map_or(0, Vec::len);
    ensure!(has == wanted, "it has {has} overrides instead of {wanted}");
    Ok(())
}
