//! DHCPv4: each machine of the inventory gets its fixed address and name; nobody else gets anything.

mod decide;

pub use decide::{Decision, decide};

use crate::{Context, HelperError, net};
use dhcproto::v4::Message;
use dhcproto::{Decodable, Encodable};
use seedling_types::{HelperConfig, ports};
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddrV4};
use tokio::net::UdpSocket;

/// Some boot ROMs drop replies shorter than BOOTP's fixed size.
const BOOTP_MIN: usize = 300;
/// No client sends more than its interface's MTU.
const MAX_REQUEST: usize = 1500;

pub fn start(context: &Context) -> Result<impl Future<Output = ()> + use<>, HelperError> {
    let interface = context.config().interface.clone();
    let socket = net::udp("DHCP", Ipv4Addr::UNSPECIFIED, ports::DHCP_SERVER, Some(&interface))?;
    let context = context.clone();
    Ok(async move { serve(socket, context).await })
}

async fn serve(socket: UdpSocket, context: Context) {
    let mut buffer = [0; MAX_REQUEST];
    loop {
        let (n, _) = net::receive(&socket, &mut buffer).await;
        let decision = handle(&context.config(), &buffer[..n]);
        if let Some(host) = &decision.boots {
            context.doors.dhcp(host);
        }
        for event in decision.events {
            context.events.send(event);
        }
        if let Some((reply, to)) = decision.reply
            && let Err(error) = socket.send_to(&reply, to).await
        {
            tracing::warn!(%to, %error, "cannot send a DHCP reply");
        }
    }
}

/// Bytes in, bytes out. What is no DHCP message gets no answer.
pub fn handle(config: &HelperConfig, packet: &[u8]) -> Decision<(Vec<u8>, SocketAddrV4)> {
    let Ok(request) = Message::from_bytes(packet) else { return Decision::ignore() };
    let Decision { events, boots, reply } = decide(config, &request);
    let reply = reply.and_then(|message| {
        let to = destination(&message);
        let mut bytes = message.to_vec().ok()?;
        bytes.resize(bytes.len().max(BOOTP_MIN), 0);
        Some((bytes, to))
    });
    Decision { events, boots, reply }
}

/// A relay's clients are answered through it; a client that has its address, there; all others by broadcast, since they
/// cannot answer ARP yet.
fn destination(reply: &Message) -> SocketAddrV4 {
    if !reply.giaddr().is_unspecified() {
        SocketAddrV4::new(reply.giaddr(), ports::DHCP_SERVER)
    } else if !reply.ciaddr().is_unspecified() {
        SocketAddrV4::new(reply.ciaddr(), ports::DHCP_CLIENT)
    } else {
        SocketAddrV4::new(Ipv4Addr::BROADCAST, ports::DHCP_CLIENT)
    }
}
