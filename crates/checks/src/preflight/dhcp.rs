//! Who offers addresses on a network: one DHCPDISCOVER, from a MAC that nobody has, and all answers to it. No address is taken.

use super::facts::Offers;
use dhcproto::v4::{DhcpOption, Flags, HType, Message, MessageType, Opcode, OptionCode};
use dhcproto::{Decodable, Encodable};
use seedling_types::helper::PROBE_MAC;
use seedling_types::ports;
use socket2::{Domain, Protocol, Socket, Type};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::time::{Instant, timeout_at};

/// Servers ping an address before they offer it.
const WITHIN: Duration = Duration::from_secs(4);

/// `ours`: the one server that may offer. Only on the interface that somebody named: it is heard by everybody there.
pub async fn offers(interface: &str, ours: Option<Ipv4Addr>) -> Offers {
    let servers = discover(interface).await.map_err(|e| format!("{interface}: {e}"));
    Offers { interface: interface.into(), servers, ours }
}

async fn discover(interface: &str) -> std::io::Result<Vec<Ipv4Addr>> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_address(true)?;
    socket.set_broadcast(true)?;
    socket.bind_device(Some(interface.as_bytes()))?;
    socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, ports::DHCP_CLIENT)).into())?;
    socket.set_nonblocking(true)?;
    let socket = UdpSocket::from_std(socket.into())?;
    let id = uuid::Uuid::new_v4().as_u128() as u32;
    socket.send_to(&discovery(id)?, (Ipv4Addr::BROADCAST, ports::DHCP_SERVER)).await?;
    let (mut servers, until) = (Vec::new(), Instant::now() + WITHIN);
    let mut buffer = [0; 1500];
    while let Ok(received) = timeout_at(until, socket.recv_from(&mut buffer)).await {
        let (length, from) = received?;
        servers.extend(offered(&buffer[..length], id, from));
    }
    servers.sort();
    servers.dedup();
    Ok(servers)
}

fn discovery(id: u32) -> std::io::Result<Vec<u8>> {
    let [_, d, e, f] = id.to_be_bytes();
    let [a, b, c] = PROBE_MAC;
    let mut message = Message::default();
    message.set_opcode(Opcode::BootRequest).set_htype(HType::Eth).set_xid(id).set_chaddr(&[a, b, c, d, e, f]);
    message.set_flags(Flags::default().set_broadcast());
    message.opts_mut().insert(DhcpOption::MessageType(MessageType::Discover));
    let mut bytes = message.to_vec().map_err(std::io::Error::other)?;
    bytes.resize(bytes.len().max(300), 0);
    Ok(bytes)
}

/// The server of an offer that answers us.
fn offered(packet: &[u8], id: u32, from: SocketAddr) -> Option<Ipv4Addr> {
    let message = Message::from_bytes(packet).ok().filter(|message| message.xid() == id)?;
    let options = message.opts();
    let offer =
        matches!(options.get(OptionCode::MessageType), Some(DhcpOption::MessageType(MessageType::Offer)));
    let server = match (options.get(OptionCode::ServerIdentifier), from) {
        (Some(DhcpOption::ServerIdentifier(server)), _) => *server,
        (_, SocketAddr::V4(from)) => *from.ip(),
        _ => return None,
    };
    offer.then_some(server)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn an_offer_is_read_and_a_strangers_is_not() {
        let sent = Message::from_bytes(&discovery(7).unwrap()).unwrap();
        assert_eq!((sent.xid(), sent.chaddr()[0]), (7, 0x02));
        let mut offer = sent.clone();
        offer.opts_mut().insert(DhcpOption::MessageType(MessageType::Offer));
        offer.opts_mut().insert(DhcpOption::ServerIdentifier([10, 0, 0, 1].into()));
        let (bytes, from) = (offer.to_vec().unwrap(), "10.0.0.9:67".parse().unwrap());
        assert_eq!(offered(&bytes, 7, from), Some([10, 0, 0, 1].into()));
        assert_eq!(offered(&bytes, 8, from), None, "of another question");
        assert_eq!(offered(&bytes[..30], 7, from), None);
        assert_eq!(offered(&discovery(7).unwrap(), 7, from), None, "no offer");
    }

    proptest::proptest! {
        #[test]
        fn any_packet_can_come(packet in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..600)) {
            let from = SocketAddr::from((Ipv4Addr::LOCALHOST, 67));
            proptest::prop_assert_eq!(offered(&packet, 7, from).is_some() && packet.len() < 240, false);
        }
    }
}
