//! One leader at a time, by a Lease and client-go's rules. A restarted pod of the same name is the leader again at once.

mod observed;

use crate::objects::failed;
use crate::{ClusterError, Result, create_if_missing};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::api::{Api, PostParams};
use observed::{Observed, Verdict, holder, renewed};
use seedling_api::named_in;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

/// A leader that ends gives its lease up, one that is killed comes back under its pod's name: only a lost node makes anybody wait.
const DURATION: Duration = Duration::from_secs(45);
/// A leader that could not renew for this long stops: before anybody else may lead, and with time left to finish what it began.
const RENEW_DEADLINE: Duration = Duration::from_secs(30);
const RENEW: Duration = Duration::from_secs(15);
/// After a renewal that failed.
const RETRY: Duration = Duration::from_secs(2);
/// Nothing asked of the API takes longer; a frozen server is one that does not answer.
const REQUEST: Duration = Duration::from_secs(5);
/// How often a follower looks; a released lease is taken within this time.
const FOLLOW: Duration = Duration::from_millis(500);

/// What is begun behind a fence ends within this time, and so before the lease can be another's.
const ACT: Duration = crate::etcd::REQUEST;
const _: () = assert!(RENEW_DEADLINE.as_secs() + ACT.as_secs() < DURATION.as_secs());

/// Held until it is released, or lost.
pub struct Leadership {
    term: Term,
    /// Ends with the reason for which it was lost.
    renewal: tokio::task::JoinHandle<String>,
}

/// One time of holding the lease.
#[derive(Clone)]
struct Term {
    api: Api<Lease>,
    name: String,
    identity: String,
    /// Tells this term from a later one of anybody's.
    transitions: i32,
    /// When the last renewal that succeeded was begun.
    renewed: watch::Receiver<Instant>,
}

/// For those whose acts cannot be undone by the next leader.
#[derive(Clone)]
pub struct Fence(Term);

/// Waits until this identity holds the lease, then renews it in the background.
pub async fn lead(client: Client, namespace: &str, name: &str, identity: &str) -> Result<Leadership> {
    let api: Api<Lease> = Api::namespaced(client.clone(), namespace);
    let empty = Lease { metadata: named_in(namespace, name), ..Lease::default() };
    within(&format!("creating Lease {name}"), create_if_missing(&client, &empty)).await?;
    let (mut announced, mut seen) = (false, None);
    let (begun, transitions) = loop {
        let begun = Instant::now();
        match acquire(&api, name, identity, &mut seen).await {
            Ok(Acquired::Now(transitions)) => break (begun, transitions),
            Ok(Acquired::HeldBy(holder)) if !announced => {
                tracing::info!("waiting for the lease {namespace}/{name}, held by {holder}");
                announced = true;
            }
            Ok(Acquired::HeldBy(_)) => {}
            Err(e) => tracing::warn!("lease {namespace}/{name}: {e}"),
        }
        tokio::time::sleep(FOLLOW).await;
    };
    tracing::info!("leading as {identity}");
    let (renewals, renewed) = watch::channel(begun);
    let term = Term { api, name: name.into(), identity: identity.into(), transitions, renewed };
    let renewal = tokio::spawn(keep(term.clone(), renewals));
    Ok(Leadership { term, renewal })
}

impl Leadership {
    /// Returns when this process leads no more, with the reason: two leaders would be worse than none, so its work has to end.
    pub async fn lost(&mut self) -> String {
        (&mut self.renewal).await.unwrap_or_else(|e| format!("nobody renews the lease any more: {e}"))
    }

    pub fn fence(&self) -> Fence {
        Fence(self.term.clone())
    }

    /// Gives the lease up, so that the next leader need not wait for it to expire.
    pub async fn release(self) {
        self.renewal.abort();
        let Term { api, name, .. } = &self.term;
        let Ok(mut lease) = read(api, name).await else { return };
        if self.term.taken_by(&lease).is_none()
            && let Some(spec) = &mut lease.spec
        {
            spec.holder_identity = None;
            let _ = write(api, name, &lease).await;
        }
    }
}

