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
use seedling_steps::run_script;
use seedling_types::Host;
use std::time::Duration;
use tokio::time::timeout;

const API_WITHIN: Duration = Duration::from_secs(10);
/// Between two answers: the slowest is etcdctl on a member without a leader.
const NODE_SILENT: Duration = Duration::from_secs(60);

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

/// What the script printed: nothing means that it never ran.
async fn run(shell: &dyn Shell, host: &Host, script: &str) -> Asked<String> {
    let printed = run_script(shell.bash(host), script, NODE_SILENT).await?;
    if printed.stdout.is_empty() {
        return Err(printed.last_complaint().unwrap_or("it printed nothing").into());
    }
    Ok(String::from_utf8_lossy(&printed.stdout).into_owned())
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
