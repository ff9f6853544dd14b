//! The CSR approver: a certificate for every machine of the inventory, and for nobody else.
//!
//! In: CertificateSigningRequests, Nodes, the inventory, the nodes' tokens. Out: approvals, and tokens spent; for what is refused,
//! the reason as an annotation of the request, an Event and a log line. It is left pending, never denied: a kubelet asks again
//! under the same name, and a premature denial would lock it out. It runs twice: on the bootstrap node (approve-csr.service) until the
//! handoff, and on a master from before that on.

mod by_hand;
mod desk;
mod health;
mod judge;
mod show;

pub use by_hand::approve_by_hand;
pub use judge::{Known, Verdict, judge};
pub use show::{Shown, show};

use crate::admission::{self, AdmissionError};
use crate::error::variable;
use crate::runtime::{Context, Inputs, Next, Pace};
use crate::{OperatorError, Result};
use desk::Desk;
use health::Health;
use k8s_openapi::api::certificates::v1::CertificateSigningRequestCondition;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use seedling_api::{CertificateSigningRequest, Dns, Event, Node, ObjectReference, Secret, named_in};
use seedling_cluster::create_if_missing;
use seedling_cluster::follow::{Followed, Selection, Snapshot, follow};
use seedling_types::csr::REFUSED;
use seedling_types::{Admission, ClusterDomain, Inventory};
use serde_json::json;
use std::time::Instant;
use tokio::sync::watch;

const REASON: &str = "NodeCSRApprove";
const MESSAGE: &str = "This CSR was approved by the Node CSR Approver (cluster-machine-approver)";
/// Reasons quote what was asked for.
const LONGEST_REASON: usize = 1000;
/// A list comes in parts: somebody may have made many large requests.
const PAGE: u32 = 50;

pub async fn run(context: Context) -> Result<()> {
    operate(context, variable("RELEASE_VERSION")?).await;
    Ok(())
}

pub async fn operate(context: Context, version: String) {
    let inventory = crate::inventory::keep(&context.client).await;
    let domain = cluster_domain(&context.client).await;
    let health = watch::Sender::new(Health::default());
    tokio::select! {
        () = approve(&context, inventory, &domain, &health) => {}
        () = health::keep_reporting(&context, &version, health.subscribe()) => {}
    }
}

/// Approves until dropped.
pub async fn approve_loop(client: &Client, inventory: &Inventory, domain: &ClusterDomain) {
    let inventory = watch::Sender::new(inventory.clone());
    let nobody_asks = watch::Sender::new(Health::default());
    approve(&client.clone().into(), inventory.subscribe(), domain, &nobody_asks).await
}

async fn approve(
    context: &Context,
    inventory: watch::Receiver<Inventory>,
    domain: &ClusterDomain,
    health: &watch::Sender<Health>,
) {
    let client = &context.client;
    let requests = follow(client, selection());
    let nodes = follow::<Node>(client, Selection::all());
    let tokens = follow(client, admission::selection());
    let (mut failed_writes, mut desk) = (0, Desk::default());
    let inputs = Inputs::default().needs(&requests).needs(&nodes).needs(&tokens);
    let inputs = inputs.hears("inventory", &inventory).even_unlisted();
    let approving = context.reconcile("machine-approver", Pace::AT_ONCE, inputs, async |heard| {
        let (admission, no_tokens) = match admission_of(&tokens.now()) {
            Ok(admission) => (Some(admission), None),
            Err(why) => (None, Some(why.to_string())),
        };
        let mut done = Ok(());
        if let Some(admission) = admission.as_ref().filter(|_| heard.synced) {
            let names = nodes.now().objects.into_keys().collect();
            let machines = inventory.borrow().clone();
            let known = Known { inventory: &machines, domain, nodes: &names, admission };
            done = decide_all(client, &mut desk, &requests, &known).await;
        }
        failed_writes = if done.is_err() { failed_writes + 1 } else { 0 };
        let error = done.as_ref().err().map(ToString::to_string);
        let now = Health { synced: heard.synced, deaf: heard.deaf.clone(), no_tokens, failed_writes, error };
        health.send_if_modified(|was| std::mem::replace(was, now.clone()) != now);
        done.map(|()| Next::Quiet)
    });
    approving.await
}

/// Without it nothing is approved: nobody knows which keys were given a certificate.
fn admission_of(seen: &Snapshot<Secret>) -> Result<Admission> {
    let missing = || OperatorError::Waits("there is no Secret with the nodes' tokens".into());
    let secret = seen.one().ok_or_else(missing)?;
    Ok(admission::parse(&secret).inspect_err(|e| tracing::warn!("{e}"))?)
}

