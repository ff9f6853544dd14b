//! Where labs are remembered: `<state>/labs/<name>/`, with lab.json written before anything of the lab is made.

use crate::spec::check_name;
use crate::{LabError, LabSpec, Result, at, seed, write_json};
use seedling_machines::{Machine, Progress};
use seedling_steps::write_atomic;
use seedling_types::door::Door;
use seedling_types::{Host, Role};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// All labs of this machine.
#[derive(Clone, Debug)]
pub struct Labs {
    /// `SEEDLING_STATE`.
    pub state: PathBuf,
    /// `SEEDLING_CACHE`.
    pub cache: PathBuf,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    #[serde(flatten)]
    pub spec: LabSpec,
    /// The node image its disks lie on; a newer one does not change a lab that exists.
    pub image: PathBuf,
    /// Where the API is reached from outside; known once the helper was started.
    pub api: Option<SocketAddr>,
}

/// One lab that exists, or is being made.
#[derive(Clone, Debug)]
pub struct Lab {
    pub dir: PathBuf,
    pub record: Record,
}

impl Labs {
    pub fn from_env() -> Self {
        let from =
            |name: &str, default: &str| std::env::var_os(name).map_or_else(|| default.into(), PathBuf::from);
        Self {
            state: from("SEEDLING_STATE", "/var/lib/seedling"),
            cache: from("SEEDLING_CACHE", "/var/cache/seedling"),
        }
    }

    /// A lab's own directory; the asset directory is expected in it as `assets/`.
    pub fn dir(&self, name: &str) -> PathBuf {
        self.state.join("labs").join(name)
    }

    pub fn assets_dir(&self, name: &str) -> PathBuf {
        self.dir(name).join("assets")
    }

    pub fn open(&self, name: &str) -> Result<Lab> {
        check_name(name)?;
        self.find(name)?.ok_or_else(|| LabError::Unknown(name.into()))
    }

    pub fn list(&self) -> Result<Vec<Lab>> {
        let folder = self.state.join("labs");
        if !folder.exists() {
            return Ok(Vec::new());
        }
        let mut names: Vec<_> = at(&folder, fs::read_dir(&folder))?
            .filter_map(|e| e.ok()?.file_name().into_string().ok())
            .filter(|name| check_name(name).is_ok())
            .collect();
        names.sort();
        names.iter().filter_map(|name| self.find(name).transpose()).collect()
    }

    pub(crate) fn find(&self, name: &str) -> Result<Option<Lab>> {
        let dir = self.dir(name);
        let path = dir.join("lab.json");
        if !path.exists() {
            return Ok(None);
        }
        let json = at(&path, fs::read_to_string(&path))?;
        match serde_json::from_str(&json) {
            Ok(record) => Ok(Some(Lab { dir, record })),
            Err(e) => Err(LabError::Unreadable { path, message: e.to_string() }),
        }
    }

    /// Two processes never make or remove one lab at the same time. The file is beside the lab's directory, and goes with it.
    pub(crate) async fn lock(&self, name: &str, progress: Progress<'_>) -> Result<Lock> {
        check_name(name)?;
        let path = self.state.join("labs").join(format!(".{name}.lock"));
        lock(&path, || progress(&format!("waiting for another process that works on lab {name:?}"))).await
    }
}

pub(crate) struct Lock {
    _file: File,
    path: PathBuf,
}

impl Lock {
    /// Removes the file while it is held; a process that waits for it notices and takes the next one.
    pub(crate) fn remove(self) -> Result<()> {
        at(&self.path, fs::remove_file(&self.path))
    }
}

pub(crate) async fn lock(path: &Path, waiting: impl FnOnce()) -> Result<Lock> {
    let mut waiting = Some(waiting);
    loop {
        if let Some(parent) = path.parent() {
            at(parent, fs::create_dir_all(parent))?;
        }
        let mut file = at(path, OpenOptions::new().create(true).truncate(false).write(true).open(path))?;
        if file.try_lock().is_err() {
            if let Some(say) = waiting.take() {
                say();
            }
            let locked = tokio::task::spawn_blocking(move || file.lock().map(|()| file)).await;
            file = at(path, locked.map_err(std::io::Error::other).and_then(|r| r))?;
        }
        let ours = at(path, file.metadata())?.ino();
        if fs::metadata(path).is_ok_and(|now| now.ino() == ours) {
            return Ok(Lock { _file: file, path: path.into() });
        }
    }
}

