//! With what a machine asks for its first certificate: a token of one service account that may do nothing else, and that ends.

use base64::{Engine, engine::general_purpose::STANDARD};
use kube::Client;
use seedling_api::{ConfigMap, Files};
use seedling_cluster::{ClusterError, get, token_of};
use seedling_components::pod::to_yaml;
use seedling_types::names::NS_MCO;
use serde_json::json;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::Mutex;
use tokio::time::Instant;

const ACCOUNT: &str = "node-bootstrapper";
/// A machine is installed, restarts and waits for its approval in far less; what is left on a disk is worth nothing the day after.
const LIFE: Duration = Duration::from_secs(24 * 3600);

/// Why a machine gets nothing to ask with.
#[derive(Debug, Error)]
pub enum TokenError {
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error("ConfigMap kube-root-ca.crt is not there yet")]
    NoAuthority,
}

/// One token for all who ask within the first half of its life: each has as much time again to join.
#[derive(Default)]
pub struct Tokens(Mutex<Option<(Instant, String)>>);

impl Tokens {
    async fn current(&self, client: &Client) -> Result<String, ClusterError> {
        let mut last = self.0.lock().await;
        if let Some((made, token)) = last.as_ref().filter(|(made, _)| fresh(made.elapsed())) {
            tracing::debug!("the token of {:?} ago", made.elapsed());
            return Ok(token.clone());
        }
        let made = Instant::now();
        let token = token_of(client, NS_MCO, ACCOUNT, LIFE).await?;
        *last = Some((made, token.clone()));
        Ok(token)
    }

    /// The kubeconfig that a joining kubelet is given.
    pub async fn kubeconfig(&self, client: &Client, api_server: &str) -> Result<String, TokenError> {
        let ca = authority(client).await?;
        Ok(kubeconfig(api_server, &ca, &self.current(client).await?))
    }
}

fn fresh(age: Duration) -> bool {
    age < LIFE / 2
}

/// The CA of API servers that the machine trusts: the one configured for it, else the one every pod trusts.
async fn authority(client: &Client) -> Result<String, TokenError> {
    for (name, key) in [("kubeconfig-data", "ca-bundle.crt"), ("kube-root-ca.crt", "ca.crt")] {
        let map = get::<ConfigMap>(client, Some(NS_MCO), name).await?;
        let ca = map.and_then(|map| map.file(key).map(String::from));
        if let Some(ca) = ca.filter(|ca| !ca.is_empty()) {
            return Ok(ca);
        }
    }
    Err(TokenError::NoAuthority)
}

fn kubeconfig(api_server: &str, ca: &str, token: &str) -> String {
    let cluster = json!({"server": api_server, "certificate-authority-data": STANDARD.encode(ca)});
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "local", "cluster": cluster}],
        "users": [{"name": "kubelet", "user": {"token": token}}],
        "contexts": [{"name": "kubelet", "context": {"cluster": "local", "user": "kubelet"}}],
        "current-context": "kubelet",
    });
    to_yaml(&config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_given_a_token_has_half_a_day_left() {
        let hours = |h: u64| Duration::from_secs(3600 * h);
        assert!(fresh(hours(0)) && fresh(hours(11)));
        assert!(!fresh(hours(12)) && !fresh(hours(30)));
    }
}
