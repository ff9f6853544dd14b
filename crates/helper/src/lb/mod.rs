//! The load balancer: layer 4, in front of the API servers (6443) and the machine-config servers (22623) of the
//! bootstrap node and the masters; if wanted also of the workers' routers (80 and 443).
//!
//! New connections go round-robin to the backends whose health check answers. While there is none, connections are held
//! instead of refused: a client that backs off for seconds would lose more time than the backend needs to come up.

mod health;
mod pool;
mod probe;
mod relay;
mod tls;

pub use health::{Health, Seen, Step, Usable, candidates};

use crate::limits::Slots;
use crate::net::{self, Listener};
use crate::{Context, HelperError};
use pool::Pool;
use seedling_types::{Host, Inventory, Role, ports};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// Who is behind a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backends {
    /// Bootstrap and masters.
    ControlPlane,
    /// Workers, or masters if there are none.
    Applications,
}

impl Backends {
    pub fn of(self, inventory: &Inventory) -> Vec<&Host> {
        let role = |wanted: Role| inventory.role(wanted).collect::<Vec<_>>();
        match self {
            Backends::ControlPlane => inventory.hosts.iter().filter(|h| h.role != Role::Worker).collect(),
            Backends::Applications if role(Role::Worker).is_empty() => role(Role::Master),
            Backends::Applications => role(Role::Worker),
        }
    }
}

/// What differs between the ports.
#[derive(Clone, Copy, Debug)]
pub struct Service {
    pub name: &'static str,
    pub port: u16,
    pub backends: Backends,
    /// Asked by HTTPS; 200 means that new connections are welcome. Without it an accepted connection is enough.
    pub health: Option<&'static str>,
    /// Between two checks, where it is not the backend's health that decides.
    pub pause: Option<Duration>,
    /// How long a connection waits for a backend.
    pub hold: Duration,
    /// One event a connection; the API has too many.
    pub log_connections: bool,
    /// The backend is told by PROXY protocol whose connection it is; health checks, which are ours, come without.
    pub names_client: bool,
}

pub const SERVICES: [Service; 4] = [
    Service {
        name: "the API load balancer",
        port: ports::API,
        backends: Backends::ControlPlane,
        health: Some("/readyz"),
        pause: None,
        // Clients of the API retry quickly, and some have time-outs of a few seconds.
        hold: Duration::from_secs(2),
        log_connections: false,
        names_client: false,
    },
    Service {
        name: "the machine-config load balancer",
        port: ports::MCS,
        backends: Backends::ControlPlane,
        health: Some("/healthz"),
        pause: None,
        // Ignition gives up on a response after 10 s, and then waits up to 5 s before it asks again.
        hold: Duration::from_secs(9),
        log_connections: true,
        // It hands a config only to the machine it is for.
        names_client: true,
    },
    Service { name: "the load balancer of applications (80)", port: ports::HTTP, ..APPLICATIONS },
    Service { name: "the load balancer of applications (443)", port: ports::HTTPS, ..APPLICATIONS },
];

const APPLICATIONS: Service = Service {
    name: "",
    port: 0,
    backends: Backends::Applications,
    health: None,
    // A whole connection each: often enough for people.
    pause: Some(Duration::from_secs(2)),
    hold: Duration::from_secs(2),
    log_connections: false,
    names_client: false,
};

pub const API: Service = SERVICES[0];
pub const MACHINE_CONFIG: Service = SERVICES[1];
pub const HTTP: Service = SERVICES[2];
pub const HTTPS: Service = SERVICES[3];

/// Ends when any of its tasks does: without one backend's check it would be blind on that eye.
pub async fn start(
    context: &Context,
    service: Service,
) -> Result<impl Future<Output = ()> + use<>, HelperError> {
    let tls = tls::checks(&context.config())?;
    let wanted = service.backends == Backends::ControlPlane || context.config().ingress;
    let listener = match wanted {
        true => Some(net::tcp(service.name, &context.config(), service.port).await?),
        false => None,
    };
    let slots = match service.port {
        ports::API => &context.limits.api,
        ports::MCS => &context.limits.machine_config,
        _ => &context.limits.ingress,
    };
    let (slots, context) = (slots.clone(), context.clone());
    Ok(async move {
        match listener {
            Some(listener) => balance(listener, service, slots, context, tls).await,
            // Not wanted, which must not look as if it had failed.
            None => std::future::pending().await,
        }
    })
}

async fn balance(
    listener: Listener,
    service: Service,
    slots: Arc<Slots>,
    context: Context,
    tls: tls::Checks,
) {
    let pool = Arc::new(Pool::new(service, &context));
    let mut changes = context.live.changes();
    let mut tasks = JoinSet::new();
    tasks.spawn(serve(listener, pool.clone(), slots, context));
    loop {
        for backend in pool.follow() {
            tasks.spawn(pool::watch(pool.clone(), backend, tls.clone()));
        }
        let ended = loop {
            tokio::select! {
                _ = changes.changed() => break None,
                ended = tasks.join_next() => match ended {
                    // The check of a machine that is no backend any more.
                    Some(Ok(())) if !tasks.is_empty() => {}
                    ended => break Some(ended),
                }
            }
        };
        match ended {
            None => {}
            Some(Some(Err(error))) => {
                if let Ok(panic) = error.try_into_panic() {
                    std::panic::resume_unwind(panic)
                }
                return;
            }
            Some(_) => return,
        }
    }
}

async fn serve(listener: Listener, pool: Arc<Pool>, slots: Arc<Slots>, context: Context) {
    loop {
        let (client, remote, slot) = net::accept(&listener, &slots, &context.events).await;
        let pool = pool.clone();
        tokio::spawn(async move {
            let _slot = slot;
            let connected = pool.connect(remote).await;
            pool.log_connection(net::ip(remote), connected.as_ref().map(|c| c.backend.as_str()));
            let Some(mut connected) = connected else { return };
            let _counted = pool.count(&connected.backend);
            tokio::select! {
                () = relay::relay(client, connected.stream, connected.gate) => {}
                // Of a machine that is no backend any more nothing is heard: its connections end by themselves.
                Ok(()) = connected.cut.changed() => {}
            }
        });
    }
}
