//! containerd's folder with all images of a release imported and unpacked, made once and hard-linked into every lab node:
//! importing on each node would cost seconds of CPU and a gigabyte apiece. A new store starts from the last one, so that a
//! change of one image costs one import.

use crate::build::sweep;
use crate::error::{At, ReleaseError, Result, output};
use crate::info;
use crate::oci::Layout;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use seedling_types::ReleaseInfo;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

const NAMESPACE: &str = "k8s.io";
/// containerd answers within a second; a loaded machine may take a few.
const NO_PROGRESS: Duration = Duration::from_secs(60);
const MAKING: &str = ".making-";
/// Older stores are kept for labs that still copy from them.
const KEEP: usize = 2;

/// Returns the folder to link into nodes as `/var/lib/containerd` (real copies of `*.db`); makes it first where needed.
pub fn seed_store(release_dir: &Path, cache_dir: &Path) -> Result<PathBuf> {
    let release = info::load(release_dir)?;
    let parent = cache_dir.join("seed-store");
    fs::create_dir_all(&parent).at(&parent)?;
    let lock = parent.join(".lock");
    let held = fs::File::create(&lock).at(&lock)?;
    held.lock().at(&lock)?;
    // The release image lists every other image by digest, so its digest names them all.
    let digest = release.release_image.rsplit(':').next().unwrap_or_default();
    let done = parent.join(&digest[..digest.len().min(16)]);
    if !done.exists() {
        sweep(&parent, MAKING)?;
        let temporary = tempfile::Builder::new().prefix(MAKING).tempdir_in(&parent).at(&parent)?;
        let root = temporary.path().join("root");
        if let Some(last) = stores(&parent)?.first() {
            clone_store(last, &root)?;
        }
        fill(&release, release_dir, &root)?;
        // The clone took its age from the last store.
        fs::File::open(&root).and_then(|dir| dir.set_modified(SystemTime::now())).at(&root)?;
        fs::rename(&root, &done).at(&done)?;
        remove_older(&parent)?;
    }
    Ok(done)
}

/// A store for one containerd: files are hard links, databases are its own.
pub fn clone_store(from: &Path, to: &Path) -> Result<()> {
    output(Command::new("cp").arg("-al").arg(from).arg(to), "source and target must be on one file system")?;
    let mut dirs = vec![to.to_path_buf()];
    while let Some(dir) = dirs.pop() {
        // Snapshots hold the images' own files.
        if dir.file_name().is_some_and(|n| n == "snapshots" || n == "blobs") {
            continue;
        }
        for entry in fs::read_dir(&dir).at(&dir)? {
            let path = entry.at(&dir)?.path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|e| e == "db") {
                let own = path.with_extension("db.own");
                fs::copy(&path, &own).at(&path)?;
                fs::rename(&own, &path).at(&path)?;
            }
        }
    }
    Ok(())
}

fn fill(release: &ReleaseInfo, release_dir: &Path, root: &Path) -> Result<()> {
    // Sockets have short paths.
    let state = tempfile::Builder::new().prefix("seedling-seed-").tempdir().at("/tmp")?;
    let containerd = Containerd::start(&release_dir.join("bin"), root, state.path())?;
    let specs: BTreeSet<_> = release.images.values().chain([&release.release_image]).cloned().collect();
    // Each image has two names: the pull spec, and `sha256:<config>`, which the CRI plugin adds when it learns of the image
    // by event. With both there, a node's containerd finds everything done.
    let layout = Layout::open(&release_dir.join("oci"))?;
    let mut names = specs.clone();
    for digest in specs.iter().filter_map(|s| manifest(s)) {
        names.extend(layout.parts(digest)?.first().map(|config| config.digest.clone()));
    }
    let there = containerd.images()?;
    containerd.remove(there.difference(&names))?;
    containerd.import(&release_dir.join("oci"), &layout, specs.difference(&there))?;
    containerd.wait("all images known to the CRI plugin", || {
        let there = containerd.images().map_err(|e| e.to_string())?;
        let missing = names.difference(&there).count();
        if missing == 0 { Ok(()) } else { Err(format!("{missing} of {} names missing", names.len())) }
    })?;
    containerd.stop()
}

fn manifest(spec: &str) -> Option<&str> {
    spec.rsplit_once('@').map(|(_, digest)| digest)
}

struct Containerd {
    child: Child,
    bin: PathBuf,
    state: PathBuf,
}

