//! Static pods on masters, by revision: what the etcd, kube-apiserver, kube-controller-manager and kube-scheduler operators
//! have in common.
//!
//! In: an operand (names, and a function that makes its files). Out: revisions in the operand's namespace, installer pods that
//! write them to the masters, the operator's status, a ClusterOperator.

pub mod certificates;
pub(crate) mod clients;
mod decide;
mod installer;
pub(crate) mod policy;
mod prune;
mod report;
pub(crate) mod revision;
pub(crate) mod signers;
mod stuck;
mod view;

use crate::inventory;
use crate::patience::{self, Progress};
use crate::runtime::{Context, Next, Pace, Status};
use crate::{OperatorError, Result};
use decide::{NodeView, decide, superfluous};
use futures::future::BoxFuture;
use kube::Client;
use report::Behind;
use seedling_api::{Conditions, ConfigMap, Files, Meta, Pod, StaticPodOperator};
use seedling_cluster::{Cache, Kind, delete_seen, get, list};
use seedling_components::ClusterConfig;
use seedling_types::{Inventory, ReleaseInfo};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};
use stuck::Stuck;
use view::{View, Watched, crashes, node_view};

/// What never changes about an operand.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// ClusterOperator.
    pub operator: &'static str,
    pub namespace: &'static str,
    pub operator_namespace: &'static str,
    /// Name in the static pod's manifest; the mirror pod is `<pod>-<node>`.
    pub pod: &'static str,
    /// ConfigMap with the manifest, and name of the resource directory.
    pub pod_configmap: &'static str,
}

/// What a Secret or a ConfigMap has, as text by name.
pub type Data = BTreeMap<String, String>;

/// All files of one revision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Desired {
    pub configmaps: BTreeMap<String, Data>,
    pub secrets: BTreeMap<String, Data>,
    pub pod: seedling_components::pod::Pod,
}

/// What an operator works with.
pub struct Env {
    pub client: Client,
    pub cache: Cache,
    /// Asks the operands themselves.
    pub http: reqwest::Client,
    pub config: ClusterConfig,
    pub release: ReleaseInfo,
    pub inventory: Inventory,
}

/// Whether the operand was seen working, and on how many masters; the text says what was seen.
#[derive(Clone)]
pub struct Health {
    pub working: bool,
    pub message: String,
    /// Reason and message: it works, and somebody has to look after it.
    pub trouble: Option<(&'static str, String)>,
}

type HealthCheck = Box<dyn for<'a> Fn(&'a Env, &'a [String]) -> BoxFuture<'a, Health> + Send + Sync>;

pub struct Operand {
    pub names: Names,
    /// Makes the files; mints certificates where they are missing or old.
    pub desired: for<'a> fn(&'a Env) -> BoxFuture<'a, Result<Desired>>,
    /// Asks the operand itself.
    pub health: HealthCheck,
    /// Whether one that works may be stopped now, for all that its neighbours are at.
    pub calm: for<'a> fn(&'a Env) -> BoxFuture<'a, Result<bool>>,
}

/// Nobody depends on it but through the API.
pub fn always_calm(_: &Env) -> BoxFuture<'_, Result<bool>> {
    Box::pin(std::future::ready(Ok(true)))
}

const MANAGER: &str = "seedling-installers";
/// A pod that crashes again and again does not become ready by itself: after its certificates expired, only by a new revision.
const CRASHING: Duration = Duration::from_secs(60);

impl Env {
    pub async fn load(client: Client, names: &Names) -> Result<Self> {
        let inventory = inventory::wait(&client).await;
        let map = installed(&client, "kube-system", "cluster-config-v1").await?;
        let lacks = || OperatorError::Lacks { of: "cluster-config-v1".into(), part: "install-config" };
        let text = map.file("install-config").ok_or_else(lacks)?;
        let config = ClusterConfig::from_install_config(text)?;
        let release = release_info(&client).await?;
        let http = reqwest::Client::builder()
            .tls_danger_accept_invalid_certs(true)
            .no_proxy()
            .timeout(Duration::from_secs(2))
            .build()
            .map_err(OperatorError::Http)?;
        let cache = Cache::owning(&client, &[names.namespace, names.operator_namespace]);
        Ok(Self { cache, client, http, config, release, inventory })
    }
}

/// ConfigMap openshift-config/release: the release the cluster was grown from.
async fn release_info(client: &Client) -> Result<ReleaseInfo> {
    let (namespace, name) = ("openshift-config", "release");
    let map = installed(client, namespace, name).await?;
    let lacks = || OperatorError::Lacks { of: format!("ConfigMap {name}"), part: "release.json" };
    let text = map.file("release.json").ok_or_else(lacks)?;
    serde_json::from_str(text)
        .map_err(|e| OperatorError::unreadable(format!("ConfigMap {namespace}/{name}"), e))
}

