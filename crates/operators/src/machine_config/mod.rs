//! The machine-config operator: pools, rendered configs, the server that hands them out, and what Nodes say of them.
//!
//! In: MachineConfigs, pools and the ControllerConfig (bootkube made the first of each), the inventory, Scheduler `cluster`.
//! Out: rendered MachineConfigs, the DaemonSet of the server, labels and annotations of Nodes, ClusterOperator
//! `machine-config`, which is available only when every master can hand out the masters' config.

mod answers;
pub mod bootstrapper;
mod nodes;
mod pools;
pub mod server;
mod tell;

pub use nodes::label_nodes;
pub(crate) use server::{Caller, KnowCaller};
pub use server::{serve_bootstrap, serve_cluster};

use anyhow::Context;
use kube::Client;
use nodes::Wanted;
use seedling_cluster::apply;
use seedling_cluster::follow::{Selection, follow};
use seedling_components::machine_config::{SERVER, server_daemon_set};
use seedling_types::names::NS_MCO;
use std::time::Duration;
use tokio::sync::watch;

const CONFIG: &str = "config.openshift.io/v1";
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
    let mut scheduler = follow(client, Selection::one(CONFIG, "Scheduler", None, "cluster"));
    loop {
        let seen = scheduler.next().await;
        let schedulable =
            seen.objects.get("cluster").map(|s| s["spec"]["mastersSchedulable"].as_bool().unwrap_or(false));
        wanted
            .send_if_modified(|w| std::mem::replace(&mut w.masters_schedulable, schedulable) != schedulable);
    }
}

/// `https://api-int.CD:6443`, from Infrastructure `cluster`.
async fn api_server(client: &Client) -> String {
    let mut infrastructure = follow(client, Selection::one(CONFIG, "Infrastructure", None, "cluster"));
    loop {
        let seen = infrastructure.next().await;
        if let Some(url) =
            seen.objects.get("cluster").and_then(|i| i["status"]["apiServerInternalURI"].as_str())
        {
            return url.into();
        }
        tracing::info!("waiting for Infrastructure cluster");
    }
}

/// Applied at the start and whenever somebody changes or removes it.
async fn keep_server(client: &Client, image: &str, api_server: &str) {
    let mut live = follow(client, Selection::one("apps/v1", "DaemonSet", Some(NS_MCO), SERVER));
    let mut ours = None;
    loop {
        let seen = live.now();
        let generation = seen.objects.values().next().and_then(|d| d["metadata"]["generation"].as_i64());
        if seen.synced && (ours.is_none() || generation != ours) {
            match apply(client, MANAGER, &server_daemon_set(image, api_server)).await {
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
