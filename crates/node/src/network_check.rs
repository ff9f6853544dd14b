//! `seedling operator network-check`, on every node: does a Service address answer here, does cluster DNS?
//!
//! In: the addresses, from the environment. Out: the node's CNI config, and a report on port 9101 that the network and DNS
//! operators follow: `/report`, or `/report/after/<revision>`, which answers as soon as there is another one.

use crate::error::{cannot, in_file};
use crate::{Error, cni};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use hickory_proto::op::{Message, Query, ResponseCode};
use hickory_proto::rr::{Name, RData, RecordType};
use ipnet::IpNet;
use seedling_cluster::innermost;
use seedling_types::node_report::{HOLD, NodeReport, Probed};
use seedling_types::ports;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

const CA: &str = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";
const NAME: &str = "kubernetes.default.svc.cluster.local.";
/// Until it answers, and for the first minute of a failure.
const FAST: Duration = Duration::from_millis(200);
const SLOW: Duration = Duration::from_secs(2);
const WHILE_WELL: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(60);
/// What answered before is reported as failing after this many failures: an API server that restarts is no failure.
const STRIKES: u32 = 3;
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

pub async fn check_and_report() -> Result<(), Error> {
    let variable = |name| std::env::var(name).map_err(|error| Error::NotSet { name, error });
    let address = |name, text: &str| text.parse::<IpAddr>().map_err(in_file(name));
    let service = address("SERVICE_ADDRESS", &variable("SERVICE_ADDRESS")?)?;
    // One of each family of the cluster.
    let dns = variable("DNS_ADDRESS")?;
    let dns = dns.split(',').map(|text| address("DNS_ADDRESS", text)).collect::<Result<Vec<_>, _>>()?;
    let any = match dns.iter().any(IpAddr::is_ipv6) {
        true => IpAddr::from(Ipv6Addr::UNSPECIFIED),
        false => Ipv4Addr::UNSPECIFIED.into(),
    };
    let report = watch::Sender::new(NodeReport { node: variable("NODE_NAME")?, ..NodeReport::default() });
    let listener = tokio::net::TcpListener::bind((any, ports::NETWORK_CHECK)).await;
    let listener = listener.map_err(cannot("listen on port", ports::NETWORK_CHECK.to_string()))?;
    let update = |change: &dyn Fn(&mut NodeReport)| {
        report.send_if_modified(|current| {
            let mut next = current.clone();
            change(&mut next);
            let changed = next != *current;
            next.revision += u64::from(changed);
            *current = next;
            changed
        });
    };
    tokio::select! {
        served = axum::serve(listener, router(report.subscribe())) => served.map_err(cannot("serve", "the report")),
        () = cni::keep(|subnets, mtu| update(&|r| (r.pod_network, r.mtu) = (Some(joined(subnets)), Some(mtu)))) => Ok(()),
        () = probe(async || ask_service(service).await, |p| update(&|r| set(&mut r.service, p))) => Ok(()),
        () = probe(async || ask_all(&dns, service).await, |p| update(&|r| set(&mut r.dns, p))) => Ok(()),
    }
}

fn set(probed: &mut Probed, outcome: &Result<(), String>) {
    let before = probed.before || outcome.is_ok();
    *probed = Probed { ok: outcome.is_ok(), message: outcome.clone().err().unwrap_or_default(), before };
}

async fn probe(mut ask: impl AsyncFnMut() -> Result<(), String>, tell: impl Fn(&Result<(), String>)) {
    let mut failing_since = Instant::now();
    let mut strikes = STRIKES;
    loop {
        let outcome =
            timeout(ANSWER_WITHIN, ask()).await.unwrap_or_else(|_| Err("no answer within 1s".into()));
        strikes = if outcome.is_ok() { 0 } else { strikes + 1 };
        if strikes == 0 || strikes >= STRIKES {
            tell(&outcome);
        }
        let pause = match outcome {
            Ok(()) => {
                failing_since = Instant::now();
                WHILE_WELL
            }
            Err(_) if failing_since.elapsed() < PATIENCE => FAST,
            Err(_) => SLOW,
        };
        tokio::time::sleep(pause).await;
    }
}

/// Any HTTP answer over TLS with the cluster's certificate: the path to an API server works.
async fn ask_service(address: IpAddr) -> Result<(), String> {
    let pem = std::fs::read(CA).map_err(|e| format!("{CA}: {e}"))?;
    let roots = reqwest::Certificate::from_pem_bundle(&pem).map_err(|e| innermost(&e))?;
    let client =
        reqwest::Client::builder().tls_certs_only(roots).no_proxy().build().map_err(|e| innermost(&e))?;
    client
        .get(format!("https://{}/readyz", SocketAddr::new(address, 443)))
        .send()
        .await
        .map(drop)
        .map_err(|e| innermost(&e))
}

