//! The Ignition configs that machines fetch, in memory: a rack that is switched on at once asks a thousand times for the same pointer.

use crate::doors::digest;
use crate::kept::{self, Version};
use axum::body::Bytes;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Then it begins anew: a site may have a file of its own for each machine.
const MOST: usize = 256;
/// A pointer has some thousand bytes. What is longer is the bootstrap node's, which is fetched once.
const LONGEST: usize = 64 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Document {
    pub bytes: Bytes,
    /// By which its door knows it.
    pub digest: Arc<str>,
}

#[derive(Clone, Default)]
pub(super) struct Documents(Arc<Mutex<HashMap<PathBuf, (Version, Document)>>>);

impl Documents {
    /// As the file is now; None: it cannot be read.
    pub(super) async fn read(&self, path: PathBuf) -> Option<Document> {
        if let Some(known) = self.known(&path) {
            return Some(known);
        }
        let documents = self.clone();
        tokio::task::spawn_blocking(move || documents.fresh(path)).await.ok()?
    }

    fn known(&self, path: &Path) -> Option<Document> {
        let version = kept::version(path)?;
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(path).filter(|(of, _)| *of == version).map(|(_, document)| document.clone())
    }

    fn fresh(&self, path: PathBuf) -> Option<Document> {
        let (version, bytes) = kept::read(&path).ok()?;
        let document = Document { digest: digest(&bytes).into(), bytes: bytes.into() };
        if document.bytes.len() <= LONGEST {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= MOST {
                known.clear();
            }
            known.insert(path, (version, document.clone()));
        }
        Some(document)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use seedling_steps::write_atomic;

    #[tokio::test]
    async fn a_config_is_the_one_on_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("worker.ign");
        let documents = Documents::default();
        let read = async || documents.read(path.clone()).await.map(|d| (d.bytes, d.digest));
        assert_eq!(read().await, None);
        for text in ["one", "two", "two", "three"] {
            write_atomic(&path, text, 0o600).unwrap();
            for _ in 0..2 {
                assert_eq!(read().await, Some((text.into(), digest(text.as_bytes()).into())));
            }
        }
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read().await, None);
    }

    #[tokio::test]
    async fn neither_long_configs_nor_many_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let documents = Documents::default();
        for n in 0..2 * MOST {
            let path = folder.path().join(n.to_string());
            std::fs::write(&path, n.to_string()).unwrap();
            assert_eq!(documents.read(path).await.unwrap().bytes, n.to_string());
        }
        let long = folder.path().join("bootstrap.ign");
        std::fs::write(&long, vec![b'x'; LONGEST + 1]).unwrap();
        assert_eq!(documents.read(long.clone()).await.unwrap().bytes.len(), LONGEST + 1);
        let known = documents.0.lock().unwrap();
        assert!(known.len() <= MOST && !known.contains_key(&long));
    }
}
