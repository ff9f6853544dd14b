//! The prober: a client of the API that forgives nothing, from the first `readyz` to the end of a bring-up.
//!
//! In: a kubeconfig that goes through the load balancer, and a signal to stop. Four clients with connections of their own,
//! retries off, create, get, list and watch numbered ConfigMaps in a namespace of the prober's own. Only a request that the server
//! names as not looked at is sent again, as HTTP/2 has it, and the report counts these. Beside them a few [`rivals`] write to the same
//! objects. Out: a [`Log`] of every request; [`judge`] makes the [`Report`] of it, without asking anybody.

mod beside;
mod clients;
mod judge;
mod rivals;
mod stages;

pub use beside::{RATE, beside, install_complete, write_report};
pub use clients::now;
pub use judge::{Failure, Report, Stale, Window, judge};
pub use stages::{BringUp, Stages};

use crate::conditions;
use crate::history::Operation;
use clients::{Shared, writer};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use seedling_cluster::{ClusterError, Resent, connect_without_retries};
use seedling_steps::{Condition, Probe, wait_for};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub const NAMESPACE: &str = "seedling-probe";
const NAMESPACES: [&str; 2] = [NAMESPACE, rivals::NAMESPACE];
/// Of a request; a cluster that takes longer than this to answer has not answered.
const PATIENCE: Duration = Duration::from_secs(10);
/// A cluster that is whole answers at the end, when what was written is counted.
const COUNT_WITHIN: Duration = Duration::from_secs(60);
/// A namespace goes when all in it has gone: some hundred objects.
const GONE_WITHIN: Duration = Duration::from_secs(60);
/// A watch whose server was killed a moment before the end is opened again, and continues from where it was.
const TOLD_WITHIN: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    Create,
    Get,
    List,
    Watch,
}

impl Verb {
    pub const ALL: [Verb; 4] = [Verb::Create, Verb::Get, Verb::List, Verb::Watch];

    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Create => "create",
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Watch => "watch",
        }
    }
}

/// One request that has ended. A watch ends when its stream does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub verb: Verb,
    /// When it was sent, in milliseconds since 1970.
    pub at: i64,
    pub took: i64,
    /// The object it was about.
    pub number: Option<u32>,
    pub error: Option<String>,
    /// Answered, but without these, which were acknowledged before it was sent.
    pub missing: Vec<u32>,
}

/// Everything that was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// The first `readyz`, and the end.
    pub from: i64,
    pub to: i64,
    /// Writes a second that were tried.
    pub rate: u32,
    pub requests: Vec<Request>,
    /// Requests that were sent again because a server named them as not looked at.
    pub resent: usize,
    /// Numbers the watch delivered.
    pub watched: BTreeSet<u32>,
    /// Numbers that were there at the end.
    pub present: BTreeSet<u32>,
    /// Every uid the namespace kube-system was seen with: a second one is a second cluster.
    pub clusters: BTreeSet<String>,
    /// What was done to objects that several clients write to.
    pub operations: Vec<Operation>,
}

#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error(transparent)]
    Unmet(#[from] seedling_steps::Unmet),
    #[error("the API was never ready: nothing was probed")]
    NeverReady,
    #[error("the prober's namespace: {0}")]
    Namespace(Box<kube::Error>),
}

#[derive(Clone, Debug)]
pub struct Options {
    pub kubeconfig: PathBuf,
    /// Creates, and gets, a second.
    pub rate: u32,
    /// How long the API may take to answer for the first time.
    pub first_answer_within: Duration,
}

/// Probes from the first `readyz` until `stop` changes. Nothing is logged if it changes before.
pub async fn probe(options: Options, mut stop: watch::Receiver<bool>) -> Result<Log, ProbeError> {
    let namespaces = tokio::select! {
        made = first_answer(&options) => made?,
        _ = stop.wait_for(|stop| *stop) => return Ok(Log::default()),
    };
    let shared = Arc::new(Shared::new(options.rate));
    let mut tasks = JoinSet::new();
    // A client, and so a pool of connections, for each.
    let client = async || connect_without_retries(&options.kubeconfig, &shared.resent).await;
    tasks.spawn(writer(client().await?, shared.clone(), stop.clone()));
    tasks.spawn(clients::getter(client().await?, shared.clone(), stop.clone()));
    tasks.spawn(clients::lister(client().await?, shared.clone(), stop.clone()));
    for worker in 0..rivals::RIVALS {
        tasks.spawn(rivals::rival(client().await?, worker, shared.clone(), stop.clone()));
    }
    let (enough, told) = watch::channel(false);
    let watcher = tokio::spawn(clients::watcher(options.kubeconfig.clone(), shared.clone(), told));
    while tasks.join_next().await.is_some() {}
    // What it has not delivered by then is reported as missing.
    let condition = Condition::within(&conditions::PROBER_TOLD, TOLD_WITHIN, "see the report");
    let _ = wait_for(&condition, Duration::from_millis(50), async || match shared.untold() {
        0 => Probe::Met(()),
        _ => Probe::Unmet("not all yet".into()),
    })
    .await;
    enough.send_replace(true);
    let _ = watcher.await;
    let to = clients::now();
    rivals::last_look(not_counted(&options.kubeconfig).await?, &shared).await?;
    let mut log = shared.take_log();
    log.to = to;
    log.present = count(&options.kubeconfig).await?;
    remove(&options.kubeconfig, &namespaces).await;
    Ok(log)
}

