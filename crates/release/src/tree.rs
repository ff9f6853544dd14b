//! The file system of an image layer, and its tar. The same tree gives the same bytes: sorted names, no owners, no times.

use crate::error::{At, Result};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

#[derive(Clone, Default)]
pub struct Tree(BTreeMap<String, Node>);

#[derive(Clone)]
enum Node {
    Dir(u32),
    File(u32, Source),
    Link(String),
}

/// A file's content, and an identity that changes with it.
#[derive(Clone)]
pub enum Source {
    Bytes(Vec<u8>),
    Path { path: PathBuf, id: String },
}

impl Source {
    /// A file that never changes under its path (its folder is named by its inputs).
    pub fn immutable(path: PathBuf) -> Self {
        let id = path.to_string_lossy().into_owned();
        Self::Path { path, id }
    }
    /// Any other file: its content is its identity.
    pub fn hashed(path: &Path) -> Result<Self> {
        Ok(Self::Path { path: path.into(), id: sha256(File::open(path).at(path)?).at(path)? })
    }
    pub fn id(&self) -> String {
        match self {
            Self::Bytes(bytes) => hex(&Sha256::digest(bytes)),
            Self::Path { id, .. } => id.clone(),
        }
    }
    pub fn open(&self) -> Result<(Box<dyn Read + '_>, u64)> {
        match self {
            Self::Bytes(bytes) => Ok((Box::new(bytes.as_slice()), bytes.len() as u64)),
            Self::Path { path, .. } => {
                let file = File::open(path).at(path)?;
                let size = file.metadata().at(path)?.len();
                Ok((Box::new(file), size))
            }
        }
    }
}

impl Tree {
    /// What every image has: users for programs that ask, a resolver order for libc, a place for temporary files.
    pub fn base() -> Self {
        let mut tree = Self::default();
        let texts = [
            ("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"),
            ("etc/group", "root:x:0:\nnogroup:x:65534:\n"),
            ("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"),
        ];
        for (path, text) in texts {
            tree.file(path, 0o644, Source::Bytes(text.into()));
        }
        tree.dir("root", 0o700);
        tree.dir("run", 0o755);
        tree.dir("tmp", 0o1777);
        tree.dir("var/log", 0o755);
        tree
    }

    pub fn file(&mut self, path: &str, mode: u32, source: Source) {
        self.put(path, Node::File(mode, source));
    }
    pub fn link(&mut self, path: &str, target: &str) {
        self.put(path, Node::Link(target.into()));
    }
    pub fn dir(&mut self, path: &str, mode: u32) {
        self.put(path, Node::Dir(mode));
    }

    /// All files, links and folders below a folder that never changes; of `left_out` only the folder itself.
    pub fn add_folder(&mut self, root: &Path, left_out: &[&str]) -> Result<()> {
        let mut folders = vec![String::new()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(root.join(&folder)).at(root)? {
                let entry = entry.at(root)?;
                let name = entry.file_name().to_string_lossy().into_owned();
                let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
                let meta = entry.metadata().at(root)?;
                let mode = meta.permissions().mode() & 0o7777;
                if meta.is_symlink() {
                    self.link(&path, &fs::read_link(entry.path()).at(root)?.to_string_lossy());
                } else if meta.is_dir() {
                    self.dir(&path, mode);
                    folders.extend(Some(path).filter(|p| !left_out.contains(&p.as_str())));
                } else if meta.is_file() {
                    self.file(&path, mode, Source::immutable(entry.path()));
                }
            }
        }
        Ok(())
    }

    fn put(&mut self, path: &str, node: Node) {
        for (at, _) in path.match_indices('/') {
            self.0.entry(path[..at].into()).or_insert(Node::Dir(0o755));
        }
        self.0.insert(path.into(), node);
    }

    /// Bytes of all files.
    pub fn size(&self) -> Result<u64> {
        let files = self.0.values().filter_map(|node| match node {
            Node::File(_, source) => Some(source),
            Node::Dir(_) | Node::Link(_) => None,
        });
        files.map(|source| Ok(source.open()?.1)).sum()
    }

    /// Identity of the layer, without reading large files.
    pub fn key(&self) -> String {
        let mut hash = Sha256::new();
        for (path, node) in &self.0 {
            hash.update(match node {
                Node::Dir(mode) => format!("{path} dir {mode:o}\n"),
                Node::File(mode, source) => format!("{path} file {mode:o} {}\n", source.id()),
                Node::Link(target) => format!("{path} link {target}\n"),
            });
        }
        hex(&hash.finalize())
    }

    /// Writes the tar; returns its sha256 (hex) and size.
    pub fn write_tar(&self, out: impl Write) -> Result<(String, u64)> {
        self.write_tar_of(0, out)
    }

