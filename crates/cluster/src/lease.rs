//! One leader at a time, by a Lease. A restarted pod of the same name is the leader again at once.

use crate::objects::failed;
use crate::{ClusterError, create_if_missing};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use std::time::Duration;
use tokio::time::Instant;

/// A leader that ends gives its lease up, one that is killed comes back under its pod's name: only a lost node makes anybody wait.
const DURATION: Duration = Duration::from_secs(45);
const RENEW: Duration = Duration::from_secs(15);
/// How often a follower looks; a released lease is taken within this time.
const FOLLOW: Duration = Duration::from_millis(500);

/// Held as long as the process lives; `release` hands it on at once.
pub struct Leadership {
    api: Api<Lease>,
    name: String,
    identity: String,
    renewal: tokio::task::JoinHandle<()>,
}

/// Waits until this identity holds the lease, then renews it in the background. A leader that cannot renew exits: two leaders
/// would be worse than none.
pub async fn lead(
    client: Client,
    namespace: &str,
    name: &str,
    identity: &str,
) -> Result<Leadership, ClusterError> {
    let api: Api<Lease> = Api::namespaced(client.clone(), namespace);
    let empty = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"namespace": namespace, "name": name}});
    create_if_missing(&client, &empty).await?;
    let mut announced = false;
    loop {
        match try_hold(&api, name, identity).await {
            Ok(None) => break,
            Ok(Some(holder)) if !announced => {
                tracing::info!("waiting for the lease {namespace}/{name}, held by {holder}");
                announced = true;
            }
            Ok(Some(_)) => {}
            Err(e) => tracing::warn!("lease {namespace}/{name}: {e}"),
        }
        tokio::time::sleep(FOLLOW).await;
    }
    tracing::info!("leading as {identity}");
    let renewal = tokio::spawn(renew(api.clone(), name.to_string(), identity.to_string()));
    Ok(Leadership { api, name: name.into(), identity: identity.into(), renewal })
}

impl Leadership {
    /// Gives the lease up, so that the next leader need not wait for it to expire.
    pub async fn release(self) {
        self.renewal.abort();
        if let Ok(mut lease) = self.api.get(&self.name).await
            && let Some(spec) = &mut lease.spec
            && spec.holder_identity.as_deref() == Some(&self.identity)
        {
            spec.holder_identity = None;
            let _ = self.api.replace(&self.name, &PostParams::default(), &lease).await;
        }
    }
}

async fn renew(api: Api<Lease>, name: String, identity: String) {
    let mut last = Instant::now();
    loop {
        tokio::time::sleep(RENEW).await;
        match try_hold(&api, &name, &identity).await {
            Ok(None) => last = Instant::now(),
            Ok(Some(holder)) => {
                tracing::error!("lost the lease {name} to {holder}");
                std::process::exit(1);
            }
            Err(e) if last.elapsed() > DURATION => {
                tracing::error!("could not renew the lease {name} for {}s: {e}", last.elapsed().as_secs());
                std::process::exit(1);
            }
            Err(e) => tracing::warn!("renewing the lease {name}: {e}"),
        }
    }
}

/// `None`: we hold it now; otherwise the name of the holder.
async fn try_hold(api: &Api<Lease>, name: &str, identity: &str) -> Result<Option<String>, ClusterError> {
    let what = |verb: &str| format!("{verb} Lease {name}");
    let mut lease = api.get(name).await.map_err(|e| failed(what("reading"), e))?;
    let now = Timestamp::now();
    let spec = lease.spec.get_or_insert_default();
    let holder = spec.holder_identity.clone().filter(|h| !h.is_empty() && h != identity);
    let expires = spec
        .renew_time
        .as_ref()
        .map(|t| t.0 + SignedDuration::from_secs(spec.lease_duration_seconds.unwrap_or(0).into()));
    if let Some(holder) = holder
        && expires.is_some_and(|e| e > now)
    {
        return Ok(Some(holder));
    }
    if spec.holder_identity.as_deref() != Some(identity) {
        spec.acquire_time = Some(MicroTime(now));
        spec.lease_transitions = Some(spec.lease_transitions.unwrap_or(0) + 1);
    }
    spec.holder_identity = Some(identity.into());
    spec.lease_duration_seconds = Some(DURATION.as_secs() as i32);
    spec.renew_time = Some(MicroTime(now));
    match api.replace(&lease.name_any(), &PostParams::default(), &lease).await {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(Some("somebody quicker".into())),
        Err(e) => Err(failed(what("writing"), e)),
    }
}
