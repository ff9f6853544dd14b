//! Signers that are replaced while what they signed is in use: the new one is trusted everywhere before it signs anything, and the
//! old one stays trusted until it ends.
//!
//! A signer's Secret has the pair that signs, and the next one while that is handed out. Each step is one write, and what follows
//! from a Secret (bundles, revisions) is made anew from it at every look: killed anywhere, an operator goes on.

use super::Env;
use super::certificates::{pair, required_configmap, required_secret};
use anyhow::{Context as _, Result};
use seedling_api::operator::StaticPodStatus;
use seedling_api::{ConfigMap, Etcd, Files, KubeApiServer, StaticPodOperator, config_map, secret};
use seedling_cluster::Cache;
use seedling_pki::{
    CaSpec, CertKey, KeyAlgorithm, Life, Policy, blocks, holds, new_backdated_ca, not_after, with_signers,
};
use seedling_types::names::{NS_CONFIG_MANAGED, NS_ETCD, NS_KAS, NS_KAS_OPERATOR, NS_KCM_OPERATOR};
use std::collections::BTreeMap;
use time::OffsetDateTime;

const MANAGER: &str = "seedling-signers";
const KEY: &str = "ca-bundle.crt";
const ENDED: &str = "ended.crt";
/// In openshift-config-managed: whoever signs, and will sign, for kubelets.
pub const CSR_BUNDLE: &str = "csr-controller-ca";

/// A Secret, and who must trust its certificate before it may sign.
pub struct Signer {
    namespace: &'static str,
    name: &'static str,
    cn: &'static str,
    trusted_in: &'static [Bundle],
    /// Before there is any revision nobody goes by it.
    from_the_start: bool,
}

impl Signer {
    pub fn name(&self) -> &'static str {
        self.name
    }
}

/// ConfigMap of an operand's revisions.
struct Bundle {
    of: Trusting,
    configmap: &'static str,
}

#[derive(Clone, Copy, Debug)]
enum Trusting {
    Etcd,
    ApiServers,
}

const fn of_api_servers(configmap: &'static str) -> Bundle {
    Bundle { of: Trusting::ApiServers, configmap }
}

/// What the operator's settings say of each master, and where its revisions are.
async fn recorded(cache: &Cache, of: Trusting) -> Result<(&'static str, Option<StaticPodStatus>)> {
    Ok(match of {
        Trusting::Etcd => (NS_ETCD, cache.get::<Etcd>(None, "cluster").await?.map(|s| s.status())),
        Trusting::ApiServers => {
            (NS_KAS, cache.get::<KubeApiServer>(None, "cluster").await?.map(|s| s.status()))
        }
    })
}

/// Kubelets' certificates.
pub const CSR: Signer = Signer {
    namespace: NS_KCM_OPERATOR,
    name: "csr-signer",
    cn: "kube-csr-signer",
    trusted_in: &[of_api_servers("client-ca"), of_api_servers("kubelet-serving-ca")],
    from_the_start: false,
};
/// Client certificates of controllers and schedulers.
pub const CONTROL_PLANE: Signer = Signer {
    namespace: NS_KAS_OPERATOR,
    name: "kube-control-plane-signer",
    cn: "kube-control-plane-signer",
    trusted_in: &[of_api_servers("client-ca")],
    from_the_start: false,
};
/// The installer's lives a day.
pub const AGGREGATOR: Signer = Signer {
    namespace: NS_KAS_OPERATOR,
    name: "aggregator-client-signer",
    cn: "aggregator-client-signer",
    trusted_in: &[of_api_servers("aggregator-client-ca")],
    from_the_start: true,
};
pub const ETCD: Signer = Signer {
    namespace: NS_ETCD,
    name: "etcd-signer",
    cn: "openshift-etcd_etcd-signer",
    trusted_in: &[
        Bundle { of: Trusting::Etcd, configmap: "etcd-ca-bundle" },
        of_api_servers("etcd-serving-ca"),
    ],
    from_the_start: false,
};

/// What a signer's Secret holds.
pub struct Held {
    pub signs: CertKey,
    pub next: Option<CertKey>,
}

