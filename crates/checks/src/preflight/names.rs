//! Which names must lead where, and what a DNS server says of them.

use super::facts::{Query, Resolved, Wanted};
use super::{DNS_API, DNS_APPS, DNS_HOSTS, DNS_REVERSE, DNS_WILDCARD};
use crate::verify::Asked;
use futures::future::join_all;
use hickory_proto::op::{Message, Query as Question, ResponseCode};
use hickory_proto::rr::{Name, RData, RecordType};
use seedling_types::{ClusterDomain, Inventory};
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::time::timeout;

const WITHIN: Duration = Duration::from_secs(3);

/// Without answers. `unused`: a label that nobody has.
pub fn questions(domain: &ClusterDomain, inventory: Option<&Inventory>, unused: &str) -> Vec<Resolved> {
    let ask = |check, name: String, query, wanted| Resolved {
        check,
        name,
        query,
        wanted,
        server: String::new(),
        answer: Err("not asked".into()),
    };
    let hosts = inventory.map(|i| i.hosts.as_slice()).unwrap_or_default();
    let balancers = inventory.map(|i| i.load_balancers.clone()).unwrap_or_default();
    // Of one machine the balancer is that machine; of several it is none of them.
    let behind = match (balancers.is_empty(), hosts.len()) {
        (false, _) => Wanted::OneOf(balancers),
        (true, 0 | 1) => Wanted::OneOf(vec![]),
        (true, _) => Wanted::NotOf(hosts.iter().flat_map(|h| h.addresses()).collect()),
    };
    let mut all = vec![
        ask(DNS_API, domain.api(), Query::Address, behind.clone()),
        ask(DNS_API, domain.api_int(), Query::Address, behind),
    ];
    for host in hosts {
        all.push(ask(
            DNS_HOSTS,
            domain.host(&host.name),
            Query::Address,
            Wanted::OneOf(host.addresses().collect()),
        ));
    }
    for host in hosts {
        let wanted = Wanted::Name(domain.host(&host.name));
        for address in host.addresses() {
            all.push(ask(DNS_REVERSE, address.to_string(), Query::Pointer, wanted.clone()));
        }
    }
    all.push(ask(DNS_APPS, format!("{unused}.{}", domain.apps()), Query::Address, Wanted::OneOf(vec![])));
    all.push(ask(DNS_WILDCARD, domain.host(unused), Query::Address, Wanted::Nothing));
    all
}

/// Each of the first server that answers.
pub async fn ask_all(questions: Vec<Resolved>, servers: &[SocketAddr]) -> Vec<Resolved> {
    join_all(questions.into_iter().map(async |question| {
        let mut question = question;
        question.answer = Err("there is no DNS server in /etc/resolv.conf".into());
        for server in servers {
            question.server = server.ip().to_string();
            question.answer = ask(*server, &question.name, question.query).await;
            if question.answer.is_ok() {
                break;
            }
        }
        question
    }))
    .await
}

/// Nothing: the server says that there is no such name. A name without an IPv4 address may have an IPv6 one.
async fn ask(server: SocketAddr, name: &str, query: Query) -> Asked<Vec<String>> {
    match query {
        Query::Pointer => {
            let address = name.parse().map_err(|e| format!("{name}: {e}"))?;
            ask_type(server, &reverse(address), RecordType::PTR).await
        }
        Query::Address => {
            let found = ask_type(server, name, RecordType::A).await?;
            if found.is_empty() { ask_type(server, name, RecordType::AAAA).await } else { Ok(found) }
        }
    }
}

async fn ask_type(server: SocketAddr, name: &str, kind: RecordType) -> Asked<Vec<String>> {
    let name = Name::from_str(&format!("{}.", name.trim_end_matches('.'))).map_err(|e| e.to_string())?;
    let mut message = Message::query();
    message.add_query(Question::query(name, kind));
    message.metadata.recursion_desired = true;
    let bytes = message.to_vec().map_err(|e| e.to_string())?;
    let asked = async {
        let any = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(any).await?;
        socket.connect(server).await?;
        socket.send(&bytes).await?;
        let mut buffer = [0; 4096];
        let length = socket.recv(&mut buffer).await?;
        std::io::Result::Ok(buffer[..length].to_vec())
    };
    let answered = timeout(WITHIN, asked).await.map_err(|_| format!("{} does not answer", server.ip()))?;
    let bytes = answered.map_err(|e| format!("{}: {e}", server.ip()))?;
    let answer = Message::from_vec(&bytes).map_err(|e| format!("{}: {e}", server.ip()))?;
    if answer.metadata.id != message.metadata.id {
        return Err(format!("{} answered another question", server.ip()));
    }
    match answer.metadata.response_code {
        ResponseCode::NoError | ResponseCode::NXDomain => {
            Ok(answer.answers.iter().filter_map(|r| said(&r.data)).collect())
        }
        code => Err(format!("{} says {code}", server.ip())),
    }
}

fn said(data: &RData) -> Option<String> {
    match data {
        RData::A(address) => Some(address.0.to_string()),
        RData::AAAA(address) => Some(address.0.to_string()),
        RData::PTR(name) => Some(name.0.to_utf8().trim_end_matches('.').to_string()),
        _ => None,
    }
}

fn reverse(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa")
        }
        IpAddr::V6(address) => {
            let halves = address.octets().into_iter().flat_map(|octet| [octet >> 4, octet & 15]);
            let labels: Vec<_> = halves.rev().map(|half| format!("{half:x}")).collect();
            format!("{}.ip6.arpa", labels.join("."))
        }
    }
}

/// Those of /etc/resolv.conf, in its order.
pub fn system_servers(resolv_conf: &str) -> Vec<SocketAddr> {
    let server = |line: &str| {
        let mut words = line.split_whitespace();
        (words.next() == Some("nameserver")).then(|| words.next()?.parse().ok())?
    };
    resolv_conf.lines().filter_map(server).map(|ip| SocketAddr::new(ip, seedling_types::ports::DNS)).collect()
}
