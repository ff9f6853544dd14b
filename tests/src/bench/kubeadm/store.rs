//! The release's seed store once more, its images under the names that kubeadm asks for as well. Made before any clock runs.

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use seedling_e2e::run;
use seedling_release::{clone_store, seed_store};
use seedling_types::ReleaseInfo;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const ANSWERS_WITHIN: Duration = Duration::from_secs(60);

/// Removed when dropped.
pub(crate) struct Store {
    dir: PathBuf,
}

impl Store {
    pub(crate) fn make(release_dir: &Path, release: &ReleaseInfo, cache: &Path) -> Result<Self> {
        let seed = seed_store(release_dir, cache)?;
        let dir = cache.join("bench-kubeadm-store");
        if dir.exists() {
            fs::remove_dir_all(&dir)?; // left by a benchmark that was killed
        }
        let store = Self { dir };
        clone_store(&seed, &store.dir)?;
        store.tag(&release_dir.join("bin"), release)?;
        store.place_kube_proxy()?;
        Ok(store)
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    fn tag(&self, bin: &Path, release: &ReleaseInfo) -> Result<()> {
        let mut list = Command::new(bin.join("kubeadm"));
        list.args(["config", "images", "list", "--kubernetes-version", &release.kubernetes_version]);
        let names = run(&mut list)?;
        let containerd = Containerd::start(bin, &self.dir)?;
        for name in names.lines() {
            let ours = release.image(component(name))?;
            run(containerd.ctr().args(["images", "tag", ours, name]))?;
        }
        containerd.stop()
    }

    /// kubeadm's manifest calls it by the path that it has in upstream's image.
    fn place_kube_proxy(&self) -> Result<()> {
        let snapshots = self.dir.join("io.containerd.snapshotter.v1.overlayfs/snapshots");
        for snapshot in fs::read_dir(&snapshots)? {
            let root = snapshot?.path().join("fs");
            if root.join("usr/bin/kube-proxy").exists() {
                let wanted = root.join("usr/local/bin");
                fs::create_dir_all(&wanted)?;
                return symlink("/usr/bin/kube-proxy", wanted.join("kube-proxy")).context("kube-proxy");
            }
        }
        bail!("no kube-proxy in {}", snapshots.display())
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if let Err(e) = fs::remove_dir_all(&self.dir) {
            eprintln!("{}: {e}", self.dir.display());
        }
    }
}

/// `registry.k8s.io/coredns/coredns:v1.14.2` → `coredns`
fn component(name: &str) -> &str {
    let last = name.rsplit('/').next().unwrap_or(name);
    last.split(':').next().unwrap_or(last)
}

/// On the store's directory, for as long as the names are written.
struct Containerd {
    child: Child,
    ctr: PathBuf,
    state: tempfile::TempDir,
}

impl Containerd {
    fn start(bin: &Path, root: &Path) -> Result<Self> {
        let state = tempfile::Builder::new().prefix("seedling-bench-").tempdir()?;
        let (at, root) = (state.path().display(), root.display());
        let config = format!(
            "version = 3\nroot = \"{root}\"\nstate = \"{at}/state\"\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n\
             [grpc]\naddress = \"{at}/c.sock\"\n[ttrpc]\naddress = \"{at}/t.sock\"\n"
        );
        let path = state.path().join("config.toml");
        fs::write(&path, config)?;
        let log = fs::File::create(state.path().join("log"))?;
        // It ends with us, however we end.
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "TERM"])
            .arg(bin.join("containerd"))
            .arg("--config")
            .arg(&path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .context("containerd")?;
        let containerd = Self { child, ctr: bin.join("ctr"), state };
        let start = Instant::now();
        while let Err(e) = run(containerd.ctr().arg("version")) {
            if start.elapsed() > ANSWERS_WITHIN {
                let log = fs::read_to_string(containerd.state.path().join("log")).unwrap_or_default();
                return Err(e.context(format!("containerd does not answer:\n{log}")));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(containerd)
    }

    fn ctr(&self) -> Command {
        let mut ctr = Command::new(&self.ctr);
        ctr.arg("--address").arg(self.state.path().join("c.sock")).args(["--namespace", "k8s.io"]);
        ctr
    }

    /// An orderly end, so that the databases are complete.
    fn stop(mut self) -> Result<()> {
        kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM)?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Containerd {
    fn drop(&mut self) {
        // Already gone after `stop`.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubeadms_names_are_components() {
        for (name, want) in [
            ("registry.k8s.io/kube-apiserver:v1.36.4", "kube-apiserver"),
            ("registry.k8s.io/coredns/coredns:v1.14.2", "coredns"),
            ("registry.k8s.io/etcd:3.6.8-0", "etcd"),
        ] {
            assert_eq!(component(name), want);
        }
    }
}