impl Containerd {
    fn start(bin: &Path, root: &Path, state: &Path) -> Result<Self> {
        let config = state.join("config.toml");
        fs::write(&config, configuration(root, state)).at(&config)?;
        let log = fs::File::create(state.join("log")).at(state)?;
        let program = bin.join("containerd");
        // It ends with us, however we end.
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "TERM"])
            .arg(&program)
            .arg("--config")
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .at(&program)?;
        let containerd = Self { child, bin: bin.into(), state: state.into() };
        containerd.wait("containerd answers", || containerd.images().map(drop).map_err(|e| e.to_string()))?;
        Ok(containerd)
    }

    fn ctr(&self) -> Command {
        let mut ctr = Command::new(self.bin.join("ctr"));
        ctr.arg("--address").arg(self.state.join("c.sock")).args(["--namespace", NAMESPACE]);
        ctr
    }

    fn images(&self) -> Result<BTreeSet<String>> {
        Ok(output(self.ctr().args(["images", "list", "-q"]), "is containerd running?")?
            .lines()
            .map(str::to_string)
            .collect())
    }

    fn remove<'a>(&self, names: impl Iterator<Item = &'a String>) -> Result<()> {
        let names: Vec<_> = names.collect();
        if names.is_empty() {
            return Ok(());
        }
        output(
            self.ctr().args(["images", "remove", "--sync"]).args(names),
            "remove the seed-store folder of the cache",
        )
        .map(drop)
    }

    /// Some images of the layout as a tar stream; each gets the name in its annotation.
    fn import<'a>(&self, oci: &Path, layout: &Layout, specs: impl Iterator<Item = &'a String>) -> Result<()> {
        let wanted: BTreeSet<_> = specs.filter_map(|s| Some(manifest(s)?.to_string())).collect();
        let index = self.state.join("index.json");
        fs::write(&index, layout.index_of(&wanted)?.to_string()).at(&index)?;
        let mut blobs = BTreeSet::new();
        for manifest in &wanted {
            blobs.extend(layout.parts(manifest)?.into_iter().map(|b| b.digest).chain([manifest.clone()]));
        }
        let mut tar = Command::new("tar");
        tar.args(["-cf", "-", "-C"]).arg(&self.state).arg("index.json").arg("-C").arg(oci).arg("oci-layout");
        tar.args(blobs.iter().map(|digest| format!("blobs/{}", digest.replace(':', "/"))));
        let mut tar = tar.stdout(Stdio::piped()).spawn().at("tar")?;
        let mut import = self.ctr();
        import.args(["images", "import", "-"]);
        if let Some(stream) = tar.stdout.take() {
            import.stdin(stream);
        }
        let imported = output(&mut import, "is the disk full?");
        tar.wait().at("tar")?;
        imported.map(drop)
    }

    /// Waits until `probe` is met; gives up when what it sees has not changed for a minute.
    fn wait(&self, condition: &str, probe: impl Fn() -> Result<(), String>) -> Result<()> {
        let (mut seen, mut since) = (String::new(), Instant::now());
        while let Err(now) = probe() {
            if now != seen {
                (seen, since) = (now, Instant::now());
            } else if since.elapsed() > NO_PROGRESS {
                let log = fs::read_to_string(self.state.join("log")).unwrap_or_default();
                let lines: Vec<_> = log.lines().collect();
                let last = lines[lines.len().saturating_sub(5)..].join("\n");
                let what = format!("waited for: {condition}; last seen: {seen}");
                return Err(ReleaseError::invalid(what, format!("containerd said:\n{last}")));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// An orderly end, so that the databases are complete.
    fn stop(mut self) -> Result<()> {
        let pid = Pid::from_raw(self.child.id() as i32);
        kill(pid, Signal::SIGTERM).map_err(std::io::Error::from).at("containerd")?;
        self.child.wait().at("containerd").map(drop)
    }
}

impl Drop for Containerd {
    fn drop(&mut self) {
        // Already gone after `stop`; otherwise the store is thrown away anyway.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn configuration(root: &Path, state: &Path) -> String {
    let (root, state) = (root.display(), state.display());
    format!(
        r#"version = 3
root = "{root}"
state = "{state}/state"
[grpc]
address = "{state}/c.sock"
[ttrpc]
address = "{state}/t.sock"
[plugins.'io.containerd.cri.v1.images']
snapshotter = "overlayfs"
[plugins.'io.containerd.cri.v1.runtime'.cni]
conf_dir = "{state}/cni"
"#
    )
}

fn remove_older(parent: &Path) -> Result<()> {
    for old in stores(parent)?.iter().skip(KEEP) {
        fs::remove_dir_all(old).at(old)?;
    }
    Ok(())
}

/// Finished stores, newest first.
fn stores(parent: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(parent).at(parent)? {
        let entry = entry.at(parent)?;
        let metadata = entry.metadata().at(parent)?;
        if metadata.is_dir() && !entry.file_name().to_string_lossy().starts_with('.') {
            found.push((metadata.modified().at(parent)?, entry.path()));
        }
    }
    found.sort();
    Ok(found.into_iter().rev().map(|(_, path)| path).collect())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_newest_stores_stay() {
        let parent = tempfile::tempdir().unwrap();
        for (name, age) in [("c", 10), ("a", 30), ("b", 20), (".making-x", 0)] {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::File::open(&path)
                .unwrap()
                .set_modified(SystemTime::now() - Duration::from_secs(age))
                .unwrap();
        }
        remove_older(parent.path()).unwrap();
        let names: Vec<_> =
            stores(parent.path()).unwrap().iter().map(|p| p.file_name().unwrap().to_os_string()).collect();
        assert_eq!(names, ["c", "b"]);
        assert!(parent.path().join(".making-x").exists());
    }

    #[test]
    fn a_clone_shares_files_and_owns_databases() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::create_dir_all(from.join("x/snapshots/1/fs")).unwrap();
        let files = [
            ("x/metadata.db", false),
            ("x/snapshots/1/fs/program", true),
            ("x/snapshots/1/fs/image.db", true),
        ];
        for (path, _) in files {
            fs::write(from.join(path), path).unwrap();
        }
        clone_store(&from, &to).unwrap();
        for (path, shared) in files {
            let inode = |root: &Path| fs::metadata(root.join(path)).unwrap().ino();
            assert_eq!(inode(&from) == inode(&to), shared, "{path}");
            assert_eq!(fs::read(to.join(path)).unwrap(), path.as_bytes());
        }
    }
}
