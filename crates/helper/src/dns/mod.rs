//! DNS: authoritative for the cluster domain and the machines' reverse zones, by UDP and TCP. What is outside its zones is asked of the
//! forwarders, for machines of the network; without any it is refused at once, so that nobody waits for a network that is not there.

mod answer;
mod forward;
mod replies;
mod zone;

pub use answer::{Verdict, answer, belongs, failed, judge};
pub use zone::{Found, Zones};

use crate::net::{self, Listener};
use crate::{Context, HelperError};
use forward::Forwarder;
use replies::Replies;
use seedling_types::{HelperConfig, ports};
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::task::JoinSet;

/// RFC 7766 asks for "a few seconds": resolvers open a connection again when they need one.
const TCP_IDLE: Duration = Duration::from_secs(10);

pub async fn start(context: &Context) -> Result<impl Future<Output = ()> + use<>, HelperError> {
    let config = context.config();
    let udp = config.addresses().map(|address| net::udp("DNS (UDP)", address, ports::DNS, None));
    let udp = udp.collect::<Result<Vec<_>, _>>()?;
    let tcp = net::tcp("DNS (TCP)", &config, ports::DNS).await?;
    let (context, forwarder) = (context.clone(), Forwarder::new());
    Ok(async move {
        let mut loops = JoinSet::new();
        loops.spawn(serve_tcp(tcp, context.clone(), forwarder.clone()));
        for socket in udp {
            loops.spawn(serve_udp(Arc::new(socket), context.clone(), forwarder.clone()));
        }
        // None of them ends unless it fails, and then all begin again.
        if let Some(Err(error)) = loops.join_next().await
            && let Ok(panic) = error.try_into_panic()
        {
            std::panic::resume_unwind(panic)
        }
    })
}

async fn serve_udp(socket: Arc<UdpSocket>, context: Context, forwarder: Forwarder) {
    let mut buffer = [0; 4096];
    let mut replies = Replies::default();
    loop {
        let (n, client) = net::receive(&socket, &mut buffer).await;
        let packet = &buffer[..n];
        let (config, zones) = context.live.config_and_zones();
        context.stats.add_quickly("seedling_helper_dns_queries_total", "by=\"udp\"");
        match replies.judge(&zones, packet, may_forward(&config, net::ip(client))) {
            Verdict::Reply(reply) => drop(socket.send_to(&reply, client).await),
            Verdict::Ignore => {}
            // It takes its time: others are answered meanwhile.
            Verdict::Forward => match forwarder.place() {
                Some(place) => {
                    let (socket, packet) = (socket.clone(), packet.to_vec());
                    tokio::spawn(async move {
                        let _place = place;
                        if let Some(reply) = forward::by_udp(&config.forwarders, &packet).await {
                            let _ = socket.send_to(&reply, client).await;
                        }
                    });
                }
                None => {
                    if let Some(reply) = answer::failed(packet) {
                        let _ = socket.send_to(&reply, client).await;
                    }
                }
            },
        }
    }
}

/// Nobody else's questions are carried outside: an open resolver serves attackers.
fn may_forward(config: &HelperConfig, client: IpAddr) -> bool {
    let inside = || {
        config.networks().any(|network| network.contains(&client))
            || client.is_loopback()
            || config.inventory.by_address(client).is_some()
    };
    !config.forwarders.is_empty() && inside()
}

async fn serve_tcp(listener: Listener, context: Context, forwarder: Forwarder) {
    loop {
        let (stream, client, slot) = net::accept(&listener, &context.limits.dns, &context.events).await;
        let (context, forwarder) = (context.clone(), forwarder.clone());
        tokio::spawn(async move {
            let _slot = slot;
            // A client that hangs up is no error of ours.
            let _ = converse(stream, client, &context, &forwarder).await;
        });
    }
}

async fn converse(
    mut stream: TcpStream,
    client: SocketAddr,
    context: &Context,
    forwarder: &Forwarder,
) -> io::Result<()> {
    loop {
        let length = tokio::time::timeout(TCP_IDLE, stream.read_u16()).await??;
        let mut packet = vec![0; length.into()];
        tokio::time::timeout(TCP_IDLE, stream.read_exact(&mut packet)).await??;
        let config = context.config();
        context.stats.add("seedling_helper_dns_queries_total", "by", "tcp");
        let reply = match judge(&context.live.zones(), &packet, may_forward(&config, net::ip(client))) {
            Verdict::Reply(reply) => reply,
            Verdict::Ignore => return Ok(()),
            Verdict::Forward => match forwarder.place() {
                Some(_place) => match forward::by_tcp(&config.forwarders, &packet).await {
                    Some(reply) => reply,
                    None => return Ok(()),
                },
                None => return Ok(()),
            },
        };
        let Ok(length) = u16::try_from(reply.len()) else { return Ok(()) };
        stream.write_all(&[&length.to_be_bytes()[..], &reply].concat()).await?;
    }
}
