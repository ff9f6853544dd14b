//! The node image: a Debian root file system that every lab node has as its read-only lower layer.
//!
//! In: `node/` of the source tree, built into this binary. Out: a directory named after the hash of those inputs, so a
//! changed package list makes a new image and an unchanged one is made once.

use crate::run::{MachineError, Progress, Result, at, run};
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

const SUITE: &str = "bookworm";
/// Of Debian's package debian-archive-keyring.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// Counted up when the steps below change what they make of the same inputs.
const RECIPE: u32 = 2;
const PACKAGES: &str = include_str!("../../../node/packages.txt");
const MASKED_UNITS: &str = include_str!("../../../node/masked-units.txt");

struct Overlay {
    path: &'static str,
    mode: u32,
    contents: &'static str,
}

macro_rules! overlay {
    ($($mode:literal $path:literal),* $(,)?) => {
        &[$(Overlay { path: $path, mode: $mode, contents: include_str!(concat!("../../../node/rootfs/", $path)) }),*]
    };
}

const ROOTFS: &[Overlay] = overlay![
    0o644 "etc/containerd/conf.d/10-lab.toml",
    0o644 "etc/hostname",
    0o644 "etc/hosts",
    0o644 "etc/machine-id",
    0o644 "etc/resolv.conf",
    0o644 "etc/selinux/config",
    0o644 "usr/lib/systemd/journald.conf.d/10-lab.conf",
    0o644 "usr/lib/systemd/system-preset/99-default-disable.preset",
    0o644 "usr/lib/systemd/system/lab-dhcp.service",
    0o644 "usr/lib/systemd/system/multi-user.target.d/10-lab.conf",
    0o755 "usr/local/sbin/preinit",
    0o755 "usr/local/sbin/setfiles",
    0o755 "usr/local/sbin/udhcpc-script",
];

/// Mount points and folders that must exist although no package brings them.
const DIRECTORIES: &[&str] =
    &["usr/lib/modules", "var/log/journal", "var/lib/containerd", "var/lib/etcd", "var/lib/kubelet"];

/// Left by debootstrap, of no use to a node.
#[rustfmt::skip]
const LITTER: &[&str] = &[
    "var/cache/apt/archives", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale",
    "var/log/bootstrap.log", "debootstrap",
];

/// Different after every debootstrap, and nothing that a node reads: logs, caches, backups, locks, device nodes.
const EMPTIED: &[&str] = &["dev", "run", "tmp", "var/cache", "var/log", "var/tmp"];
#[rustfmt::skip]
const BACKUPS: &[&str] = &[
    "etc/.pwd.lock", "etc/group-", "etc/gshadow-", "etc/passwd-", "etc/shadow-", "etc/subgid-", "etc/subuid-",
    "var/lib/dpkg/available-old", "var/lib/dpkg/diversions-old", "var/lib/dpkg/lock", "var/lib/dpkg/lock-frontend",
    "var/lib/dpkg/statoverride-old", "var/lib/dpkg/status-old", "var/lib/dpkg/triggers/Lock",
];
const SHADOW: &str = "etc/shadow";

/// Where the image for this program is, or will be: in a folder named after what it is made of.
pub fn path(cache: &Path) -> PathBuf {
    cache.join("node-image").join(input_hash())
}

/// Makes the image unless it is there. Safe to call from several processes at once, and after one that was killed.
pub async fn ensure(cache: &Path, progress: Progress<'_>) -> Result<PathBuf> {
    let images = cache.join("node-image");
    let image = path(cache);
    if image.exists() {
        return Ok(image);
    }
    at(&images, fs::create_dir_all(&images))?;
    let lock = lock(&images.join(".lock"), progress).await?;
    if image.exists() {
        return Ok(image); // made while we waited
    }
    // The holder of the lock owns this name: what is left there is from a run that was killed.
    let building = images.join(".building");
    remove_tree(&building)?;
    let debian = images.join(format!("debian-{}", hash_of(packages())));
    if !debian.exists() {
        debootstrap(&images, &building, &lock, progress).await?;
        at(&debian, fs::rename(&building, &debian))?;
    }
    // By hard links: what is replaced below gets a file of its own.
    run("cp", ["-al".as_ref(), debian.as_os_str(), building.as_os_str()]).await?;
    furnish(&building)?;
    at(&image, fs::rename(&building, &image))?;
    progress("node image ready");
    Ok(image)
}

