//! Router advertisements (RFC 4861): the machines' IPv6 prefix, that addresses in it come by DHCPv6, and that this is the way out. Sent to
//! everybody now and then, and when somebody asks for one.
//!
//! A site with a router of its own says `without: [dhcp]`, and neither DHCP nor this is served.

use crate::{Context, HelperError, net};
use ipnet::Ipv6Net;
use socket2::{Domain, Protocol, Socket, Type};
use std::future::Future;
use std::io;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6};
use std::time::Duration;
use tokio::net::UdpSocket;

const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
const SOLICITATION: u8 = 133;
const ADVERTISEMENT: u8 = 134;
const EVERY: Duration = Duration::from_secs(30);
/// The longest that is allowed: a helper that is away for an hour takes nobody's way out along.
const LIFETIME_SECONDS: u16 = 9000;

/// Without IPv6 it has nothing to do.
pub(crate) fn start(context: &Context) -> Result<impl Future<Output = ()> + use<>, HelperError> {
    let config = context.config();
    let opened = config.v6().map(|(_, network)| {
        let fail = |source| HelperError::Bind {
            what: "router advertisements",
            address: SocketAddr::from((ALL_ROUTERS, 0)),
            source,
        };
        open(&config.interface).map(|(socket, index)| (socket, index, network)).map_err(fail)
    });
    let opened = opened.transpose()?;
    Ok(net::or_idle(opened.map(|(socket, index, network)| advertise(socket, index, network))))
}

fn open(interface: &str) -> io::Result<(UdpSocket, u32)> {
    let index = net::index(interface)?;
    let socket = Socket::new(Domain::IPV6, Type::RAW, Some(Protocol::ICMPV6))?;
    socket.set_nonblocking(true)?;
    socket.bind_device(Some(interface.as_bytes()))?;
    socket.join_multicast_v6(&ALL_ROUTERS, index)?;
    socket.set_multicast_if_v6(index)?;
    socket.set_multicast_loop_v6(false)?;
    // Whoever gets one that came through a router throws it away.
    socket.set_multicast_hops_v6(255)?;
    // A raw one: what is the same of all datagram sockets is all that is used of it.
    Ok((UdpSocket::from_std(socket.into())?, index))
}

async fn advertise(socket: UdpSocket, index: u32, network: Ipv6Net) {
    let packet = advertisement(network);
    let everybody = SocketAddrV6::new(ALL_NODES, 0, 0, index);
    let mut next = tokio::time::interval(EVERY);
    loop {
        tokio::select! {
            _ = next.tick() => {}
            () = asked(&socket) => {}
        }
        if let Err(error) = socket.send_to(&packet, SocketAddr::from(everybody)).await {
            tracing::warn!(%error, "cannot send a router advertisement");
        }
    }
}

/// Such a socket gives the message without the header before it.
async fn asked(socket: &UdpSocket) {
    let mut buffer = [0; 128];
    while !matches!(net::receive(socket, &mut buffer).await, (1.., _) if buffer[0] == SOLICITATION) {}
}

/// The checksum is the kernel's work.
fn advertisement(network: Ipv6Net) -> Vec<u8> {
    const MANAGED_AND_OTHER: u8 = 0xc0;
    const PREFIX: u8 = 3;
    const ON_LINK: u8 = 0x80;
    const HOP_LIMIT: u8 = 64;
    let mut bytes = vec![ADVERTISEMENT, 0, 0, 0, HOP_LIMIT, MANAGED_AND_OTHER];
    bytes.extend(LIFETIME_SECONDS.to_be_bytes());
    bytes.extend([0; 8]); // reachable time, retransmissions: as everybody likes
    bytes.extend([PREFIX, 4, network.prefix_len(), ON_LINK]);
    bytes.extend([0xff; 8]); // valid and preferred for ever
    bytes.extend([0; 4]);
    bytes.extend(network.network().octets());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_advertisement_has_the_prefix_and_leaves_addresses_to_dhcp() {
        let network = Ipv6Net::new_assert(Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, 0), 64);
        let packet = advertisement(network);
        assert_eq!((packet.len(), packet[0], packet[5]), (48, 134, 0xc0));
        assert_eq!(packet[6..8], 9000u16.to_be_bytes());
        assert_eq!((packet[16], packet[17], packet[18]), (3, 4, 64));
        assert_eq!(packet[19] & 0x40, 0, "nobody makes up an address");
        assert_eq!(packet[32..48], network.network().octets());
    }
}
