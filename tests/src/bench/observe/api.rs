//! Asked from outside, through the load balancer: is the API ready, and which nodes are?

use super::{ASK_AGAIN, Answer, Cluster, keep_asking, set, short};
use anyhow::Result;
use seedling_api::{Conditions, Meta, Node};
use seedling_assets::lab_kubeconfig;
use seedling_cluster::follow::{Selection, follow};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tokio::sync::watch;

/// The load balancer holds a connection for 2 s while no API server is ready.
const PATIENCE: Duration = Duration::from_secs(4);

#[derive(Clone, Debug, Default)]
pub(super) struct ApiView {
    pub readyz: bool,
    pub ready_nodes: Vec<String>,
}

/// Asks for as long as it is polled.
pub(super) async fn ask(
    cluster: &Cluster,
    api: SocketAddr,
    view: &watch::Sender<ApiView>,
) -> Result<Infallible> {
    let client = reqwest::Client::builder().tls_danger_accept_invalid_certs(true).no_proxy().build()?;
    let tell = |answer: Answer| set(view, |v| v.readyz = answer.is_ok());
    let readyz = keep_asking(PATIENCE, async || ready(&client, api).await, tell);
    let (_, never) = tokio::join!(readyz, follow_nodes(cluster, api, view));
    Ok(never)
}

async fn ready(client: &reqwest::Client, api: SocketAddr) -> Answer {
    let answer = client.get(format!("https://{api}/readyz")).send().await.map_err(|e| short(&e))?;
    if answer.status().is_success() { Ok(()) } else { Err(answer.status().to_string()) }
}

async fn follow_nodes(cluster: &Cluster, api: SocketAddr, view: &watch::Sender<ApiView>) -> Infallible {
    let name = cluster.lab.record.spec.cluster_domain.api();
    let mut client = None;
    loop {
        if client.is_none() {
            client = connect(&cluster.admin_kubeconfig, api, &name).await;
        }
        if let Some(client) = &client {
            let mut nodes = follow::<Node>(client, Selection::all());
            loop {
                let seen = nodes.next().await;
                let ready = seen.objects.values().filter(|node| node.is("Ready"));
                let ready = ready.map(|node| node.name().to_string()).collect();
                set(view, |v| v.ready_nodes = ready);
            }
        }
        tokio::time::sleep(ASK_AGAIN).await;
    }
}

/// The admin's kubeconfig, on the loopback forward.
async fn connect(kubeconfig: &Path, api: SocketAddr, name: &str) -> Option<kube::Client> {
    let admin = std::fs::read_to_string(kubeconfig).ok()?;
    let yaml = lab_kubeconfig(&admin, &format!("https://{api}"), name);
    seedling_cluster::connect_yaml(&yaml).await.ok()
}
