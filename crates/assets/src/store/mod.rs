//! The asset directory: the only code here that touches the disk.
//!
//! A change is many files. It is first written down as a whole in a journal, then done, then the journal goes: a run that is
//! killed leaves the old files, or a journal that the next run carries out. Secrets are for their owner's eyes.

mod disk;

pub use disk::{Disk, Folder};

use crate::{CreateError, Result};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

pub(crate) const LOG: &str = ".openshift_install.log";
const JOURNAL: &str = ".openshift_install_pending.json";
const SECRET: u32 = 0o600;
const PUBLIC: u32 = 0o640;

/// Path below the asset directory → contents.
pub type Files = BTreeMap<String, String>;

/// A set of one.
pub(crate) fn one(path: &str, contents: &str) -> Files {
    [(path.to_string(), contents.to_string())].into()
}

pub(crate) struct Store<'a> {
    dir: PathBuf,
    disk: &'a dyn Disk,
}

/// Everything that one run changes.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Change {
    writes: Vec<Write>,
    removes: BTreeSet<String>,
}

#[derive(Serialize, Deserialize)]
struct Write {
    path: String,
    mode: u32,
    contents: String,
}

impl Change {
    pub(crate) fn write(&mut self, path: &str, contents: &str) {
        let mode = if is_secret(path, contents) { SECRET } else { PUBLIC };
        self.removes.remove(path);
        self.writes.push(Write { path: path.into(), mode, contents: contents.into() });
    }
    pub(crate) fn remove(&mut self, path: &str) {
        self.removes.insert(path.into());
    }
}

impl<'a> Store<'a> {
    /// Carries out what a killed run had decided.
    pub(crate) fn open(dir: &Path, disk: &'a dyn Disk) -> Result<Self> {
        let store = Self { dir: dir.to_path_buf(), disk };
        if let Some(journal) = store.read(JOURNAL)? {
            store.apply(&serde_json::from_str(&journal)?)?;
        }
        Ok(store)
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        if path.is_empty() { self.dir.clone() } else { self.dir.join(path) }
    }

    pub(crate) fn read(&self, path: &str) -> Result<Option<String>> {
        self.disk.read(path).map_err(|e| self.failed(path, e))
    }

    /// What a user or an earlier run left in `manifests/` or `openshift/`. Files with other suffixes are none of ours.
    pub(crate) fn manifests(&self, folder: &str) -> Result<Files> {
        let mut found = Files::new();
        for name in self.disk.list(folder).map_err(|e| self.failed(folder, e))? {
            let path = format!("{folder}/{name}");
            let ours = [".yaml", ".yml", ".json"].iter().any(|suffix| name.ends_with(suffix));
            if ours
                && !name.starts_with('.')
                && let Some(contents) = self.read(&path)?
            {
                found.insert(path, contents);
            }
        }
        Ok(found)
    }

    /// Pointer configs of machines.
    pub(crate) fn nodes(&self) -> Result<Vec<String>> {
        let names = self.disk.list("nodes").map_err(|e| self.failed("nodes", e))?;
        Ok(names.iter().filter(|n| n.ends_with(".ign")).map(|n| format!("nodes/{n}")).collect())
    }

    pub(crate) fn commit(&self, change: &Change) -> Result<()> {
        let journal = serde_json::to_string(change)?;
        self.replace(JOURNAL, &journal, SECRET)?;
        self.sync("")?;
        self.apply(change)
    }

    pub(crate) fn log(&self, line: &str) -> Result<()> {
        self.disk.append(LOG, line, PUBLIC).map_err(|e| self.failed(LOG, e))
    }

    fn apply(&self, change: &Change) -> Result<()> {
        let mut folders = BTreeSet::from([""]);
        for Write { path, mode, contents } in &change.writes {
            if self.read(path)?.as_ref() != Some(contents) {
                self.replace(path, contents, *mode)?;
                folders.insert(folder(path));
            }
        }
        for path in &change.removes {
            self.disk.remove(path).map_err(|e| self.failed(path, e))?;
        }
        for folder in change.removes.iter().map(|path| folder(path)).filter(|folder| !folder.is_empty()) {
            self.disk.remove_empty(folder).map_err(|e| self.failed(folder, e))?;
        }
        folders.into_iter().try_for_each(|folder| self.sync(folder))?;
        self.disk.remove(JOURNAL).map_err(|e| self.failed(JOURNAL, e))
    }

    fn replace(&self, path: &str, contents: &str, mode: u32) -> Result<()> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let temporary = format!("{}.{name}.new", &path[..path.len() - name.len()]);
        let write = self.disk.write(&temporary, contents, mode);
        write.and_then(|()| self.disk.rename(&temporary, path)).map_err(|e| self.failed(path, e))
    }
    fn sync(&self, folder: &str) -> Result<()> {
        self.disk.sync(folder).map_err(|e| self.failed(folder, e))
    }
    fn failed(&self, path: &str, error: io::Error) -> CreateError {
        CreateError::io(&self.path(path), error)
    }
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Upstream writes everything 0640. What holds a key, a password or a pull secret is for its owner only.
fn is_secret(path: &str, contents: &str) -> bool {
    const SECRETS: &[&str] = &["install-config.yaml", "bootstrap.ign", "bootstrap-in-place-for-live-iso.ign"];
    path.starts_with('.')
        || path.starts_with("auth/")
        || path.starts_with("nodes/")
        || SECRETS.contains(&path)
        || (path.contains('/') && path.ends_with(".json"))
        || contents.lines().any(|line| line.trim_end() == "kind: Secret")
}

/// A file of the user's, anywhere; `None` if there is none.
pub(crate) fn read(path: &Path) -> Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(CreateError::io(path, e)),
    }
}
