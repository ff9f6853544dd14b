//! Stage 17: start the temporary control plane, create everything, wait for the masters', hand over, tear down.

mod teardown;

use super::{mco_bootstrap, names};
use crate::error::{cannot, ensure};
use crate::{Context, Outcome, Result, apply, conditions, leader, quorum};
use kube::Client;
use seedling_api::{
    Conditions, KubeApiServer, KubeControllerManager, KubeScheduler, Meta, Node, ObjectReference, Pod,
    StaticPodOperator, named_in,
};
use seedling_cluster::operator_status::said_available;
use seedling_cluster::{Cache, Kind, create_if_missing};
use seedling_steps::journal::fold;
use seedling_steps::{Condition, Probe, Stage, wait_for, write_atomic_if_changed};
use seedling_types::names::{NS_CVO, NS_KAS, NS_KCM, NS_SCHEDULER};
use seedling_types::{paths, ports};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) const STAGE: Stage = Stage {
    name: "cb-bootstrap",
    done: Some("cb-bootstrap"),
    what: "Starts the temporary control plane, creates every manifest, waits for the masters' own control plane, hands over and removes the temporary one.",
    why: "the temporary control plane lives exactly until the masters' own carries the cluster",
    reads: &["bootstrap-manifests/*", "manifests/*", "tls/*", "auth/kubeconfig-loopback"],
    writes: &[
        "/etc/kubernetes/bootstrap-secrets/*",
        "/etc/kubernetes/manifests/*",
        "events bootstrap-success, bootstrap-finished",
    ],
    check: "the hand-over is recorded, and nothing of the temporary control plane is left: no static pod, no key",
    fails: &[
        "the API does not answer: crictl logs of kube-apiserver on this node",
        "waits for the masters' own control plane: `seedling csr` (certificates), `kubectl get clusteroperators`, then the pods of the one that is not there",
    ],
    upstream: "podman run … cluster-bootstrap start --tear-down-early=false --asset-dir=/assets --required-pods=openshift-kube-apiserver/kube-apiserver,…",
    see: &[
        "component.kube-apiserver",
        "component.kubelet",
        "condition.api-answers",
        "condition.manifests-created",
        "condition.masters-control-plane",
        "seed.003.13",
    ],
};

const POLL: Duration = Duration::from_millis(250);
/// Nothing may move for this long before the stage gives up.
const NO_PROGRESS: Duration = Duration::from_secs(1200);

/// (namespace, name prefix) of pods that must be ready on masters.
const REQUIRED_PODS: &[(&str, &str)] = &[
    (NS_KAS, "kube-apiserver-"),
    (NS_SCHEDULER, "openshift-kube-scheduler-"),
    (NS_KCM, "kube-controller-manager-"),
    (NS_CVO, "cluster-version-operator-"),
];
/// What the bootstrap node does for joining machines must be done by the masters before it goes.
const BEFORE_LEAVING: &[&str] = &["machine-approver", "machine-config"];
/// Clients of the API server: they stop first, while it still serves.
const CLIENTS: &[&str] =
    &["bootstrap-pod.yaml", "kube-controller-manager-pod.yaml", "kube-scheduler-pod.yaml"];
const API_SERVER: &str = "kube-apiserver-pod.yaml";
/// The part of the stage after which there is no way back.
const HANDED_OVER: &str = "cb-bootstrap/hand-over";

pub(crate) async fn run(c: &Context) -> Result<Outcome> {
    println!("Starting cluster-bootstrap...");
    let journal = &c.journal;
    if !is_handed_over(c)? {
        journal.step("cb-bootstrap/start", async { start_control_plane(c) }).await?;
        journal.step("cb-bootstrap/api", wait_for_api(c)).await?;
        let client = seedling_cluster::connect(Some(&c.loopback_kubeconfig())).await?;
        println!("Applying cluster manifests...");
        let manifests = c.dir("manifests");
        let create = journal.step("cb-bootstrap/manifests", apply::create_all(&client, &manifests));
        let masters = journal.step("cb-bootstrap/masters", wait_for_masters(&client, c));
        let serves = journal.step("cb-bootstrap/machine-config-server", mco_bootstrap::answers(c));
        let grow = async { tokio::try_join!(create, masters, serves) };
        // Done or not, it never holds the bring-up up.
        let lead = async {
            leader::hand_over(c).await;
            std::future::pending().await
        };
        tokio::select! {
            grown = grow => grown.map(drop)?,
            () = lead => {}
            () = quorum::watch_over(c, Some(&client)) => {}
        }
        quorum::close(c)?;
        event(&client, "bootstrap-success", "Required control plane pods have been created").await?;
        // From here on a restart continues with the teardown: to start again what was handed over would add a second owner.
        journal.end(HANDED_OVER)?;
    }
    teardown::tear_down(c).await?;
    Ok(Outcome::Done)
}

pub(crate) async fn check(c: &Context) -> Result<()> {
    ensure!(is_handed_over(c)?, "the journal has no {HANDED_OVER}");
    let manifests = CLIENTS.iter().chain([&API_SERVER]).map(|name| c.path(paths::STATIC_PODS).join(name));
    for path in manifests.chain([c.path(paths::BOOTSTRAP_SECRETS)]) {
        ensure!(!path.exists(), "{} is still there", path.display());
    }
    Ok(())
}

fn is_handed_over(c: &Context) -> Result<bool> {
    Ok(fold(&c.journal.read()?).is_done(c.journal.who(), HANDED_OVER))
}

