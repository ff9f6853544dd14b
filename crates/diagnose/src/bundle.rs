//! A log bundle: files by their path below the bundle's root, read from an archive within limits, and written without secrets.

use crate::redact::{leaks, redacted};
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};
use thiserror::Error;

/// Of one file, so much is kept: its beginning and its end.
pub const FILE_LIMIT: usize = 4 << 20;
/// An archive may not unpack to more than this, nor have more files.
const TOTAL_LIMIT: u64 = 1 << 30;
const KEPT_LIMIT: usize = 256 << 20;
const FILES_LIMIT: usize = 50_000;

/// Upstream's words, where it has some.
#[derive(Debug, Error)]
pub enum BundleError {
    #[error("could not open the gather bundle: open {}: {}", path.display(), why(source))]
    Open { path: PathBuf, source: io::Error },
    #[error("could not decompress the gather bundle: gzip: invalid header")]
    NotGzip,
    #[error("encountered an error reading from the gather bundle: {0}")]
    Damaged(String),
    #[error("{}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error(
        "the archive was not kept: {} would hold {what} ({more} such places in all); please report this",
        file
    )]
    Secret { file: String, what: String, more: usize },
}

/// As Go says it.
fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file or directory".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        _ => error.to_string(),
    }
}

/// Paths are relative to the root (`log-bundle-ID/`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bundle {
    files: BTreeMap<String, Vec<u8>>,
}

impl Bundle {
    pub fn insert(&mut self, path: impl Into<String>, mut content: Vec<u8>) {
        shorten(&mut content);
        self.files.insert(path.into(), content);
    }

    /// All files of another below a directory.
    pub fn insert_all(&mut self, below: &str, other: Bundle) {
        let moved = other.files.into_iter().map(|(path, content)| (format!("{below}{path}"), content));
        self.files.extend(moved);
    }

    pub fn get(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path).map(Vec::as_slice)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(path, content)| (path.as_str(), content.as_slice()))
    }

    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    pub fn open(path: &Path) -> Result<Self, BundleError> {
        let file = File::open(path).map_err(|source| BundleError::Open { path: path.into(), source })?;
        Self::read(file)
    }

    /// A compressed archive with one directory at its root.
    pub fn read(archive: impl Read) -> Result<Self, BundleError> {
        let mut archive = io::BufReader::new(archive);
        if !io::BufRead::fill_buf(&mut archive).is_ok_and(|start| start.starts_with(&[0x1f, 0x8b])) {
            return Err(BundleError::NotGzip);
        }
        Self::read_tar(MultiGzDecoder::new(archive), true)
    }

    /// An archive as a machine sends it: no directory at its root, or one that is taken off.
    pub fn read_tar(archive: impl Read, has_root: bool) -> Result<Self, BundleError> {
        let damaged = |e: io::Error| BundleError::Damaged(e.to_string());
        let mut bundle = Self::default();
        let (mut kept, mut seen) = (0, 0);
        let mut archive = tar::Archive::new(archive.take(TOTAL_LIMIT));
        for entry in archive.entries().map_err(damaged)? {
            let mut entry = entry.map_err(damaged)?;
            seen += 1;
            if seen > FILES_LIMIT || kept > KEPT_LIMIT {
                return Err(BundleError::Damaged("it is larger than any log bundle".into()));
            }
            let path = entry.path().map(|path| below_root(&path, has_root)).unwrap_or_default();
            let (Some(path), true) = (path, entry.header().entry_type().is_file()) else { continue };
            let content = read_both_ends(&mut entry).map_err(damaged)?;
            kept += content.len();
            bundle.files.insert(path, content);
        }
        Ok(bundle)
    }

    /// The same without secrets, and what was left out.
    pub fn redacted(self) -> (Self, Vec<String>) {
        let (mut clean, mut notes) = (Self::default(), Vec::new());
        for (path, content) in self.files {
            let kept = match path.strip_suffix(".gz") {
                Some(plain) => redacted(plain, unpacked(&content)).map(|content| packed(&content)),
                None => redacted(&path, content),
            };
            match kept {
                Some(content) => drop(clean.files.insert(path, content)),
                None => notes.push(format!("{path} is left out: it is a secret")),
            }
        }
        (clean, notes)
    }

    /// Readable by its owner only. What is written is looked through again: with a secret in it, it is not kept. `known` are secrets of this
    /// cluster, as far as the caller has them.
    pub fn write(&self, path: &Path, root: &str, known: &[String]) -> Result<(), BundleError> {
        let failed = |source: io::Error| BundleError::Write { path: path.into(), source };
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Made with mode 0600.
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
        self.write_to(file.as_file_mut(), root).map_err(failed)?;
        let written = Self::open(file.path())?;
        let found = written.leaks(known);
        if let Some((file, what)) = found.first() {
            return Err(BundleError::Secret { file: file.clone(), what: what.clone(), more: found.len() });
        }
        file.as_file().sync_all().map_err(failed)?;
        file.persist(path).map_err(|e| failed(e.error))?;
        Ok(())
    }

    fn write_to(&self, file: &mut File, root: &str) -> io::Result<()> {
        let mut archive = tar::Builder::new(GzEncoder::new(file, Compression::fast()));
        for (path, content) in &self.files {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o600);
            archive.append_data(&mut header, format!("{root}/{path}"), content.as_slice())?;
        }
        archive.into_inner()?.finish()?.flush()
    }

    /// Files in which there is still a secret, and of which kind.
    pub fn leaks(&self, known: &[String]) -> Vec<(String, String)> {
        let of_file = |(path, content): (&String, &Vec<u8>)| {
            let plain = if path.ends_with(".gz") { &unpacked(content) } else { content };
            let text = String::from_utf8_lossy(plain);
            let shapes = leaks(&text).first().map(|leak| format!("{} at byte {}", leak.what, leak.at.start));
            let exact = || known.iter().any(|secret| text.contains(secret.as_str()));
            let what = shapes.or_else(|| exact().then(|| "a secret of this cluster".to_string()))?;
            Some((path.clone(), what))
        };
        self.files.iter().filter_map(of_file).collect()
    }
}