impl Held {
    /// What is to be trusted.
    pub fn certs(&self) -> Vec<&str> {
        [Some(&self.signs), self.next.as_ref()].into_iter().flatten().map(|pair| pair.cert.as_str()).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Keep,
    MakeNext,
    Promote,
}

/// `trusted`: everybody who meets what the next one signs has it in his bundle.
fn step(signs: Life, next: Option<Life>, trusted: bool, policy: &Policy, now: OffsetDateTime) -> Step {
    match next {
        None if policy.signer_due(signs, now) => Step::MakeNext,
        // Handing it out took so long that it is old itself.
        Some(next) if policy.signer_due(next, now) => Step::MakeNext,
        Some(_) if trusted => Step::Promote,
        _ => Step::Keep,
    }
}

pub async fn read(cache: &Cache, signer: &Signer) -> Result<Held> {
    let data = required_secret(cache, signer.namespace, signer.name).await?;
    let signs = pair(&data, "tls").with_context(|| format!("Secret {} is no key pair", signer.name))?;
    Ok(Held { signs, next: pair(&data, "next") })
}

/// For the one operator that owns the signer: takes it as far as it may go now.
pub async fn keep(env: &Env, signer: &Signer, policy: &Policy) -> Result<Held> {
    loop {
        let held = read(&env.cache, signer).await?;
        let now = OffsetDateTime::now_utc();
        let trusted = match &held.next {
            Some(next) => trusted_everywhere(&env.cache, signer, &next.cert).await?,
            None => false,
        };
        let next = held.next.as_ref().map(life).transpose()?;
        let held = match step(life(&held.signs)?, next, trusted, policy, now) {
            Step::Keep => return Ok(held),
            // The bootstrap API server goes by the bundle it was given.
            Step::MakeNext if !(signer.from_the_start || bootstrapped(&env.cache).await?) => return Ok(held),
            Step::MakeNext => {
                tracing::info!("signer {}: the next one is made, and handed out", signer.name);
                Held { next: Some(made(signer, policy, now)?), ..held }
            }
            Step::Promote => {
                tracing::info!(
                    "signer {}: the next one is trusted everywhere, and signs from now on",
                    signer.name
                );
                Held { signs: held.next.unwrap_or(held.signs), next: None }
            }
        };
        store(&env.cache, signer, &held).await?;
    }
}

/// In the place of one that has ended, at once: nobody trusts that any more, so nobody has to be told first. The old certificate is kept,
/// to know whom it had signed for. True: it was so.
pub async fn replace_ended(env: &Env, signer: &Signer, policy: &Policy) -> Result<bool> {
    let held = read(&env.cache, signer).await?;
    let now = OffsetDateTime::now_utc();
    if life(&held.signs)?.ends > now {
        return Ok(false);
    }
    let new = made(signer, policy, now)?;
    let data = [("tls.crt", &*new.cert), ("tls.key", &*new.key), (ENDED, &*held.signs.cert)];
    let object = secret(signer.namespace, signer.name, "kubernetes.io/tls", data);
    env.cache.apply(MANAGER, &object).await?;
    Ok(true)
}

/// Every signer that a kubelet's certificate may be from, also if it has ended.
pub async fn of_kubelets(cache: &Cache) -> Result<String> {
    let bundle = required_configmap(cache, NS_CONFIG_MANAGED, "kubelet-serving-ca").await?;
    let mut secret = required_secret(cache, CSR.namespace, CSR.name).await?;
    let parts = [bundle.get(KEY).cloned(), secret.remove("tls.crt"), secret.remove(ENDED)];
    Ok(parts.into_iter().flatten().collect::<Vec<_>>().join("\n"))
}

/// Two with the same name could not be told apart by who sees a certificate of theirs.
fn name_at(signer: &Signer, now: OffsetDateTime) -> String {
    format!("{}@{}", signer.cn, now.unix_timestamp())
}

/// Valid at once for everybody whose clock is not far from ours, whichever is right.
fn made(signer: &Signer, policy: &Policy, now: OffsetDateTime) -> Result<CertKey> {
    let spec = CaSpec { cn: &name_at(signer, now), ou: Some("openshift"), validity: policy.signer };
    Ok(new_backdated_ca(&spec, KeyAlgorithm::default(), now)?)
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
    let object = secret(signer.namespace, signer.name, "kubernetes.io/tls", data);
    cache.apply(MANAGER, &object).await?;
    Ok(())
}

pub async fn bootstrapped(cache: &Cache) -> Result<bool> {
    let map = cache.get::<ConfigMap>(Some("kube-system"), "bootstrap").await?;
    Ok(map.is_some_and(|map| map.file("status") == Some("complete")))
}

/// Every master runs a revision with this certificate in its bundles.
async fn trusted_everywhere(cache: &Cache, signer: &Signer, cert: &str) -> Result<bool> {
    for bundle in signer.trusted_in {
        let (namespace, recorded) = recorded(cache, bundle.of).await?;
        let Some(revisions) = running(recorded.as_ref()) else {
            return Ok(signer.from_the_start);
        };
        for revision in revisions {
            let name = format!("{}-{revision}", bundle.configmap);
            let copy = cache.get::<ConfigMap>(Some(namespace), &name).await?;
            if !copy.is_some_and(|map| map.file(KEY).is_some_and(|text| holds(text, cert))) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// The revision of each master, 0 where none is ready yet; `None` before there is any.
pub fn running(recorded: Option<&StaticPodStatus>) -> Option<Vec<i64>> {
    let recorded = recorded.filter(|r| r.latest() > 0 && !r.node_statuses.is_empty())?;
    Some(recorded.node_statuses.iter().map(|node| node.current()).collect())
}

/// A bundle in openshift-config-managed, with these in it.
pub async fn publish(cache: &Cache, name: &str, certs: &[&str]) -> Result<BTreeMap<String, String>> {
    publish_in(cache, NS_CONFIG_MANAGED, name, certs).await
}

/// The signers in such a bundle that have not ended.
pub async fn published(cache: &Cache, name: &str) -> Result<Vec<String>> {
    let bundle = required_configmap(cache, NS_CONFIG_MANAGED, name).await?;
    let now = OffsetDateTime::now_utc();
    let lives = |block: &&str| !not_after(block).is_ok_and(|end| end <= now);
    Ok(blocks(bundle.get(KEY).map_or("", String::as_str)).filter(lives).map(String::from).collect())
}

pub async fn publish_in(
    cache: &Cache,
    namespace: &str,
    name: &str,
    certs: &[&str],
) -> Result<BTreeMap<String, String>> {
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
            (&usual, life(10, 1800), None, false, Step::Keep),
            (&usual, life(1700, 120), None, false, Step::MakeNext),
            (&usual, life(0, 1), None, false, Step::MakeNext),
            (&asked, life(10, 1800), None, false, Step::MakeNext),
            (&asked, life(10, 1800), Some(life(0, 1825)), false, Step::Keep),
            (&asked, life(10, 1800), Some(life(0, 1825)), true, Step::Promote),
            (&asked, life(0, 1825), None, false, Step::Keep),
            // Made before somebody asked, or years ago: never trusted everywhere, and old by now.
            (&asked, life(10, 1800), Some(life(2, 1820)), true, Step::MakeNext),
            (&usual, life(1900, -10), Some(life(1800, 25)), false, Step::MakeNext),
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
