//! `seedling etcd backup`: etcd's data and this master's static pods, as one directory.
//!
//! The static pods belong to it: Secrets in the data can only be read with the keys that API servers had then.

use super::carry_out::copy_all;
use super::here::Here;
use crate::error::{cannot, ensure, in_file, write};
use crate::{Error, Result};
use seedling_steps::sync_directory;
use seedling_types::paths;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use time::OffsetDateTime;

pub const SNAPSHOT: &str = "snapshot.db";
pub const STATIC_PODS: &str = "static-pods";
const ABOUT: &str = "backup.json";
/// etcd ends a snapshot with the sum of what is before.
const SUM: u64 = 32;
/// What a disk must have beside the data itself.
const SPARE: u64 = 64 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Backup {
    pub made: String,
    pub node: String,
    /// etcd's own id, and those of clusters that it stands for since a restore.
    pub cluster: u64,
    pub given_up: BTreeSet<u64>,
    /// All changes up to this one are in it.
    pub revision: i64,
    pub size: u64,
    pub sha256: String,
    /// Static pods whose files are in it, and their revisions.
    pub runs: BTreeMap<String, i64>,
}

/// Where it is, and what is in it.
pub async fn backup(here: &Here, into: &Path) -> Result<(PathBuf, Backup)> {
    let mut etcd = here.own().await?;
    // Answered by a majority: nothing of before is missing here.
    let (revision, given_up) = (etcd.revision().await?, etcd.given_up().await?);
    let status = etcd.status().await?;
    ensure!(
        !status.learner,
        "this member is a learner, and has not all data yet: run this on another master"
    );
    let made = super::to_the_second(OffsetDateTime::now_utc())?;
    let target = into.join(format!("etcd-{}-{revision}", made.replace(':', "")));
    ensure!(!target.exists(), "{} is there already", target.display());
    fs::create_dir_all(into).map_err(cannot("make", into))?;
    let partial = Partial::new(into)?;
    let file = partial.0.join(SNAPSHOT);
    let out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file);
    let mut out = out.map_err(cannot("make", &file))?;
    etcd.snapshot(|size| room(into, size + SPARE), |part| out.write_all(part)).await?;
    out.sync_all().map_err(cannot("write", &file))?;
    let (size, sha256) = checked(&file)?;
    let runs = here.runs()?;
    for (pod, revision) in &runs {
        let from = Path::new(paths::STATIC_POD_RESOURCES).join(format!("{pod}-{revision}"));
        copy_all(&from, &partial.0.join(STATIC_PODS).join(format!("{pod}-{revision}")))
            .map_err(cannot("copy", &from))?;
    }
    let node = here.name.clone();
    let about = Backup { made, node, cluster: status.cluster, given_up, revision, size, sha256, runs };
    write(&partial.0.join(ABOUT), serde_json::to_vec_pretty(&about)?)?;
    nix::unistd::sync();
    // A directory that is not empty is never replaced.
    let renamed = fs::rename(&partial.0, &target).and_then(|()| sync_directory(into));
    renamed.map_err(cannot("make", &target))?;
    Ok((target, about))
}

