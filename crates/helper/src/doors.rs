//! The doors to machines' Ignition configs (`types::door`), as files, since others open them too. Each is kept in memory until its file is
//! another; what is decided is in the file before it is answered, so that a killed helper continues where it was.

use crate::HelperError;
use crate::events::EventLog;
use crate::kept::{self, Version};
use crate::live::Live;
use seedling_steps::{write_atomic, write_whole};
use seedling_types::door::{Door, Opener, Refusal};
use seedling_types::helper::HelperEventKind;
use seedling_types::{HelperConfig, Host, Role};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Clone)]
pub struct Doors {
    live: Live,
    events: EventLog,
    /// By file. Each is locked between reading it and writing it; machines do not wait for each other.
    known: Arc<Mutex<HashMap<PathBuf, Arc<Mutex<Known>>>>>,
}

/// What the file said when it was last read. Without a version there was none, or none that can be used: a door that nobody opened.
#[derive(Default)]
struct Known {
    version: Option<Version>,
    json: Vec<u8>,
    door: Door,
}

impl Known {
    /// As the file has it now.
    fn door(&mut self, path: &Path) -> &Door {
        let version = kept::version(path);
        if version != self.version {
            let read = || {
                let (version, json) = kept::read(path).ok()?;
                Some(Self { version: Some(version), door: serde_json::from_slice(&json).ok()?, json })
            };
            *self = read().unwrap_or_default();
        }
        &self.door
    }

    /// What is known afterwards is to be read: by then it may be somebody else's.
    fn write(&mut self, path: &Path, door: &Door) -> std::io::Result<()> {
        let Self { version, json, .. } = std::mem::take(self);
        let next = serde_json::to_vec(door).map_err(std::io::Error::other)?;
        // Most often it is only the number of fetches that is another.
        let changed = version.map(|version| kept::change_byte(path, version, &json, &next, lasts(door)));
        if matches!(changed, Some(Ok(true))) {
            return Ok(());
        }
        match lasts(door) {
            true => write_atomic(path, next, 0o600),
            false => write_whole(path, next, 0o600),
        }
    }
}

/// What only says that a machine boots need not outlive the power: it would ask for an address again.
fn lasts(door: &Door) -> bool {
    let boots = door.open.as_ref().is_some_and(|open| open.by == Opener::Dhcp);
    !boots || door.served.is_some() || door.over.is_some()
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
    let mut known = Known::default();
    let door = known.door(&path).clone().person(now());
    known.write(&path, &door).map_err(|source| HelperError::Write { path, source })
}

impl Doors {
    pub fn new(live: Live, events: EventLog) -> Self {
        Self { live, events, known: Arc::default() }
    }

    /// Whether the fetch of the config with this digest may begin. `counted`: it is one, and not only a question.
    pub fn fetch(&self, host: &Host, digest: &str, counted: bool) -> Result<(), Refusal> {
        self.change(host, None, |door| {
            let next = door.fetch(host.role, digest, now());
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
        let path = self.live.config().door(&host.name);
        let known = self.of(&path);
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        let (next, answer) = decide(known.door(&path));
        if let Some(next) = next {
            // A door that cannot be written stays as it was: a machine that boots must not be held up by a full disk.
            if let Err(error) = known.write(&path, &next) {
                tracing::error!(path = %path.display(), %error, "cannot keep the state of a door");
            }
            if let Some((open, reason)) = say {
                let (host, reason) = (host.name.clone(), reason.into());
                self.events.send(HelperEventKind::Door { host, open, reason });
            }
        }
        answer
    }

    fn of(&self, path: &Path) -> Arc<Mutex<Known>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(path) {
            Some(of) => of.clone(),
            None => known.entry(path.into()).or_default().clone(),
        }
    }
}

pub(crate) fn digest(document: &[u8]) -> String {
    Sha256::digest(document).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::events;
    use crate::testing::config;
    use std::time::SystemTime;

    /// A helper's doors, its config, and a machine of each kind.
    fn site(folder: &Path) -> (Doors, HelperConfig) {
        let config = HelperConfig { events: folder.join("events"), ..config() };
        let (log, _writer) = events::open(&config.events).unwrap();
        (Doors::new(Live::new(config.clone()).unwrap(), log), config)
    }

    #[tokio::test]
    async fn what_others_write_is_seen_at_the_next_question() {
        let folder = tempfile::tempdir().unwrap();
        let (doors, config) = site(folder.path());
        let host = config.inventory.by_name("master-0").unwrap();
        let ask = || doors.fetch(host, "config", true);
        let path = config.door("master-0");
        assert_eq!(ask(), Err(Refusal::NotBooting), "there is no file, and not even a folder");
        for round in 1..=3 {
            open(&config, "master-0").unwrap();
            assert_eq!((ask(), ask()), (Ok(()), Ok(())), "{round}: a person opened it");
            doors.software(host);
            assert_eq!(ask(), Err(Refusal::Served), "{round}: it has its config");
            Known::default().write(&path, &Door::default().power_on()).unwrap();
            assert_eq!(ask(), Ok(()), "{round}: it was switched on");
            std::fs::remove_file(&path).unwrap();
            assert_eq!(ask(), Err(Refusal::NotBooting), "{round}: its machine left");
        }
        std::fs::write(&path, "{").unwrap();
        assert_eq!(ask(), Err(Refusal::NotBooting), "damaged");
    }

    #[tokio::test]
    async fn what_was_decided_is_in_the_file_for_the_next_helper() {
        let folder = tempfile::tempdir().unwrap();
        let (doors, config) = site(folder.path());
        let host = config.inventory.bootstrap().unwrap();
        doors.dhcp(host);
        for _ in 0..8 {
            assert_eq!(site(folder.path()).0.fetch(host, "config", true), Ok(()));
        }
        assert_eq!(doors.fetch(host, "config", true), Err(Refusal::TooOften), "counted by eight helpers");
        doors.complete(host);
        assert_eq!(site(folder.path()).0.fetch(host, "config", true), Err(Refusal::Served));
    }

    #[tokio::test]
    async fn a_file_that_is_the_same_is_not_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let (doors, config) = site(folder.path());
        let host = config.inventory.by_name("worker-0").unwrap();
        doors.dhcp(host);
        assert_eq!(doors.fetch(host, "config", false), Ok(()));
        // Other contents behind its back: as long, and as old, as before.
        let file = std::fs::File::options().write(true).open(config.door("worker-0")).unwrap();
        let before: SystemTime = file.metadata().unwrap().modified().unwrap();
        let length = usize::try_from(file.metadata().unwrap().len()).unwrap();
        std::fs::write(config.door("worker-0"), " ".repeat(length)).unwrap();
        file.set_modified(before).unwrap();
        assert_eq!(doors.fetch(host, "config", false), Ok(()), "as it was read");
        file.set_modified(SystemTime::now()).unwrap();
        assert_eq!(doors.fetch(host, "config", false), Err(Refusal::NotBooting), "as it is");
    }
}
