//! Images before the first pull: the release's containerd directory, made once, given to a node by hard links.

use crate::{Result, at};
use std::fs;
use std::path::{Path, PathBuf};
use tokio::process::Command;

/// Fills `target` (a node's /var/lib/containerd) from `store`, unless something is there. Layers are never written to again,
/// so the nodes can share them, on disk and in the page cache; databases are, so each node gets its own.
pub async fn seed(store: &Path, target: &Path) -> Result<()> {
    let seeded = target.join(".seeded");
    if seeded.exists() {
        return Ok(());
    }
    // Not `seeded` but not empty: a run that was killed while it copied.
    at(target, fs::create_dir_all(target))?;
    for entry in at(target, fs::read_dir(target))? {
        let path = at(target, entry)?.path();
        at(&path, if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) })?;
    }
    let from = store.join(".");
    if copy("-al", &from, target).await.is_err() {
        copy("-a", &from, target).await?; // cache and state on different file systems
    }
    for database in databases(target)? {
        let own = database.with_extension("db.own");
        at(&own, fs::copy(&database, &own))?;
        at(&database, fs::rename(&own, &database))?;
    }
    at(&seeded, fs::write(&seeded, ""))
}

async fn copy(how: &str, from: &Path, to: &Path) -> Result<()> {
    let output = at(from, Command::new("cp").arg(how).arg(from).arg(to).output().await)?;
    let complaint = || std::io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_string());
    at(from, output.status.success().then_some(()).ok_or_else(complaint))
}

/// containerd keeps them at most two folders deep: `io.containerd.<plugin>/<name>/….db`. Snapshots below are not ours to read.
fn databases(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![(dir.to_path_buf(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        for entry in at(&folder, fs::read_dir(&folder))? {
            let path = at(&folder, entry)?.path();
            if path.is_dir() && depth < 2 {
                folders.push((path, depth + 1));
            } else if path.extension().is_some_and(|e| e == "db") {
                found.push(path);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[tokio::test]
    async fn layers_are_shared_and_databases_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let (store, node) = (dir.path().join("store"), dir.path().join("node"));
        let (blob, db) =
            ("io.containerd.content.v1.content/blobs/x", "io.containerd.metadata.v1.bolt/meta.db");
        for path in [blob, db] {
            fs::create_dir_all(store.join(path).parent().unwrap()).unwrap();
            fs::write(store.join(path), "data").unwrap();
        }
        fs::create_dir_all(node.join("left-by-a-killed-run")).unwrap();
        seed(&store, &node).await.unwrap();
        seed(&store, &node).await.unwrap();
        let inode = |root: &Path, path: &str| fs::metadata(root.join(path)).unwrap().ino();
        assert_eq!(inode(&store, blob), inode(&node, blob));
        assert_ne!(inode(&store, db), inode(&node, db));
        assert!(!node.join("left-by-a-killed-run").exists());
    }
}
