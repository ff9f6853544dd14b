//! The backends of one port: their health, kept by one task each, and the way to one of them.

use super::health::{Health, Seen, Usable, candidates};
use super::relay::{Gate, leaving_since};
use super::tls::Checks;
use super::{Service, probe};
use crate::Context;
use crate::stats::Open;
use seedling_types::helper::HelperEventKind;
use seedling_types::{Host, Role, ports, proxy_protocol};
use std::net::{IpAddr, SocketAddr};
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
    /// Replaced when machines come and go; whoever waits for a healthy one waits for a change of this.
    members: watch::Sender<Vec<Member>>,
    turn: AtomicUsize,
    context: Context,
}

#[derive(Clone)]
struct Member {
    backend: Arc<Backend>,
    health: Health,
}

pub(super) struct Backend {
    host: String,
    address: SocketAddr,
    role: Role,
    /// A failed dial knows more than the last check: look again now.
    check_now: Notify,
    cut: watch::Sender<()>,
    leaving: watch::Sender<Option<Instant>>,
}

impl Backend {
    fn of(host: &Host, port: u16) -> Self {
        Self {
            host: host.name.clone(),
            address: SocketAddr::from((host.address, port)),
            role: host.role,
            check_now: Notify::new(),
            cut: watch::Sender::new(()),
            leaving: watch::Sender::new(None),
        }
    }

    fn is(&self, host: &Host) -> bool {
        self.host == host.name && self.role == host.role && self.address.ip() == host.address
    }
}

pub(super) struct Connected {
    pub(super) backend: String,
    pub(super) stream: TcpStream,
    pub(super) cut: watch::Receiver<()>,
    pub(super) gate: Gate,
}

impl Pool {
    pub(super) fn new(service: Service, context: &Context) -> Self {
        Self {
            service,
            members: watch::Sender::new(Vec::new()),
            turn: AtomicUsize::new(0),
            context: context.clone(),
        }
    }

    /// The backends by the config as it is now: those that stay keep their health and their connections. Returns those that are new.
    pub(super) fn follow(&self) -> Vec<Arc<Backend>> {
        let config = self.context.config();
        let wanted = self.service.backends.of(&config.inventory);
        let mut new = Vec::new();
        self.members.send_modify(|members| {
            let before = std::mem::take(members);
            for host in wanted {
                let known = before.iter().find(|member| member.backend.is(host)).cloned();
                members.push(known.unwrap_or_else(|| {
                    let backend = Arc::new(Backend::of(host, self.service.port));
                    new.push(backend.clone());
                    Member { backend, health: Health::default() }
                }));
            }
        });
        self.context.stats.backends(self.service.port, self.up());
        new
    }

    fn up(&self) -> Vec<(String, bool)> {
        let up = |member: &Member| (member.backend.host.clone(), member.health.usable == Usable::Up);
        self.members.borrow().iter().map(up).collect()
    }

    /// A connection to a healthy backend; held until there is one, or until patience is over.
    pub(super) async fn connect(&self, client: SocketAddr) -> Option<Connected> {
        let deadline = Instant::now() + self.service.hold;
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let mut members = self.members.subscribe();
        loop {
            let patience_over = Instant::now() >= deadline;
            let now = members.borrow_and_update().clone();
            let health: Vec<_> = now.iter().map(|member| member.health).collect();
            for index in candidates(&health, turn, patience_over) {
                if let Some(connected) = self.dial(&now[index].backend, client).await {
                    return Some(connected);
                }
            }
            if patience_over {
                return None;
            }
            let _ = timeout_at(deadline, members.changed()).await;
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
        if self.service.names_client {
            stream.write_all(&proxy_protocol::header(client, backend.address)).await?;
        }
        Ok(stream)
    }

    /// `stayed`: when it was last asked and said nothing of leaving. Returns the pause until the next check; none for one that is no
    /// backend any more.
    fn record(&self, backend: &Arc<Backend>, seen: &Seen, stayed: Instant) -> Option<Duration> {
        let of = |members: &[Member]| members.iter().position(|member| Arc::ptr_eq(&member.backend, backend));
        let before = {
            let members = self.members.borrow();
            members[of(&members)?].health
        };
        let step = before.after(seen);
        if step.cut {
            backend.cut.send_replace(());
        }
        backend.leaving.send_if_modified(|since| {
            let now = leaving_since(*since, seen, stayed, Instant::now());
            std::mem::replace(since, now) != now
        });
        self.members.send_if_modified(|members| {
            let Some(index) = of(members) else { return false };
            members[index].health = step.health;
            before.usable != step.health.usable
        });
        let healthy = step.health.usable == Usable::Up;
        if healthy != (before.usable == Usable::Up) {
            let (port, host, reason) = (self.service.port, backend.host.clone(), seen.reason());
            tracing::info!(port, host, healthy, reason, "backend changed");
            self.context.stats.backends(port, self.up());
            self.context.events.send(HelperEventKind::Backend { port, host, healthy, reason });
            if healthy && port == ports::API && backend.role == Role::Master {
                self.context.doors.masters_serve();
            }
        }
        Some(step.health.pause())
    }

    /// For as long as the value lives.
    pub(super) fn count(&self, backend: &str) -> Open {
        self.context.stats.connection(self.service.port, backend)
    }

    pub(super) fn log_connection(&self, remote: IpAddr, backend: Option<&str>) {
        if backend.is_none() {
            tracing::warn!(port = self.service.port, %remote, "no healthy backend for a connection");
            self.context.stats.add(
                "seedling_helper_connections_without_backend_total",
                "port",
                self.service.port,
            );
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

/// Checks one backend for as long as it is one.
pub(super) async fn watch(pool: Arc<Pool>, backend: Arc<Backend>, tls: Checks) {
    let mut prober = probe::Prober::new(backend.address, pool.service.health, tls);
    let mut stayed = Instant::now();
    loop {
        let asked = Instant::now();
        let seen = prober.check().await;
        if matches!(seen, Seen::Ready | Seen::NotReady(_)) {
            stayed = asked;
        }
        let Some(pause) = pool.record(&backend, &seen, stayed) else { return };
        let pause = pool.service.pause.unwrap_or(pause);
        let _ = timeout(pause, backend.check_now.notified()).await;
    }
}
