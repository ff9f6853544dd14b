//! The audit log: one JSON object a line on standard output, for every config that was asked for. A token is never part of it.

use super::proxy::Caller;
use serde::Serialize;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};

/// What a client may say of itself is not to fill the log.
const LONGEST: usize = 200;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    time: String,
    audit: &'static str,
    verdict: &'static str,
    reason: &'a str,
    address: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    load_balancer: Option<Ipv4Addr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<&'a Request<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Request<'a> {
    pub method: &'a str,
    pub pool: &'a str,
    pub user_agent: &'a str,
    pub status: u16,
}

pub fn config(caller: &Caller, node: Option<&str>, request: &Request, verdict: &Result<&str, String>) {
    let short = Request { pool: cut(request.pool), user_agent: cut(request.user_agent), ..*request };
    write(&Line {
        time: now(),
        audit: "config",
        verdict: if verdict.is_ok() { "allowed" } else { "refused" },
        reason: match verdict {
            Ok(why) => why,
            Err(why) => cut(why),
        },
        address: caller.address(),
        load_balancer: caller.balancer(),
        node,
        request: Some(&short),
    });
}

/// The connection is closed: whoever is no load balancer speaks for nobody.
pub fn not_a_balancer(peer: IpAddr) {
    write(&Line {
        time: now(),
        audit: "connection",
        verdict: "refused",
        reason: "it claims to speak for another address, but is not in loadBalancers of the inventory",
        address: Some(peer.to_canonical()),
        load_balancer: None,
        node: None,
        request: None,
    });
}

fn write(line: &Line) {
    if let Ok(mut text) = serde_json::to_vec(line) {
        text.push(b'\n');
        // Whole lines; without anybody to read them the server still serves.
        let _ = std::io::stdout().lock().write_all(&text);
    }
}

fn now() -> String {
    format!("{:.3}", k8s_openapi::jiff::Timestamp::now())
}

fn cut(text: &str) -> &str {
    text.char_indices().nth(LONGEST).map_or(text, |(end, _)| &text[..end])
}