fn start_control_plane(c: &Context) -> Result<()> {
    println!("Starting temporary bootstrap control plane...");
    let secrets = c.path(paths::BOOTSTRAP_SECRETS);
    // The same pod, left over from a killed run, keeps running.
    let copy = |from: PathBuf, to: PathBuf| {
        let contents = std::fs::read(&from).map_err(cannot("read", &from))?;
        write_atomic_if_changed(&to, contents, 0o600).map_err(cannot("write", &to))
    };
    for name in names(&c.dir("tls"))? {
        copy(c.dir("tls").join(&name), secrets.join(&name))?;
    }
    copy(c.loopback_kubeconfig(), secrets.join("kubeconfig"))?;
    for name in CLIENTS.iter().chain([&API_SERVER]) {
        copy(c.dir("bootstrap-manifests").join(name), c.path(paths::STATIC_PODS).join(name))?;
    }
    Ok(())
}

async fn wait_for_api(c: &Context) -> Result<()> {
    println!("Waiting up to 20m0s for the Kubernetes API");
    println!("Waiting for API server to come up...");
    let http = reqwest::Client::builder().tls_danger_accept_invalid_certs(true).no_proxy().build()?;
    let url = format!("https://localhost:{}/readyz", ports::API);
    let condition = Condition::new(
        &conditions::API_ANSWERS,
        NO_PROGRESS,
        "crictl logs --tail 20 $(crictl ps -a -q --name '^kube-apiserver$' | head -n 1)",
    )
    .on(&c.node);
    wait_for(&condition, Duration::from_millis(100), async || {
        match http.get(&url).timeout(Duration::from_secs(2)).send().await {
            Ok(_) => Probe::Met(()),
            Err(e) if e.is_connect() => Probe::Unmet("connection refused".into()),
            Err(e) => Probe::Unmet(e.to_string()),
        }
    })
    .await?;
    println!("API is up");
    println!("API server is up");
    tracing::info!("etcd and the API of {} are up on this node", c.config.domain);
    Ok(())
}

async fn wait_for_masters(client: &Client, c: &Context) -> Result<()> {
    println!("Waiting for bootstrap to complete...");
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    let condition = Condition::new(
        &conditions::MASTERS,
        NO_PROGRESS,
        format!("kubectl --kubeconfig={} get clusteroperators,nodes,csr", c.kubeconfig().display()),
    );
    let highly_available = c.config.control_plane_replicas >= 3;
    let cache = &Cache::new(client);
    let masters: Vec<String> = c.inventory.masters().iter().map(|m| m.name.clone()).collect();
    wait_for(&condition, POLL, async || {
        let mut unmet = Vec::new();
        for (namespace, prefix) in REQUIRED_PODS {
            let status = pod_status(cache, namespace, prefix).await;
            let key = format!("{namespace}/{}", prefix.trim_end_matches('-'));
            if seen.insert(key.clone(), status.clone()).as_ref() != Some(&status) {
                println!("Pod Status:{key}\t{status}");
            }
            if status != "Ready" {
                unmet.push(format!("{key} {status}"));
            }
        }
        if highly_available {
            let highly_available = [
                at_a_revision::<KubeApiServer>(cache).await,
                at_a_revision::<KubeScheduler>(cache).await,
                at_a_revision::<KubeControllerManager>(cache).await,
            ];
            unmet.extend(highly_available.into_iter().filter_map(Result::err));
        }
        for name in BEFORE_LEAVING {
            if !said_available(cache, name).await.unwrap_or(false) {
                unmet.push(format!("{name} not available"));
            }
        }
        if unmet.is_empty() {
            return Probe::Met(());
        }
        let seen = unmet.join(", ");
        match slowest_master(cache, &masters).await {
            Some(node) => Probe::UnmetOn { node, seen },
            None => Probe::Unmet(seen),
        }
    })
    .await?;
    println!("All self-hosted control plane components successfully started");
    Ok(())
}

/// The first master without a Node, else the first whose Node is not ready.
async fn slowest_master(cache: &Cache, masters: &[String]) -> Option<String> {
    let mut not_ready = None;
    for master in masters {
        match cache.get::<Node>(None, master).await.ok()? {
            None => return Some(master.clone()),
            Some(node) if !node.is("Ready") => _ = not_ready.get_or_insert(master),
            Some(_) => {}
        }
    }
    not_ready.cloned()
}

async fn pod_status(cache: &Cache, namespace: &str, prefix: &str) -> String {
    let pods = match cache.list::<Pod>(namespace).await {
        Ok(pods) => pods,
        Err(_) => return "Unknown".into(),
    };
    let status = |pod: &Pod| match (pod.phase(), pod.is("Ready")) {
        ("Running", true) => "Ready".to_string(),
        ("Running", false) => "RunningNotReady".to_string(),
        (phase, _) => phase.to_string(),
    };
    let named = pods.iter().filter(|pod| pod.name().starts_with(prefix));
    let mut statuses: Vec<_> = named.map(|pod| status(pod)).collect();
    statuses.sort_by_key(|s| s != "Ready");
    statuses.into_iter().next().unwrap_or_else(|| "DoesNotExist".into())
}

/// Ready on two masters, or what is missing.
async fn at_a_revision<K: Kind + StaticPodOperator>(cache: &Cache) -> Result<(), String> {
    let found = cache.get::<K>(None, "cluster").await.ok().flatten();
    let masters = found.map_or(0, |settings| settings.status().at_a_revision());
    if masters >= 2 {
        Ok(())
    } else {
        Err(format!("{} at a revision on {masters} of 2 masters", K::kind(&())))
    }
}

async fn event(client: &Client, name: &str, message: &str) -> Result<()> {
    let about = ObjectReference { namespace: Some("kube-system".into()), ..ObjectReference::default() };
    let metadata = named_in("kube-system", name);
    let event = seedling_api::event(metadata, about, "cluster-bootstrap", "Normal", message);
    create_if_missing(client, &event).await?;
    println!("Sending {name} event.");
    Ok(())
}
