//! The decision: a message from a client → what to log and what to reply.

use dhcproto::v4::{DhcpOption, HType, Message, MessageType, Opcode, OptionCode};
use hickory_proto::rr::Name;
use seedling_types::helper::HelperEventKind;
use seedling_types::{HelperConfig, Host};
use std::net::Ipv4Addr;

/// As helpernode's dhcpd; an address never changes, so the length only decides how often clients ask again.
const LEASE_SECONDS: u32 = 4 * 60 * 60;

#[derive(Debug, PartialEq)]
pub struct Decision<R> {
    pub events: Vec<HelperEventKind>,
    /// Whose machine begins to boot, by what it asks.
    pub boots: Option<Host>,
    pub reply: Option<R>,
}

impl<R> Decision<R> {
    pub fn ignore() -> Self {
        Self { events: Vec::new(), boots: None, reply: None }
    }
}

pub fn decide(config: &HelperConfig, request: &Message) -> Decision<Message> {
    // The length is checked first: chaddr() of a longer one panics.
    if request.opcode() != Opcode::BootRequest || request.htype() != HType::Eth || request.hlen() != 6 {
        return Decision::ignore();
    }
    let Some(DhcpOption::MessageType(kind)) = request.opts().get(OptionCode::MessageType) else {
        return Decision::ignore();
    };
    // A reply goes to the relay that is named: without this, to anybody's victim.
    if !request.giaddr().is_unspecified() && !config.relays.contains(&request.giaddr()) {
        return Decision::ignore();
    }
    let mac = request.chaddr().iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(":");
    let host = config.inventory.by_mac(&mac);
    let event = |message: &str, address: Option<Ipv4Addr>| HelperEventKind::Dhcp {
        message: message.into(),
        mac: mac.clone(),
        host: host.map(|h| h.name.clone()),
        address,
    };
    let asked = requested(request);
    let say = |heard: &str, said: Option<(&str, Message)>| {
        let mut events = vec![event(heard, asked)];
        events.extend(said.iter().map(|(name, _)| event(name, host.map(|h| h.address))));
        let boots = host.filter(|_| said.is_some() && begins(request)).cloned();
        Decision { events, boots, reply: said.map(|(_, message)| message) }
    };

    match (kind, host) {
        (MessageType::Discover, Some(host)) => {
            say("DISCOVER", Some(("OFFER", lease(config, request, host, MessageType::Offer))))
        }
        (MessageType::Discover, None) => {
            let events = vec![event("DISCOVER", asked), event("REFUSED", None)];
            Decision { events, ..Decision::ignore() }
        }
        // The client chose another server's offer. On this network there should be none: a machine of ours is told of.
        (MessageType::Request, _) if chosen_server(request).is_some_and(|s| s != config.address) => {
            let events = host.map(|_| event("ELSEWHERE", asked)).into_iter().collect();
            Decision { events, ..Decision::ignore() }
        }
        (MessageType::Request, Some(host)) if asked == Some(host.address) => {
            say("REQUEST", Some(("ACK", lease(config, request, host, MessageType::Ack))))
        }
        (MessageType::Request, _) => say("REQUEST", Some(("NAK", refuse(config, request)))),
        // Answered at the address it names, which must be its own.
        (MessageType::Inform, Some(host)) if asked == Some(host.address) => {
            say("INFORM", Some(("ACK", lease(config, request, host, MessageType::Ack))))
        }
        (MessageType::Inform, _) => {
            let events = vec![event("INFORM", asked), event("REFUSED", None)];
            Decision { events, ..Decision::ignore() }
        }
        (MessageType::Release, _) => say("RELEASE", None),
        // Somebody else uses the address; giving out another one would contradict the inventory.
        (MessageType::Decline, _) => say("DECLINE", None),
        _ => Decision::ignore(),
    }
}

/// A machine that has no address yet, and asks for one. One that renews its lease has.
fn begins(request: &Message) -> bool {
    let kind = request.opts().msg_type();
    request.ciaddr().is_unspecified() && matches!(kind, Some(MessageType::Discover | MessageType::Request))
}

/// While selecting or rebooting the address is in the option, while renewing in the header.
fn requested(request: &Message) -> Option<Ipv4Addr> {
    match request.opts().get(OptionCode::RequestedIpAddress) {
        Some(DhcpOption::RequestedIpAddress(address)) => Some(*address),
        _ => Some(request.ciaddr()).filter(|a| !a.is_unspecified()),
    }
}

fn chosen_server(request: &Message) -> Option<Ipv4Addr> {
    match request.opts().get(OptionCode::ServerIdentifier) {
        Some(DhcpOption::ServerIdentifier(server)) => Some(*server),
        _ => None,
    }
}

fn reply(config: &HelperConfig, request: &Message, kind: MessageType) -> Message {
    let mut reply = Message::default();
    reply
        .set_opcode(Opcode::BootReply)
        .set_xid(request.xid())
        .set_flags(request.flags())
        .set_giaddr(request.giaddr())
        .set_chaddr(request.chaddr());
    reply.opts_mut().insert(DhcpOption::MessageType(kind));
    reply.opts_mut().insert(DhcpOption::ServerIdentifier(config.address));
    // RFC 6842: a client that names itself must find its name in the answer.
    if let Some(id) = request.opts().get(OptionCode::ClientIdentifier) {
        reply.opts_mut().insert(id.clone());
    }
    reply
}

fn refuse(config: &HelperConfig, request: &Message) -> Message {
    let mut nak = reply(config, request, MessageType::Nak);
    nak.opts_mut().insert(DhcpOption::Message("this address is not yours in the inventory".into()));
    nak
}

fn lease(config: &HelperConfig, request: &Message, host: &Host, kind: MessageType) -> Message {
    let mut message = reply(config, request, kind);
    message.set_ciaddr(request.ciaddr()).set_siaddr(config.address);
    let options = message.opts_mut();
    options.insert(DhcpOption::SubnetMask(config.network.netmask()));
    options.insert(DhcpOption::BroadcastAddr(config.network.broadcast()));
    options.insert(DhcpOption::Router(vec![config.address]));
    options.insert(DhcpOption::DomainNameServer(vec![config.address]));
    options.insert(DhcpOption::Hostname(host.name.clone()));
    options.insert(DhcpOption::DomainName(config.cluster_domain.to_string()));
    if let Ok(domain) = Name::from_ascii(format!("{}.", config.cluster_domain)) {
        options.insert(DhcpOption::DomainSearch(vec![domain]));
    }
    // INFORM asks for configuration only: no address, no lease (RFC 2131, 4.3.5).
    if !request.opts().has_msg_type(MessageType::Inform) {
        let seconds = config.lease_seconds.unwrap_or(LEASE_SECONDS);
        options.insert(DhcpOption::AddressLeaseTime(seconds));
        options.insert(DhcpOption::Renewal(seconds / 2));
        options.insert(DhcpOption::Rebinding(seconds / 8 * 7));
        message.set_yiaddr(host.address);
    }
    message
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
#[path = "tests.rs"]
mod tests;
