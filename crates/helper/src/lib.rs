//! The helper: what a node boots from, in one process on the nodes' network.
//!
//! In: [`HelperConfig`] with the inventory, the Ignition files and the release. Out: the servers below, an event log that
//! tells who asked for what, and a ready file once all of them listen. Next: a machine is switched on and asks DHCP.
//!
//! Every server comes in two halves: a pure decision (what is the answer to this message?) and a loop that reads and sends.

pub mod boot;
pub mod describe;
pub mod dhcp;
pub mod dhcp6;
pub mod dns;
pub mod doors;
mod events;
pub mod export;
mod forward;
mod heart;
pub mod http;
pub mod init;
mod keep;
mod kept;
pub mod lb;
mod limits;
pub mod live;
mod net;
pub mod registry;
mod router;
mod stats;
pub mod status;
mod supervise;
#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod testing;
pub mod tftp;
pub mod unit;

use boot::Boots;
use doors::Doors;
use events::EventLog;
pub use heart::beat;
pub use keep::keep;
use limits::Limits;
use live::Live;
use seedling_types::HelperConfig;
use seedling_types::admission::digest_of;
use seedling_types::helper::HelperEventKind;
use seedling_types::helper::HelperServer::{Dhcp, Dns, LoadBalancer, Registry, Tftp};
use stats::Stats;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use supervise::{Kind, Server, supervise};
use thiserror::Error;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