/// For what comes before and after the probing.
async fn not_counted(kubeconfig: &Path) -> Result<kube::Client, ClusterError> {
    connect_without_retries(kubeconfig, &Resent::default()).await
}

/// `readyz`, then the namespaces: what an admin would type first. A run that was cut off before may have left one.
async fn first_answer(options: &Options) -> Result<Vec<Namespace>, ProbeError> {
    let client = not_counted(&options.kubeconfig).await?;
    let hint = "seedling lab status; is this the kubeconfig of the cluster?";
    let condition = Condition::within(&conditions::PROBER_READY, options.first_answer_within, hint);
    wait_for(&condition, Duration::from_millis(100), async || match ready(&client).await {
        Ok(()) => Probe::Met(()),
        Err(_) => Probe::Unmet("no readyz yet".into()),
    })
    .await?;
    let namespaces: Api<Namespace> = Api::all(client);
    let mut made = Vec::new();
    for name in NAMESPACES {
        made.push(make(&namespaces, name).await?);
    }
    Ok(made)
}

async fn make(namespaces: &Api<Namespace>, name: &str) -> Result<Namespace, ProbeError> {
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(name.into());
    let hint = format!("kubectl get namespace {name} -o yaml");
    let condition = Condition::within(&conditions::PROBER_NAMESPACE, GONE_WITHIN, hint);
    let made = wait_for(&condition, Duration::from_millis(200), async || {
        // Nothing is probed yet: who has no answer asks again.
        match tokio::time::timeout(PATIENCE, namespaces.create(&PostParams::default(), &namespace)).await {
            Err(_) => Probe::Unmet(format!("nothing for {PATIENCE:?}")),
            Ok(Ok(made)) => Probe::Met(Ok(made)),
            Ok(Err(kube::Error::Api(answer))) if answer.code == 409 => {
                let _ = namespaces.delete(name, &DeleteParams::background()).await;
                Probe::Unmet("it is being removed".into())
            }
            Ok(Err(kube::Error::Api(answer))) if (400..429).contains(&answer.code) => {
                Probe::Met(Err(ProbeError::Namespace(Box::new(kube::Error::Api(answer)))))
            }
            Ok(Err(e)) => Probe::Unmet(e.to_string()),
        }
    });
    made.await?
}

async fn ready(client: &kube::Client) -> Result<(), String> {
    let request = http::Request::get("/readyz").body(Vec::new()).map_err(|e| e.to_string())?;
    match tokio::time::timeout(PATIENCE, client.request_text(request)).await {
        Ok(answer) => answer.map(drop).map_err(|e| e.to_string()),
        Err(_) => Err(format!("nothing for {PATIENCE:?}")),
    }
}

/// Retried until there is an answer: this is the count, not a probe.
async fn count(kubeconfig: &Path) -> Result<BTreeSet<u32>, ProbeError> {
    let maps: Api<ConfigMap> = Api::namespaced(not_counted(kubeconfig).await?, NAMESPACE);
    let condition = Condition::within(&conditions::PROBER_COUNTED, COUNT_WITHIN, "seedling lab status");
    let counted = wait_for(&condition, Duration::from_millis(500), async || {
        match tokio::time::timeout(PATIENCE, maps.list_metadata(&ListParams::default())).await {
            Ok(Ok(list)) => Probe::Met(clients::numbers(&list.items)),
            Ok(Err(e)) => Probe::Unmet(e.to_string()),
            Err(_) => Probe::Unmet(format!("nothing for {PATIENCE:?}")),
        }
    });
    Ok(counted.await?)
}

/// Left behind, they harm nobody: the next run removes them. Its own are not touched: a lab that was recreated meanwhile
/// finds others of the same name.
async fn remove(kubeconfig: &Path, made: &[Namespace]) {
    let removed = async {
        let client = not_counted(kubeconfig).await?;
        for namespace in made {
            seedling_cluster::delete_this(&client, namespace).await?;
        }
        Ok::<_, ProbeError>(())
    };
    if let Err(error) = removed.await {
        tracing::warn!(%error, "the prober's namespace was not removed");
    }
}