fn packages() -> String {
    format!("{SUITE} {}", lines(PACKAGES).collect::<Vec<_>>().join(","))
}

fn input_hash() -> String {
    let files = ROOTFS.iter().map(|f| format!("{} {:o} {}\0", f.path, f.mode, f.contents));
    hash_of(format!("{RECIPE}\0{}\0{MASKED_UNITS}\0{}", packages(), files.collect::<String>()))
}

fn hash_of(input: String) -> String {
    Sha256::digest(input).iter().take(8).map(|b| format!("{b:02x}")).collect()
}

async fn lock(path: &Path, progress: Progress<'_>) -> Result<File> {
    let file = at(path, OpenOptions::new().create(true).truncate(false).write(true).open(path))?;
    if file.try_lock().is_ok() {
        return Ok(file);
    }
    progress("waiting for another process that makes the node image");
    let path = path.to_path_buf();
    let locked = tokio::task::spawn_blocking(move || file.lock().map(|()| file)).await;
    at(&path, locked.map_err(std::io::Error::other).and_then(|r| r))
}

/// Packages stay in `debs/`: a run that was cut short downloads only what is missing. debootstrap holds the lock with us (as
/// its stdin, which it never reads): should we be killed, nobody builds in the same place while it goes on.
async fn debootstrap(images: &Path, target: &Path, lock: &File, progress: Progress<'_>) -> Result<()> {
    let debs = images.join("debs");
    at(&debs, fs::create_dir_all(&debs))?;
    progress(&format!("making the node image: Debian {SUITE} by debootstrap (a minute or two, once)"));
    let mut child = Command::new("debootstrap")
        .args(debootstrap_arguments(&debs, target))
        .stdin(at(target, lock.try_clone())?)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|source| MachineError::Spawn { program: "debootstrap".into(), source })?;
    let mut last = String::new();
    let mut phase = "";
    if let Some(stdout) = child.stdout.take() {
        let mut output = BufReader::new(stdout).lines();
        while let Ok(Some(line)) = output.next_line().await {
            tracing::debug!(line, "debootstrap");
            let now = phase_of(&line);
            if !now.is_empty() && now != phase {
                phase = now;
                progress(&format!("node image: {phase} packages"));
            }
            last = line;
        }
    }
    match at(target, child.wait_with_output().await)? {
        done if done.status.success() => LITTER.iter().try_for_each(|path| remove_tree(&target.join(path))),
        failed => Err(MachineError::Failed {
            command: format!("debootstrap {SUITE} {}", target.display()),
            status: failed.status,
            complaint: format!("{last}\n{}", String::from_utf8_lossy(&failed.stderr).trim()),
        }),
    }
}

/// Without a forced check debootstrap takes packages that nobody signed for where the keyring is missing.
fn debootstrap_arguments(debs: &Path, target: &Path) -> Vec<OsString> {
    vec![
        "--variant=minbase".into(),
        "--force-check-gpg".into(),
        format!("--keyring={KEYRING}").into(),
        format!("--include={}", lines(PACKAGES).collect::<Vec<_>>().join(",")).into(),
        format!("--cache-dir={}", debs.display()).into(),
        SUITE.into(),
        target.into(),
    ]
}

fn phase_of(line: &str) -> &'static str {
    let word = line.trim_start_matches("I: ").split(' ').next().unwrap_or_default();
    match word {
        "Retrieving" => "downloading",
        "Extracting" | "Unpacking" => "unpacking",
        "Configuring" => "configuring",
        _ => "",
    }
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

