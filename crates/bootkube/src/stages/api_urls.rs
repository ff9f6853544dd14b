//! Stages 14 and 21: does the cluster's name lead to its API? Never fatal: the record keeps what was wrong.

use crate::error::ensure;
use crate::{Context, Error, Outcome, Result};
use seedling_types::ports;

async fn resolves(host: String) -> Result<()> {
    let found = tokio::net::lookup_host((host.as_str(), ports::API)).await;
    let addresses = found.map_err(|error| {
        let what = format!("{host} does not resolve; check the DNS server that DHCP announces");
        Error::System { what, error }
    })?;
    tracing::info!("{host} resolves to {:?}", addresses.map(|a| a.ip()).collect::<Vec<_>>());
    Ok(())
}

async fn is_ready(host: String) -> Result<()> {
    let url = format!("https://{host}:{}/readyz", ports::API);
    let client = reqwest::Client::builder().tls_danger_accept_invalid_certs(true).no_proxy().build()?;
    let answer = client.get(&url).timeout(std::time::Duration::from_secs(10)).send().await;
    let no_answer = |error| Error::NoAnswer { url: url.clone(), error };
    let status = answer.map_err(no_answer)?.status();
    ensure!(status.is_success(), "{url} answered {status}");
    Ok(())
}

macro_rules! stages {
    ($($module:ident: $name:literal, $done:literal, $check:ident($host:ident), $why:literal, $sentence:literal, $what:literal, $fails:literal, $upstream:literal;)+) => {$(
        pub(crate) mod $module {
            use super::*;
            use seedling_steps::Stage;

            pub(crate) const STAGE: Stage = Stage {
                name: $name,
                done: Some($done),
                what: $what,
                why: $why,
                reads: &["DNS"],
                writes: &[],
                check: $sentence,
                fails: &[$fails],
                upstream: $upstream,
                see: &["port.6443", "component.load-balancer", "seed.003.15"],
            };

            pub(crate) async fn run(_: &Context) -> Result<Outcome> {
                Ok(Outcome::Advisory)
            }

            pub(crate) async fn check(c: &Context) -> Result<()> {
                super::$check(c.config.domain.$host()).await
            }
        }
    )+};
}

stages! {
    resolve_api_url: "resolve-api-url", "api-dns-resolved", resolves(api), "people reach the cluster by this name", "api resolves",
        "Looks whether api.CLUSTER resolves. What is wrong is recorded, and bootkube goes on.",
        "it does not resolve: is there a record, and does DHCP announce the right DNS server?", "dig +short api.CLUSTER";
    resolve_api_int_url: "resolve-api-int-url", "api-int-dns-resolved", resolves(api_int),
        "masters fetch their configuration and reach the API by this name", "api-int resolves",
        "Looks whether api-int.CLUSTER resolves. What is wrong is recorded, and bootkube goes on.",
        "it does not resolve: masters never ask for their configuration", "dig +short api-int.CLUSTER";
    check_api_url: "check-api-url", "api-dns-check", is_ready(api),
        "the load balancer must now lead to the masters", "GET https://api:6443/readyz is 200",
        "Asks the API through api.CLUSTER, now that the masters serve it. What is wrong is recorded.",
        "no answer: the load balancer still leads to the bootstrap node, or nowhere", "curl -k https://api.CLUSTER:6443/readyz";
    check_api_int_url: "check-api-int-url", "api-int-dns-check", is_ready(api_int),
        "the load balancer must now lead to the masters", "GET https://api-int:6443/readyz is 200",
        "Asks the API through api-int.CLUSTER, now that the masters serve it. What is wrong is recorded.",
        "no answer: the load balancer still leads to the bootstrap node, or nowhere", "curl -k https://api-int.CLUSTER:6443/readyz";
}
