//! From Debian's files to a node's: what differs between two installations is removed, our files are put in, units are switched off.

use crate::recipe::Kind;
use crate::run::{Result, at, remove_tree};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

/// Mount points and folders that must exist although no package brings them.
const DIRECTORIES: &[&str] =
    &["usr/lib/modules", "var/log/journal", "var/lib/containerd", "var/lib/etcd", "var/lib/kubelet"];

/// Different after every debootstrap, and nothing that a node reads: logs, caches, backups, locks, device nodes. D-Bus's number of the machine
/// would be the same on all of them; where there is none, systemd makes it a link to the machine's own when it boots.
const EMPTIED: &[&str] = &["dev", "run", "tmp", "var/cache", "var/log", "var/tmp"];
#[rustfmt::skip]
const BACKUPS: &[&str] = &[
    "etc/.pwd.lock", "etc/group-", "etc/gshadow-", "etc/passwd-", "etc/shadow-", "etc/subgid-", "etc/subuid-",
    "var/lib/dpkg/available-old", "var/lib/dpkg/diversions-old", "var/lib/dpkg/lock", "var/lib/dpkg/lock-frontend",
    "var/lib/dpkg/statoverride-old", "var/lib/dpkg/status-old", "var/lib/dpkg/triggers/Lock",
    "var/lib/dbus/machine-id",
];
const SHADOW: &str = "etc/shadow";

pub(crate) fn furnish(root: &Path, kind: Kind) -> Result<()> {
    normalise(root)?;
    for path in DIRECTORIES {
        let path = root.join(path);
        at(&path, fs::create_dir_all(&path))?;
    }
    for file in kind.files() {
        put(&root.join(file.path), file.contents.as_bytes(), file.mode)?;
    }
    for path in kind.masked() {
        let path = root.join(path);
        if let Some(parent) = path.parent() {
            at(parent, fs::create_dir_all(parent))?;
        }
        remove_tree(&path)?;
        at(&path, symlink("/dev/null", &path))?;
    }
    Ok(())
}

/// A file of its own: a package may have left a link here (/etc/resolv.conf), or a hard link to Debian's part.
pub(crate) fn put(path: &Path, contents: &[u8], mode: u32) -> Result<()> {
    if let Some(parent) = path.parent() {
        at(parent, fs::create_dir_all(parent))?;
    }
    remove_tree(path)?;
    at(path, fs::write(path, contents))?;
    at(path, fs::set_permissions(path, Permissions::from_mode(mode)))
}

/// The same packages give the same files, whenever and wherever they were installed.
fn normalise(root: &Path) -> Result<()> {
    for folder in EMPTIED.iter().map(|path| root.join(path)).filter(|path| path.is_dir()) {
        for entry in at(&folder, fs::read_dir(&folder))? {
            remove_tree(&at(&folder, entry)?.path())?;
        }
    }
    BACKUPS.iter().try_for_each(|path| remove_tree(&root.join(path)))?;
    let shadow = root.join(SHADOW);
    let Ok(lines) = fs::read_to_string(&shadow) else { return Ok(()) };
    let before = at(&shadow, fs::metadata(&shadow))?;
    remove_tree(&shadow)?; // the hard link: Debian's own stays
    at(&shadow, fs::write(&shadow, lines.lines().map(|line| undated(line) + "\n").collect::<String>()))?;
    at(&shadow, chown(&shadow, Some(before.uid()), Some(before.gid())))?;
    at(&shadow, fs::set_permissions(&shadow, before.permissions()))
}

/// `root:*:20000:0:99999:7:::` without the day on which the account was made.
fn undated(line: &str) -> String {
    let mut fields: Vec<_> = line.split(':').collect();
    if let Some(changed) = fields.get_mut(2) {
        *changed = "";
    }
    fields.join(":")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn what_differs_between_two_runs_is_gone() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        for folder in ["var/log/apt", "var/lib/dbus", "etc", "elsewhere"] {
            fs::create_dir_all(path(folder)).unwrap();
        }
        fs::write(path("var/log/apt/term.log"), "today").unwrap();
        fs::write(path("etc/shadow-"), "").unwrap();
        fs::write(path("var/lib/dbus/machine-id"), "0123").unwrap();
        fs::write(path("elsewhere/shadow"), "root:*:20000:0:99999:7:::\n").unwrap();
        fs::set_permissions(path("elsewhere/shadow"), Permissions::from_mode(0o640)).unwrap();
        fs::hard_link(path("elsewhere/shadow"), path("etc/shadow")).unwrap();
        normalise(root.path()).unwrap();
        assert_eq!(fs::read_dir(path("var/log")).unwrap().count(), 0);
        assert!(!path("etc/shadow-").exists() && !path("var/lib/dbus/machine-id").exists());
        assert_eq!(fs::read_to_string(path("etc/shadow")).unwrap(), "root:*::0:99999:7:::\n");
        assert_eq!(fs::metadata(path("etc/shadow")).unwrap().mode() & 0o777, 0o640);
        assert!(
            fs::read_to_string(path("elsewhere/shadow")).unwrap().contains("20000"),
            "what it is linked to stays"
        );
    }

    #[test]
    fn furnish_masks_units_and_replaces_links() {
        for (kind, masked) in [(Kind::Lab, true), (Kind::Machine, false)] {
            let root = tempfile::tempdir().unwrap();
            fs::create_dir_all(root.path().join("etc/systemd/system")).unwrap();
            symlink("/nowhere", root.path().join("etc/resolv.conf")).unwrap();
            furnish(root.path(), kind).unwrap();
            assert!(fs::symlink_metadata(root.path().join("etc/resolv.conf")).unwrap().is_file());
            let mask = fs::read_link(root.path().join("etc/systemd/system/systemd-udevd.service"));
            assert_eq!(mask.is_ok_and(|to| to == Path::new("/dev/null")), masked, "{kind:?}");
        }
    }
}
