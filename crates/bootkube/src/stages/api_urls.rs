//! Stages 14 and 21: does the cluster's name lead to its API? Never fatal: the record keeps what was wrong.

use crate::{Context, Outcome};
use anyhow::Result;
use seedling_types::ports;

async fn resolve(host: String) -> Result<Outcome> {
    match tokio::net::lookup_host((host.as_str(), ports::API)).await {
        Ok(addresses) => {
            tracing::info!("{host} resolves to {:?}", addresses.map(|a| a.ip()).collect::<Vec<_>>());
            Ok(Outcome::Done)
        }
        Err(e) => {
            tracing::warn!("{host} does not resolve: {e}; check the DNS server that DHCP announces");
            Ok(Outcome::Failed)
        }
    }
}

async fn check(host: String) -> Result<Outcome> {
    let url = format!("https://{host}:{}/readyz", ports::API);
    let client = reqwest::Client::builder().tls_danger_accept_invalid_certs(true).build()?;
    match client.get(&url).timeout(std::time::Duration::from_secs(10)).send().await {
        Ok(response) if response.status().is_success() => Ok(Outcome::Done),
        Ok(response) => {
            tracing::warn!("{url} answered {}", response.status());
            Ok(Outcome::Failed)
        }
        Err(e) => {
            tracing::warn!("{url}: {e}; check the load balancer");
            Ok(Outcome::Failed)
        }
    }
}

macro_rules! stage {
    ($module:ident, $name:literal, $done:literal, $act:ident, $host:ident, $why:literal, $check:literal) => {
        pub mod $module {
            use super::*;
            use seedling_steps::Stage;

            pub const STAGE: Stage = Stage {
                name: $name,
                done: Some($done),
                why: $why,
                reads: &["DNS"],
                writes: &[],
                check: $check,
            };

            pub async fn run(c: &Context) -> Result<Outcome> {
                super::$act(c.config.domain.$host()).await
            }
        }
    };
}

stage!(
    resolve_api_url,
    "resolve-api-url",
    "api-dns-resolved",
    resolve,
    api,
    "people reach the cluster by this name",
    "api resolves"
);
stage!(
    resolve_api_int_url,
    "resolve-api-int-url",
    "api-int-dns-resolved",
    resolve,
    api_int,
    "masters fetch their configuration and reach the API by this name",
    "api-int resolves"
);
stage!(
    check_api_url,
    "check-api-url",
    "api-dns-check",
    check,
    api,
    "the load balancer must now lead to the masters",
    "GET https://api:6443/readyz is 200"
);
stage!(
    check_api_int_url,
    "check-api-int-url",
    "api-int-dns-check",
    check,
    api_int,
    "the load balancer must now lead to the masters",
    "GET https://api-int:6443/readyz is 200"
);
