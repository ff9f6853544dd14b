//! Files that others write too. To look which file it is costs far less than to read it, so what was made of one is kept until it is another.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// Which of the files that had this name: one that takes another's place has a number of its own, and one that is written over another
/// time or length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    inode: u64,
    seconds: i64,
    nanoseconds: i64,
    length: u64,
}

impl Version {
    fn of(file: &Metadata) -> Self {
        Self { inode: file.ino(), seconds: file.mtime(), nanoseconds: file.mtime_nsec(), length: file.size() }
    }
}

/// None: there is none now.
pub(crate) fn version(path: &Path) -> Option<Version> {
    std::fs::metadata(path).ok().map(|file| Version::of(&file))
}

/// The file's contents, and which one it is. It is looked at before it is read: one that is written over meanwhile is read once more.
pub(crate) fn read(path: &Path) -> io::Result<(Version, Vec<u8>)> {
    let mut file = File::open(path)?;
    let version = Version::of(&file.metadata()?);
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok((version, bytes))
}

/// Writes `after` where `before` is, if they differ in one byte only; false: they do not, or it is another file by now.
///
/// A byte is the old or the new one, never half of either. A file that takes another's place is safe as well, but a thousand of them at
/// once are not cheap: ext4 looks for a number that was not free a moment ago, and finds all those of the files before.
pub(crate) fn change_byte(
    path: &Path,
    version: Version,
    before: &[u8],
    after: &[u8],
    sync: bool,
) -> io::Result<bool> {
    let mut different = before.iter().zip(after).enumerate().filter(|(_, (old, new))| old != new);
    let (Some((at, (_, new))), None, true) =
        (different.next(), different.next(), before.len() == after.len())
    else {
        return Ok(false);
    };
    let file = File::options().write(true).open(path)?;
    if Version::of(&file.metadata()?) != version {
        return Ok(false);
    }
    file.write_all_at(&[*new], at as u64)?;
    if sync {
        file.sync_data()?;
    }
    Ok(true)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use seedling_steps::{write_atomic, write_whole};

    #[test]
    fn another_file_is_another_version() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        assert_eq!((version(&path), read(&path).is_err()), (None, true));
        write_atomic(&path, "one", 0o600).unwrap();
        let (first, text) = read(&path).unwrap();
        assert_eq!((version(&path), text.as_slice()), (Some(first), &b"one"[..]), "nothing happened");
        // In the same instant, and as long as before.
        for (text, lasting) in [("two", true), ("six", false)] {
            let before = version(&path);
            let written =
                if lasting { write_atomic(&path, text, 0o600) } else { write_whole(&path, text, 0o600) };
            written.unwrap();
            assert_ne!(version(&path), before, "{text}");
            assert_eq!(read(&path).unwrap().1, text.as_bytes());
        }
        let before = version(&path);
        std::fs::write(&path, "longer").unwrap();
        assert_ne!(version(&path), before, "written over");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(version(&path), None);
    }
    #[test]
    fn one_byte_is_changed_in_its_place_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        write_whole(&path, "a0b", 0o600).unwrap();
        let (first, before) = read(&path).unwrap();
        for other in ["a0b", "x1b", "a0", "a0bc", ""] {
            assert!(!change_byte(&path, first, &before, other.as_bytes(), false).unwrap(), "{other:?}");
        }
        assert!(change_byte(&path, first, &before, b"a1b", true).unwrap());
        let (second, now) = read(&path).unwrap();
        assert_eq!((now.as_slice(), second.inode), (&b"a1b"[..], first.inode));
        write_whole(&path, "other", 0o600).unwrap();
        assert!(!change_byte(&path, second, &now, b"a2b", false).unwrap(), "somebody else's");
        assert_eq!(read(&path).unwrap().1, b"other");
    }
}
