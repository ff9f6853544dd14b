//! Trouble with disks: one of a machine's own that can be full, and writes that are slow.

use crate::run::{MachineError, at, run};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file with this ending is mounted on the directory beside it that has its name, while the machine is on.
pub const IMAGE: &str = "disk";

/// An empty ext4 disk; one that is there stays. Made under another name first, so that it is there whole or not at all.
pub async fn make(directory: &Path, mib: u32) -> Result<(), MachineError> {
    let image = directory.with_extension(IMAGE);
    if image.exists() {
        return Ok(());
    }
    let making = directory.with_extension("making");
    let file = at(&making, fs::File::create(&making))?;
    at(&making, file.set_len(u64::from(mib) << 20))?;
    // Without blocks kept back for root: everything on a machine is root.
    run("mkfs.ext4", ["-q", "-F", "-m", "0", &making.display().to_string()]).await?;
    at(&image, fs::rename(&making, &image))
}

/// The disk a directory lies on, as control groups name it: a partition is part of its disk.
pub fn device_of(directory: &Path) -> Result<String, MachineError> {
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

    #[test]
    fn memory_is_no_disk() {
        assert!(device_of(Path::new("/proc")).is_err());
    }
}