/// A ConfigMap of the installation.
async fn installed(client: &Client, namespace: &str, name: &str) -> Result<ConfigMap> {
    let map = get::<ConfigMap>(client, Some(namespace), name).await?;
    map.ok_or_else(|| OperatorError::Waits(format!("ConfigMap {namespace}/{name} is missing")))
}

/// For an operator that is nothing else.
pub async fn operate<K: Kind + StaticPodOperator>(context: &Context, operand: &Operand) -> Result<()> {
    let env = Env::load(context.client.clone(), &operand.names).await?;
    keep_on_masters::<K>(context, &env, operand).await
}

/// Runs until dropped: watches, decides, acts. `K`: the operator's settings.
pub async fn keep_on_masters<K: Kind + StaticPodOperator>(
    context: &Context,
    env: &Env,
    operand: &Operand,
) -> Result<()> {
    let names = &operand.names;
    let watched = Watched::<K>::start(&env.client, names);
    let related = report::related::<K>(names);
    let mut status = Status::new(env.cache.clone(), names.operator, &env.release.version, related);
    let (mut asked, mut seen, mut stuck) = (Asked::default(), Seen::default(), Stuck::default());
    let inputs = watched.inputs(&env.cache).even_unlisted();
    let running = context.reconcile(names.operator, Pace::USUAL, inputs, async |heard| {
        let view = watched.view().filter(|_| heard.synced);
        let done = match &view {
            Some(view) => {
                unstick(env, names, view, &mut stuck).await;
                sync::<K>(env, operand, view, &mut asked, &mut seen, &mut status).await
            }
            None => Ok(Next::Busy),
        };
        // Without a report, at least say what the role does not allow.
        if done.is_err() || view.is_none() {
            status.report_refusals().await;
        }
        done
    });
    running.await;
    Ok(())
}

async fn unstick(env: &Env, names: &Names, view: &View, stuck: &mut Stuck) {
    let stuck = stuck.look(view.pods.values().map(|pod| &**pod), Instant::now());
    for pod in stuck.iter().filter_map(|name| view.pods.get(name)) {
        match delete_seen(&env.client, &**pod).await {
            Ok(true) => {
                tracing::warn!("{}: {} would never start; it is made again", names.operator, pod.name())
            }
            Ok(false) => tracing::info!(
                "{}: pod {} has changed since it was seen, and is not deleted",
                names.operator,
                pod.name()
            ),
            Err(e) => tracing::warn!("{}: {e}", names.operator),
        }
    }
}

/// Since when which master does not come to the newest revision, and since when it is not ready at any.
#[derive(Default)]
struct Seen {
    newest: Progress<report::Reached>,
    ready: Progress<report::Reached>,
}

/// The operand's last answer: events of the API say nothing about it, so they are no reason to ask again.
#[derive(Default)]
struct Asked(Option<(Instant, Vec<String>, Health)>);

impl Asked {
    async fn health(&mut self, env: &Env, operand: &Operand, masters: &[String]) -> Health {
        match &self.0 {
            Some((at, of, health)) if at.elapsed() < Pace::USUAL.busy && of == masters => health.clone(),
            _ => {
                let health = (operand.health)(env, masters).await;
                self.0 = Some((Instant::now(), masters.to_vec(), health.clone()));
                health
            }
        }
    }
}

async fn sync<K: Kind + StaticPodOperator>(
    env: &Env,
    operand: &Operand,
    view: &View,
    asked: &mut Asked,
    seen: &mut Seen,
    status: &mut Status,
) -> Result<Next> {
    let names = &operand.names;
    let desired = (operand.desired)(env).await?;
    let latest = revision::ensure(&env.cache, names, &desired, &view.reason).await?;
    let mut nodes: Vec<_> = view.masters.iter().map(|node| node_view(names, view, node)).collect();
    let patience = patience::read(&env.cache).await?;
    for node in &mut nodes {
        let ready = node.running.is_some_and(|s| s.ready);
        let down = seen.ready.stalled(&node.name, report::reached(Some(node)), ready, Instant::now());
        let enough = if crashes(names, view, &node.name) { patience.min(CRASHING) } else { patience };
        node.broken = !ready && down >= enough;
    }
    if !decide(&nodes, latest, true).is_empty() {
        start_installers(env, operand, view, &nodes, latest, &desired).await?;
    }
    let health = asked.health(env, operand, &view.masters).await;
    let behind = behind(env, &nodes, latest, patience, &mut seen.newest);
    let (_, wrong_policy) = policy::read(&env.cache).await?;
    report::record::<K>(env, &view.recorded, &nodes, latest).await?;
    let (available, progressing, degraded) =
        report::conditions(names, &nodes, latest, &behind, &health, &wrong_policy);
    status.report(available, progressing, degraded).await?;
    let busy = behind.iter().any(|b| !b.lost) || !health.working;
    if !busy && let Err(e) = prune(env, names, view, &nodes, latest).await {
        // It is seen again; nothing waits for it.
        tracing::warn!("{}: {}", names.operator, e.in_full());
    }
    Ok(if busy { Next::Busy } else { Next::Quiet })
}