    /// The same with a time for every file: what people list should not be of 1970.
    pub fn write_tar_of(&self, time: u64, out: impl Write) -> Result<(String, u64)> {
        let mut tar = tar::Builder::new(Hashing::new(out));
        for (path, node) in &self.0 {
            let mut header = tar::Header::new_gnu();
            header.set_mtime(time);
            header.set_uid(0);
            header.set_gid(0);
            match node {
                Node::Dir(mode) => {
                    header.set_entry_type(tar::EntryType::Directory);
                    header.set_mode(*mode);
                    header.set_size(0);
                    tar.append_data(&mut header, format!("{path}/"), io::empty()).at(path)?;
                }
                Node::File(mode, source) => {
                    let (content, size) = source.open()?;
                    header.set_entry_type(tar::EntryType::Regular);
                    header.set_mode(*mode);
                    header.set_size(size);
                    tar.append_data(&mut header, path, content).at(path)?;
                }
                Node::Link(target) => {
                    header.set_entry_type(tar::EntryType::Symlink);
                    header.set_mode(0o777);
                    header.set_size(0);
                    tar.append_link(&mut header, path, target).at(path)?;
                }
            }
        }
        tar.into_inner().and_then(Hashing::finish).at("layer").map(|(_, digest, size)| (digest, size))
    }
}

/// Counts and hashes what is written through it.
pub(crate) struct Hashing<W> {
    inner: W,
    hash: Sha256,
    size: u64,
}

impl<W: Write> Hashing<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self { inner, hash: Sha256::new(), size: 0 }
    }
    /// What was written to, its sha256 (hex) and size.
    pub(crate) fn finish(mut self) -> io::Result<(W, String, u64)> {
        self.inner.flush()?;
        Ok((self.inner, hex(&self.hash.finalize()), self.size))
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.inner.write(bytes)?;
        self.hash.update(&bytes[..n]);
        self.size += n as u64;
        Ok(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Of everything that can be read (hex).
pub(crate) fn sha256(mut from: impl Read) -> io::Result<String> {
    let mut hash = Hashing::new(io::sink());
    io::copy(&mut from, &mut hash)?;
    Ok(hex(&hash.hash.finalize()))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn sample(reverse: bool) -> Tree {
        let mut tree = Tree::base();
        let mut names = vec!["usr/bin/b", "usr/bin/a", "opt/cni/bin/bridge"];
        if reverse {
            names.reverse();
        }
        for name in names {
            tree.file(name, 0o755, Source::Bytes(name.into()));
        }
        tree.link("bin/sh", "busybox");
        tree
    }

    #[test]
    fn the_same_tree_gives_the_same_bytes() {
        let (mut one, mut two) = (Vec::new(), Vec::new());
        let digest = sample(false).write_tar(&mut one).unwrap();
        assert_eq!(digest, sample(true).write_tar(&mut two).unwrap());
        assert_eq!(one, two);
        assert_eq!(digest, (hex(&Sha256::digest(&one)), one.len() as u64));
        assert_eq!(sample(false).key(), sample(true).key());
    }

    #[test]
    fn a_folder_is_taken_with_its_modes() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("proc/1")).unwrap();
        fs::create_dir(dir.path().join("bin")).unwrap();
        fs::write(dir.path().join("bin/nnp"), "x").unwrap();
        fs::set_permissions(dir.path().join("bin/nnp"), fs::Permissions::from_mode(0o4755)).unwrap();
        std::os::unix::fs::symlink("nnp", dir.path().join("bin/sh")).unwrap();
        let mut tree = Tree::default();
        tree.add_folder(dir.path(), &["proc"]).unwrap();
        assert_eq!(tree.0.keys().collect::<Vec<_>>(), ["bin", "bin/nnp", "bin/sh", "proc"]);
        assert!(matches!(tree.0["bin/nnp"], Node::File(0o4755, _)));
        assert!(matches!(&tree.0["bin/sh"], Node::Link(to) if to == "nnp"));
    }

    #[test]
    fn content_changes_key_and_digest() {
        let mut other = sample(false);
        other.file("usr/bin/a", 0o755, Source::Bytes("new".into()));
        assert_ne!(other.key(), sample(false).key());
        let digest = |tree: &Tree| tree.write_tar(io::sink()).unwrap().0;
        assert_ne!(digest(&other), digest(&sample(false)));
    }

    #[test]
    fn headers_are_plain() {
        let mut bytes = Vec::new();
        sample(false).write_tar(&mut bytes).unwrap();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let mut seen = BTreeMap::new();
        for entry in archive.entries().unwrap() {
            let entry = entry.unwrap();
            let header = entry.header();
            assert_eq!((header.uid().unwrap(), header.gid().unwrap(), header.mtime().unwrap()), (0, 0, 0));
            seen.insert(entry.path().unwrap().display().to_string(), header.mode().unwrap());
        }
        assert_eq!(seen["tmp/"], 0o1777);
        assert_eq!(seen["opt/cni/bin/"], 0o755);
        assert_eq!(seen["opt/cni/bin/bridge"], 0o755);
    }
}