#[derive(Debug, Error)]
pub enum HelperError {
    #[error("cannot read {path}: {message}")]
    Config { path: PathBuf, message: String },
    #[error("cannot listen on {address} for {what}: {source}")]
    Bind { what: &'static str, address: SocketAddr, source: std::io::Error },
    #[error("cannot write {path}: {source}")]
    Write { path: PathBuf, source: std::io::Error },
    #[error("forward to {to}: file descriptor {fd} is not a listening socket")]
    Forward { fd: i32, to: SocketAddr },
    #[error("{0:?} is not a domain name")]
    Domain(String),
    #[error("cannot prepare TLS for health checks: {0}")]
    Tls(#[from] rustls::Error),
    #[error("cannot watch for signals: {0}")]
    Signal(std::io::Error),
    #[error("the helper {0}")]
    Ended(String),
    #[error("{0} is different: restart the helper for that")]
    Restart(&'static str),
    #[error("helper.yaml has no section `boot:`, so there is nothing to boot over the network")]
    NoBoot,
    #[error(
        "exported configurations are for IPv4, and helper.yaml has IPv6: give other servers their part of it by hand"
    )]
    OnlyIpv4,
    #[error("there is no {host:?} in the inventory; it has {}", .known.join(", "))]
    UnknownHost { host: String, known: Vec<String> },
}

/// What every server needs: the one config, the one log, and what outlives each of them.
#[derive(Clone)]
pub struct Context {
    live: Live,
    events: EventLog,
    doors: Doors,
    boots: Boots,
    limits: Limits,
    stats: Stats,
    inherited: forward::Inherited,
}

impl Context {
    /// As it is now.
    fn config(&self) -> Arc<HelperConfig> {
        self.live.config()
    }
}

const SERVERS: [Kind; 12] = [
    Kind {
        what: "DHCP",
        server: Some(Dhcp),
        start: |c| Box::pin(async move { Ok(Box::pin(dhcp::start(&c)?) as Server) }),
    },
    Kind {
        what: "DHCPv6",
        server: Some(Dhcp),
        start: |c| Box::pin(async move { Ok(Box::pin(dhcp6::start(&c)?) as Server) }),
    },
    Kind {
        what: "router advertisements",
        server: Some(Dhcp),
        start: |c| Box::pin(async move { Ok(Box::pin(router::start(&c)?) as Server) }),
    },
    Kind {
        what: "DNS",
        server: Some(Dns),
        start: |c| Box::pin(async move { Ok(Box::pin(dns::start(&c).await?) as Server) }),
    },
    Kind {
        what: "TFTP",
        server: Some(Tftp),
        start: |c| Box::pin(async move { Ok(Box::pin(tftp::start(&c)?) as Server) }),
    },
    Kind {
        what: "HTTP",
        server: None,
        start: |c| Box::pin(async move { Ok(Box::pin(http::start(&c).await?) as Server) }),
    },
    Kind {
        what: "the registry",
        server: Some(Registry),
        start: |c| Box::pin(async move { Ok(Box::pin(registry::start(&c).await?) as Server) }),
    },
    Kind {
        what: lb::API.name,
        server: Some(LoadBalancer),
        start: |c| Box::pin(async move { Ok(Box::pin(lb::start(&c, lb::API).await?) as Server) }),
    },
    Kind {
        what: lb::MACHINE_CONFIG.name,
        server: Some(LoadBalancer),
        start: |c| Box::pin(async move { Ok(Box::pin(lb::start(&c, lb::MACHINE_CONFIG).await?) as Server) }),
    },
    Kind {
        what: lb::HTTP.name,
        server: Some(LoadBalancer),
        start: |c| Box::pin(async move { Ok(Box::pin(lb::start(&c, lb::HTTP).await?) as Server) }),
    },
    Kind {
        what: lb::HTTPS.name,
        server: Some(LoadBalancer),
        start: |c| Box::pin(async move { Ok(Box::pin(lb::start(&c, lb::HTTPS).await?) as Server) }),
    },
    Kind {
        what: "forwards",
        server: None,
        start: |c| Box::pin(async move { Ok(Box::pin(forward::start(&c)?) as Server) }),
    },
];

pub fn load(path: &Path) -> Result<HelperConfig, HelperError> {
    Ok(read(path)?.0)
}

/// And the digest of the file.
fn read(path: &Path) -> Result<(HelperConfig, String), HelperError> {
    let fail = |message: String| HelperError::Config { path: path.into(), message };
    let yaml = std::fs::read_to_string(path).map_err(|e| fail(e.to_string()))?;
    let config: HelperConfig = serde_saphyr::from_str(&yaml).map_err(|e| fail(e.to_string()))?;
    let problems = config.boot.as_ref().map(boot::script::problems).unwrap_or_default();
    if !problems.is_empty() {
        return Err(fail(problems.join("; ")));
    }
    Ok((config, digest_of(yaml.as_bytes())))
}

/// Runs until SIGTERM or SIGINT; at SIGHUP it reads its config again. What cannot start at all is an error; what ends later is started
/// again. `after`: why the helper itself was started again.
pub async fn run(path: &Path, after: Option<String>) -> Result<(), HelperError> {
    // First of all: whoever wants it to read its config must not end it.
    let mut reload = signal(SignalKind::hangup()).map_err(HelperError::Signal)?;
    let (config, mut digest) = read(path)?;
    let ready = config.ready_file.clone();
    let after = after.or_else(|| left_behind(&ready));
    // A file left by a killed predecessor must not say that we listen.
    remove(&ready)?;
    let limits = Limits::of(allow_many_files());
    let (events, writer) = events::open(&config.events)?;
    if let Some(reason) = after {
        events.send(HelperEventKind::Restarted { what: "the helper".into(), reason });
    }
    let inherited = forward::inherited(&config)?;
    let live = Live::new(config)?;
    let doors = Doors::new(live.clone(), events.clone());
    let boots = Boots::new(live.clone(), events.clone());
    let context = Context { live, events, doors, boots, limits, stats: Stats::default(), inherited };

    let mut term = signal(SignalKind::terminate()).map_err(HelperError::Signal)?;
    let mut int = signal(SignalKind::interrupt()).map_err(HelperError::Signal)?;
    let mut servers = JoinSet::new();
    let without = context.config().without.clone();
    for kind in SERVERS.into_iter().filter(|kind| kind.server.is_none_or(|server| !without.contains(&server)))
    {
        let server = (kind.start)(context.clone()).await?;
        let context = context.clone();
        servers.spawn(async move {
            let again = || (kind.start)(context.clone());
            supervise(kind.what, &context.events, server, again).await
        });
    }
    announce(&ready, &digest)?;
    tracing::info!(address = %context.config().address, "helper listens");

    loop {
        tokio::select! {
            _ = term.recv() => break,
            _ = int.recv() => break,
            _ = reload.recv() => {
                if let Some(read) = take_over(path, &context) {
                    digest = read;
                    announce(&ready, &digest)?;
                }
            }
        }
    }
    remove(&ready)?;
    servers.shutdown().await;
    writer.finish().await;
    Ok(())
}

/// Why it is started again, where nobody says so: who is told to end removes its ready file.
fn left_behind(ready: &Path) -> Option<String> {
    let text = std::fs::read_to_string(ready).ok()?;
    Some(format!("process {} was killed", text.lines().next().unwrap_or_default()))
}

/// The config as it is on disk now, if it can be taken over: its digest. Otherwise everything stays as it is, and the reason is told.
fn take_over(path: &Path, context: &Context) -> Option<String> {
    let taken = read(path).and_then(|(config, digest)| context.live.replace(config).map(|()| digest));
    match taken {
        Ok(digest) => {
            let machines = context.config().inventory.hosts.len();
            tracing::info!(machines, "the config was read again");
            context.events.send(HelperEventKind::Reloaded { machines });
            Some(digest)
        }
        Err(error) => {
            tracing::error!(%error, "the config was read again, and is not used");
            context.events.send(HelperEventKind::NotReloaded { reason: error.to_string() });
            None
        }
    }
}

/// Each relayed connection takes two descriptors, and many systems start processes with 1024. Says how many there are now.
fn allow_many_files() -> usize {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // Not being allowed to is no reason not to start.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
    getrlimit(Resource::RLIMIT_NOFILE).ok().and_then(|(soft, _)| soft.try_into().ok()).unwrap_or(1024)
}

/// Who listens, and by which config. The ready file appears whole or not at all: a reader may look at any instant.
fn announce(ready: &Path, digest: &str) -> Result<(), HelperError> {
    let fail = |source| HelperError::Write { path: ready.into(), source };
    make_folder_of(ready).map_err(fail)?;
    let partial = ready.with_extension("partial");
    std::fs::write(&partial, format!("{}\n{digest}\n", std::process::id())).map_err(fail)?;
    std::fs::rename(&partial, ready).map_err(fail)
}

/// The helper's unit makes its folders, and whoever starts it by hand should not have to.
fn make_folder_of(file: &Path) -> std::io::Result<()> {
    file.parent().map_or(Ok(()), std::fs::create_dir_all)
}

fn remove(ready: &Path) -> Result<(), HelperError> {
    match std::fs::remove_file(ready) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(HelperError::Write { path: ready.into(), source })
        }
        _ => Ok(()),
    }
}