/// Cluster DNS answers at each of its addresses.
async fn ask_all(servers: &[IpAddr], expected: IpAddr) -> Result<(), String> {
    for server in servers {
        ask_dns(*server, expected)
            .await
            .map_err(|why| if servers.len() > 1 { format!("{server}: {why}") } else { why })?;
    }
    Ok(())
}

fn joined(subnets: &[IpNet]) -> String {
    seedling_components::cluster_config::joined(&subnets.iter().map(IpNet::trunc).collect::<Vec<_>>())
}

async fn ask_dns(server: IpAddr, expected: IpAddr) -> Result<(), String> {
    let mut query = Message::query();
    let name = Name::from_str(NAME).map_err(|e| e.to_string())?;
    query.add_query(Query::query(name, if expected.is_ipv4() { RecordType::A } else { RecordType::AAAA }));
    query.metadata.recursion_desired = true;
    let bytes = query.to_vec().map_err(|e| e.to_string())?;
    let socket = tokio::net::UdpSocket::bind(if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" })
        .await
        .map_err(|e| e.to_string())?;
    socket.connect(SocketAddr::from((server, ports::DNS))).await.map_err(|e| e.to_string())?;
    socket.send(&bytes).await.map_err(|e| e.to_string())?;
    let mut buffer = [0; 1500];
    let length = socket.recv(&mut buffer).await.map_err(|e| e.to_string())?;
    let answer = Message::from_vec(&buffer[..length]).map_err(|e| e.to_string())?;
    judge(&answer, query.metadata.id, expected)
}

fn judge(answer: &Message, id: u16, expected: IpAddr) -> Result<(), String> {
    if answer.metadata.id != id {
        return Err("an answer to another question".into());
    }
    if answer.metadata.response_code != ResponseCode::NoError {
        return Err(format!("{NAME} {}", answer.metadata.response_code));
    }
    let found = answer.answers.iter().any(|r| match &r.data {
        RData::A(a) => IpAddr::from(a.0) == expected,
        RData::AAAA(a) => IpAddr::from(a.0) == expected,
        _ => false,
    });
    if found { Ok(()) } else { Err(format!("{NAME} is not {expected}")) }
}

fn router(report: watch::Receiver<NodeReport>) -> Router {
    Router::new()
        .route("/report", get(async |State(r): State<watch::Receiver<NodeReport>>| Json(r.borrow().clone())))
        .route("/report/after/{revision}", get(after))
        .route("/readyz", get(ready))
        .with_state(report)
}

async fn after(
    State(mut report): State<watch::Receiver<NodeReport>>,
    Path(revision): Path<u64>,
) -> Json<NodeReport> {
    let _ = timeout(HOLD, report.wait_for(|r| r.revision != revision)).await;
    Json(report.borrow().clone())
}

/// Ready means working: pods get a network, and a Service address answers.
async fn ready(State(report): State<watch::Receiver<NodeReport>>) -> (StatusCode, Json<NodeReport>) {
    let report = report.borrow().clone();
    let well = report.pod_network.is_some() && report.service.ok;
    (if well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, Json(report))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use hickory_proto::op::{MessageType, OpCode};
    use hickory_proto::rr::{Record, rdata::A};

    #[test]
    fn dns_must_answer_with_the_service_address() {
        let address = Ipv4Addr::new(172, 30, 0, 1);
        let expected = IpAddr::from(address);
        let mut answer = Message::new(7, MessageType::Response, OpCode::Query);
        assert_eq!(judge(&answer, 7, expected).unwrap_err(), format!("{NAME} is not 172.30.0.1"));
        let name = Name::from_str(NAME).unwrap();
        answer.answers.push(Record::from_rdata(name, 5, RData::A(A(address))));
        assert_eq!(judge(&answer, 7, expected), Ok(()));
        assert!(judge(&answer, 8, expected).is_err());
        answer.metadata.response_code = ResponseCode::ServFail;
        assert!(judge(&answer, 7, expected).is_err());
    }

    #[test]
    fn a_failure_after_success_is_remembered_as_such() {
        let mut probed = Probed::default();
        set(&mut probed, &Err("refused".into()));
        assert_eq!(probed, Probed { ok: false, message: "refused".into(), before: false });
        set(&mut probed, &Ok(()));
        set(&mut probed, &Err("gone".into()));
        assert_eq!(probed, Probed { ok: false, message: "gone".into(), before: true });
    }
}
