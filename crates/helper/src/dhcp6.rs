//! DHCPv6 (RFC 8415), stateful: each machine of the inventory gets its fixed IPv6 address, DNS servers and search list. Nobody else gets
//! anything. Prefix and way out are the router's to tell (`router.rs`).
//!
//! A machine is known by the MAC address in its DUID, or in the link-local address it asks from. Its address is good for ever: it
//! changes only with the inventory, and a client that renews asks in vain for another.

use crate::{Context, HelperError, dhcp, net};
use dhcproto::v6::{DhcpOption, IAAddr, IANA, Message, MessageType, OptionCode, Status, StatusCode};
use dhcproto::{Decodable, Encodable};
use hickory_proto::rr::Name;
use seedling_types::helper::HelperEventKind;
use seedling_types::{HelperConfig, Host, ports};
use std::future::Future;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use tokio::net::UdpSocket;

/// All DHCP servers of a link.
const SERVERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 1, 2);
const FOR_EVER: u32 = u32::MAX;
const MAX_REQUEST: usize = 1500;
const DUID_LINK_TIME: u16 = 1;
const DUID_LINK: u16 = 3;
const DUID_UUID: u16 = 4;
const ETHERNET: u16 = 1;

/// Without IPv6 it has nothing to do.
pub fn start(context: &Context) -> Result<impl Future<Output = ()> + use<>, HelperError> {
    let config = context.config();
    let socket = config.v6().map(|_| open(&config.interface)).transpose()?;
    Ok(net::or_idle(socket.map(|socket| serve(socket, context.clone()))))
}

fn open(interface: &str) -> Result<UdpSocket, HelperError> {
    let address = SocketAddr::from((Ipv6Addr::UNSPECIFIED, ports::DHCP6_SERVER));
    let socket = net::udp("DHCPv6", address.ip(), address.port(), Some(interface))?;
    let joined = net::index(interface).and_then(|index| socket.join_multicast_v6(&SERVERS, index));
    joined.map_err(|source| HelperError::Bind { what: "DHCPv6", address, source })?;
    Ok(socket)
}

async fn serve(socket: UdpSocket, context: Context) {
    let mut buffer = [0; MAX_REQUEST];
    loop {
        let (n, client) = net::receive(&socket, &mut buffer).await;
        let decision = handle(&context.config(), &buffer[..n], client.ip());
        dhcp::note(&context, decision.boots.as_ref(), decision.events);
        if let Some(reply) = decision.reply
            && let Err(error) = socket.send_to(&reply, client).await
        {
            tracing::warn!(%client, %error, "cannot send a DHCPv6 reply");
        }
    }
}

#[derive(Debug, Default, PartialEq)]
pub struct Decision {
    pub events: Vec<HelperEventKind>,
    /// Whose machine begins to boot, by what it asks.
    pub boots: Option<Host>,
    pub reply: Option<Vec<u8>>,
}

/// Bytes in, bytes out. What is no DHCPv6 message of a client gets no answer.
pub fn handle(config: &HelperConfig, packet: &[u8], from: IpAddr) -> Decision {
    let Ok(request) = Message::from_bytes(packet) else { return Decision::default() };
    decide(config, &request, from).unwrap_or_default()
}

