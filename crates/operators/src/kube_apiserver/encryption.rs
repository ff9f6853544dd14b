//! Secrets are encrypted in etcd. The key is the first of the bootstrap node; a newer one takes its place step by step.

use crate::static_pod::certificates::{required_secret, secret};
use crate::static_pod::{Env, signers};
use crate::{OperatorError, Result};
use base64::{Engine, engine::general_purpose::STANDARD};
use kube::api::{Api, ListParams, PostParams};
use kube::{Client, ResourceExt};
use seedling_api::{KubeApiServer, Secret, StaticPodOperator};
use seedling_cluster::{ClusterError, connect_in_cluster_with, token_of};
use seedling_components::kube_apiserver::encryption::{
    KEYS, KEYS_SECRET, KeyStep, Keys, SECRET, SECRET_KEY, names,
};
use seedling_components::pod::to_yaml;
use seedling_pki::{Policy, random_key};
use seedling_types::names::{NS_KAS, NS_KAS_OPERATOR};
use std::collections::BTreeMap;
use time::{Duration, OffsetDateTime};

const MANAGER: &str = "seedling-encryption";
const LIFE: Duration = Duration::days(90);
/// May list and update Secrets everywhere.
const REWRITER: &str = "secrets-rewriter";
const TOKEN_LIFE: std::time::Duration = std::time::Duration::from_secs(3600);
/// Secrets that are read at a time, to be written again.
const PAGE: u32 = 200;

/// Takes the rotation of keys as far as it may go now. Killed anywhere, it continues: each step is one write, and writing Secrets twice is harmless.
pub(super) async fn keep(env: &Env, policy: &Policy) -> Result<BTreeMap<String, String>> {
    let of = || format!("Secret {KEYS_SECRET}");
    loop {
        let data = required_secret(&env.cache, NS_KAS_OPERATOR, KEYS_SECRET).await?;
        let text = data.get(KEYS).ok_or_else(|| OperatorError::Lacks { of: of(), part: KEYS })?;
        let keys: Keys = serde_json::from_str(text).map_err(|e| OperatorError::unreadable(of(), e))?;
        let now = OffsetDateTime::now_utc();
        let next = match keys.step(&running(env).await?, due(keys.writes.made, policy, now)) {
            KeyStep::Keep => None,
            // The bootstrap API server knows the first only.
            KeyStep::MakeNext if !signers::bootstrapped(&env.cache).await? => None,
            KeyStep::MakeNext => {
                tracing::info!("encryption of Secrets: created the next key; every API server gets it first");
                Some(keys.clone().with_next(STANDARD.encode(random_key()), now.unix_timestamp()))
            }
            KeyStep::WriteWithNext => {
                tracing::info!(
                    "encryption of Secrets: all API servers have the next key, and encrypt with it from now on"
                );
                Some(keys.clone().writing_with_next())
            }
            KeyStep::ForgetLast => {
                let count = write_again(&rewriter(&env.client).await?).await?;
                tracing::info!(
                    "encryption of Secrets: {count} are encrypted with the new key; removed the old one"
                );
                Some(keys.clone().without_last())
            }
        };
        let Some(next) = next else {
            return Ok(BTreeMap::from([(SECRET_KEY.to_string(), to_yaml(&keys.config()))]));
        };
        let text = serde_json::to_string(&next)?;
        let object = seedling_api::secret(NS_KAS_OPERATOR, KEYS_SECRET, "Opaque", [(KEYS, text.as_str())]);
        env.cache.apply(MANAGER, &object).await?;
    }
}

fn due(made: i64, policy: &Policy, now: OffsetDateTime) -> bool {
    let asked = policy.renew.is_some_and(|moment| moment <= now && made < moment.unix_timestamp());
    asked || now.unix_timestamp() - made > LIFE.whole_seconds()
}

/// Keys that each master's API server was seen ready with.
async fn running(env: &Env) -> Result<Vec<Vec<u32>>> {
    let settings = env.cache.get::<KubeApiServer>(None, "cluster").await?;
    let recorded = settings.map(|settings| settings.status());
    let mut all = Vec::new();
    for revision in signers::running(recorded.as_ref()).unwrap_or_default() {
        let copy = secret(&env.cache, NS_KAS, &format!("{SECRET}-{revision}")).await?;
        let config = copy.and_then(|data| serde_saphyr::from_str(data.get(SECRET_KEY)?).ok());
        all.push(config.as_ref().map(names).unwrap_or_default());
    }
    // Before there is a revision nobody is known to run with anything.
    Ok(if all.is_empty() { vec![vec![]] } else { all })
}

/// This operator may not read the Secrets of others. For as long as it takes to write them again it is somebody who may do that and
/// nothing else, and whose name is in the audit log.
async fn rewriter(client: &Client) -> Result<Client> {
    let token = token_of(client, NS_KAS_OPERATOR, REWRITER, TOKEN_LIFE).await?;
    Ok(connect_in_cluster_with(token)?)
}

/// An API server encrypts what it writes with its newest key, also when nothing else is new.
async fn write_again(client: &Client) -> Result<usize, ClusterError> {
    let failed = |what: String, e| ClusterError::Api { what, source: Box::new(e) };
    let all: Api<Secret> = Api::all(client.clone());
    let (mut count, mut page) = (0, ListParams::default().limit(PAGE));
    loop {
        let list = all.list(&page).await.map_err(|e| failed("listing Secrets".into(), e))?;
        for secret in &list.items {
            let namespaced: Api<Secret> =
                Api::namespaced(client.clone(), &secret.namespace().unwrap_or_default());
            match namespaced.replace(&secret.name_any(), &PostParams::default(), secret).await {
                Ok(_) => count += 1,
                // Gone, or written by somebody else in the meantime: with the new key.
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
                Err(e) => return Err(failed(format!("writing Secret {} again", secret.name_any()), e)),
            }
        }
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_old_after_its_time_or_when_somebody_says_so() {
        let now = OffsetDateTime::UNIX_EPOCH + Duration::days(20_000);
        let ago = |days: i64| (now - Duration::days(days)).unix_timestamp();
        let usual = Policy::default();
        let asked = |days: i64| Policy { renew: Some(now - Duration::days(days)), ..Policy::default() };
        for (policy, made, want) in [
            (&usual, 0, false),
            (&usual, 89, false),
            (&usual, 91, true),
            (&asked(1), 2, true),
            (&asked(1), 0, false),
            (&asked(-1), 2, false),
        ] {
            assert_eq!(due(ago(made), policy, now), want, "{made} days, {:?}", policy.renew);
        }
    }
}
