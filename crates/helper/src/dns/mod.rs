//! DNS: authoritative for the cluster domain and the nodes' reverse zone, by UDP and TCP. It forwards nothing: what is
//! outside its zones is refused at once, so that nobody waits for a network that is not there.

mod answer;
mod zone;

pub use answer::answer;
pub use zone::{Found, Zones};

use crate::live::Live;
use crate::{Context, HelperError, net};
use seedling_types::ports;
use std::future::Future;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

/// RFC 7766 asks for "a few seconds": resolvers open a connection again when they need one.
const TCP_IDLE: Duration = Duration::from_secs(10);

pub async fn start(context: &Context) -> Result<impl Future<Output = ()> + use<>, HelperError> {
    let address = context.config().address;
    let udp = net::udp("DNS (UDP)", address, ports::DNS, None)?;
    let tcp = net::tcp("DNS (TCP)", address, ports::DNS).await?;
    let context = context.clone();
    Ok(async move {
        tokio::join!(serve_udp(udp, context.live.clone()), serve_tcp(tcp, context));
    })
}

async fn serve_udp(socket: UdpSocket, live: Live) {
    let mut buffer = [0; 4096];
    loop {
        let (n, client) = net::receive(&socket, &mut buffer).await;
        if let Some(reply) = answer(&live.zones(), &buffer[..n]) {
            let _ = socket.send_to(&reply, client).await;
        }
    }
}

async fn serve_tcp(listener: TcpListener, context: Context) {
    loop {
        let (stream, _, slot) = net::accept(&listener, &context.limits.dns, &context.events).await;
        let live = context.live.clone();
        tokio::spawn(async move {
            let _slot = slot;
            // A client that hangs up is no error of ours.
            let _ = converse(stream, &live).await;
        });
    }
}

async fn converse(mut stream: TcpStream, live: &Live) -> io::Result<()> {
    loop {
        let length = tokio::time::timeout(TCP_IDLE, stream.read_u16()).await??;
        let mut packet = vec![0; length.into()];
        tokio::time::timeout(TCP_IDLE, stream.read_exact(&mut packet)).await??;
        let Some(reply) = answer(&live.zones(), &packet) else { return Ok(()) };
        let Ok(length) = u16::try_from(reply.len()) else { return Ok(()) };
        stream.write_all(&[&length.to_be_bytes()[..], &reply].concat()).await?;
    }
}
