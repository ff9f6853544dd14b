//! Files that are either old or new, never half.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

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

/// Removes what killed runs left of files they were writing, here and below. What a living process writes stays.
pub fn sweep(dir: &Path) -> io::Result<()> {
    for path in left_over(dir)? {
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => tracing::info!("{} was never finished, and is removed", path.display()),
        }
    }
    Ok(())
}

fn left_over(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = match std::fs::read_dir(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(found),
        entries => entries?,
    };
    for entry in entries.flatten() {
        if entry.file_type()?.is_dir() {
            found.extend(left_over(&entry.path())?);
        } else if writer(&entry.file_name().to_string_lossy()).is_some_and(|pid| !is_alive(pid)) {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// Whose temporary file it is, by its name.
fn writer(name: &str) -> Option<u32> {
    name.strip_prefix('.')?.rsplit_once(".tmp")?.1.parse().ok()
}

fn is_alive(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

/// As `write_atomic`, but leaves an identical file alone; says whether it wrote.
pub fn write_atomic_if_changed(path: &Path, contents: impl AsRef<[u8]>, mode: u32) -> io::Result<bool> {
    if std::fs::read(path).is_ok_and(|have| have == contents.as_ref()) {
        return Ok(false);
    }
    write_atomic(path, contents, mode).map(|()| true)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_dead_left_is_swept() {
        let dir = tempfile::tempdir().unwrap();
        let below = dir.path().join("tls");
        std::fs::create_dir(&below).unwrap();
        let alive = format!(".pod.yaml.tmp{}", std::process::id());
        let kept = [alive.as_str(), ".bootkube.done", "x.tmp1", ".release.tmp", ".a.tmpb"];
        for name in kept {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        // No process has such a number.
        std::fs::write(below.join(".ca.crt.tmp4294967295"), "half").unwrap();
        std::fs::write(dir.path().join(".pod.yaml.tmp4294967294"), "half").unwrap();
        sweep(dir.path()).unwrap();
        sweep(&dir.path().join("nothing")).unwrap();
        assert_eq!(std::fs::read_dir(&below).unwrap().count(), 0);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), kept.len() + 1);
    }
}
