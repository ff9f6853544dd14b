//! Asks the API and every node, all at once. What does not answer is a fact, too.

use super::facts::{ApiFacts, Asked, Facts, NodeFacts};
use super::{matrix, script};
use crate::Shell;
use futures::future::join_all;
use kube::Client;
use seedling_api::{
    ClusterVersion, Etcd, KubeApiServer, KubeControllerManager, KubeScheduler, StaticPodOperator,
};
use seedling_cluster::{Kind, get, innermost, list};
use seedling_types::Host;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

const API_WITHIN: Duration = Duration::from_secs(10);
/// The slowest is etcdctl on a member without a leader.
const NODE_WITHIN: Duration = Duration::from_secs(60);

/// A cluster and the ways into it.
pub struct Cluster<'a> {
    pub client: Client,
    pub hosts: Vec<Host>,
    pub shell: &'a dyn Shell,
}

pub async fn gather(cluster: &Cluster<'_>) -> Facts {
    let nodes = join_all(cluster.hosts.iter().map(|host| node(cluster, host)));
    let (api, nodes) = tokio::join!(api(&cluster.client), nodes);
    Facts { api, nodes }
}

async fn node(cluster: &Cluster<'_>, host: &Host) -> NodeFacts {
    let mark = format!("@{}", uuid::Uuid::new_v4().simple());
    let asked = run(cluster.shell, host, &script::script(&mark, &matrix::wanted(host, &cluster.hosts))).await;
    let (said, tried) = match asked {
        Ok(output) => {
            let (said, tried) = script::parse(&mark, &output);
            (Ok(said), tried)
        }
        Err(why) => (Err(why), vec![]),
    };
    NodeFacts { host: host.clone(), said, tried }
}

/// What the script printed. A script that ends badly has printed what it knows; nothing printed means that it never ran.
async fn run(shell: &dyn Shell, host: &Host, script: &str) -> Asked<String> {
    let mut command = shell.bash(host);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let asked = async {
        let mut child = command.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // It may end without reading all of it; what it says then counts.
            let _ = stdin.write_all(script.as_bytes()).await;
        }
        child.wait_with_output().await
    };
    match timeout(NODE_WITHIN, asked).await {
        Err(_) => Err(format!("no answer within {} s", NODE_WITHIN.as_secs())),
        Ok(Err(e)) => Err(format!("{}: {e}", command.as_std().get_program().display())),
        Ok(Ok(output)) if output.stdout.is_empty() => {
            let complaint = String::from_utf8_lossy(&output.stderr);
            Err(complaint.lines().last().unwrap_or("it printed nothing").trim().to_string())
        }
        Ok(Ok(output)) => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
    }
}

async fn api(client: &Client) -> ApiFacts {
    let (readyz, version, operators, nodes, csrs) = tokio::join!(
        within(readyz(client)),
        within(async { found(get::<ClusterVersion>(client, None, "version").await) }),
        within(async { list(client, None, "").await.map_err(|e| said(&e)) }),
        within(async { list(client, None, "").await.map_err(|e| said(&e)) }),
        within(async { list(client, None, "").await.map_err(|e| said(&e)) }),
    );
    let (etcd, apiserver, controllers, scheduler) = tokio::join!(
        static_pod::<Etcd>(client),
        static_pod::<KubeApiServer>(client),
        static_pod::<KubeControllerManager>(client),
        static_pod::<KubeScheduler>(client),
    );
    let static_pods = [
        ("etcd", etcd),
        ("kube-apiserver", apiserver),
        ("kube-controller-manager", controllers),
        ("kube-scheduler", scheduler),
    ];
    let static_pods = static_pods.into_iter().map(|(name, status)| (name.to_string(), status)).collect();
    ApiFacts { readyz, version, operators, nodes, csrs, static_pods }
}

async fn static_pod<K: Kind + StaticPodOperator>(
    client: &Client,
) -> Asked<seedling_api::operator::StaticPodStatus> {
    within(async { Ok(found(get::<K>(client, None, "cluster").await)?.status()) }).await
}

fn found<T>(got: seedling_cluster::Result<Option<T>>) -> Asked<T> {
    got.map_err(|e| said(&e))?.ok_or_else(|| "it is not there".into())
}

async fn readyz(client: &Client) -> Asked<String> {
    let request = http::Request::get("/readyz").body(Vec::new()).map_err(|e| e.to_string())?;
    client.request_text(request).await.map_err(|e| innermost(&e))
}

fn said(error: &seedling_cluster::ClusterError) -> String {
    innermost(error)
}

async fn within<T>(asked: impl Future<Output = Asked<T>>) -> Asked<T> {
    let late = |_| Err(format!("no answer within {} s", API_WITHIN.as_secs()));
    timeout(API_WITHIN, asked).await.unwrap_or_else(late)
}
