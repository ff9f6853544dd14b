//! progress.service: reports to the cluster, and to everyone who waits, that bootstrapping is complete.

use crate::{Context, Result, conditions};
use seedling_api::{KubeApiServer, StaticPodOperator, config_map};
use seedling_cluster::{create_if_missing, get};
use seedling_steps::{Condition, Probe, Recorder, wait_for};
use std::path::Path;
use std::time::Duration;

const WAIT: &str = "wait-for-bootstrap-complete";
const REPORT: &str = "report-bootstrap-complete";

pub async fn report_progress(root: &Path) -> Result<()> {
    let context = Context::load(root)?;
    let recorder = Recorder::start(root, "progress")?;
    let worked = work(&context, &recorder).await;
    recorder.service_end(worked.as_ref().err().map(ToString::to_string))?;
    worked
}

async fn work(c: &Context, recorder: &Recorder) -> Result<()> {
    recorder.stage_start(WAIT)?;
    let done = c.dir(".bootkube.done");
    let condition = Condition::within(
        &conditions::BOOTKUBE_DONE,
        // bootkube has its own deadlines and says more; this one only must not be the first to give up.
        Duration::from_secs(4 * 3600),
        "journalctl -n 50 -u bootkube.service",
    )
    .on(&c.node)
    .quiet();
    let waited = wait_for(&condition, Duration::from_millis(250), async || match done.exists() {
        true => Probe::Met(()),
        false => Probe::Unmet(c.journal.summary_of("bootkube")),
    });
    waited.await?;
    recorder.stage_end(WAIT, None)?;

    recorder.stage_start(REPORT)?;
    let client = seedling_cluster::connect(Some(&c.kubeconfig())).await?;
    let replicas = c.config.control_plane_replicas;
    let condition = Condition::new(
        &conditions::HIGHLY_AVAILABLE,
        Duration::from_secs(1800),
        format!("kubectl --kubeconfig={} get kubeapiserver cluster -o yaml", c.kubeconfig().display()),
    );
    wait_for(&condition, Duration::from_millis(250), async || match report(&client, replicas).await {
        Ok(None) => Probe::Met(()),
        Ok(Some(unmet)) => Probe::Unmet(unmet),
        Err(e) => Probe::Unmet(e.to_string()),
    })
    .await?;
    c.write(&c.dir(".progress.done"), "", 0o644)?;
    println!("Reporting bootstrap as complete");
    recorder.stage_end(REPORT, None)?;
    Ok(())
}

async fn report(client: &kube::Client, replicas: u32) -> Result<Option<String>> {
    if replicas >= 3 {
        let servers = get::<KubeApiServer>(client, None, "cluster").await?;
        let ready = servers.map_or(0, |servers| servers.status().at_a_revision());
        if ready < 2 {
            return Ok(Some(format!("kube-apiserver runs on {ready} of 2 masters")));
        }
    }
    let data = [("status".to_string(), "complete".to_string())].into();
    create_if_missing(client, &config_map("kube-system", "bootstrap", data)).await?;
    Ok(None)
}
