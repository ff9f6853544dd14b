//! DHCPv4: each machine of the inventory gets its fixed address and name, and what it boots. Nobody else gets anything, or an address of the
//! pool if there is one.

pub mod boot;
mod decide;
pub mod pool;

pub(crate) use decide::LEASE_SECONDS;
pub use decide::{Decision, decide};

use crate::{Context, HelperError, net};
use dhcproto::v4::Message;
use dhcproto::{Decodable, Encodable};
use pool::Leases;
use seedling_steps::write_atomic;
use seedling_types::helper::HelperEventKind;
use seedling_types::{HelperConfig, Host, ports};
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddrV4};
use tokio::net::UdpSocket;

/// Some boot ROMs drop replies shorter than BOOTP's fixed size.
const BOOTP_MIN: usize = 300;
/// No client sends more than its interface's MTU.
const MAX_REQUEST: usize = 1500;

pub fn start(context: &Context) -> Result<impl Future<Output = ()> + use<>, HelperError> {
    let config = context.config();
    let socket = match config.v4() {
        Some(_) => {
            let interface = Some(config.interface.as_str());
            Some(net::udp("DHCP", Ipv4Addr::UNSPECIFIED.into(), ports::DHCP_SERVER, interface)?)
        }
        None => None,
    };
    Ok(net::or_idle(socket.map(|socket| serve(socket, context.clone()))))
}

async fn serve(socket: UdpSocket, context: Context) {
    let mut buffer = [0; MAX_REQUEST];
    let mut leases = leases(&context.config());
    loop {
        let (n, _) = net::receive(&socket, &mut buffer).await;
        let config = context.config();
        let now = jiff::Timestamp::now().as_second();
        let mut decision = handle_with(&config, &mut leases, &buffer[..n], now);
        // An address that is not written down could be given twice.
        if decision.leases && !keep(&config, &leases).await {
            decision.reply = None;
        }
        note(&context, decision.boots.as_ref(), decision.events);
        if let Some((reply, to)) = decision.reply
            && let Err(error) = socket.send_to(&reply, to).await
        {
            tracing::warn!(%to, %error, "cannot send a DHCP reply");
        }
    }
}

/// What either DHCP server heard and said.
pub(crate) fn note(context: &Context, boots: Option<&Host>, events: Vec<HelperEventKind>) {
    if let Some(host) = boots {
        context.doors.dhcp(host);
    }
    for event in events {
        if let HelperEventKind::Dhcp { message, .. } = &event {
            context.stats.add("seedling_helper_dhcp_messages_total", "message", message);
        }
        context.events.send(event);
    }
}

/// What was given before; what cannot be read is nothing.
pub fn leases(config: &HelperConfig) -> Leases {
    let json = std::fs::read(config.lease_file()).ok();
    json.and_then(|json| serde_json::from_slice(&json).ok()).unwrap_or_default()
}

async fn keep(config: &HelperConfig, leases: &Leases) -> bool {
    let (path, json) = (config.lease_file(), serde_json::to_vec(leases).unwrap_or_default());
    let written = tokio::task::spawn_blocking(move || write_atomic(&path, json, 0o600)).await;
    match written.map_err(std::io::Error::other).and_then(|written| written) {
        Ok(()) => true,
        Err(error) => {
            tracing::error!(%error, "cannot write the leases down, so none is given");
            false
        }
    }
}

/// Without a pool's leases.
pub fn handle(config: &HelperConfig, packet: &[u8]) -> Decision<(Vec<u8>, SocketAddrV4)> {
    handle_with(config, &mut Leases::default(), packet, 0)
}

/// Bytes in, bytes out. What is no DHCP message gets no answer.
pub fn handle_with(
    config: &HelperConfig,
    leases: &mut Leases,
    packet: &[u8],
    now: i64,
) -> Decision<(Vec<u8>, SocketAddrV4)> {
    let Ok(request) = Message::from_bytes(packet) else { return Decision::ignore() };
    let Decision { events, boots, leases, reply } = decide(config, leases, &request, now);
    let reply = reply.and_then(|message| {
        let to = destination(&message);
        let mut bytes = message.to_vec().ok()?;
        bytes.resize(bytes.len().max(BOOTP_MIN), 0);
        Some((bytes, to))
    });
    Decision { events, boots, leases, reply }
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