fn furnish(root: &Path) -> Result<()> {
    normalise(root)?;
    for path in DIRECTORIES {
        let path = root.join(path);
        at(&path, fs::create_dir_all(&path))?;
    }
    for file in ROOTFS {
        let path = root.join(file.path);
        if let Some(parent) = path.parent() {
            at(parent, fs::create_dir_all(parent))?;
        }
        remove_tree(&path)?; // a package may have left a link here, e.g. /etc/resolv.conf
        at(&path, fs::write(&path, file.contents))?;
        at(&path, fs::set_permissions(&path, Permissions::from_mode(file.mode)))?;
    }
    for unit in lines(MASKED_UNITS) {
        let path = root.join("etc/systemd/system").join(unit);
        remove_tree(&path)?;
        at(&path, symlink("/dev/null", &path))?;
    }
    Ok(())
}

fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'))
}

/// Removes a file, a link or a whole directory; it may be missing.
pub(crate) fn remove_tree(path: &Path) -> Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(e) => Err(e),
    };
    match removed {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => at(path, other),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn packages_that_nobody_signed_for_are_refused() {
        let arguments = debootstrap_arguments(Path::new("/debs"), Path::new("/target"));
        for wanted in ["--force-check-gpg", "--keyring=/usr/share/keyrings/debian-archive-keyring.gpg"] {
            assert!(arguments.iter().any(|a| a == wanted), "{wanted}");
        }
        assert_eq!(arguments.last().unwrap(), "/target");
        let setup = include_str!("../../../scripts/setup.sh");
        assert!(setup.contains(" debian-archive-keyring "), "setup.sh brings no keyring");
    }

    /// A file added to node/rootfs and forgotten in the table would silently not be in the image.
    #[test]
    fn the_table_lists_the_whole_folder() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../node/rootfs");
        let mut found = Vec::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o111;
                    found.push((path.strip_prefix(&root).unwrap().display().to_string(), mode != 0));
                }
            }
        }
        found.sort();
        let listed: Vec<_> = ROOTFS.iter().map(|f| (f.path.to_string(), f.mode & 0o111 != 0)).collect();
        assert_eq!(found, listed);
    }

    #[test]
    fn what_differs_between_two_runs_is_gone() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        for folder in ["var/log/apt", "etc", "elsewhere"] {
            fs::create_dir_all(path(folder)).unwrap();
        }
        fs::write(path("var/log/apt/term.log"), "today").unwrap();
        fs::write(path("etc/shadow-"), "").unwrap();
        fs::write(path("elsewhere/shadow"), "root:*:20000:0:99999:7:::\n").unwrap();
        fs::set_permissions(path("elsewhere/shadow"), Permissions::from_mode(0o640)).unwrap();
        fs::hard_link(path("elsewhere/shadow"), path("etc/shadow")).unwrap();
        normalise(root.path()).unwrap();
        assert_eq!(fs::read_dir(path("var/log")).unwrap().count(), 0);
        assert!(!path("etc/shadow-").exists());
        assert_eq!(fs::read_to_string(path("etc/shadow")).unwrap(), "root:*::0:99999:7:::\n");
        assert_eq!(fs::metadata(path("etc/shadow")).unwrap().mode() & 0o777, 0o640);
        assert!(
            fs::read_to_string(path("elsewhere/shadow")).unwrap().contains("20000"),
            "what it is linked to stays"
        );
    }

    #[test]
    fn furnish_masks_units_and_replaces_links() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("etc/systemd/system")).unwrap();
        symlink("/nowhere", root.path().join("etc/resolv.conf")).unwrap();
        furnish(root.path()).unwrap();
        assert!(fs::symlink_metadata(root.path().join("etc/resolv.conf")).unwrap().is_file());
        let mask = fs::read_link(root.path().join("etc/systemd/system/systemd-udevd.service")).unwrap();
        assert_eq!(mask, Path::new("/dev/null"));
    }
}
