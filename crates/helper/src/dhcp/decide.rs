//! The decision: a message from a client → what to log and what to reply.

use super::pool::Leases;
use super::{boot, pool};
use dhcproto::v4::{DhcpOption, HType, Message, MessageType, Opcode, OptionCode};
use hickory_proto::rr::Name;
use seedling_types::helper::{HelperEventKind, HelperV4};
use seedling_types::{HelperConfig, Host};
use std::net::Ipv4Addr;

/// As helpernode's dhcpd; an address never changes, so the length only decides how often clients ask again.
pub(crate) const LEASE_SECONDS: u32 = 4 * 60 * 60;

#[derive(Debug, PartialEq)]
pub struct Decision<R> {
    pub events: Vec<HelperEventKind>,
    /// Whose machine begins to boot, by what it asks.
    pub boots: Option<Host>,
    /// The leases of the pool are others now, and must be kept before the reply is sent.
    pub leases: bool,
    pub reply: Option<R>,
}

impl<R> Decision<R> {
    pub fn ignore() -> Self {
        Self { events: Vec::new(), boots: None, leases: false, reply: None }
    }
}

/// `now` in seconds since 1970.
pub fn decide(config: &HelperConfig, leases: &mut Leases, request: &Message, now: i64) -> Decision<Message> {
    let Some(here) = config.v4() else { return Decision::ignore() };
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
    let address = host.and_then(Host::v4);
    if host.is_some() && address.is_none() {
        return Decision::ignore(); // it has an address by DHCPv6 only
    }
    let event = |message: &str, address: Option<Ipv4Addr>| HelperEventKind::Dhcp {
        message: message.into(),
        mac: mac.clone(),
        host: host.map(|h| h.name.clone()),
        address: address.map(Into::into),
    };
    let asked = requested(request);
    let say = |heard: &str, said: Option<(&str, Message)>| {
        let mut events = vec![event(heard, asked)];
        events.extend(said.iter().map(|(name, _)| event(name, address)));
        let boots = host.filter(|_| said.is_some() && begins(request)).cloned();
        Decision { events, boots, leases: false, reply: said.map(|(_, message)| message) }
    };
    // The client chose another server's offer. On this network there should be none: a machine of ours is told of.
    if kind == &MessageType::Request && chosen_server(request).is_some_and(|s| s != here.address) {
        let events = host.map(|_| event("ELSEWHERE", asked)).into_iter().collect();
        return Decision { events, ..Decision::ignore() };
    }
    if host.is_none() && config.pool.is_some() && is_near(&here, request) {
        let stranger = Stranger { config, here, request, mac: &mac, asked, now };
        if let Some((words, leases, reply)) = stranger.decide(leases, *kind) {
            let events = words.into_iter().map(|(word, address)| event(word, address)).collect();
            return Decision { events, boots: None, leases, reply };
        }
    }

    let lease = |own, host: &Host, kind| {
        let seconds = config.lease_seconds.unwrap_or(LEASE_SECONDS);
        let mut message = grant(config, &here, request, own, seconds, kind);
        message.opts_mut().insert(DhcpOption::Hostname(host.name.clone()));
        boot::tell(config, host, request, &mut message);
        message
    };
    match (kind, host.zip(address)) {
        (MessageType::Discover, Some((host, own))) => {
            say("DISCOVER", Some(("OFFER", lease(own, host, MessageType::Offer))))
        }
        (MessageType::Discover, None) => {
            let events = vec![event("DISCOVER", asked), event("REFUSED", None)];
            Decision { events, ..Decision::ignore() }
        }
        (MessageType::Request, Some((host, own))) if asked == Some(own) => {
            say("REQUEST", Some(("ACK", lease(own, host, MessageType::Ack))))
        }
        (MessageType::Request, _) => say("REQUEST", Some(("NAK", refuse(&here, request)))),
        // Answered at the address it names, which must be its own.
        (MessageType::Inform, Some((host, own))) if asked == Some(own) => {
            say("INFORM", Some(("ACK", lease(own, host, MessageType::Ack))))
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

fn reply(here: &HelperV4, request: &Message, kind: MessageType) -> Message {
    let mut reply = Message::default();
    reply
        .set_opcode(Opcode::BootReply)
        .set_xid(request.xid())
        .set_flags(request.flags())
        .set_giaddr(request.giaddr())
        .set_chaddr(request.chaddr());
    reply.opts_mut().insert(DhcpOption::MessageType(kind));
    reply.opts_mut().insert(DhcpOption::ServerIdentifier(here.address));
    // RFC 6842: a client that names itself must find its name in the answer.
    if let Some(id) = request.opts().get(OptionCode::ClientIdentifier) {
        reply.opts_mut().insert(id.clone());
    }
    reply
}

fn refuse(here: &HelperV4, request: &Message) -> Message {
    let mut nak = reply(here, request, MessageType::Nak);
    nak.opts_mut().insert(DhcpOption::Message("this address is not yours in the inventory".into()));
    nak
}

fn grant(
    config: &HelperConfig,
    here: &HelperV4,
    request: &Message,
    address: Ipv4Addr,
    seconds: u32,
    kind: MessageType,
) -> Message {
    let mut message = reply(here, request, kind);
    message.set_ciaddr(request.ciaddr()).set_siaddr(here.address);
    let options = message.opts_mut();
    options.insert(DhcpOption::SubnetMask(here.network.netmask()));
    options.insert(DhcpOption::BroadcastAddr(here.network.broadcast()));
    options.insert(DhcpOption::Router(vec![here.gateway]));
    options.insert(DhcpOption::DomainNameServer(vec![here.address]));
    if !config.ntp_servers.is_empty() {
        options.insert(DhcpOption::NtpServers(config.ntp_servers.clone()));
    }
    options.insert(DhcpOption::DomainName(config.cluster_domain.to_string()));
    if let Ok(domain) = Name::from_ascii(format!("{}.", config.cluster_domain)) {
        options.insert(DhcpOption::DomainSearch(vec![domain]));
    }
    // INFORM asks for configuration only: no address, no lease (RFC 2131, 4.3.5).
    if !request.opts().has_msg_type(MessageType::Inform) {
        options.insert(DhcpOption::AddressLeaseTime(seconds));
        options.insert(DhcpOption::Renewal(seconds / 2));
        options.insert(DhcpOption::Rebinding(seconds / 8 * 7));
        message.set_yiaddr(address);
    }
    message
}

/// The pool is of this network: who comes through a relay of another one would be lost with such an address.
fn is_near(here: &HelperV4, request: &Message) -> bool {
    request.giaddr().is_unspecified() || here.network.contains(&request.giaddr())
}

/// A machine that nobody knows, where there is a pool.
struct Stranger<'a> {
    config: &'a HelperConfig,
    here: HelperV4,
    request: &'a Message,
    mac: &'a str,
    asked: Option<Ipv4Addr>,
    now: i64,
}

type Said = Vec<(&'static str, Option<Ipv4Addr>)>;

impl Stranger<'_> {
    /// What to log, whether leases are others now, and the reply. None: as if there were no pool.
    fn decide(&self, leases: &mut Leases, kind: MessageType) -> Option<(Said, bool, Option<Message>)> {
        let chosen = leases.choose(self.config, self.mac, self.asked, self.now);
        let give = |kind| {
            chosen.map(|address| {
                grant(self.config, &self.here, self.request, address, pool::LEASE_SECONDS, kind)
            })
        };
        Some(match kind {
            MessageType::Discover if chosen.is_some() => {
                (vec![("DISCOVER", self.asked), ("OFFER", chosen)], false, give(MessageType::Offer))
            }
            MessageType::Request if chosen.is_some() && chosen == self.asked => {
                let changed = chosen.is_some_and(|address| leases.take(self.mac, address, self.now));
                (vec![("REQUEST", self.asked), ("ACK", chosen)], changed, give(MessageType::Ack))
            }
            MessageType::Release => (vec![("RELEASE", self.asked)], leases.release(self.mac, self.now), None),
            MessageType::Decline => {
                let declined = self.asked.is_some_and(|a| leases.decline(self.config, self.mac, a, self.now));
                (vec![("DECLINE", self.asked)], declined, None)
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
#[path = "tests.rs"]
mod tests;