impl Lab {
    pub fn name(&self) -> &str {
        &self.record.spec.name
    }

    pub(crate) fn save(&self) -> Result<()> {
        write_json(&self.dir.join("lab.json"), &self.record, 0o644)
    }

    pub fn machine(&self, node: &str) -> Result<Machine> {
        let hosts = &self.record.spec.inventory;
        let host = hosts.by_name(node).ok_or_else(|| LabError::UnknownNode {
            lab: self.name().into(),
            node: node.into(),
            known: hosts.hosts.iter().map(|h| h.name.clone()).collect(),
        })?;
        Ok(self.machine_of(host))
    }

    /// As by its power button. The helper is informed first: a machine that has not finished its first boot may fetch its Ignition config.
    pub async fn switch_on(&self, node: &str) -> Result<()> {
        let machine = self.machine(node)?;
        if !machine.first_boot_done() {
            let path = self.dir.join("doors").join(format!("{node}.json"));
            let door: Door =
                fs::read(&path).ok().and_then(|json| serde_json::from_slice(&json).ok()).unwrap_or_default();
            let json = serde_json::to_vec(&door.power_on())
                .map_err(|e| LabError::Unreadable { path: path.clone(), message: e.to_string() })?;
            at(&path, write_atomic(&path, json, 0o600))?;
        }
        Ok(machine.switch_on().await?)
    }

    /// Its disks and its network card, as they are before the first boot. Done again, it changes nothing.
    pub(crate) async fn prepare(&self, machine: &Machine) -> Result<()> {
        let spec = &self.record.spec;
        machine.prepare().await?;
        if let Some(store) = &spec.seed_store {
            seed(store, &machine.dir.join("containerd")).await?;
        }
        for (disk, mib) in spec.disks() {
            machine.give_disk(disk, mib).await?;
        }
        if spec.bad_etcd_disk {
            machine.give_bad_disk()?;
        }
        Ok(())
    }

    /// Cuts a machine off and gives it new disks.
    pub async fn new_disk(&self, node: &str) -> Result<()> {
        let machine = self.machine(node)?;
        machine.throw_disks_away().await?;
        self.prepare(&machine).await
    }

    pub fn machines(&self) -> Vec<Machine> {
        self.record.spec.inventory.hosts.iter().map(|host| self.machine_of(host)).collect()
    }

    fn machine_of(&self, host: &Host) -> Machine {
        let machine = machine(&self.dir, self.name(), &host.name, &host.mac, &self.record.image);
        Machine { sharing: self.sharing(), ..machine }
    }

    /// The bootstrap machine goes; the others have this one's memory and disk among them.
    fn sharing(&self) -> usize {
        let hosts = &self.record.spec.inventory.hosts;
        hosts.iter().filter(|host| host.role != Role::Bootstrap).count().max(1)
    }

    pub fn helper_config(&self) -> PathBuf {
        self.dir.join("helper.yaml")
    }
    pub fn helper_log(&self) -> PathBuf {
        self.dir.join("helper.log")
    }
    pub fn helper_events(&self) -> PathBuf {
        self.dir.join("helper-events.jsonl")
    }
    /// What runs as this lab's helper.
    pub fn helper_pids(&self) -> Vec<i32> {
        crate::helper::find(&self.helper_config()).iter().map(|process| process.pid).collect()
    }
    pub(crate) fn helper_ready(&self) -> PathBuf {
        self.dir.join("helper.ready")
    }
    /// Every operation of the prober's rivals, when no order explains them.
    pub fn probe_history(&self) -> PathBuf {
        self.dir.join("probe-history.json")
    }
    /// The admin's kubeconfig for use outside the lab: it goes through the loopback forward.
    pub fn kubeconfig(&self) -> PathBuf {
        self.record.spec.assets.join("auth/kubeconfig.lab")
    }
}

pub(crate) fn machine(lab_dir: &Path, lab: &str, name: &str, mac: &str, image: &Path) -> Machine {
    Machine {
        lab: lab.into(),
        name: name.into(),
        mac: mac.into(),
        dir: lab_dir.join("nodes").join(name),
        image: image.into(),
        runc_root: lab_dir.join("runc"),
        sharing: 1,
    }
}
