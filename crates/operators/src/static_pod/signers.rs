//! Signers that are replaced while what they signed is in use: the new one is trusted everywhere before it signs anything, and the
//! old one stays trusted until it ends.
//!
//! A signer's Secret has the pair that signs, and the next one while that is handed out. Each step is one write, and what follows
//! from a Secret (bundles, revisions) is made from it again at every look: killed anywhere, an operator continues.

use super::certificates::{kept_pair, pair, required_configmap, required_secret, tls_pair};
use super::{Data, Env};
use crate::Result;
use seedling_api::operator::StaticPodStatus;
use seedling_api::{
    ConfigMap, Etcd, Files, KubeApiServer, KubeControllerManager, StaticPodOperator, config_map, secret,
};
use seedling_cluster::Cache;
use seedling_pki::trust::{Bundle, CSR_SIGNER, KUBELET_SERVING_CA, Leaf, Pod, Renewal, Signer};
use seedling_pki::{CertKey, Life, Policy, blocks, holds, not_after, with_signers};
use seedling_types::names::{NS_ETCD, NS_KAS, NS_KCM};
use std::collections::BTreeMap;
use time::OffsetDateTime;

const MANAGER: &str = "seedling-signers";
const KEY: &str = "ca-bundle.crt";
const ENDED: &str = "ended.crt";

/// What the operator's settings say of each master, and where its revisions are.
async fn recorded(cache: &Cache, of: Pod) -> Result<(&'static str, Option<StaticPodStatus>)> {
    Ok(match of {
        Pod::Etcd => (NS_ETCD, cache.get::<Etcd>(None, "cluster").await?.map(|s| s.status())),
        Pod::ApiServer => (NS_KAS, cache.get::<KubeApiServer>(None, "cluster").await?.map(|s| s.status())),
        Pod::ControllerManager => {
            (NS_KCM, cache.get::<KubeControllerManager>(None, "cluster").await?.map(|s| s.status()))
        }
    })
}

/// What a signer's Secret holds.
pub(crate) struct Held {
    pub signs: CertKey,
    pub next: Option<CertKey>,
}

