//! The asset directory: the only code here that touches the disk. Each file is replaced atomically; secrets are for the owner.

use crate::CreateError;
use crate::manifests::Manifests;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

const SECRET: u32 = 0o600;
const PUBLIC: u32 = 0o640;
const DIRECTORY: u32 = 0o750;

pub struct Store {
    dir: PathBuf,
}

/// A file to be written, by its path below the asset directory.
pub struct Asset {
    pub path: String,
    pub contents: String,
    pub secret: bool,
}

impl Asset {
    pub fn public(path: &str, contents: impl Into<String>) -> Self {
        Self { path: path.into(), contents: contents.into(), secret: false }
    }
    pub fn secret(path: &str, contents: impl Into<String>) -> Self {
        Self { path: path.into(), contents: contents.into(), secret: true }
    }
}

impl Store {
    pub fn new(dir: &Path) -> Self {
        Self { dir: dir.to_path_buf() }
    }

    pub fn read(&self, path: &str) -> Result<Option<String>, CreateError> {
        read(&self.dir.join(path))
    }

    /// What a user or an earlier run left in `manifests/` or `openshift/`. Files with other suffixes are none of ours.
    pub fn manifests(&self, folder: &str) -> Result<Manifests, CreateError> {
        let entries = match fs::read_dir(self.dir.join(folder)) {
            Ok(entries) => entries,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Manifests::new()),
            Err(e) => return Err(CreateError::io(&self.dir.join(folder), e)),
        };
        let mut found = Manifests::new();
        for entry in entries {
            let path = entry.map_err(|e| CreateError::io(&self.dir.join(folder), e))?.path();
            let suffix = path.extension().and_then(|s| s.to_str()).unwrap_or_default();
            let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
            if ["yaml", "yml", "json"].contains(&suffix)
                && let Some(contents) = read(&path)?
            {
                found.insert(format!("{folder}/{name}"), contents);
            }
        }
        Ok(found)
    }

    pub fn write(&self, assets: &[Asset]) -> Result<(), CreateError> {
        for asset in assets {
            let path = self.dir.join(&asset.path);
            let parent = path.parent().unwrap_or(&self.dir);
            DirBuilder::new()
                .recursive(true)
                .mode(DIRECTORY)
                .create(parent)
                .map_err(|e| CreateError::io(parent, e))?;
            let mode = if asset.secret { SECRET } else { PUBLIC };
            replace(&path, parent, &asset.contents, mode).map_err(|e| CreateError::io(&path, e))?;
        }
        Ok(())
    }

    /// Removes consumed files, and a folder that is empty then.
    pub fn consume<'a>(&self, paths: impl IntoIterator<Item = &'a String>) -> Result<(), CreateError> {
        for path in paths {
            let path = self.dir.join(path);
            match fs::remove_file(&path) {
                Err(e) if e.kind() != ErrorKind::NotFound => return Err(CreateError::io(&path, e)),
                _ => {}
            }
            if let Some(parent) = path.parent().filter(|parent| *parent != self.dir) {
                let _ = fs::remove_dir(parent); // fails while something else is in it, as it should
            }
        }
        Ok(())
    }
}

/// A file of the user's, anywhere; `None` if there is none.
pub fn read(path: &Path) -> Result<Option<String>, CreateError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(CreateError::io(path, e)),
    }
}

fn replace(path: &Path, parent: &Path, contents: &str, mode: u32) -> std::io::Result<()> {
    let mut file = tempfile::Builder::new()
        .prefix(".seedling-")
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(parent)?;
    file.write_all(contents.as_bytes())?;
    file.as_file().set_permissions(Permissions::from_mode(mode))?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    File::open(parent)?.sync_all()
}