/// A watch may have been stuck unnoticed for a while: what is to be stopped is decided by what the API says now.
async fn start_installers(
    env: &Env,
    operand: &Operand,
    view: &View,
    watched: &[NodeView],
    latest: i64,
    desired: &Desired,
) -> Result<()> {
    let names = &operand.names;
    let view = view.now(&env.client, names).await?;
    let mut nodes: Vec<_> = view.masters.iter().map(|node| node_view(names, &view, node)).collect();
    for node in &mut nodes {
        let was_broken = watched.iter().any(|w| w.name == node.name && w.broken);
        node.broken = was_broken && !node.running.is_some_and(|s| s.ready);
    }
    let calm = (operand.calm)(env).await?;
    let kept = prune::kept(&revision::made(&env.cache, names).await?, &nodes, latest);
    let due = decide(&nodes, latest, calm);
    if !due.is_empty() {
        // Also what an installer on another master is still at.
        let under_way = nodes.iter().flat_map(|n| &n.installers).filter(|i| !i.failed && !i.done);
        let revisions = under_way.map(|i| i.revision).chain([latest]).collect();
        seedling_cluster::apply(&env.client, MANAGER, &installer::role(names, desired, &revisions)).await?;
    }
    for (node, retry) in due {
        tracing::info!("{}: revision {latest} to {node}", names.operator);
        let pod = installer::pod(names, &env.release, desired, &node, (latest, retry), &kept)?;
        seedling_cluster::manifest::create_if_missing(&env.client, &serde_json::to_value(&pod)?).await?;
    }
    Ok(())
}

/// What nobody needs any more. That a master runs a revision is asked of the API before the revision goes, not of a watch. A master's own
/// files go with its next installer.
async fn prune(env: &Env, names: &Names, view: &View, nodes: &[NodeView], latest: i64) -> Result<()> {
    for installer in nodes.iter().flat_map(superfluous) {
        if let Some(pod) = view.pods.get(&installer.pod) {
            delete_seen(&env.client, &**pod).await?;
        }
    }
    let made = revision::made(&env.cache, names).await?;
    if prune::superfluous(&made, nodes, latest).is_empty() {
        return Ok(());
    }
    let now = view.now(&env.client, names).await?;
    let nodes: Vec<_> = now.masters.iter().map(|node| node_view(names, &now, node)).collect();
    for revision in prune::superfluous(&made, &nodes, latest) {
        tracing::info!("{}: removing revision {revision}, which no master needs any more", names.operator);
        revision::remove(&env.cache, names, revision).await?;
    }
    Ok(())
}

/// Masters of the inventory that do not run the newest revision.
fn behind(
    env: &Env,
    nodes: &[NodeView],
    latest: i64,
    patience: Duration,
    progress: &mut Progress<report::Reached>,
) -> Vec<Behind> {
    let now = Instant::now();
    let look = |host: &seedling_types::Host| {
        let node = nodes.iter().find(|n| n.name == host.name);
        let at = node.is_some_and(|n| n.at(latest));
        let stalled = progress.stalled(&host.name, report::reached(node), at, now);
        (!at).then(|| Behind { name: host.name.clone(), joined: node.is_some(), lost: stalled >= patience })
    };
    env.inventory.masters().into_iter().filter_map(look).collect()
}

/// Of the masters that have had a revision of an operand ready.
pub(crate) fn addresses(env: &Env, settings: &impl StaticPodOperator) -> Vec<IpAddr> {
    let nodes = settings.status().node_statuses.into_iter();
    let ready = nodes.filter(|n| n.current() > 0);
    let hosts = ready.filter_map(|n| env.inventory.by_name(&n.node_name));
    hosts.map(|host| host.address).collect()
}

/// All pods with this label are ready, as the API says now: something is to be stopped beside them.
pub(crate) async fn all_ready(env: &Env, namespace: &str, app: &str) -> Result<bool> {
    let pods = list::<Pod>(&env.client, Some(namespace), &format!("app={app}")).await?;
    Ok(pods.iter().all(|pod| pod.is("Ready")))
}
