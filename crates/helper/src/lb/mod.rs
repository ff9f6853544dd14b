//! The load balancer: layer 4, in front of the API servers (6443) and the machine-config servers (22623) of the
//! bootstrap node and the masters.
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
use crate::{Context, HelperError, net};
use pool::Pool;
use seedling_types::ports;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// What differs between the two ports.
#[derive(Clone, Copy, Debug)]
pub struct Service {
    pub name: &'static str,
    pub port: u16,
    /// Asked by HTTPS; 200 means that new connections are welcome.
    pub health: &'static str,
    /// How long a connection waits for a backend.
    pub hold: Duration,
    /// One event a connection; the API has too many.
    pub log_connections: bool,
    /// The backend is told by PROXY protocol whose connection it is; health checks, which are ours, come without.
    pub names_client: bool,
}

pub const SERVICES: [Service; 2] = [
    Service {
        name: "the API load balancer",
        port: ports::API,
        health: "/readyz",
        // Clients of the API retry quickly, and some have time-outs of a few seconds.
        hold: Duration::from_secs(2),
        log_connections: false,
        names_client: false,
    },
    Service {
        name: "the machine-config load balancer",
        port: ports::MCS,
        health: "/healthz",
        // Ignition gives up on a response after 10 s, and then waits up to 5 s before it asks again.
        hold: Duration::from_secs(9),
        log_connections: true,
        // It hands a config only to the machine it is for.
        names_client: true,
    },
];

pub const API: Service = SERVICES[0];
pub const MACHINE_CONFIG: Service = SERVICES[1];

/// Ends when any of its tasks does: without one backend's check it would be blind on that eye.
pub async fn start(
    context: &Context,
    service: Service,
) -> Result<impl Future<Output = ()> + use<>, HelperError> {
    let tls = tls::checks(&context.config())?;
    let mut tasks = JoinSet::new();
    let listener = net::tcp(service.name, context.config().address, service.port).await?;
    let pool = Arc::new(Pool::new(service, context));
    for index in 0..pool.backends.len() {
        tasks.spawn(pool::watch(pool.clone(), index, tls.clone()));
    }
    let slots = match service.port {
        ports::API => &context.limits.api,
        _ => &context.limits.machine_config,
    };
    tasks.spawn(serve(listener, pool, slots.clone(), context.clone()));
    Ok(async move {
        if let Some(Err(error)) = tasks.join_next().await
            && let Ok(panic) = error.try_into_panic()
        {
            std::panic::resume_unwind(panic)
        }
    })
}

async fn serve(listener: TcpListener, pool: Arc<Pool>, slots: Arc<Slots>, context: Context) {
    loop {
        let (client, remote, slot) = net::accept(&listener, &slots, &context.events).await;
        let pool = pool.clone();
        tokio::spawn(async move {
            let _slot = slot;
            let connected = pool.connect(remote).await;
            pool.log_connection(net::v4(remote), connected.as_ref().map(|c| c.backend.as_str()));
            let Some(mut connected) = connected else { return };
            tokio::select! {
                () = relay::relay(client, connected.stream, connected.gate) => {}
                _ = connected.cut.changed() => {}
            }
        });
    }
}
