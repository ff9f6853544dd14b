//! Data that is in the way is moved, never removed: who said that it is worth nothing may have been wrong.

use crate::{if_there, sync_directory};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// So many are kept, the newest: each may be as large as what is in use.
const KEPT: usize = 2;
const MARK: &str = ".aside-";

/// Renames it to `<name>.aside-<milliseconds since 1970>`, beside itself: at once or not at all, whenever this is killed. None: there
/// was nothing.
pub fn move_aside(path: &Path) -> io::Result<Option<PathBuf>> {
    let unnamed = || io::Error::other(format!("{} cannot be moved aside", path.display()));
    let (dir, name) = path.parent().zip(path.file_name()).ok_or_else(unnamed)?;
    let mark = format!("{}{MARK}", name.to_string_lossy());
    let mut kept = Vec::new();
    for entry in std::fs::read_dir(dir)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        kept.extend(name.strip_prefix(&mark).and_then(|at| at.parse::<u128>().ok()));
    }
    kept.sort_unstable();
    // Later than all others, whatever the clock says.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let at = kept.last().map_or(now, |last| now.max(last + 1));
    let aside = dir.join(format!("{mark}{at}"));
    if if_there(std::fs::rename(path, &aside))?.is_none() {
        return Ok(None);
    }
    sync_directory(dir)?;
    // Older ones go only now that the newest is safe.
    for old in kept.iter().take((kept.len() + 1).saturating_sub(KEPT)) {
        std::fs::remove_dir_all(dir.join(format!("{mark}{old}")))?;
    }
    Ok(Some(aside))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_newest_two_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let member = dir.path().join("member");
        assert_eq!(move_aside(&member).unwrap(), None);
        let moved = [1, 2, 3].map(|n: u8| {
            std::fs::create_dir(&member).unwrap();
            std::fs::write(member.join("db"), [n]).unwrap();
            let aside = move_aside(&member).unwrap().unwrap();
            assert!(!member.exists());
            aside
        });
        assert!(!moved[0].exists());
        let kept = [&moved[1], &moved[2]].map(|aside| std::fs::read(aside.join("db")).unwrap());
        assert_eq!(kept, [[2], [3]]);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
