//! A query in wire format → the reply in wire format.

use super::zone::{Found, Zones};
use hickory_proto::op::{Edns, Message, MessageType, Metadata, OpCode, ResponseCode};
use hickory_proto::rr::{DNSClass, RData, Record};

/// Short enough that neither a restarted lab nor a machine that took another's name is answered from an old cache.
const TTL: u32 = 30;
/// What fits any path without fragments (DNS flag day 2020). Our replies are far smaller, so none is ever truncated.
const EDNS_PAYLOAD: u16 = 1232;

/// What to do with a packet.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    Reply(Vec<u8>),
    /// The name is not ours, and the client wants us to ask others.
    Forward,
    /// Not even worth an error (too short, or itself a reply).
    Ignore,
}

pub fn answer(zones: &Zones, packet: &[u8]) -> Option<Vec<u8>> {
    match judge(zones, packet, false) {
        Verdict::Reply(reply) => Some(reply),
        Verdict::Forward | Verdict::Ignore => None,
    }
}

/// `forwards`: others may be asked for this client.
pub fn judge(zones: &Zones, packet: &[u8], forwards: bool) -> Verdict {
    let Ok(request) = Message::from_vec(packet) else {
        return malformed(packet).map_or(Verdict::Ignore, Verdict::Reply);
    };
    if request.metadata.message_type == MessageType::Response {
        return Verdict::Ignore;
    }
    if forwards && is_for_others(zones, &request) {
        return Verdict::Forward;
    }
    reply(zones, &request, forwards).map_or(Verdict::Ignore, Verdict::Reply)
}

fn is_for_others(zones: &Zones, request: &Message) -> bool {
    let [query] = request.queries.as_slice() else { return false };
    request.metadata.op_code == OpCode::Query
        && request.metadata.recursion_desired
        && query.query_class == DNSClass::IN
        && matches!(zones.lookup(&query.name, query.query_type), Found::Outside)
}

/// When nobody else answered.
pub fn failed(packet: &[u8]) -> Option<Vec<u8>> {
    let request = Message::from_vec(packet).ok()?;
    let mut reply = Message::response(request.metadata.id, request.metadata.op_code);
    reply.metadata = Metadata::response_from_request(&request.metadata);
    reply.metadata.recursion_available = true;
    reply.queries = request.queries;
    reply.metadata.response_code = ResponseCode::ServFail;
    reply.to_vec().ok()
}

/// Whether this is the answer to that question.
pub fn belongs(question: &[u8], answer: &[u8]) -> bool {
    let (Ok(question), Ok(answer)) = (Message::from_vec(question), Message::from_vec(answer)) else {
        return false;
    };
    answer.metadata.message_type == MessageType::Response
        && answer.metadata.id == question.metadata.id
        && answer.queries == question.queries
}

fn reply(zones: &Zones, request: &Message, forwards: bool) -> Option<Vec<u8>> {
    let mut reply = Message::response(request.metadata.id, request.metadata.op_code);
    reply.metadata = Metadata::response_from_request(&request.metadata);
    reply.queries = request.queries.clone();
    reply.metadata.recursion_available = forwards;
    reply.metadata.response_code = fill(zones, request, &mut reply);
    if request.edns.is_some() {
        let mut edns = Edns::new();
        edns.set_max_payload(EDNS_PAYLOAD).set_rcode_high(reply.metadata.response_code.high());
        reply.edns = Some(edns);
    }
    reply.to_vec().ok()
}

fn fill(zones: &Zones, request: &Message, reply: &mut Message) -> ResponseCode {
    if request.metadata.op_code != OpCode::Query {
        return ResponseCode::NotImp;
    }
    if request.edns.as_ref().is_some_and(|e| e.version() > 0) {
        return ResponseCode::BADVERS;
    }
    let [query] = request.queries.as_slice() else { return ResponseCode::FormErr };
    if !matches!(query.query_class, DNSClass::IN | DNSClass::ANY) {
        return ResponseCode::Refused;
    }
    let (code, soa) = match zones.lookup(&query.name, query.query_type) {
        Found::Outside => return ResponseCode::Refused,
        Found::Records(records) => {
            let records =
                records.into_iter().map(|data| Record::from_rdata(query.name.clone(), TTL, data.clone()));
            reply.answers.extend(records);
            (ResponseCode::NoError, None)
        }
        Found::NoData(zone) => (ResponseCode::NoError, Some(zone)),
        Found::NoName(zone) => (ResponseCode::NXDomain, Some(zone)),
    };
    reply.metadata.authoritative = true;
    if let Some(zone) = soa {
        let soa = RData::SOA(zone.soa.clone());
        reply.authorities.push(Record::from_rdata(zone.origin.clone(), zone.soa.minimum, soa));
    }
    code
}

/// The header alone is enough to tell a client that we did not understand the rest.
fn malformed(packet: &[u8]) -> Option<Vec<u8>> {
    let [a, b, flags, ..] = packet else { return None };
    if packet.len() < 12 || flags & 0x80 != 0 {
        return None;
    }
    Message::error_msg(u16::from_be_bytes([*a, *b]), OpCode::Query, ResponseCode::FormErr).to_vec().ok()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
#[path = "tests.rs"]
mod tests;