/// What leads out of the bundle is no file of it.
fn below_root(path: &Path, has_root: bool) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::CurDir => {}
            _ => return None,
        }
    }
    let skip = usize::from(has_root && parts.len() > 1);
    let below = parts.get(skip..)?.join("/");
    (!below.is_empty()).then_some(below)
}

/// As far as it can be read.
fn unpacked(content: &[u8]) -> Vec<u8> {
    read_both_ends(&mut Lenient(MultiGzDecoder::new(content).take(TOTAL_LIMIT / 4))).unwrap_or_default()
}

/// Ends where the other is damaged.
struct Lenient<R>(R);

impl<R: Read> Read for Lenient<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).or(Ok(0))
    }
}

fn packed(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    // To memory nothing fails.
    let _ = encoder.write_all(content);
    encoder.finish().unwrap_or_default()
}

const LEFT_OUT: &[u8] = b"\n[... left out: too long ...]\n";

fn shorten(content: &mut Vec<u8>) {
    if content.len() > FILE_LIMIT {
        let end = content.split_off(content.len() - FILE_LIMIT / 2);
        content.truncate(FILE_LIMIT / 2);
        content.extend_from_slice(LEFT_OUT);
        content.extend(end);
    }
}

/// Without more memory than is kept.
fn read_both_ends(entry: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    entry.by_ref().take(FILE_LIMIT as u64 / 2).read_to_end(&mut content)?;
    let (mut end, mut block) = (std::collections::VecDeque::<u8>::new(), vec![0_u8; 1 << 16]);
    let mut cut = false;
    loop {
        let read = entry.read(&mut block)?;
        if read == 0 {
            break;
        }
        end.extend(&block[..read]);
        let over = end.len().saturating_sub(FILE_LIMIT / 2);
        cut |= over > 0;
        end.drain(..over);
    }
    if cut {
        content.extend_from_slice(LEFT_OUT);
    }
    content.extend(end);
    Ok(content)
}
