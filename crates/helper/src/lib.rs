//! The helper: what a node boots from, in one process on the nodes' network.
//!
//! In: [`HelperConfig`] with the inventory, the Ignition files and the release. Out: the servers below, an event log that
//! tells who asked for what, and a ready file once all of them listen. Next: a machine is switched on and asks DHCP.
//!
//! Every server comes in two halves: a pure decision (what is the answer to this message?) and a loop that reads and sends.

pub mod dhcp;
pub mod dns;
mod events;
mod forward;
pub mod http;
pub mod lb;
mod net;
pub mod registry;
#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod testing;

use events::EventLog;
use seedling_types::HelperConfig;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
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
    #[error("a server of the helper ended by itself: {0}")]
    Ended(String),
}

/// What every server needs: the one config and the one log.
#[derive(Clone)]
pub struct Context {
    pub config: Arc<HelperConfig>,
    events: EventLog,
}

pub fn load(path: &Path) -> Result<HelperConfig, HelperError> {
    let fail = |message: String| HelperError::Config { path: path.into(), message };
    let yaml = std::fs::read_to_string(path).map_err(|e| fail(e.to_string()))?;
    serde_saphyr::from_str(&yaml).map_err(|e| fail(e.to_string()))
}

/// Runs until SIGTERM or SIGINT, or until a server fails.
pub async fn run(config: HelperConfig) -> Result<(), HelperError> {
    let ready = config.ready_file.clone();
    // A file left by a killed predecessor must not say that we listen.
    remove(&ready)?;
    allow_many_files();
    let (events, writer) = events::open(&config.events)?;
    let context = Context { config: Arc::new(config), events };

    let mut term = signal(SignalKind::terminate()).map_err(HelperError::Signal)?;
    let mut int = signal(SignalKind::interrupt()).map_err(HelperError::Signal)?;
    let mut servers = JoinSet::new();
    servers.spawn(dhcp::start(&context)?);
    servers.spawn(dns::start(&context).await?);
    servers.spawn(http::start(&context).await?);
    servers.spawn(registry::start(&context).await?);
    servers.spawn(lb::start(&context).await?);
    servers.spawn(forward::start(&context)?);
    announce(&ready, std::process::id())?;
    tracing::info!(address = %context.config.address, "helper listens");

    let outcome = tokio::select! {
        _ = term.recv() => Ok(()),
        _ = int.recv() => Ok(()),
        Some(end) = servers.join_next() => Err(HelperError::Ended(match end {
            Ok(()) => "its loop returned".into(),
            Err(e) => e.to_string(),
        })),
    };
    remove(&ready)?;
    servers.shutdown().await;
    writer.finish().await;
    outcome
}

/// Each relayed connection takes two descriptors, and many systems start processes with 1024.
fn allow_many_files() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // Not being allowed to is no reason not to start.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// The ready file appears whole or not at all: a reader may look at any instant.
fn announce(ready: &Path, pid: u32) -> Result<(), HelperError> {
    let fail = |source| HelperError::Write { path: ready.into(), source };
    let partial = ready.with_extension("partial");
    std::fs::write(&partial, format!("{pid}\n")).map_err(fail)?;
    std::fs::rename(&partial, ready).map_err(fail)
}

fn remove(ready: &Path) -> Result<(), HelperError> {
    match std::fs::remove_file(ready) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(HelperError::Write { path: ready.into(), source })
        }
        _ => Ok(()),
    }
}
