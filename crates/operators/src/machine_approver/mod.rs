//! The CSR approver: a certificate for every machine of the inventory, and for nobody else.
//!
//! In: CertificateSigningRequests, Nodes, the inventory, the nodes' tokens. Out: approvals, and tokens spent; for what is refused,
//! the reason as an annotation of the request, an Event and a log line. It is left pending, never denied: a kubelet asks again
//! under the same name, and would be locked out by a denial that was only too early. It runs twice: on the bootstrap node (approve-csr.service) until the handoff, and on a master from before that on.

mod judge;
mod show;

pub use judge::{CLIENT_SIGNER, Known, SERVING_SIGNER, Verdict, judge};
pub use show::{Shown, show};

use crate::admission::{self, AdmissionError};
use anyhow::Context;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestCondition};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use seedling_cluster::follow::{Selection, Snapshot, follow};
use seedling_cluster::operator_status::{Cond, Report, report};
use seedling_cluster::{Cache, create_if_missing};
use seedling_types::names::NS_APPROVER;
use seedling_types::{Admission, ClusterDomain, Inventory};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::watch;

const REASON: &str = "NodeCSRApprove";
const MESSAGE: &str = "This CSR was approved by the Node CSR Approver (cluster-machine-approver)";
/// On a request that is left pending: why.
pub(crate) const REFUSED: &str = "machine-approver.seedling.internal/refused";
/// Reasons quote what was asked for.
const LONGEST_REASON: usize = 1000;
/// After a failed write; the API server may be on its way out.
const RETRY: Duration = Duration::from_millis(500);

pub async fn run(client: Client) -> anyhow::Result<()> {
    let version = std::env::var("RELEASE_VERSION").context("RELEASE_VERSION is not set")?;
    let inventory = crate::inventory::keep(&client).await;
    let domain = cluster_domain(&client).await;
    let watching = watch::Sender::new(false);
    tokio::select! {
        () = approve(&client, inventory, &domain, &watching) => {}
        () = tell(&client, &version, watching.subscribe()) => {}
    }
    Ok(())
}

/// Approves until dropped.
pub async fn approve_loop(client: &Client, inventory: &Inventory, domain: &ClusterDomain) {
    let inventory = watch::Sender::new(inventory.clone());
    approve(client, inventory.subscribe(), domain, &watch::Sender::new(false)).await
}

async fn approve(
    client: &Client,
    mut inventory: watch::Receiver<Inventory>,
    domain: &ClusterDomain,
    watching: &watch::Sender<bool>,
) {
    let mut requests = follow(client, Selection::all("certificates.k8s.io/v1", "CertificateSigningRequest"));
    let mut nodes = follow(client, Selection::all("v1", "Node"));
    let mut tokens = follow(client, admission::selection());
    loop {
        let (seen, known_nodes, admission) = (requests.now(), nodes.now(), admission_of(&tokens.now()));
        let ready = admission.filter(|_| seen.synced && known_nodes.synced);
        watching.send_if_modified(|w| std::mem::replace(w, ready.is_some()) != ready.is_some());
        let mut retry = false;
        if let Some(admission) = &ready {
            let names = known_nodes.objects.keys().cloned().collect();
            let machines = inventory.borrow_and_update().clone();
            let known = Known { inventory: &machines, domain, nodes: &names, admission };
            retry = decide_all(client, &seen, &known).await;
        }
        tokio::select! {
            _ = requests.state.changed() => {}
            _ = nodes.state.changed() => {}
            _ = tokens.state.changed() => {}
            Ok(()) = inventory.changed() => {}
            () = tokio::time::sleep(RETRY), if retry => {}
        }
    }
}

/// Without it nothing is approved: nobody knows which keys were given a certificate.
fn admission_of(seen: &Snapshot) -> Option<Admission> {
    let parsed = admission::parse(seen.objects.values().next()?);
    parsed.map_err(|e| tracing::warn!("{e}")).ok()
}

/// True: something could not be written and has to be tried again.
async fn decide_all(client: &Client, seen: &Snapshot, known: &Known<'_>) -> bool {
    let mut retry = false;
    for (name, object) in &seen.objects {
        let Ok(csr) = serde_json::from_value::<CertificateSigningRequest>(object.clone()) else { continue };
        let requester = csr.spec.username.as_deref().unwrap_or_default();
        let done = match judge(&csr, known) {
            Verdict::Ignore => continue,
            Verdict::Approve => approve_one(client, &csr).await,
            Verdict::ApproveFirst { node, key } => match admission::spend(client, &node, &key).await {
                Ok(()) => approve_one(client, &csr).await,
                // Another key, or another approver, was quicker: it is judged again.
                Err(AdmissionError::Changed) => Err("its token was spent meanwhile".into()),
                Err(e) => Err(e.to_string()),
            },
            Verdict::Refuse(why) => {
                let why: String = why.chars().take(LONGEST_REASON).collect();
                if csr.annotations().get(REFUSED) != Some(&why) {
                    tracing::warn!(
                        csr = name,
                        signer = csr.spec.signer_name,
                        requester,
                        "left pending: {why}"
                    );
                    if let Err(e) = refuse_one(client, object, &why).await {
                        tracing::warn!("{e}");
                        retry = true;
                    }
                }
                continue;
            }
        };
        match done {
            Ok(()) => tracing::info!(csr = name, signer = csr.spec.signer_name, requester, "approved"),
            Err(e) => {
                tracing::warn!("approving {name}: {e}");
                retry = true;
            }
        }
    }
    retry
}

/// The annotation stays with the request; the Event is where people look first.
async fn refuse_one(client: &Client, csr: &Value, why: &str) -> anyhow::Result<()> {
    let api: Api<CertificateSigningRequest> = Api::all(client.clone());
    let name = csr["metadata"]["name"].as_str().unwrap_or_default();
    let patch = json!({"metadata": {"annotations": {REFUSED: why}}});
    api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
    create_if_missing(client, &event(csr, why)).await?;
    Ok(())
}

async fn approve_one(client: &Client, csr: &CertificateSigningRequest) -> Result<(), String> {
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
    match api.replace_subresource("approval", &csr.name_any(), &PostParams::default(), &approved).await {
        Ok(_) => Ok(()),
        // Somebody was quicker; the watch will tell.
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(e) => Err(e.to_string()),
    }
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
