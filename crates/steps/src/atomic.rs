//! Files that are either old or new, never half.

use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Temporary file beside the target, fsync, rename, fsync of the directory. Missing parent directories are made, to stay.
///
/// The temporary name starts with a dot, so that a kubelet watching the directory ignores it.
pub fn write_atomic(path: &Path, contents: impl AsRef<[u8]>, mode: u32) -> io::Result<()> {
    let dir = replace(path, contents.as_ref(), mode, true)?;
    sync_directory(dir)
}

/// The same against a killed process; a machine that loses its power may lose the file.
pub fn write_whole(path: &Path, contents: impl AsRef<[u8]>, mode: u32) -> io::Result<()> {
    replace(path, contents.as_ref(), mode, false).map(drop)
}

/// Returns the directory.
fn replace<'a>(path: &'a Path, contents: &[u8], mode: u32, sync: bool) -> io::Result<&'a Path> {
    let dir = path.parent().ok_or_else(|| io::Error::other(format!("{} has no parent", path.display())))?;
    let dir = if dir == Path::new("") { Path::new(".") } else { dir };
    make_directories(dir)?;
    let (temporary, mut file) =
        make_temporary(dir, &path.file_name().unwrap_or_default().to_string_lossy(), mode)?;
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(mode))?;
    file.write_all(contents)?;
    if sync {
        file.sync_all()?;
    }
    std::fs::rename(&temporary, path)?;
    Ok(dir)
}

/// None: there is no such file. One that is there and cannot be used stays an error: it is never replaced by a new one.
pub fn if_there<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        done => done.map(Some),
    }
}

/// What was made, renamed or removed in it is on the disk.
pub fn sync_directory(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// A directory is an entry of the one above: each that is new is lost with the power unless that one is written, too.
fn make_directories(dir: &Path) -> io::Result<()> {
    let missing: Vec<_> = dir.ancestors().take_while(|d| !d.as_os_str().is_empty() && !d.is_dir()).collect();
    std::fs::create_dir_all(dir)?;
    for above in missing.iter().filter_map(|d| d.parent()) {
        let above = if above == Path::new("") { Path::new(".") } else { above };
        sync_directory(above)?;
    }
    Ok(())
}

/// Its name is random: containers that share a directory have the same process numbers, and threads of a process have one.
/// It is locked as long as its writer lives, so that nobody takes it for left over.
fn make_temporary(dir: &Path, name: &str, mode: u32) -> io::Result<(PathBuf, File)> {
    loop {
        let temporary = dir.join(format!(".{name}.tmp{:016x}", RandomState::new().hash_one(name)));
        match OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(e) => return Err(e),
            Ok(file) => {
                file.lock()?;
                // Swept before it was locked.
                if file.metadata()?.nlink() > 0 {
                    return Ok((temporary, file));
                }
            }
        }
    }
}

/// Removes what killed runs left of files they were writing, here and below. What a living process writes stays.
pub fn sweep(dir: &Path) -> io::Result<()> {
    let Some(entries) = if_there(std::fs::read_dir(dir))? else { return Ok(()) };
    for entry in entries.flatten() {
        if entry.file_type()?.is_dir() {
            sweep(&entry.path())?;
        } else if is_temporary(&entry.file_name().to_string_lossy()) {
            remove_left_over(&entry.path())?;
        }
    }
    Ok(())
}

fn remove_left_over(path: &Path) -> io::Result<()> {
    let Some(file) = if_there(File::open(path))? else { return Ok(()) };
    // Held until it is removed: who locks it after that sees that it is gone.
    if file.try_lock().is_ok() {
        if_there(std::fs::remove_file(path))?;
        tracing::info!("{} was never finished, and is removed", path.display());
    }
    Ok(())
}

fn is_temporary(name: &str) -> bool {
    let number = name.strip_prefix('.').and_then(|name| name.rsplit_once(".tmp"));
    number.is_some_and(|(_, n)| n.len() == 16 && n.bytes().all(|b| b.is_ascii_hexdigit()))
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
        for name in [".bootkube.done", "x.tmp1", ".release.tmp", ".a.tmpb", "a.tmp0123456789abcdef"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let (alive, _file) = make_temporary(dir.path(), "pod.yaml", 0o600).unwrap();
        let (dead, file) = make_temporary(dir.path(), "pod.yaml", 0o600).unwrap();
        let (dead_below, file_below) = make_temporary(&below, "ca.crt", 0o600).unwrap();
        drop((file, file_below));
        sweep(dir.path()).unwrap();
        sweep(&dir.path().join("nothing")).unwrap();
        assert!(alive.exists() && !dead.exists() && !dead_below.exists());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 7);
    }

    /// Threads have one process number, like the first processes of two containers.
    #[test]
    fn writers_of_one_file_do_not_meet() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/file");
        let texts: Vec<_> = (0..8).map(|n| format!("{n}").repeat(100_000)).collect();
        std::thread::scope(|threads| {
            for text in &texts {
                let path = &path;
                threads.spawn(move || (0..20).for_each(|_| write_atomic(path, text, 0o600).unwrap()));
            }
            for _ in 0..100 {
                sweep(dir.path()).unwrap();
                let seen = std::fs::read_to_string(&path).unwrap_or_else(|_| texts[0].clone());
                assert!(texts.contains(&seen), "{} bytes that nobody wrote", seen.len());
            }
        });
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }
}