fn selection() -> Selection<CertificateSigningRequest> {
    Selection { page: Some(PAGE), shorten: Some(desk::cut_short), ..Selection::all() }
}

/// Fails with what could not be written last, and has to be tried again.
async fn decide_all(
    client: &Client,
    desk: &mut Desk,
    seen: &Followed<CertificateSigningRequest>,
    known: &Known<'_>,
) -> Result<()> {
    let round = desk.round(&seen.state.borrow().objects, known, Instant::now());
    let mut done = Ok(());
    for (csr, verdict) in round.approve {
        let (name, requester) = (csr.name_any(), csr.spec.username.as_deref().unwrap_or_default());
        let approved = match verdict {
            Verdict::ApproveFirst { node, key } => match admission::spend(client, &node, &key).await {
                Ok(()) => approve_one(client, &csr).await,
                // It is judged again.
                Err(AdmissionError::Changed) => Err(OperatorError::Spent(name.clone())),
                Err(why) => Err(OperatorError::Token { csr: name.clone(), why }),
            },
            _ => approve_one(client, &csr).await,
        };
        match approved {
            Ok(()) => tracing::info!(csr = name, signer = csr.spec.signer_name, requester, "approved"),
            Err(e) => {
                tracing::warn!("{e}");
                done = Err(e);
            }
        }
    }
    for (csr, why) in round.refuse {
        let (name, requester) = (csr.name_any(), csr.spec.username.as_deref().unwrap_or_default());
        tracing::warn!(csr = name, signer = csr.spec.signer_name, requester, "left pending: {why}");
        if let Err(e) = refuse_one(client, &csr, &why).await {
            tracing::warn!("{e}");
            desk.failed(&name);
            done = Err(e);
        }
    }
    if let Some(silent) = round.silent {
        tracing::warn!(
            "{silent} more requests are left pending without a reason: their requesters send too many"
        );
    }
    done
}

/// The annotation stays with the request; the Event is where people look first.
async fn refuse_one(client: &Client, csr: &CertificateSigningRequest, why: &str) -> Result<()> {
    let api: Api<CertificateSigningRequest> = Api::all(client.clone());
    let patch = json!({"metadata": {"annotations": {REFUSED: why}}});
    let patched = api.patch(&csr.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await;
    patched.map_err(OperatorError::api(format!("refusing {}", csr.name_any())))?;
    create_if_missing(client, &event(csr, why)).await?;
    Ok(())
}

async fn approve_one(client: &Client, csr: &CertificateSigningRequest) -> Result<()> {
    approve_as(client, csr, REASON, MESSAGE).await
}

async fn approve_as(
    client: &Client,
    csr: &CertificateSigningRequest,
    reason: &str,
    message: &str,
) -> Result<()> {
    let mut approved = csr.clone();
    approved.status.get_or_insert_default().conditions.get_or_insert_default().push(
        CertificateSigningRequestCondition {
            type_: "Approved".into(),
            status: "True".into(),
            reason: Some(reason.into()),
            message: Some(message.into()),
            ..Default::default()
        },
    );
    let api: Api<CertificateSigningRequest> = Api::all(client.clone());
    match api.replace_subresource("approval", &csr.name_any(), &PostParams::default(), &approved).await {
        Ok(_) => Ok(()),
        // Somebody was quicker; the watch will show it.
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(e) => Err(OperatorError::api(format!("approving {}", csr.name_any()))(e)),
    }
}

fn event(csr: &CertificateSigningRequest, why: &str) -> Event {
    let about = ObjectReference {
        api_version: Some("certificates.k8s.io/v1".into()),
        kind: Some("CertificateSigningRequest".into()),
        name: csr.metadata.name.clone(),
        uid: csr.metadata.uid.clone(),
        ..ObjectReference::default()
    };
    let metadata = named_in("default", &format!("{}.refused", csr.name_any()));
    let told = seedling_api::event(metadata, about, "cluster-machine-approver", "Warning", why);
    Event { reason: Some("CSRNotApproved".into()), ..told }
}

/// DNS `cluster` has it as `spec.baseDomain`.
async fn cluster_domain(client: &Client) -> ClusterDomain {
    let mut dns = follow::<Dns>(client, Selection::one(None, "cluster"));
    let domain = |dns: &Dns| Some(dns.spec.as_ref()?.base_domain.clone()).filter(|domain| !domain.is_empty());
    ClusterDomain(dns.until("DNS cluster", domain).await)
}

#[cfg(test)]
mod tests;
