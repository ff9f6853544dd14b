//! Whether each master could hand out a config, asked where a joining machine asks.

use crate::runtime::{Context, Inputs, Next, Pace};
use crate::{OperatorError, Result};
use kube::Client;
use reqwest::StatusCode;
use seedling_api::{ConfigMap, Files, Pod};
use seedling_cluster::follow::{Selection, follow};
use seedling_cluster::get;
use seedling_types::names::NS_MCO;
use seedling_types::{Host, Inventory, ports};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

const ANSWER_WITHIN: Duration = Duration::from_secs(3);

/// By master.
pub(super) type Answers = BTreeMap<String, Answer>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    /// Failures since the last good answer.
    pub strikes: u32,
    /// Why it is no good answer.
    pub error: Option<String>,
}

/// Asks again when a pod of the server changed, or some time has passed.
pub(super) async fn ask_masters(
    context: &Context,
    inventory: &Inventory,
    api_server: &str,
    answers: &watch::Sender<Answers>,
) {
    let pods = follow::<Pod>(&context.client, Selection::within(NS_MCO));
    let masters = inventory.masters();
    let inputs = Inputs::default().watches(&pods);
    let asking = context.reconcile("machine-config/answers", Pace::ANSWERS, inputs, async |_| {
        let asked = match authority(&context.client).await {
            Ok(ca) => futures::future::join_all(masters.iter().map(|m| ask(m, api_server, &ca))).await,
            Err(e) => {
                let e = Arc::new(e);
                masters.iter().map(|_| Err(e.clone().into())).collect()
            }
        };
        answers.send_if_modified(|answers| {
            let before = answers.clone();
            for (master, asked) in masters.iter().zip(&asked) {
                let answer = answers.entry(master.name.clone()).or_default();
                let strikes = if asked.is_ok() { 0 } else { answer.strikes.saturating_add(1) };
                *answer = Answer { strikes, error: asked.as_ref().err().map(ToString::to_string) };
            }
            *answers != before
        });
        Ok(if asked.iter().all(Result::is_ok) { Next::Quiet } else { Next::Busy })
    });
    asking.await
}

async fn authority(client: &Client) -> Result<reqwest::Certificate> {
    let name = "machine-config-server-ca";
    let found = get::<ConfigMap>(client, Some(NS_MCO), name).await?;
    let pem = found.and_then(|map| map.file("ca-bundle.crt").map(String::from));
    let pem = pem.ok_or_else(|| OperatorError::Waits(format!("ConfigMap {name} is not there")))?;
    reqwest::Certificate::from_pem(pem.as_bytes())
        .map_err(|e| OperatorError::unreadable(format!("ConfigMap {name}"), e))
}

/// At the master's own address, by the name its certificate has. Only whether it could: the config is for machines with a token.
async fn ask(master: &Host, api_server: &str, ca: &reqwest::Certificate) -> Result<()> {
    // If one is installed already, it is the same one.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let name = api_server.trim_start_matches("https://").split(':').next().unwrap_or_default();
    let address = SocketAddr::new(master.address, ports::MCS);
    let client = reqwest::Client::builder()
        .tls_certs_only([ca.clone()])
        .no_proxy()
        .resolve(name, address)
        .timeout(ANSWER_WITHIN)
        .user_agent("machine-config-operator")
        .build()
        .map_err(OperatorError::Http)?;
    let request = client.head(format!("https://{name}:{}/readyz/master", ports::MCS));
    let response = request.send().await.map_err(OperatorError::Http)?;
    match response.status() {
        StatusCode::OK => Ok(()),
        other => Err(OperatorError::Answered(other)),
    }
}
