//! The machine-config operator: pools, rendered configs, the server that hands them out, and what Nodes say of them.
//!
//! In: MachineConfigs, pools and the ControllerConfig (bootkube made the first of each), the inventory, Scheduler `cluster`.
//! Out: rendered MachineConfigs, the DaemonSet of the server, labels and annotations of Nodes, ClusterOperator
//! `machine-config`, which is available only when every master can hand out the masters' config.

mod answers;
mod nodes;
mod pools;
mod tell;

pub use nodes::label_nodes;

use anyhow::Context;
use kube::Client;
use nodes::Wanted;
use seedling_api::{DaemonSet, Infrastructure, Meta, Scheduler};
use seedling_cluster::follow::{Selection, follow};
use seedling_cluster::manifest;
use seedling_components::machine_config::{SERVER, server_daemon_set};
use seedling_types::names::NS_MCO;
use std::time::Duration;
use tokio::sync::watch;

const MANAGER: &str = "machine-config-operator";
/// After a failed write; the API server may be on its way out.
const RETRY: Duration = Duration::from_millis(500);

pub async fn run(client: Client) -> anyhow::Result<()> {
    let variable = |name: &str| std::env::var(name).with_context(|| format!("{name} is not set"));
    operate(client, variable("RELEASE_VERSION")?, variable("SEEDLING_IMAGE")?).await;
    Ok(())
}

pub async fn operate(client: Client, version: String, image: String) {
    let inventory = crate::inventory::wait(&client).await;
    let wanted = watch::Sender::new(Wanted::default());
    let rendered = watch::Sender::new(Err("not rendered yet".to_string()));
    let answers = watch::Sender::new(answers::Answers::new());
    let serving = async {
        let api_server = api_server(&client).await;
        tokio::join!(
            keep_server(&client, &image, &api_server),
            answers::ask_masters(&client, &inventory, &api_server, &answers)
        );
    };
    tokio::select! {
        () = nodes::dress_nodes(&client, &inventory, wanted.subscribe()) => {}
        () = follow_scheduler(&client, &wanted) => {}
        () = pools::keep_rendered(&client, &version, &wanted, &rendered) => {}
        () = serving => {}
        () = tell::tell(&client, &version, &inventory, answers.subscribe(), rendered.subscribe()) => {}
    }
}

async fn follow_scheduler(client: &Client, wanted: &watch::Sender<Wanted>) {
    let mut scheduler = follow::<Scheduler>(client, Selection::one(None, "cluster"));
    loop {
        let seen = scheduler.next().await.one();
        let schedulable = seen.map(|s| s.spec.as_ref().is_some_and(|spec| spec.masters_schedulable));
        wanted
            .send_if_modified(|w| std::mem::replace(&mut w.masters_schedulable, schedulable) != schedulable);
    }
}

/// `https://api-int.CD:6443`, from Infrastructure `cluster`.
async fn api_server(client: &Client) -> String {
    let mut infrastructure = follow::<Infrastructure>(client, Selection::one(None, "cluster"));
    loop {
        let status = infrastructure.next().await.one().and_then(|seen| seen.status.clone());
        if let Some(url) = status.map(|s| s.api_server_internal_uri).filter(|url| !url.is_empty()) {
            return url;
        }
        tracing::info!("waiting for Infrastructure cluster");
    }
}

/// Applied at the start and whenever somebody changes or removes it.
async fn keep_server(client: &Client, image: &str, api_server: &str) {
    let mut live = follow::<DaemonSet>(client, Selection::one(Some(NS_MCO), SERVER));
    let mut ours = None;
    loop {
        let seen = live.now();
        let generation = seen.one().and_then(|d| d.generation());
        if seen.synced && (ours.is_none() || generation != ours) {
            match manifest::apply(client, MANAGER, &server_daemon_set(image, api_server)).await {
                Ok(applied) => ours = applied["metadata"]["generation"].as_i64(),
                Err(e) => {
                    tracing::warn!("{e}");
                    tokio::time::sleep(RETRY).await;
                    continue;
                }
            }
        }
        let _ = live.state.changed().await;
    }
}