impl Held {
    /// What is to be trusted.
    pub(crate) fn certs(&self) -> Vec<&str> {
        [Some(&self.signs), self.next.as_ref()].into_iter().flatten().map(|pair| pair.cert.as_str()).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SignerStep {
    Keep,
    MakeNext,
    Promote,
}

/// `trusted`: everybody who is shown what the next one signs has it in their bundle.
fn step(signs: Life, next: Option<Life>, trusted: bool, policy: &Policy, now: OffsetDateTime) -> SignerStep {
    match next {
        None if policy.signer_due(signs, now) => SignerStep::MakeNext,
        // Handing it out took so long that it is old itself.
        Some(next) if policy.signer_due(next, now) => SignerStep::MakeNext,
        Some(_) if trusted => SignerStep::Promote,
        _ => SignerStep::Keep,
    }
}

pub(crate) async fn read(cache: &Cache, signer: &Signer) -> Result<Held> {
    let data = required_secret(cache, signer.owned.namespace, signer.owned.secret).await?;
    Ok(Held { signs: tls_pair(&data, &signer.owned)?, next: pair(&data, "next") })
}

/// The pair that signs such a leaf now. For the operator that owns both.
pub(crate) async fn signing(env: &Env, leaf: &Leaf, policy: &Policy) -> Result<CertKey> {
    match leaf.signer.owned.renewal {
        Renewal::Signer => Ok(keep(env, leaf.signer, policy).await?.signs),
        _ => kept_pair(&env.cache, &leaf.signer.owned).await,
    }
}

/// For the one operator that owns the signer: takes it as far as it may go now.
pub(crate) async fn keep(env: &Env, signer: &Signer, policy: &Policy) -> Result<Held> {
    loop {
        let held = read(&env.cache, signer).await?;
        let now = OffsetDateTime::now_utc();
        let trusted = match &held.next {
            Some(next) => trusted_everywhere(&env.cache, signer, &next.cert).await?,
            None => false,
        };
        let next = held.next.as_ref().map(life).transpose()?;
        let held = match step(life(&held.signs)?, next, trusted, policy, now) {
            SignerStep::Keep => return Ok(held),
            // The bootstrap API server goes by the bundle it was given.
            SignerStep::MakeNext if !(signer.from_the_start || bootstrapped(&env.cache).await?) => {
                return Ok(held);
            }
            SignerStep::MakeNext => {
                tracing::info!(
                    "signer {}: created its successor; every trust bundle gets it first",
                    signer.owned.secret
                );
                Held { next: Some(signer.make_next(policy.signer, now)?), ..held }
            }
            SignerStep::Promote => {
                tracing::info!(
                    "signer {}: its successor is trusted everywhere, and signs from now on",
                    signer.owned.secret
                );
                Held { signs: held.next.unwrap_or(held.signs), next: None }
            }
        };
        store(&env.cache, signer, &held).await?;
    }
}

/// Replaces an expired signer at once: nobody trusts it any more, so nobody has to be told first. The old certificate is kept, to verify
/// what it had signed. True: it had expired.
pub(crate) async fn replace_ended(env: &Env, signer: &Signer, policy: &Policy) -> Result<bool> {
    let held = read(&env.cache, signer).await?;
    let now = OffsetDateTime::now_utc();
    if life(&held.signs)?.ends > now {
        return Ok(false);
    }
    let new = signer.make_next(policy.signer, now)?;
    let data = [("tls.crt", &*new.cert), ("tls.key", &*new.key), (ENDED, &*held.signs.cert)];
    let object = secret(signer.owned.namespace, signer.owned.secret, "kubernetes.io/tls", data);
    env.cache.apply(MANAGER, &object).await?;
    Ok(true)
}

/// Every signer that a kubelet's certificate may be from, also expired ones.
pub(crate) async fn of_kubelets(cache: &Cache) -> Result<String> {
    let bundle =
        required_configmap(cache, KUBELET_SERVING_CA.namespace, KUBELET_SERVING_CA.configmap).await?;
    let mut secret = required_secret(cache, CSR_SIGNER.owned.namespace, CSR_SIGNER.owned.secret).await?;
    let parts = [bundle.get(KEY).cloned(), secret.remove("tls.crt"), secret.remove(ENDED)];
    Ok(parts.into_iter().flatten().collect::<Vec<_>>().join("\n"))
}

fn life(pair: &CertKey) -> Result<Life> {
    Ok(seedling_pki::life(&pair.cert)?)
}

async fn store(cache: &Cache, signer: &Signer, held: &Held) -> Result<()> {
    let mut data =
        BTreeMap::from([("tls.crt", held.signs.cert.as_str()), ("tls.key", held.signs.key.as_str())]);
    if let Some(next) = &held.next {
        data.extend([("next.crt", next.cert.as_str()), ("next.key", next.key.as_str())]);
    }
    let object = secret(signer.owned.namespace, signer.owned.secret, "kubernetes.io/tls", data);
    cache.apply(MANAGER, &object).await?;
    Ok(())
}

pub(crate) async fn bootstrapped(cache: &Cache) -> Result<bool> {
    let map = cache.get::<ConfigMap>(Some("kube-system"), "bootstrap").await?;
    Ok(map.is_some_and(|map| map.file("status") == Some("complete")))
}

/// Every master runs a revision with this certificate in its bundles.
async fn trusted_everywhere(cache: &Cache, signer: &Signer, cert: &str) -> Result<bool> {
    for (pod, configmap) in signer.trusted_in() {
        let (namespace, recorded) = recorded(cache, pod).await?;
        let Some(revisions) = running(recorded.as_ref()) else {
            return Ok(signer.from_the_start);
        };
        for revision in revisions {
            let name = format!("{configmap}-{revision}");
            let copy = cache.get::<ConfigMap>(Some(namespace), &name).await?;
            if !copy.is_some_and(|map| map.file(KEY).is_some_and(|text| holds(text, cert))) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// The revision of each master, 0 where none is ready yet; `None` before there is any.
pub(crate) fn running(recorded: Option<&StaticPodStatus>) -> Option<Vec<i64>> {
    let recorded = recorded.filter(|r| r.latest() > 0 && !r.node_statuses.is_empty())?;
    Some(recorded.node_statuses.iter().map(|node| node.current()).collect())
}

/// The signers in a bundle that have not ended.
pub(crate) async fn published(cache: &Cache, bundle: &Bundle) -> Result<Vec<String>> {
    let bundle = required_configmap(cache, bundle.namespace, bundle.configmap).await?;
    let now = OffsetDateTime::now_utc();
    let lives = |block: &&str| !not_after(block).is_ok_and(|end| end <= now);
    Ok(blocks(bundle.get(KEY).map_or("", String::as_str)).filter(lives).map(String::from).collect())
}

/// A bundle's ConfigMap, with these in it.
pub(crate) async fn publish(cache: &Cache, bundle: &Bundle, certs: &[&str]) -> Result<Data> {
    let (namespace, name) = (bundle.namespace, bundle.configmap);
    let live = cache.get::<ConfigMap>(Some(namespace), name).await?;
    let old = live.as_ref().and_then(|map| map.file(KEY)).unwrap_or_default();
    let new = with_signers(old, certs, OffsetDateTime::now_utc());
    let changed = new != old;
    let files = BTreeMap::from([(KEY.to_string(), new)]);
    if changed {
        cache.apply(MANAGER, &config_map(namespace, name, files.clone())).await?;
    }
    Ok(files)
}

#[cfg(test)]
#[path = "clock_tests.rs"]
mod clock_tests;
#[cfg(test)]
mod tests {
    use super::*;
    use seedling_api::operator::NodeStatus;
    use time::Duration;

    const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH.saturating_add(Duration::days(20_000));

    fn life(age: i64, left: i64) -> Life {
        Life { issued: NOW - Duration::days(age), ends: NOW + Duration::days(left) }
    }

    #[test]
    fn the_next_one_signs_only_when_it_is_trusted() {
        let usual = Policy::default();
        let asked = Policy { renew: Some(NOW - Duration::days(1)), ..Policy::default() };
        for (policy, signs, next, trusted, want) in [
            (&usual, life(10, 1800), None, false, SignerStep::Keep),
            (&usual, life(1700, 120), None, false, SignerStep::MakeNext),
            (&usual, life(0, 1), None, false, SignerStep::MakeNext),
            (&asked, life(10, 1800), None, false, SignerStep::MakeNext),
            (&asked, life(10, 1800), Some(life(0, 1825)), false, SignerStep::Keep),
            (&asked, life(10, 1800), Some(life(0, 1825)), true, SignerStep::Promote),
            (&asked, life(0, 1825), None, false, SignerStep::Keep),
            // Made before somebody asked, or years ago: never trusted everywhere, and old by now.
            (&asked, life(10, 1800), Some(life(2, 1820)), true, SignerStep::MakeNext),
            (&usual, life(1900, -10), Some(life(1800, 25)), false, SignerStep::MakeNext),
        ] {
            assert_eq!(step(signs, next, trusted, policy, NOW), want, "{signs:?} {next:?}");
        }
    }

    #[test]
    fn a_master_without_a_revision_trusts_nothing() {
        let node = |name: &str, current_revision| NodeStatus {
            node_name: name.into(),
            current_revision,
            target_revision: None,
        };
        let status = |latest: i64, node_statuses| StaticPodStatus {
            latest_available_revision: Some(latest),
            node_statuses,
            conditions: vec![],
        };
        assert_eq!(running(None), None);
        assert_eq!(running(Some(&status(0, vec![node("a", None)]))), None);
        assert_eq!(running(Some(&status(2, vec![node("a", Some(2)), node("b", None)]))), Some(vec![2, 0]));
    }
}

#[cfg(test)]
mod model;