impl Fence {
    /// Right before an act. The API's answer is what a majority of etcd agrees on, so a process that slept for hours learns here
    /// that another leads; and the lease was renewed so lately that nobody can take it before the act is over.
    ///
    /// What is left is a process that is stopped between this answer and its act: etcd has no change of members that
    /// depends on a key. There etcd's own check of the quorum is the last guard.
    pub async fn confirm(&self) -> Result<()> {
        let Term { api, name, renewed, .. } = &self.0;
        let lost = |why: String| Err(ClusterError::NotLeading { lease: name.clone(), why });
        let lease = read(api, name).await?;
        let since = renewed.borrow().elapsed();
        match self.0.taken_by(&lease) {
            Some(holder) => lost(format!("it is held by {holder}")),
            None if since >= RENEW_DEADLINE => lost(format!("not renewed for {}s", since.as_secs())),
            None => Ok(()),
        }
    }
}

impl Term {
    /// Who holds it instead of us.
    fn taken_by(&self, lease: &Lease) -> Option<String> {
        let spec = lease.spec.clone().unwrap_or_default();
        let ours = holder(&spec) == Some(&self.identity) && spec.lease_transitions == Some(self.transitions);
        (!ours).then(|| holder(&spec).unwrap_or("nobody").to_string())
    }

    /// Says who holds it, if not we. A leader never takes it back: what it did in between was not its to do.
    async fn renew(&self) -> Result<Option<String>> {
        let mut lease = read(&self.api, &self.name).await?;
        if let Some(holder) = self.taken_by(&lease) {
            return Ok(Some(holder));
        }
        lease.spec = lease.spec.map(|spec| renewed(&spec, &self.identity, Timestamp::now()));
        write(&self.api, &self.name, &lease).await.map(|()| None)
    }
}

/// Renews until that is not possible any more; says why.
async fn keep(term: Term, renewals: watch::Sender<Instant>) -> String {
    let (mut pause, mut error) = (RENEW, "no answer".to_string());
    loop {
        let last = *renewals.borrow();
        let attempt = async {
            tokio::time::sleep(pause).await;
            (Instant::now(), term.renew().await)
        };
        pause = match timeout_at(last + RENEW_DEADLINE, attempt).await {
            Ok((begun, Ok(None))) => {
                renewals.send_replace(begun);
                RENEW
            }
            Ok((_, Ok(Some(holder)))) => return format!("lost the lease {} to {holder}", term.name),
            Ok((_, Err(e))) => {
                tracing::warn!("renewing the lease {}: {e}", term.name);
                error = e.to_string();
                RETRY
            }
            Err(_) => {
                return format!(
                    "could not renew the lease {} for {}s: {error}",
                    term.name,
                    last.elapsed().as_secs()
                );
            }
        };
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Acquired {
    /// How often in a row.
    Now(i32),
    HeldBy(String),
}

async fn acquire(
    api: &Api<Lease>,
    name: &str,
    identity: &str,
    seen: &mut Option<Observed>,
) -> Result<Acquired> {
    let mut lease = read(api, name).await?;
    let now = Instant::now();
    let noted = Observed::note(seen.take(), lease.spec.clone().unwrap_or_default(), now);
    let seen = seen.insert(noted);
    if let Verdict::Held(holder) = seen.verdict(identity, now) {
        return Ok(Acquired::HeldBy(holder));
    }
    let spec = seen.taken(identity, Timestamp::now());
    let transitions = spec.lease_transitions.unwrap_or_default();
    lease.spec = Some(spec);
    match write(api, name, &lease).await {
        Ok(()) => Ok(Acquired::Now(transitions)),
        Err(e) if e.is_conflict() => Ok(Acquired::HeldBy("somebody quicker".into())),
        Err(e) => Err(e),
    }
}

async fn read(api: &Api<Lease>, name: &str) -> Result<Lease> {
    let what = format!("reading Lease {name}");
    within(&what, async { api.get(name).await.map_err(|e| failed(what.clone(), e)) }).await
}

/// Only over what was read: the API compares the resource version.
async fn write(api: &Api<Lease>, name: &str, lease: &Lease) -> Result<()> {
    let what = format!("writing Lease {name}");
    let replace = async {
        let written = api.replace(name, &PostParams::default(), lease).await;
        written.map(drop).map_err(|e| failed(what.clone(), e))
    };
    within(&what, replace).await
}

async fn within<T>(what: &str, request: impl Future<Output = Result<T>>) -> Result<T> {
    let silent = |_| ClusterError::NoAnswer { what: what.into(), seconds: REQUEST.as_secs() };
    timeout(REQUEST, request).await.map_err(silent)?
}

#[cfg(test)]
mod tests;
