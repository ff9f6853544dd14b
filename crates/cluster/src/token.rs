//! Tokens of service accounts that end, for those who may ask for them.

use crate::objects::failed;
use crate::{ClusterError, Result};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Client;
use kube::api::{Api, PostParams};
use std::time::Duration;

pub async fn token_of(client: &Client, namespace: &str, account: &str, life: Duration) -> Result<String> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    let seconds = i64::try_from(life.as_secs()).unwrap_or(i64::MAX);
    let spec = TokenRequestSpec { expiration_seconds: Some(seconds), ..Default::default() };
    let request = TokenRequest { spec: Some(spec), ..Default::default() };
    let what = format!("asking for a token of ServiceAccount {namespace}/{account}");
    let answer = accounts.create_token_request(account, &PostParams::default(), &request).await;
    let answer = answer.map_err(|e| failed(what.clone(), e))?;
    answer.status.and_then(|status| status.token).ok_or(ClusterError::Malformed(what))
}
