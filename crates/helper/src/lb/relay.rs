//! One connection's bytes, and the gate before a server that leaves.
//!
//! An API server that was told to end serves on for its shutdown delay, then refuses every request with 503, and in the same moment
//! starts to tell its connections to go (GOAWAY). Whoever asks in between gets the 503. So shortly before, the gate shuts:
//! what clients send waits here, what the server sends passes. The server's farewell names the last request it has seen,
//! and an HTTP/2 client sends what came after it to another server, as it may and as Go's does too.

use super::health::Seen;
use crate::net::{self, Buffer};
use seedling_types::api::SHUTDOWN_DELAY;
use std::io;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// Before the end of the delay, counted from the earliest time at which the server can have begun to leave, so that a late check does
/// not matter. Enough for what passed just before the gate shut to be seen by a busy server.
const SHUT_BEFORE: Duration = Duration::from_millis(600);
/// A server that has not ended by then has another delay than ours: its clients must not wait for it.
const OPEN_AGAIN: Duration = Duration::from_secs(2);

/// The earliest time at which a backend that leaves can have begun to: when it last answered without a word of it (`stayed`), but a server
/// that still answers has not left longer ago than its delay. Only an answer that it is ready takes that back.
pub(super) fn leaving_since(
    since: Option<Instant>,
    seen: &Seen,
    stayed: Instant,
    now: Instant,
) -> Option<Instant> {
    match seen {
        Seen::Ready => None,
        Seen::Leaving => since.or(Some(now.checked_sub(SHUTDOWN_DELAY).map_or(stayed, |e| e.max(stayed)))),
        _ => since,
    }
}

/// Until when what clients send is withheld.
fn withheld(leaving_since: Option<Instant>, now: Instant) -> Option<Instant> {
    let since = leaving_since?;
    let (shuts, opens) = (since + SHUTDOWN_DELAY - SHUT_BEFORE, since + SHUTDOWN_DELAY + OPEN_AGAIN);
    (shuts <= now && now < opens).then_some(opens)
}

pub(super) struct Gate {
    leaving: watch::Receiver<Option<Instant>>,
}

impl Gate {
    pub(super) fn new(leaving: watch::Receiver<Option<Instant>>) -> Self {
        Self { leaving }
    }

    async fn open(&mut self) {
        loop {
            let since = *self.leaving.borrow_and_update();
            let Some(until) = withheld(since, Instant::now()) else { return };
            let _ = timeout_at(until, self.leaving.changed()).await;
        }
    }
}

/// Both ways until both sides are done; an error of either side ends both.
pub(super) async fn relay(client: TcpStream, server: TcpStream, mut gate: Gate) {
    net::prepare(&client);
    net::prepare(&server);
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let _ = tokio::try_join!(net::pass(from_server, to_client), up(from_client, to_server, &mut gate));
}

async fn up(mut client: OwnedReadHalf, mut server: OwnedWriteHalf, gate: &mut Gate) -> io::Result<()> {
    let mut buffer = Buffer::new();
    loop {
        let bytes = buffer.fill(&mut client).await?;
        if bytes.is_empty() {
            return server.shutdown().await;
        }
        gate.open().await;
        server.write_all(bytes).await?;
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let dialled = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (dialled, listener.accept().await.unwrap().0)
    }

    #[tokio::test]
    async fn a_shut_gate_withholds_requests_and_lets_answers_pass() {
        let (mut client, client_side) = pair().await;
        let (server_side, mut server) = pair().await;
        let leaving = watch::Sender::new(None);
        tokio::spawn(relay(client_side, server_side, Gate::new(leaving.subscribe())));
        let mut buffer = [0; 4];
        client.write_all(b"one.").await.unwrap();
        server.read_exact(&mut buffer).await.unwrap();

        leaving.send_replace(Instant::now().checked_sub(SHUTDOWN_DELAY));
        client.write_all(b"two.").await.unwrap();
        server.write_all(b"bye.").await.unwrap();
        client.read_exact(&mut buffer).await.unwrap();
        assert_eq!(&buffer, b"bye.");
        let early = timeout_at(Instant::now() + Duration::from_millis(200), server.read(&mut buffer)).await;
        assert!(early.is_err(), "a request passed the gate");

        leaving.send_replace(None);
        server.read_exact(&mut buffer).await.unwrap();
        assert_eq!(&buffer, b"two.");
    }

    #[test]
    fn the_gate_is_shut_around_the_end_of_the_delay_and_no_longer() {
        let start = Instant::now();
        let shut = |millis| withheld(Some(start), start + Duration::from_millis(millis)).is_some();
        assert!(withheld(None, start).is_none());
        let table = [(0, false), (1300, false), (1400, true), (2000, true), (3900, true), (4000, false)];
        for (millis, expected) in table {
            assert_eq!(shut(millis), expected, "{millis} ms after");
        }
    }

    #[test]
    fn leaving_counts_from_when_it_may_have_begun() {
        let stayed = Instant::now();
        let later = stayed + Duration::from_millis(500);
        let first = leaving_since(None, &Seen::Leaving, stayed, later);
        assert_eq!(first, Some(stayed));
        let again = later + Duration::from_millis(200);
        assert_eq!(leaving_since(first, &Seen::Leaving, stayed, again), first);
        assert_eq!(leaving_since(first, &Seen::Refused, stayed, again), first, "the listener closed");
        assert_eq!(leaving_since(first, &Seen::Ready, again, again), None);
        assert_eq!(leaving_since(None, &Seen::NotReady("500: etcd".into()), again, again), None);
        let silent_before = stayed + Duration::from_secs(9);
        let earliest = silent_before.checked_sub(SHUTDOWN_DELAY);
        assert_eq!(leaving_since(None, &Seen::Leaving, stayed, silent_before), earliest);
    }
}
