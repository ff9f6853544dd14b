//! The file operations of an asset directory, one by one: what a crash can fall between.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

const DIRECTORY: u32 = 0o750;

/// Paths are relative to the asset directory. No operation but `rename` is atomic.
pub trait Disk {
    fn read(&self, path: &str) -> io::Result<Option<String>>;
    /// Names of the files in a folder; none if there is no such folder.
    fn list(&self, folder: &str) -> io::Result<Vec<String>>;
    /// Writes and syncs a file, and makes the folders it is in.
    fn write(&self, path: &str, contents: &str, mode: u32) -> io::Result<()>;
    fn append(&self, path: &str, text: &str, mode: u32) -> io::Result<()>;
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// It is no error if there is no such file.
    fn remove(&self, path: &str) -> io::Result<()>;
    /// Removes a folder if it is empty.
    fn remove_empty(&self, folder: &str) -> io::Result<()>;
    fn sync(&self, folder: &str) -> io::Result<()>;
}

/// A directory of this machine.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(dir: &Path) -> Self {
        Self(dir.to_path_buf())
    }
    fn at(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }
    fn parent(&self, path: &str) -> io::Result<PathBuf> {
        let path = self.at(path);
        let parent = path.parent().unwrap_or(&self.0).to_path_buf();
        DirBuilder::new().recursive(true).mode(DIRECTORY).create(&parent)?;
        Ok(path)
    }
}

impl Disk for Folder {
    fn read(&self, path: &str) -> io::Result<Option<String>> {
        match fs::read_to_string(self.at(path)) {
            Ok(text) => Ok(Some(text)),
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(e) => Err(e),
        }
    }
    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(self.at(folder)) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(vec![]),
            entries => entries?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry?;
            if !entry.path().is_dir() {
                names.extend(entry.file_name().to_str().map(str::to_string));
            }
        }
        names.sort();
        Ok(names)
    }
    fn write(&self, path: &str, contents: &str, mode: u32) -> io::Result<()> {
        let path = self.parent(path)?;
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(path)?;
        file.set_permissions(Permissions::from_mode(mode))?;
        file.write_all(contents.as_bytes())?;
        file.sync_all()
    }
    fn append(&self, path: &str, text: &str, mode: u32) -> io::Result<()> {
        let path = self.parent(path)?;
        OpenOptions::new().append(true).create(true).mode(mode).open(path)?.write_all(text.as_bytes())
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.at(from), self.at(to))
    }
    fn remove(&self, path: &str) -> io::Result<()> {
        match fs::remove_file(self.at(path)) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }
    fn remove_empty(&self, folder: &str) -> io::Result<()> {
        match fs::remove_dir(self.at(folder)) {
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) => Ok(()),
            done => done,
        }
    }
    fn sync(&self, folder: &str) -> io::Result<()> {
        File::open(self.at(folder))?.sync_all()
    }
}
