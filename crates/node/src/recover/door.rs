//! Open only while a cluster is recovered: a node whose certificate has expired gets another for the same key.
//!
//! On the machine-config server's port, which machines reach through the load balancer and pods do not. As a rule that server does not run on
//! this master now: it is a pod, and this master's kubelet gets its own certificate last. Where it does, it has to make room, and comes back by
//! itself.

use super::node::{Answer, PATH, Question};
use super::output_of;
use crate::error::{cannot, ensure};
use crate::{Error, Result, conditions};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use axum_server::tls_rustls::RustlsConfig;
use seedling_machine_config_server::{Caller, KnowCaller};
use seedling_operators::stand_in::KubeletSigner;
use seedling_pki::{CertKey, proven_node};
use seedling_steps::{Condition, Probe, wait_for};
use seedling_types::{Inventory, ports};
use std::future::Future;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use time::OffsetDateTime;
use tokio::sync::watch;

/// A certificate and a request, both small.
const LARGEST: usize = 64 << 10;

const MAKE_ROOM_WITHIN: std::time::Duration = std::time::Duration::from_secs(20);
const MAKE_ROOM_EVERY: std::time::Duration = std::time::Duration::from_millis(50);

struct Door {
    inventory: Inventory,
    signer: KubeletSigner,
}

/// Serves until it is dropped.
pub(super) async fn open(
    signer: KubeletSigner,
    serving: CertKey,
    inventory: Inventory,
) -> Result<impl Future<Output = Result<()>>> {
    let tls = RustlsConfig::from_pem(serving.cert.into_bytes(), serving.key.into_bytes()).await;
    let tls = tls.map_err(cannot("serve with", "the certificate of api-int"))?;
    let know_caller = KnowCaller::silent(watch::channel(inventory.clone()).1);
    let any = inventory.any_address();
    let door = Door { inventory, signer };
    let app = Router::new()
        .route("/healthz", get(async || StatusCode::OK))
        .route(PATH, post(answer))
        .layer(DefaultBodyLimit::max(LARGEST))
        .with_state(Arc::new(door));
    let port = ports::MCS.to_string();
    let server =
        axum_server::from_tcp_rustls(listen(any).await?, tls).map_err(cannot("listen on port", &port))?;
    let served = server.map(|tls| tls.acceptor(know_caller)).serve(app.into_make_service());
    Ok(async move { served.await.map_err(cannot("serve on port", port)) })
}

async fn listen(any: IpAddr) -> Result<TcpListener> {
    let address = SocketAddr::new(any, ports::MCS);
    let hint = format!("ss -ltnp sport = :{}", ports::MCS);
    let free = Condition::within(&conditions::RECOVER_PORT, MAKE_ROOM_WITHIN, hint).with("PORT", ports::MCS);
    let listener = wait_for(&free, MAKE_ROOM_EVERY, async || match TcpListener::bind(address) {
        Ok(listener) => Probe::Met(listener),
        Err(e) => {
            let stopped = stop_machine_config_server().await;
            Probe::Unmet(format!("{e}{}", stopped.err().map(|e| format!("; {e}")).unwrap_or_default()))
        }
    });
    let listener = listener.await?;
    listener.set_nonblocking(true).map_err(cannot("listen on port", ports::MCS.to_string()))?;
    Ok(listener)
}

/// The kubelet starts it again, and again, until the port is free.
async fn stop_machine_config_server() -> Result<()> {
    let containers = output_of("crictl", &["ps", "--quiet", "--name", "^machine-config-server$"]).await?;
    for container in containers.split_whitespace() {
        output_of("crictl", &["stop", "--timeout", "0", container]).await?;
    }
    Ok(())
}

async fn answer(
    State(door): State<Arc<Door>>,
    Extension(caller): Extension<Caller>,
    Json(asked): Json<Question>,
) -> Result<Json<Answer>, StatusCode> {
    let address = caller.address();
    let from = address.map_or("an unknown address".into(), |a| a.to_string());
    match door.judge(address, &asked, OffsetDateTime::now_utc()) {
        Ok((node, certificate)) => {
            tracing::info!("issuing a certificate to {node} at {from}: it has proved that it has the key");
            Ok(Json(Answer { certificate }))
        }
        Err(e) => {
            tracing::warn!("refused a request from {from}: {e}");
            Err(StatusCode::FORBIDDEN)
        }
    }
}

impl Door {
    fn judge(&self, from: Option<IpAddr>, asked: &Question, now: OffsetDateTime) -> Result<(String, String)> {
        let node = proven_node(&asked.certificate, &asked.request, &self.signer.authorities)?;
        let Some(host) = self.inventory.by_name(&node) else {
            return Err(Error::Seen(format!("{node} is no machine of this cluster any more")));
        };
        ensure!(from == Some(host.address), "{node} is at {}", host.address);
        let certificate = self.signer.issue(&node, &asked.request, now)?;
        Ok((node, certificate))
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use seedling_pki::{CaSpec, KeyAlgorithm, LeafSpec, Usage, issue, new_ca, node_request, not_after};
    use time::Duration;

    const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH.saturating_add(Duration::days(20_000));

    #[test]
    fn a_node_must_be_itself_at_its_own_address() {
        let spec = CaSpec { cn: "kube-csr-signer", ou: None, validity: Duration::days(1800) };
        let signer = new_ca(&spec, KeyAlgorithm::default(), NOW - Duration::days(500)).unwrap();
        let text =
            "hosts:\n- {name: master-0, role: master, mac: '52:54:00:5e:ed:11', address: 192.168.100.11}\n";
        let door = Door {
            inventory: Inventory::parse(text).unwrap(),
            signer: KubeletSigner {
                signs: signer.clone(),
                authorities: signer.cert.clone(),
                life: Duration::days(365),
            },
        };
        let question = |node: &str| {
            let cn = format!("system:node:{node}");
            let spec = LeafSpec {
                cn: &cn,
                organizations: vec!["system:nodes".into()],
                usages: &[Usage::Client],
                dns: vec![],
                ips: vec![],
                validity: Duration::days(30),
                append_parent: false,
                key_usage: true,
            };
            let old = issue(&signer, &spec, KeyAlgorithm::default(), NOW - Duration::days(400)).unwrap();
            Question { request: node_request(node, &old.key).unwrap().0, certificate: old.cert }
        };
        let at = |last: u8| Some(IpAddr::from([192, 168, 100, last]));
        let (node, certificate) = door.judge(at(11), &question("master-0"), NOW).unwrap();
        assert_eq!(
            (node.as_str(), not_after(&certificate).unwrap()),
            ("master-0", NOW + Duration::days(365))
        );
        for (from, node, why) in
            [(at(12), "master-0", "is at"), (None, "master-0", "is at"), (at(13), "master-9", "no machine")]
        {
            let refused = door.judge(from, &question(node), NOW).unwrap_err().to_string();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
