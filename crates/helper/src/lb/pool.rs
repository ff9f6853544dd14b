//! The backends of one port: their health, kept by one task each, and the way to one of them.

use super::health::{Health, Seen, Usable, candidates};
use super::relay::{Gate, leaving_since};
use super::tls::Checks;
use super::{Service, probe};
use crate::Context;
use seedling_types::helper::HelperEventKind;
use seedling_types::{Role, ports, proxy_protocol};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout, timeout_at};

/// On one network a SYN is answered by the kernel in microseconds, however busy the machine is; slower means gone.
const DIAL: Duration = Duration::from_millis(500);

pub(super) struct Pool {
    service: Service,
    pub(super) backends: Vec<Backend>,
    health: watch::Sender<Vec<Health>>,
    turn: AtomicUsize,
    context: Context,
}

pub(super) struct Backend {
    pub(super) host: String,
    pub(super) address: SocketAddr,
    role: Role,
    /// A failed dial knows more than the last check: look again now.
    check_now: Notify,
    cut: watch::Sender<()>,
    leaving: watch::Sender<Option<Instant>>,
}

pub(super) struct Connected {
    pub(super) backend: String,
    pub(super) stream: TcpStream,
    pub(super) cut: watch::Receiver<()>,
    pub(super) gate: Gate,
}

impl Pool {
    pub(super) fn new(service: Service, context: &Context) -> Self {
        let config = context.config();
        let control_plane = config.inventory.hosts.iter().filter(|h| h.role != Role::Worker);
        let backends: Vec<_> = control_plane
            .map(|host| Backend {
                host: host.name.clone(),
                address: SocketAddr::from((host.address, service.port)),
                role: host.role,
                check_now: Notify::new(),
                cut: watch::Sender::new(()),
                leaving: watch::Sender::new(None),
            })
            .collect();
        let health = watch::Sender::new(vec![Health::default(); backends.len()]);
        Self { service, backends, health, turn: AtomicUsize::new(0), context: context.clone() }
    }

    /// A connection to a healthy backend; held until there is one, or until patience is over.
    pub(super) async fn connect(&self, client: SocketAddr) -> Option<Connected> {
        let deadline = Instant::now() + self.service.hold;
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let mut health = self.health.subscribe();
        loop {
            let patience_over = Instant::now() >= deadline;
            let order = candidates(&health.borrow_and_update(), turn, patience_over);
            for index in order {
                if let Some(connected) = self.dial(&self.backends[index], client).await {
                    return Some(connected);
                }
            }
            if patience_over {
                return None;
            }
            let _ = timeout_at(deadline, health.changed()).await;
        }
    }

    async fn dial(&self, backend: &Backend, client: SocketAddr) -> Option<Connected> {
        // Subscribed before the dial: a cut in between must not be missed.
        let cut = backend.cut.subscribe();
        match timeout(DIAL, self.greet(backend, client)).await {
            Ok(Ok(stream)) => {
                let gate = Gate::new(backend.leaving.subscribe());
                Some(Connected { backend: backend.host.clone(), stream, cut, gate })
            }
            _ => {
                backend.check_now.notify_one();
                None
            }
        }
    }

    async fn greet(&self, backend: &Backend, client: SocketAddr) -> std::io::Result<TcpStream> {
        let mut stream = TcpStream::connect(backend.address).await?;
        if let (true, SocketAddr::V4(client), SocketAddr::V4(to)) =
            (self.service.names_client, client, backend.address)
        {
            stream.write_all(&proxy_protocol::header(client, to)).await?;
        }
        Ok(stream)
    }

    /// `stayed`: when it was last asked and said nothing of leaving. Returns the pause until the next check.
    fn record(&self, index: usize, seen: &Seen, stayed: Instant) -> Duration {
        let before = self.health.borrow()[index];
        let step = before.after(seen);
        let backend = &self.backends[index];
        if step.cut {
            backend.cut.send_replace(());
        }
        backend.leaving.send_if_modified(|since| {
            let now = leaving_since(*since, seen, stayed, Instant::now());
            std::mem::replace(since, now) != now
        });
        self.health.send_if_modified(|health| {
            health[index] = step.health;
            before.usable != step.health.usable
        });
        let healthy = step.health.usable == Usable::Up;
        if healthy != (before.usable == Usable::Up) {
            let (port, host, reason) = (self.service.port, backend.host.clone(), seen.reason());
            tracing::info!(port, host, healthy, reason, "backend changed");
            self.context.events.send(HelperEventKind::Backend { port, host, healthy, reason });
            if healthy && port == ports::API && backend.role == Role::Master {
                self.context.doors.masters_serve();
            }
        }
        step.health.pause()
    }

    pub(super) fn log_connection(&self, remote: Ipv4Addr, backend: Option<&str>) {
        if backend.is_none() {
            tracing::warn!(port = self.service.port, %remote, "no healthy backend for a connection");
        }
        if self.service.log_connections {
            self.context.events.send(HelperEventKind::Connection {
                port: self.service.port,
                remote,
                host: self.context.config().inventory.by_address(remote).map(|h| h.name.clone()),
                backend: backend.unwrap_or("none").into(),
            });
        }
    }
}

/// Checks one backend for ever.
pub(super) async fn watch(pool: Arc<Pool>, index: usize, tls: Checks) {
    let backend = &pool.backends[index];
    let mut prober = probe::Prober::new(backend.address, pool.service.health, tls);
    let mut stayed = Instant::now();
    loop {
        let asked = Instant::now();
        let seen = prober.check().await;
        if matches!(seen, Seen::Ready | Seen::NotReady(_)) {
            stayed = asked;
        }
        let pause = pool.record(index, &seen, stayed);
        let _ = timeout(pause, backend.check_now.notified()).await;
    }
}
