//! Sockets: listening with errors that name port and address, accepting for ever, relaying bytes.

use crate::HelperError;
use crate::events::EventLog;
use crate::limits::{Full, Slot, Slots};
use seedling_types::HelperConfig;
use seedling_types::helper::HelperEventKind;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UdpSocket};

/// Pause after a failed accept: only a lack of file descriptors gets here, and nothing tells when one is free.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// After a failed receive, at first and at most. Nothing tells when an interface is back.
const RECEIVE_PAUSE: Duration = Duration::from_millis(10);
const RECEIVE_PAUSE_MOST: Duration = Duration::from_secs(1);

/// Machines that are switched on together ask together: those who find no place come back after a second. The kernel takes what it allows.
const BACKLOG: u32 = 4096;

/// Idle connections live as long as both peers do. A peer that vanished without a word (killed, rebooted under the same
/// address) is noticed after at most 5 s + 3 × 2 s.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(5);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(2);
const KEEPALIVE_RETRIES: u32 = 3;
/// A peer that takes none of what it was sent for this long is gone, or wants to keep us busy.
const STALLED: Duration = Duration::from_secs(60);

/// Of a relay's buffer, per direction: what is idle holds little, and what is large takes few trips.
const BUFFER_FIRST: usize = 8 << 10;
const BUFFER_LARGEST: usize = 256 << 10;

/// Grows as long as it is filled.
pub(crate) struct Buffer(Vec<u8>);

impl Buffer {
    pub(crate) fn new() -> Self {
        Self(vec![0; BUFFER_FIRST])
    }

    /// What is there to read; nothing at the end.
    pub(crate) async fn fill(&mut self, from: &mut (impl AsyncRead + Unpin)) -> std::io::Result<&[u8]> {
        let length = from.read(&mut self.0).await?;
        if length == self.0.len() && length < BUFFER_LARGEST {
            self.0.resize(4 * length, 0);
        }
        Ok(&self.0[..length])
    }
}

/// A server that the config leaves nothing to do for must not look as if it had failed.
pub(crate) async fn or_idle(server: Option<impl Future<Output = ()>>) {
    match server {
        Some(server) => server.await,
        None => std::future::pending().await,
    }
}

/// One way, to the end.
pub(crate) async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
) -> std::io::Result<()> {
    let mut buffer = Buffer::new();
    loop {
        match buffer.fill(&mut from).await? {
            [] => return to.shutdown().await,
            bytes => to.write_all(bytes).await?,
        }
    }
}

/// A port at the helper's address, and at that of the other family if it has one.
pub(crate) struct Listener {
    first: TcpListener,
    second: Option<TcpListener>,
}

impl From<TcpListener> for Listener {
    fn from(first: TcpListener) -> Self {
        Self { first, second: None }
    }
}

impl Listener {
    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        match &self.second {
            None => self.first.accept().await,
            Some(second) => tokio::select! {
                accepted = self.first.accept() => accepted,
                accepted = second.accept() => accepted,
            },
        }
    }
}

pub(crate) async fn tcp(
    what: &'static str,
    config: &HelperConfig,
    port: u16,
) -> Result<Listener, HelperError> {
    let bind = |address: IpAddr| {
        let address = SocketAddr::from((address, port));
        listen(address).map_err(|source| HelperError::Bind { what, address, source })
    };
    let second = config.second_address.map(|second| bind(second.addr())).transpose()?;
    Ok(Listener { first: bind(config.address)?, second })
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // As tokio does for its own: a restarted helper need not wait for connections of the one before.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// With `device`, only that interface's packets arrive and leave: broadcasts need it.
pub(crate) fn udp(
    what: &'static str,
    address: IpAddr,
    port: u16,
    device: Option<&str>,
) -> Result<UdpSocket, HelperError> {
    let address = SocketAddr::from((address, port));
    let open = || {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        if let Some(device) = device {
            socket.bind_device(Some(device.as_bytes()))?;
            socket.set_broadcast(address.is_ipv4())?;
        }
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        socket.bind(&address.into())?;
        UdpSocket::from_std(socket.into())
    };
    open().map_err(|source| HelperError::Bind { what, address, source })
}

/// Of an interface with IPv6. From this process' own network, which the files of /sys need not be of.
pub(crate) fn index(interface: &str) -> io::Result<u32> {
    let table = std::fs::read_to_string("/proc/net/if_inet6")?;
    let found = table.lines().find_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        (words.get(5) == Some(&interface)).then(|| u32::from_str_radix(words.get(1)?, 16).ok())?
    });
    found.ok_or_else(|| io::Error::other(format!("{interface} has no IPv6 address")))
}

/// The next connection that has a place; those that have none are closed at once.
pub(crate) async fn accept(
    listener: &Listener,
    slots: &Arc<Slots>,
    events: &EventLog,
) -> (TcpStream, SocketAddr, Slot) {
    loop {
        match listener.accept().await {
            Ok((stream, remote)) => match slots.take(remote.ip(), Instant::now()) {
                Ok(slot) => return (stream, remote, slot),
                Err(Full { say: None, .. }) => {}
                Err(Full { say: Some(connections), reason }) => {
                    tracing::warn!(service = slots.service, %remote, connections, reason, "connections refused");
                    let (service, remote) = (slots.service.into(), ip(remote));
                    events.send(HelperEventKind::Limited { service, remote, connections, reason });
                }
            },
            Err(error) => {
                tracing::warn!(%error, "accept failed");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// The next packet. A socket that fails (its interface is down, the kernel has no memory) is asked again ever later, not at once:
/// it may fail at every call.
pub(crate) async fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> (usize, SocketAddr) {
    let mut failures = 0;
    loop {
        match socket.recv_from(buffer).await {
            Ok(received) => return received,
            Err(error) => {
                tracing::warn!(%error, "receive failed");
                tokio::time::sleep(receive_pause(failures)).await;
                failures += 1;
            }
        }
    }
}

fn receive_pause(failures: u32) -> Duration {
    RECEIVE_PAUSE.saturating_mul(2u32.saturating_pow(failures)).min(RECEIVE_PAUSE_MOST)
}

/// Small messages leave at once, and a peer that vanished is noticed.
pub(crate) fn prepare(stream: &TcpStream) {
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_IDLE)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_RETRIES);
    // They only make things faster; a socket that refuses them still works.
    let _ = stream.set_nodelay(true);
    let socket = SockRef::from(stream);
    let _ = socket.set_tcp_keepalive(&keepalive);
}

/// For answers of our own. Not for relays: this takes the place of their keepalive, which notices sooner.
pub(crate) fn give_up_when_stalled(stream: &TcpStream) {
    let _ = SockRef::from(stream).set_tcp_user_timeout(Some(STALLED));
}

/// Copies both ways until both sides are done; an error of either side ends both.
pub(crate) async fn relay(a: TcpStream, b: TcpStream) {
    prepare(&a);
    prepare(&b);
    let ((from_a, to_a), (from_b, to_b)) = (a.into_split(), b.into_split());
    let _ = tokio::try_join!(pass(from_a, to_b), pass(from_b, to_a));
}

/// As the inventory has it.
pub(crate) fn ip(address: SocketAddr) -> IpAddr {
    address.ip().to_canonical()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_that_fails_is_asked_ever_later() {
        let a_minute: Duration = (0..65).map(receive_pause).sum();
        assert!(a_minute > Duration::from_secs(57), "{a_minute:?}");
        assert_eq!((receive_pause(0), receive_pause(u32::MAX)), (RECEIVE_PAUSE, RECEIVE_PAUSE_MOST));
    }
}
