//! Trouble with disks: some of a machine's own that can be full, and writes that are slow.

use crate::run::{Result, at, run};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file with this ending is mounted on the directory beside it that has its name, while the machine is on.
pub(crate) const IMAGE: &str = "disk";

/// What can have a disk of its own. Not the machine's whole file system: it is a directory of the machine below, which is to see what is on it
/// also while the machine is off, and a directory has no end of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disk {
    Etcd,
    Containerd,
    /// What pods say; the machine's journals are beside them, and stay where they are.
    PodLogs,
}

impl Disk {
    /// Beside the machine's file system.
    pub fn directory(self) -> &'static str {
        match self {
            Disk::Etcd => "etcd",
            Disk::Containerd => "containerd",
            Disk::PodLogs => "pod-logs",
        }
    }

    /// On the machine.
    pub fn path(self) -> &'static str {
        match self {
            Disk::Etcd => "/var/lib/etcd",
            Disk::Containerd => "/var/lib/containerd",
            Disk::PodLogs => "/var/log/pods",
        }
    }
}

/// An ext4 disk with what is in the directory already; one that is there stays. Made under another name first, so that it is there whole
/// or not at all.
pub(crate) async fn make(directory: &Path, mib: u32) -> Result<()> {
    let image = directory.with_extension(IMAGE);
    if image.exists() {
        return Ok(());
    }
    let making = directory.with_extension("making");
    let file = at(&making, fs::File::create(&making))?;
    at(&making, file.set_len(u64::from(mib) << 20))?;
    // Without blocks kept back for root: everything on a machine is root.
    let (from, to) = (directory.display().to_string(), making.display().to_string());
    let filled = fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some());
    let contents: &[&str] = if filled { &["-d", &from] } else { &[] };
    run("mkfs.ext4", ["-q", "-F", "-m", "0"].iter().chain(contents).chain([&to.as_str()])).await?;
    at(&image, fs::rename(&making, &image))
}

/// The disk a directory lies on, as control groups name it: a partition is part of its disk.
pub(crate) fn device_of(directory: &Path) -> Result<String> {
    let number = at(directory, fs::metadata(directory))?.dev();
    let name = format!("{}:{}", nix::sys::stat::major(number), nix::sys::stat::minor(number));
    let block = PathBuf::from("/sys/dev/block").join(&name);
    let Ok(there) = fs::canonicalize(&block) else {
        return at(
            directory,
            Err(std::io::Error::other("lies on no block device that could be slowed down")),
        );
    };
    match (there.join("partition").exists(), there.parent()) {
        (true, Some(disk)) => Ok(at(disk, fs::read_to_string(disk.join("dev")))?.trim().into()),
        _ => Ok(name),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_disk_is_made_once() {
        let dir = tempfile::tempdir().unwrap();
        let etcd = dir.path().join("etcd");
        make(&etcd, 16).await.unwrap();
        let image = dir.path().join("etcd.disk");
        let made = fs::metadata(&image).unwrap();
        assert_eq!(made.len(), 16 << 20);
        make(&etcd, 32).await.unwrap();
        assert_eq!(fs::metadata(&image).unwrap().len(), 16 << 20, "what is on it would be lost");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing half-made is left");
    }

    /// Images that a machine was given before come along: `debugfs` reads the disk without a mount.
    #[tokio::test]
    async fn what_is_there_already_comes_along() {
        let dir = tempfile::tempdir().unwrap();
        let containerd = dir.path().join("containerd");
        fs::create_dir_all(containerd.join("blobs")).unwrap();
        fs::write(containerd.join("blobs/layer"), "a layer").unwrap();
        make(&containerd, 16).await.unwrap();
        let image = dir.path().join("containerd.disk").display().to_string();
        assert_eq!(run("debugfs", ["-R", "cat /blobs/layer", &image]).await.unwrap(), "a layer");
    }

    #[test]
    fn memory_is_no_disk() {
        assert!(device_of(Path::new("/proc")).is_err());
    }
}
