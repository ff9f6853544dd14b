//! Questions about other names: carried to the site's DNS servers, one after the other until one answers, and their answers back, as
//! they are. An answer that does not fit a packet says so itself, and the client asks again by TCP.

use super::answer::{belongs, failed};
use seedling_types::ports;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Clients ask again after five seconds, and some give up then.
const WITHIN: Duration = Duration::from_secs(2);
/// Questions on their way; each is a socket.
const MOST: usize = 256;

#[derive(Clone)]
pub(super) struct Forwarder(Arc<Semaphore>);

impl Forwarder {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(MOST)))
    }

    pub(super) fn place(&self) -> Option<OwnedSemaphorePermit> {
        self.0.clone().try_acquire_owned().ok()
    }
}

pub(super) async fn by_udp(servers: &[IpAddr], question: &[u8]) -> Option<Vec<u8>> {
    for server in servers {
        match timeout(WITHIN, ask_udp(*server, question)).await {
            Ok(Ok(answer)) => return Some(answer),
            other => tracing::debug!(%server, ?other, "a DNS server does not answer"),
        }
    }
    failed(question)
}

/// From a port of its own, so that an answer is hard to guess.
async fn ask_udp(server: IpAddr, question: &[u8]) -> io::Result<Vec<u8>> {
    let any: IpAddr =
        if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind(SocketAddr::from((any, 0))).await?;
    socket.connect((server, ports::DNS)).await?;
    socket.send(question).await?;
    let mut buffer = vec![0; 4096];
    loop {
        let length = socket.recv(&mut buffer).await?;
        if belongs(question, &buffer[..length]) {
            buffer.truncate(length);
            return Ok(buffer);
        }
    }
}

pub(super) async fn by_tcp(servers: &[IpAddr], question: &[u8]) -> Option<Vec<u8>> {
    for server in servers {
        match timeout(WITHIN, ask_tcp(*server, question)).await {
            Ok(Ok(answer)) if belongs(question, &answer) => return Some(answer),
            other => tracing::debug!(%server, ?other, "a DNS server does not answer"),
        }
    }
    failed(question)
}

async fn ask_tcp(server: IpAddr, question: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect((server, ports::DNS)).await?;
    let length = u16::try_from(question.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes()[..], question].concat()).await?;
    let mut answer = vec![0; stream.read_u16().await?.into()];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}
