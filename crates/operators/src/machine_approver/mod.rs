//! The CSR approver: a certificate for every machine of the inventory, and for nobody else.
//!
//! In: CertificateSigningRequests, Nodes, the inventory. Out: approvals; for what is refused, a log line and an Event that say
//! why. It runs twice: on the bootstrap node (approve-csr.service) until the handoff, and on a master from before that on.

mod judge;

pub use judge::{CLIENT_SIGNER, Known, SERVING_SIGNER, Verdict, judge};

use anyhow::Context;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestCondition};
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt};
use seedling_cluster::follow::{Selection, Snapshot, follow};
use seedling_cluster::operator_status::{Cond, Report, report};
use seedling_cluster::{Cache, create_if_missing};
use seedling_types::names::NS_APPROVER;
use seedling_types::{ClusterDomain, Inventory};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::watch;

const REASON: &str = "NodeCSRApprove";
const MESSAGE: &str = "This CSR was approved by the Node CSR Approver (cluster-machine-approver)";
/// After a failed write; the API server may be on its way out.
const RETRY: Duration = Duration::from_millis(500);

pub async fn run(client: Client) -> anyhow::Result<()> {
    let version = std::env::var("RELEASE_VERSION").context("RELEASE_VERSION is not set")?;
    let inventory = crate::inventory::wait(&client).await;
    let domain = cluster_domain(&client).await;
    let watching = watch::Sender::new(false);
    tokio::select! {
        () = approve(&client, &inventory, &domain, &watching) => {}
        () = tell(&client, &version, watching.subscribe()) => {}
    }
    Ok(())
}

/// Approves until dropped.
pub async fn approve_loop(client: &Client, inventory: &Inventory, domain: &ClusterDomain) {
    approve(client, inventory, domain, &watch::Sender::new(false)).await
}

async fn approve(
    client: &Client,
    inventory: &Inventory,
    domain: &ClusterDomain,
    watching: &watch::Sender<bool>,
) {
    let mut requests = follow(client, Selection::all("certificates.k8s.io/v1", "CertificateSigningRequest"));
    let mut nodes = follow(client, Selection::all("v1", "Node"));
    // What was said of a request, so that it is said once.
    let mut said = BTreeMap::new();
    loop {
        let (seen, known_nodes) = (requests.now(), nodes.now());
        let synced = seen.synced && known_nodes.synced;
        watching.send_if_modified(|w| std::mem::replace(w, synced) != synced);
        let mut retry = false;
        if synced {
            let names = known_nodes.objects.keys().cloned().collect();
            let known = Known { inventory, domain, nodes: &names };
            said.retain(|name, _| seen.objects.contains_key(name));
            retry = decide_all(client, &seen, &known, &mut said).await;
        }
        tokio::select! {
            _ = requests.state.changed() => {}
            _ = nodes.state.changed() => {}
            () = tokio::time::sleep(RETRY), if retry => {}
        }
    }
}

/// True: something could not be written and has to be tried again.
async fn decide_all(
    client: &Client,
    seen: &Snapshot,
    known: &Known<'_>,
    said: &mut BTreeMap<String, String>,
) -> bool {
    let mut retry = false;
    for (name, object) in &seen.objects {
        let Ok(csr) = serde_json::from_value::<CertificateSigningRequest>(object.clone()) else { continue };
        let requester = csr.spec.username.as_deref().unwrap_or_default();
        match judge(&csr, known) {
            Verdict::Ignore => {}
            Verdict::Approve => match approve_one(client, &csr).await {
                Ok(()) => tracing::info!(csr = name, signer = csr.spec.signer_name, requester, "approved"),
                // Somebody was quicker; the watch will tell.
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(e) => {
                    tracing::warn!("approving {name}: {e}");
                    retry = true;
                }
            },
            Verdict::Refuse(why) => {
                if said.insert(name.clone(), why.clone()).as_ref() != Some(&why) {
                    tracing::warn!(
                        csr = name,
                        signer = csr.spec.signer_name,
                        requester,
                        "left pending: {why}"
                    );
                    if let Err(e) = create_if_missing(client, &event(object, &why)).await {
                        tracing::warn!("{e}");
                    }
                }
            }
        }
    }
    retry
}

async fn approve_one(client: &Client, csr: &CertificateSigningRequest) -> Result<(), kube::Error> {
    let mut approved = csr.clone();
    approved.status.get_or_insert_default().conditions.get_or_insert_default().push(
        CertificateSigningRequestCondition {
            type_: "Approved".into(),
            status: "True".into(),
            reason: Some(REASON.into()),
            message: Some(MESSAGE.into()),
            ..Default::default()
        },
    );
    let api: Api<CertificateSigningRequest> = Api::all(client.clone());
    api.replace_subresource("approval", &csr.name_any(), &PostParams::default(), &approved).await.map(drop)
}

fn event(csr: &Value, why: &str) -> Value {
    let now = k8s_openapi::jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let (name, uid) = (&csr["metadata"]["name"], &csr["metadata"]["uid"]);
    json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"namespace": "default", "name": format!("{}.refused", name.as_str().unwrap_or_default())},
        "involvedObject": {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "name": name, "uid": uid},
        "type": "Warning", "reason": "CSRNotApproved", "message": why,
        "firstTimestamp": now, "lastTimestamp": now, "count": 1,
        "source": {"component": "cluster-machine-approver"},
    })
}

/// DNS `cluster` has it as `spec.baseDomain`.
async fn cluster_domain(client: &Client) -> ClusterDomain {
    let mut dns = follow(client, Selection::one("config.openshift.io/v1", "DNS", None, "cluster"));
    loop {
        let seen = dns.next().await;
        if let Some(domain) = seen.objects.get("cluster").and_then(|d| d["spec"]["baseDomain"].as_str()) {
            return ClusterDomain(domain.into());
        }
        tracing::info!("waiting for DNS cluster");
    }
}

async fn tell(client: &Client, version: &str, mut watching: watch::Receiver<bool>) {
    let cache = Cache::new(client);
    loop {
        let watches = *watching.borrow_and_update();
        let told = Report {
            name: "machine-approver".into(),
            available: match watches {
                true => Cond::new(true, "AsExpected", "Certificate signing requests are watched"),
                false => Cond::new(false, "NotWatching", "Certificate signing requests are not watched yet"),
            },
            progressing: Cond::new(!watches, "AsExpected", ""),
            degraded: Cond::new(false, "AsExpected", ""),
            version: version.into(),
            related: vec![("".into(), "namespaces".into(), "".into(), NS_APPROVER.into())],
        };
        match report(&cache, &told).await {
            Ok(()) => drop(watching.changed().await),
            Err(e) => {
                tracing::warn!("{e}");
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

#[cfg(test)]
mod tests;
