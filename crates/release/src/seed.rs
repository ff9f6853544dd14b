//! containerd's folder with all images of a release imported and unpacked, made once and hard-linked into every lab node:
//! importing on each node would cost seconds of CPU and a gigabyte apiece.

use crate::error::{At, ReleaseError, output};
use crate::info;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use seedling_types::ReleaseInfo;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const NAMESPACE: &str = "k8s.io";
/// containerd answers within a second; a loaded machine may take a few.
const NO_ANSWER: Duration = Duration::from_secs(60);
/// Older stores are kept for labs that still copy from them.
const KEEP: usize = 2;

/// Returns the folder to link into nodes as `/var/lib/containerd` (real copies of `*.db`); makes it first where needed.
pub fn seed_store(release_dir: &Path, cache_dir: &Path) -> Result<PathBuf, ReleaseError> {
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
        let temporary = tempfile::Builder::new().prefix(".making-").tempdir_in(&parent).at(&parent)?;
        let root = temporary.path().join("root");
        fill(&release, release_dir, &root)?;
        fs::rename(&root, &done).at(&done)?;
        remove_older(&parent)?;
    }
    Ok(done)
}

fn fill(release: &ReleaseInfo, release_dir: &Path, root: &Path) -> Result<(), ReleaseError> {
    // Sockets have short paths.
    let state = tempfile::Builder::new().prefix("seedling-seed-").tempdir().at("/tmp")?;
    let containerd = Containerd::start(&release_dir.join("bin"), root, state.path())?;
    let specs: BTreeSet<_> = release.images.values().chain([&release.release_image]).cloned().collect();
    containerd.import(&release_dir.join("oci"))?;
    // The CRI plugin learns of images by event and adds its own names (`sha256:<config>`); with them a node's containerd
    // finds everything done. Images that differ only in layers have different configs, so counting is enough.
    containerd.wait("all images known to the CRI plugin", || {
        let names = containerd.images()?;
        let missing = specs.iter().filter(|s| !names.contains(*s)).count();
        let own = names.iter().filter(|n| n.starts_with("sha256:")).count();
        Ok((missing == 0 && own >= specs.len())
            .then_some(())
            .ok_or(format!("{missing} missing, {own} of {} resolved", specs.len())))
    })?;
    containerd.stop()
}

struct Containerd {
    child: Child,
    bin: PathBuf,
    state: PathBuf,
}

impl Containerd {
    fn start(bin: &Path, root: &Path, state: &Path) -> Result<Self, ReleaseError> {
        let config = state.join("config.toml");
        fs::write(&config, configuration(root, state)).at(&config)?;
        let log = fs::File::create(state.join("log")).at(state)?;
        let program = bin.join("containerd");
        let child = Command::new(&program)
            .arg("--config")
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .at(&program)?;
        let containerd = Self { child, bin: bin.into(), state: state.into() };
        containerd
            .wait("containerd answers", || Ok(containerd.images().map(drop).map_err(|e| e.to_string())))?;
        Ok(containerd)
    }

    fn ctr(&self) -> Command {
        let mut ctr = Command::new(self.bin.join("ctr"));
        ctr.arg("--address").arg(self.state.join("c.sock")).args(["--namespace", NAMESPACE]);
        ctr
    }

    fn images(&self) -> Result<BTreeSet<String>, ReleaseError> {
        Ok(output(self.ctr().args(["images", "list", "-q"]), "is containerd running?")?
            .lines()
            .map(str::to_string)
            .collect())
    }

    /// The layout as a tar stream; each image gets the name in its annotation.
    fn import(&self, oci: &Path) -> Result<(), ReleaseError> {
        let mut tar = Command::new("tar")
            .arg("-C")
            .arg(oci)
            .args(["-cf", "-", "."])
            .stdout(Stdio::piped())
            .spawn()
            .at("tar")?;
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
    fn wait(
        &self,
        condition: &str,
        probe: impl Fn() -> Result<Result<(), String>, ReleaseError>,
    ) -> Result<(), ReleaseError> {
        let (mut seen, mut since) = (String::new(), Instant::now());
        loop {
            let Err(now) = probe()? else { return Ok(()) };
            if now != seen {
                (seen, since) = (now, Instant::now());
            } else if since.elapsed() > NO_ANSWER {
                let log = fs::read_to_string(self.state.join("log")).unwrap_or_default();
                let last = log.lines().rev().take(5).collect::<Vec<_>>().join("\n");
                return Err(ReleaseError::invalid(
                    format!("waited for: {condition}; last seen: {seen}"),
                    format!("containerd said:\n{last}"),
                ));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// An orderly end, so that the databases are complete.
    fn stop(mut self) -> Result<(), ReleaseError> {
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

fn remove_older(parent: &Path) -> Result<(), ReleaseError> {
    let mut stores = Vec::new();
    for entry in fs::read_dir(parent).at(parent)? {
        let entry = entry.at(parent)?;
        let metadata = entry.metadata().at(parent)?;
        if metadata.is_dir() && !entry.file_name().to_string_lossy().starts_with('.') {
            stores.push((metadata.modified().at(parent)?, entry.path()));
        }
    }
    stores.sort();
    for (_, path) in stores.iter().rev().skip(KEEP) {
        fs::remove_dir_all(path).at(path)?;
    }
    Ok(())
}
