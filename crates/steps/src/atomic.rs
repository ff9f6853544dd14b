//! Files that are either old or new, never half.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Temporary file beside the target, fsync, rename, fsync of the directory. Missing parent directories are made.
///
/// The temporary name starts with a dot, so that a kubelet watching the directory ignores it.
pub fn write_atomic(path: &Path, contents: impl AsRef<[u8]>, mode: u32) -> io::Result<()> {
    let dir = path.parent().ok_or_else(|| io::Error::other(format!("{} has no parent", path.display())))?;
    std::fs::create_dir_all(dir)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = dir.join(format!(".{name}.tmp{}", std::process::id()));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&temporary)?;
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(mode))?;
    file.write_all(contents.as_ref())?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)?;
    File::open(dir)?.sync_all()
}

/// As `write_atomic`, but leaves an identical file alone; says whether it wrote.
pub fn write_atomic_if_changed(path: &Path, contents: impl AsRef<[u8]>, mode: u32) -> io::Result<bool> {
    if std::fs::read(path).is_ok_and(|have| have == contents.as_ref()) {
        return Ok(false);
    }
    write_atomic(path, contents, mode).map(|()| true)
}