fn decide(config: &HelperConfig, request: &Message, from: IpAddr) -> Option<Decision> {
    let (here, _) = config.v6()?;
    let Some(DhcpOption::ClientId(client)) = request.opts().get(OptionCode::ClientId) else { return None };
    let server = duid_of(here);
    let chosen = match request.opts().get(OptionCode::ServerId) {
        Some(DhcpOption::ServerId(chosen)) => Some(chosen),
        _ => None,
    };
    use MessageType::{
        Advertise, Confirm, InformationRequest, Rebind, Release, Renew, Reply, Request, Solicit,
    };
    let (heard, said, kind) = match request.msg_type() {
        Solicit => ("SOLICIT", "ADVERTISE", Advertise),
        Request => ("REQUEST", "ACK", Reply),
        Renew => ("RENEW", "ACK", Reply),
        Rebind => ("REBIND", "ACK", Reply),
        Confirm => ("CONFIRM", "ACK", Reply),
        InformationRequest => ("INFORM", "ACK", Reply),
        Release => ("RELEASE", "ACK", Reply),
        _ => return None,
    };
    // RFC 8415, 16: what names a server is for that one; these must.
    let named = chosen == Some(&server);
    if !named && (chosen.is_some() || matches!(request.msg_type(), Request | Renew | Release)) {
        return None;
    }
    let mac = mac_of_duid(client).or_else(|| mac_of_address(from))?;
    let host = config.inventory.by_mac(&mac);
    let own = host.and_then(Host::v6);
    let event = |message: &str, address: Option<Ipv6Addr>| HelperEventKind::Dhcp {
        message: message.into(),
        mac: mac.clone(),
        host: host.map(|h| h.name.clone()),
        address: address.map(IpAddr::from),
    };
    let Some((host, own)) = host.zip(own) else {
        let events = vec![event(heard, None), event("REFUSED", None)];
        return Some(Decision { events, ..Decision::default() });
    };
    let mut reply = Message::new_with_id(kind, request.xid());
    let options = reply.opts_mut();
    options.insert(DhcpOption::ClientId(client.clone()));
    options.insert(DhcpOption::ServerId(server));
    options.insert(DhcpOption::DomainNameServers(vec![here]));
    if let Ok(domain) = Name::from_ascii(format!("{}.", config.cluster_domain)) {
        options.insert(DhcpOption::DomainSearchList(vec![domain]));
    }
    let asks_for_address = matches!(request.msg_type(), Solicit | Request | Renew | Rebind);
    for wanted in request.opts().get_all(OptionCode::IANA).into_iter().flatten() {
        if let (DhcpOption::IANA(wanted), true) = (wanted, asks_for_address) {
            options.insert(DhcpOption::IANA(grant(wanted, own)));
        }
    }
    if matches!(request.msg_type(), Confirm | Release) {
        let status = StatusCode { status: Status::Success, msg: String::new() };
        options.insert(DhcpOption::StatusCode(status));
    }
    let boots = matches!(request.msg_type(), Solicit | Request).then(|| host.clone());
    Some(Decision {
        events: vec![event(heard, None), event(said, Some(own))],
        boots,
        reply: reply.to_vec().ok(),
    })
}

/// Its one address; others that it names are none of its own any more.
fn grant(wanted: &IANA, own: Ipv6Addr) -> IANA {
    let address =
        |addr, life| IAAddr { addr, preferred_life: life, valid_life: life, opts: Default::default() };
    let mut granted = IANA { id: wanted.id, t1: FOR_EVER, t2: FOR_EVER, opts: Default::default() };
    granted.opts.insert(DhcpOption::IAAddr(address(own, FOR_EVER)));
    for named in wanted.opts.get_all(OptionCode::IAAddr).into_iter().flatten() {
        if let DhcpOption::IAAddr(named) = named
            && named.addr != own
        {
            granted.opts.insert(DhcpOption::IAAddr(address(named.addr, 0)));
        }
    }
    granted
}

/// Of its address: the same as long as the helper has it.
fn duid_of(address: Ipv6Addr) -> Vec<u8> {
    [&DUID_UUID.to_be_bytes()[..], &address.octets()].concat()
}

fn mac_of_duid(duid: &[u8]) -> Option<String> {
    let number = |at: usize| Some(u16::from_be_bytes([*duid.get(at)?, *duid.get(at + 1)?]));
    let at = match (number(0)?, number(2)?) {
        (DUID_LINK, ETHERNET) => 4,
        (DUID_LINK_TIME, ETHERNET) => 8,
        _ => return None,
    };
    Some(mac(duid.get(at..)?.try_into().ok()?))
}

/// From an interface identifier that was made from it (EUI-64).
fn mac_of_address(address: IpAddr) -> Option<String> {
    let IpAddr::V6(address) = address else { return None };
    let [.., a, b, c, 0xff, 0xfe, d, e, f] = address.octets() else { return None };
    Some(mac([a ^ 2, b, c, d, e, f]))
}

fn mac(bytes: [u8; 6]) -> String {
    bytes.map(|byte| format!("{byte:02x}")).join(":")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
#[path = "dhcp6_tests.rs"]
mod tests;
