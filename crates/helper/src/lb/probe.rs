//! One health check: HTTPS GET over a connection that is kept, since a handshake every 200 ms for every backend would
//! cost both sides more than everything else the load balancer does.

use super::health::Seen;
use super::tls::{Checks, is_stranger};
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use std::error::Error;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

const CHECK_TIMEOUT: Duration = Duration::from_secs(1);
/// `/readyz` lists some fifty checks when it fails.
const MAX_ANSWER: usize = 64 * 1024;

type Failure = Box<dyn Error + Send + Sync>;

pub(super) struct Prober {
    address: SocketAddr,
    /// None: whoever accepts a connection is well.
    path: Option<&'static str>,
    tls: Checks,
    kept: Option<SendRequest<Body>>,
}

impl Prober {
    pub(super) fn new(address: SocketAddr, path: Option<&'static str>, tls: Checks) -> Self {
        Self { address, path, tls, kept: None }
    }

    pub(super) async fn check(&mut self) -> Seen {
        if let (Some(kept), Some(path)) = (self.kept.take(), self.path) {
            match timeout(CHECK_TIMEOUT, self.ask(kept, path)).await {
                Ok(Ok(seen)) => return seen,
                Err(_) => return Seen::Silent(format!("nothing for {CHECK_TIMEOUT:?}")),
                // Closed by the other side: a new connection tells why.
                Ok(Err(_)) => {}
            }
        }
        let stream = match timeout(CHECK_TIMEOUT, TcpStream::connect(self.address)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(e)) if e.kind() == ErrorKind::ConnectionRefused => return Seen::Refused,
            Ok(Err(e)) => return Seen::Unreachable(e.to_string()),
            Err(_) => return Seen::Unreachable(format!("no connection for {CHECK_TIMEOUT:?}")),
        };
        let Some(path) = self.path else { return Seen::Ready };
        match timeout(CHECK_TIMEOUT, self.greet_and_ask(stream, path)).await {
            Ok(Ok(seen)) => seen,
            Ok(Err(e)) if is_stranger(&*e) => Seen::Stranger(e.to_string()),
            Ok(Err(e)) => Seen::Silent(e.to_string()),
            Err(_) => Seen::Silent(format!("nothing for {CHECK_TIMEOUT:?}")),
        }
    }

    async fn greet_and_ask(&mut self, stream: TcpStream, path: &'static str) -> Result<Seen, Failure> {
        let name = self.tls.name.clone().unwrap_or_else(|| ServerName::from(self.address.ip()));
        let stream = self.tls.connector.connect(name, stream).await?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        // Ends when the sender is dropped or the other side closes.
        tokio::spawn(connection);
        self.ask(sender, path).await
    }

    async fn ask(&mut self, mut sender: SendRequest<Body>, path: &'static str) -> Result<Seen, Failure> {
        let request = Request::get(path)
            .header("host", self.address.to_string())
            .header("user-agent", "seedling-helper")
            .body(Body::empty())?;
        sender.ready().await?;
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body = to_bytes(Body::new(response.into_body()), MAX_ANSWER).await?;
        self.kept = Some(sender);
        Ok(match status {
            StatusCode::OK => Seen::Ready,
            _ => unready(status, &String::from_utf8_lossy(&body)),
        })
    }
}

/// The status, and those lines of `/readyz` that say what is missing.
fn unready(status: StatusCode, body: &str) -> Seen {
    let missing: Vec<_> =
        body.lines().filter_map(|l| l.strip_prefix("[-]")?.split_whitespace().next()).collect();
    match missing.as_slice() {
        [] => Seen::NotReady(status.as_u16().to_string()),
        missing if missing.contains(&"shutdown") => Seen::Leaving,
        missing => Seen::NotReady(format!("{}: {}", status.as_u16(), missing.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_whether_the_server_leaves() {
        let of = |body| unready(StatusCode::INTERNAL_SERVER_ERROR, body);
        let etcd = "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed\n";
        assert_eq!(of(etcd), Seen::NotReady("500: etcd".into()));
        assert_eq!(of("[+]ping ok\n[-]shutdown failed: reason withheld\n"), Seen::Leaving);
        assert_eq!(of("[-]etcd failed: x\n[-]shutdown failed: x\n"), Seen::Leaving);
        assert_eq!(of("busy"), Seen::NotReady("500".into()));
    }
}
