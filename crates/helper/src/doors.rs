//! The doors to machines' Ignition configs (`types::door`), as files: read at every question, since others open them too.

use crate::HelperError;
use crate::events::EventLog;
use crate::live::Live;
use seedling_steps::{write_atomic, write_whole};
use seedling_types::door::{Door, Opener, Refusal};
use seedling_types::helper::HelperEventKind;
use seedling_types::{HelperConfig, Host, Role};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Clone)]
pub struct Doors {
    live: Live,
    events: EventLog,
    /// Between reading a door and writing it.
    turn: Arc<Mutex<()>>,
}

/// What a machine boots from: its own file if there is one, else its role's.
pub fn ignition_file(config: &HelperConfig, host: &Host) -> PathBuf {
    let folder = &config.ignition_dir;
    let own = folder.join("nodes").join(format!("{}.ign", host.name));
    if own.is_file() { own } else { folder.join(format!("{}.ign", host.role.as_str())) }
}

/// `seedling helper open`: a person lets a machine have its config once more, whatever was before.
pub fn open(config: &HelperConfig, host: &str) -> Result<(), HelperError> {
    let Some(host) = config.inventory.by_name(host) else {
        let known = config.inventory.hosts.iter().map(|h| h.name.clone()).collect();
        return Err(HelperError::UnknownHost { host: host.into(), known });
    };
    let path = config.door(&host.name);
    write(&path, &read(&path).person(now())).map_err(|source| HelperError::Write { path, source })
}

impl Doors {
    pub fn new(live: Live, events: EventLog) -> Self {
        Self { live, events, turn: Arc::default() }
    }

    /// Whether the fetch of `document` may begin. `counted`: it is one, and not only a question.
    pub fn fetch(&self, host: &Host, document: &[u8], counted: bool) -> Result<(), Refusal> {
        self.change(host, None, |door| {
            let next = door.fetch(host.role, &digest(document), now());
            // Only the bootstrap node's fetches are numbered; of others it matters that there was one.
            let first = door.open.as_ref().is_some_and(|open| open.started == 0);
            let matters = counted && (first || host.role == Role::Bootstrap);
            let write = next.as_ref().ok().filter(|_| matters).cloned();
            (write, next.map(|_| ()))
        })
    }

    pub fn complete(&self, host: &Host) {
        self.change(host, Some((false, "it has its config")), |door| {
            (Some(door.clone().complete(now())), ())
        });
    }

    pub fn software(&self, host: &Host) {
        self.change(host, Some((false, "it has its config, and fetches node software")), |door| {
            (door.software(now()), ())
        });
    }

    /// It asked for an address as one that boots. Where somebody says when machines are switched on, that proves nothing.
    pub fn dhcp(&self, host: &Host) {
        if !self.live.config().told_of_power {
            self.change(host, Some((true, "it asked for an address")), |door| (door.dhcp(now()), ()));
        }
    }

    /// A master's API server is ready: a bootstrap node that were installed now would found a second cluster.
    pub fn masters_serve(&self) {
        let config = self.live.config();
        let Some(host) = config.inventory.bootstrap() else { return };
        let Ok(document) = std::fs::read(ignition_file(&config, host)) else { return };
        self.change(host, Some((false, "the masters carry the cluster")), |door| {
            (door.over(&digest(&document), now()), ())
        });
    }

    fn change<T>(
        &self,
        host: &Host,
        say: Option<(bool, &str)>,
        decide: impl FnOnce(&Door) -> (Option<Door>, T),
    ) -> T {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.live.config().door(&host.name);
        let (next, answer) = decide(&read(&path));
        if let Some(next) = next {
            // A door that cannot be written stays as it was: a machine that boots must not be held up by a full disk.
            if let Err(error) = write(&path, &next) {
                tracing::error!(path = %path.display(), %error, "cannot keep the state of a door");
            }
            if let Some((open, reason)) = say {
                let (host, reason) = (host.name.clone(), reason.into());
                self.events.send(HelperEventKind::Door { host, open, reason });
            }
        }
        answer
    }
}

fn digest(document: &[u8]) -> String {
    Sha256::digest(document).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

/// What cannot be read is a door that nobody opened.
fn read(path: &Path) -> Door {
    std::fs::read(path).ok().and_then(|json| serde_json::from_slice(&json).ok()).unwrap_or_default()
}

/// What only says that a machine boots need not outlive the power: it would ask for an address again.
fn write(path: &Path, door: &Door) -> std::io::Result<()> {
    let json = serde_json::to_vec(door).map_err(std::io::Error::other)?;
    let boots = door.open.as_ref().is_some_and(|open| open.by == Opener::Dhcp);
    match boots && door.served.is_none() && door.over.is_none() {
        true => write_whole(path, json, 0o600),
        false => write_atomic(path, json, 0o600),
    }
}
