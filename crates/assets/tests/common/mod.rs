//! An asset directory with a config of the recorded cases and a release that names every component.
#![expect(clippy::unwrap_used, reason = "tests")]
#![allow(dead_code, reason = "each test binary uses a part")]

use seedling_assets::{CreateError, Options, Outcome, Target, create};
use seedling_types::ReleaseInfo;
use seedling_types::release::Binary;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use time::{OffsetDateTime, macros::datetime};

pub(crate) const NOW: OffsetDateTime = datetime!(2026-11-15 12:00:00 UTC);
pub(crate) const SEED: &str = "seed004-clusterNetworks";

pub(crate) const HOSTS: &str = "hosts:
- {name: bootstrap, role: bootstrap, mac: '52:54:00:a4:db:5f', address: 192.168.100.10}
- {name: master01, role: master, mac: '52:54:00:8b:a1:17', address: 192.168.100.11}
- {name: master02, role: master, mac: '52:54:00:ea:8b:9d', address: 192.168.100.12}
- {name: master03, role: master, mac: '52:54:00:f8:87:c7', address: 192.168.100.13}
";

pub(crate) struct Assets {
    pub dir: TempDir,
    release: TempDir,
    pub now: OffsetDateTime,
    pub own_signers: bool,
    pub open: bool,
}

impl Assets {
    pub(crate) fn new(install_config: &str) -> Self {
        let assets = Self {
            dir: TempDir::new().unwrap(),
            release: TempDir::new().unwrap(),
            now: NOW,
            own_signers: false,
            open: false,
        };
        fs::write(assets.path("install-config.yaml"), install_config).unwrap();
        let release = serde_json::to_string(&release()).unwrap();
        fs::write(assets.release.path().join("release.json"), release).unwrap();
        assets
    }
    pub(crate) fn of_case(case: &str) -> Self {
        Self::new(&fs::read_to_string(data(case).join("install-config.yaml")).unwrap())
    }
    pub(crate) fn create(&self, target: Target) -> Result<Outcome, CreateError> {
        create(target, self.dir.path(), &self.options())
    }
    /// The same files in another directory.
    pub(crate) fn copy(&self) -> Self {
        let copy = Self::new("");
        fs::remove_file(copy.path("install-config.yaml")).unwrap();
        self.tree().iter().for_each(|name| copy.write(name, &self.read(name)));
        copy
    }
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }
    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }
    pub(crate) fn yaml(&self, name: &str) -> Value {
        serde_saphyr::from_str(&self.read(name)).unwrap()
    }
    /// Every file below the directory but the log, sorted.
    pub(crate) fn tree(&self) -> Vec<String> {
        let mut found = Vec::new();
        walk(self.dir.path(), self.dir.path(), &mut found);
        found.retain(|name| name != ".openshift_install.log");
        found.sort();
        found
    }
    pub(crate) fn options(&self) -> Options {
        let release = self.release.path().to_path_buf();
        Options {
            release,
            now: self.now,
            invoker: "user".into(),
            own_signers: self.own_signers,
            open: self.open,
            ..Options::default()
        }
    }
    /// What a run says, without its order: that varies upstream, too.
    pub(crate) fn said(&self, target: Target) -> BTreeSet<String> {
        let dir = self.dir.path().display().to_string();
        let lines: Vec<_> = match self.create(target) {
            Ok(outcome) => outcome.messages.iter().map(|m| (m.level.as_str(), m.text.clone())).collect(),
            Err(error) => error.lines(),
        };
        lines.iter().map(|(level, text)| format!("{level}: {}", text.replace(&dir, "s"))).collect()
    }
}

fn walk(root: &Path, dir: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(root, &path, found);
        } else {
            found.push(path.strip_prefix(root).unwrap().display().to_string());
        }
    }
}

/// Every recorded config that upstream accepts.
pub(crate) fn cases() -> Vec<String> {
    let entries = fs::read_dir(data("")).unwrap().map(|entry| entry.unwrap().path());
    let recorded = entries.filter(|path| path.join("summary.json").exists());
    let mut names: Vec<_> = recorded.map(|path| path.file_name().unwrap().display().to_string()).collect();
    names.sort();
    names
}

pub(crate) fn data(case: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(case)
}

/// Version 5.0.0, as the recorded installer reported.
fn release() -> ReleaseInfo {
    let names =
        ["seedling", "kubectl", "containerd", "containerd-shim-runc-v2", "ctr", "crictl", "runc", "kubelet"];
    let image = |name: &str| format!("registry.seedling.internal/seedling/{name}@sha256:{}", "0".repeat(64));
    let images = ["pause", "seedling"].iter().map(|name| (name.to_string(), image(name))).collect();
    let binary = |name: &&str| (name.to_string(), Binary { sha512: "0".repeat(128), size: 1 });
    ReleaseInfo {
        version: "5.0.0".into(),
        kubernetes_version: "1.36.4".into(),
        release_image: image("release"),
        images,
        binaries: names.iter().map(binary).collect(),
        components: Default::default(),
    }
}