/// Gone, unless it was renamed. One at a time: what a killed one left is removed.
struct Partial(PathBuf, #[expect(dead_code, reason = "a lock")] File);

impl Partial {
    fn new(into: &Path) -> Result<Self> {
        let lock = File::open(into).map_err(cannot("open", into))?;
        ensure!(lock.try_lock().is_ok(), "another backup to {} is under way", into.display());
        let dir = into.join(".etcd-backup");
        super::order::remove(&dir)?;
        fs::DirBuilder::new().mode(0o700).create(&dir).map_err(cannot("make", &dir))?;
        Ok(Self(dir, lock))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// An error where there is less.
pub fn room(dir: &Path, needed: u64) -> io::Result<()> {
    let stat = nix::sys::statvfs::statvfs(dir)?;
    let free = stat.blocks_available() * stat.fragment_size();
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    match free < needed {
        true => Err(io::Error::new(
            io::ErrorKind::StorageFull,
            format!("{} has {} MiB left, and {} are needed", dir.display(), mib(free), mib(needed)),
        )),
        false => Ok(()),
    }
}

/// Read again as it is on the disk: its size and its sum, if etcd's own sum at its end is right.
pub fn checked(snapshot: &Path) -> Result<(u64, String)> {
    let unreadable = || cannot("read", snapshot);
    let mut file = File::open(snapshot).map_err(unreadable())?;
    let size = file.metadata().map_err(unreadable())?.len();
    let whole = size > SUM && (size - SUM).is_multiple_of(512);
    ensure!(whole, "{} is not a complete snapshot of etcd: {size} bytes", snapshot.display());
    let mut inner = Sha256::new();
    io::copy(&mut (&mut file).take(size - SUM), &mut inner).map_err(unreadable())?;
    let mut all = inner.clone();
    let mut sum = Vec::new();
    file.read_to_end(&mut sum).map_err(unreadable())?;
    ensure!(inner.finalize()[..] == sum[..], "{} is damaged: its sum is wrong", snapshot.display());
    all.update(&sum);
    Ok((size, all.finalize().iter().map(|byte| format!("{byte:02x}")).collect()))
}

/// What was made is read back: `given` is its directory, or the snapshot in it.
pub fn read(given: &Path) -> Result<(PathBuf, Backup)> {
    let dir = if given.is_dir() { given } else { given.parent().unwrap_or(Path::new(".")) };
    let about = fs::read(dir.join(ABOUT)).map_err(|error| Error::System {
        what: format!(
            "{} is no backup: {ABOUT} is missing beside the snapshot (seedling etcd backup writes it)",
            dir.display()
        ),
        error,
    })?;
    let about: Backup = serde_json::from_slice(&about).map_err(in_file(ABOUT))?;
    let (_, sha256) = checked(&dir.join(SNAPSHOT))?;
    ensure!(sha256 == about.sha256, "{} is not the snapshot that {ABOUT} tells of", given.display());
    Ok((dir.into(), about))
}

/// Puts the static pods' files back; what is there with other contents is moved aside.
pub fn put_back(dir: &Path, about: &Backup, resources: &Path, id: &str) -> Result<()> {
    for (pod, revision) in &about.runs {
        let name = format!("{pod}-{revision}");
        let (from, to) = (dir.join(STATIC_PODS).join(&name), resources.join(&name));
        let failed = || cannot("put back", &to);
        if to.exists() && same(&from, &to).map_err(failed())? {
            continue;
        }
        let partial = resources.join(format!(".{name}.part"));
        super::order::remove(&partial)?;
        copy_all(&from, &partial).map_err(failed())?;
        if to.exists() {
            fs::rename(&to, resources.join(format!("{name}.before-restore-{id}"))).map_err(failed())?;
        }
        fs::rename(partial, &to).map_err(failed())?;
    }
    sync_directory(resources).map_err(cannot("write", resources))
}

/// All that is in the one is in the other.
fn same(one: &Path, other: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(one)? {
        let entry = entry?;
        let there = other.join(entry.file_name());
        let same = match entry.file_type()?.is_dir() {
            true => there.is_dir() && same(&entry.path(), &there)?,
            false => {
                fs::read(&there).is_ok_and(|bytes| fs::read(entry.path()).is_ok_and(|have| have == bytes))
            }
        };
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn snapshot(dir: &Path, content: &[u8]) -> PathBuf {
        let file = dir.join(SNAPSHOT);
        fs::write(&file, [content, &Sha256::digest(content)].concat()).unwrap();
        file
    }

    #[test]
    fn a_damaged_snapshot_is_found_out() {
        let dir = tempfile::tempdir().unwrap();
        let file = snapshot(dir.path(), &[7; 1024]);
        let (size, sum) = checked(&file).unwrap();
        assert_eq!(size, 1056);
        let mut bytes = fs::read(&file).unwrap();
        bytes[100] ^= 1;
        fs::write(&file, &bytes).unwrap();
        assert!(checked(&file).unwrap_err().to_string().contains("damaged"));
        fs::write(&file, &bytes[..1000]).unwrap();
        assert!(checked(&file).unwrap_err().to_string().contains("not a complete snapshot"));
        assert!(read(&file).unwrap_err().to_string().contains("no backup"));
        let about = Backup { sha256: sum, ..Backup::default() };
        fs::write(dir.path().join(ABOUT), serde_json::to_vec(&about).unwrap()).unwrap();
        assert!(read(&file).is_err());
        snapshot(dir.path(), &[7; 1024]);
        assert_eq!(read(&file).unwrap().1, about);
        snapshot(dir.path(), &[8; 1024]);
        assert!(read(dir.path()).unwrap_err().to_string().contains("not the snapshot"));
    }

    #[test]
    fn room_is_asked_for_before() {
        assert!(room(Path::new("/"), 0).is_ok());
        let error = room(Path::new("/"), u64::MAX).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn files_of_that_time_come_back_and_others_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let (backup, resources) = (dir.path().join("b"), dir.path().join("r"));
        let write = |base: &Path, text: &str| {
            fs::create_dir_all(base.join("secrets")).unwrap();
            fs::write(base.join("secrets/key"), text).unwrap();
        };
        write(&backup.join("static-pods/etcd-pod-2"), "then");
        fs::create_dir_all(&resources).unwrap();
        let about = Backup { runs: [("etcd-pod".to_string(), 2)].into(), ..Backup::default() };
        put_back(&backup, &about, &resources, "7").unwrap();
        put_back(&backup, &about, &resources, "7").unwrap();
        assert_eq!(fs::read_dir(&resources).unwrap().count(), 1);
        write(&resources.join("etcd-pod-2"), "now");
        put_back(&backup, &about, &resources, "8").unwrap();
        let text = |name: &str| fs::read_to_string(resources.join(name).join("secrets/key")).unwrap();
        assert_eq!((text("etcd-pod-2"), text("etcd-pod-2.before-restore-8")), ("then".into(), "now".into()));
    }
}
