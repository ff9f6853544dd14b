//! Where labs are remembered: `<state>/labs/<name>/`, with lab.json written before anything of the lab is made.

use crate::spec::check_name;
use crate::{LabError, LabSpec, MachineKind, Result, at, helper, seed, write_json};
use seedling_machines::ssh::Access;
use seedling_machines::{Container, Machine, Place, Progress, Qemu};
use seedling_steps::write_atomic;
use seedling_types::boot::{BootState, Install};
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
    /// What its QEMU machines boot over the network; a newer one does not change a lab that exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_image: Option<PathBuf>,
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

    pub fn host(&self, node: &str) -> Result<&Host> {
        let hosts = &self.record.spec.inventory;
        hosts.by_name(node).ok_or_else(|| LabError::UnknownNode {
            lab: self.name().into(),
            node: node.into(),
            known: hosts.hosts.iter().map(|h| h.name.clone()).collect(),
        })
    }

    pub fn machine(&self, node: &str) -> Result<Machine> {
        Ok(self.machine_of(self.host(node)?))
    }

    /// As by its power button. The helper is informed first: a machine that has not finished its first boot may fetch its Ignition config.
    pub async fn switch_on(&self, node: &str) -> Result<()> {
        let machine = self.machine(node)?;
        if !self.has_its_config(&machine) {
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
        if let Machine::Qemu(_) = machine {
            return Ok(());
        }
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
        helper::remove_if_there(&self.boot_state_file(node))?;
        self.prepare(&machine).await
    }

    /// How far a machine that boots over the network has installed itself.
    pub fn boot_state(&self, node: &str) -> BootState {
        let json = fs::read(self.boot_state_file(node)).unwrap_or_default();
        serde_json::from_slice(&json).unwrap_or_default()
    }

    pub(crate) fn boot_state_file(&self, node: &str) -> PathBuf {
        self.dir.join("boots").join(format!("{node}.json"))
    }

    /// Its Ignition config is on its disk; it asks the helper for it no more.
    pub(crate) fn has_its_config(&self, machine: &Machine) -> bool {
        match machine {
            Machine::Container(machine) => machine.first_boot_done(),
            Machine::Qemu(machine) => self.boot_state(&machine.name).install == Install::Installed,
        }
    }

    /// How a machine is entered by ssh.
    pub fn access(&self, node: &str) -> Result<Access> {
        let host = self.host(node)?;
        Ok(Access { lab: self.name().into(), address: host.address, key: ssh_key(&self.dir) })
    }

    pub fn machines(&self) -> Vec<Machine> {
        self.record.spec.inventory.hosts.iter().map(|host| self.machine_of(host)).collect()
    }

    fn machine_of(&self, host: &Host) -> Machine {
        let container = container(&self.dir, self.name(), &host.name, &host.mac, &self.record.image);
        match self.record.spec.kind(&host.name) {
            MachineKind::Container => Machine::Container(Container {
                sharing: self.sharing(),
                stack: self.record.spec.stack().as_str(),
                ..container
            }),
            MachineKind::Qemu(hardware) => Machine::Qemu(Qemu {
                place: container.place,
                hardware,
                image: self.record.boot_image.clone().unwrap_or_default(),
                access: Access { lab: self.name().into(), address: host.address, key: ssh_key(&self.dir) },
            }),
        }
    }

    /// The bootstrap machine goes; the others have this one's memory and disk among them.
    fn sharing(&self) -> usize {
        let spec = &self.record.spec;
        let shares =
            |host: &&Host| host.role != Role::Bootstrap && spec.kind(&host.name) == MachineKind::Container;
        spec.inventory.hosts.iter().filter(shares).count().max(1)
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

/// The private half of the lab's own key pair; beside it, with `.pub`, the other.
pub fn ssh_key(lab_dir: &Path) -> PathBuf {
    lab_dir.join("ssh/id_ecdsa")
}

pub(crate) fn container(lab_dir: &Path, lab: &str, name: &str, mac: &str, image: &Path) -> Container {
    let dir = lab_dir.join("nodes").join(name);
    Container {
        place: Place { lab: lab.into(), name: name.into(), mac: mac.into(), dir },
        image: image.into(),
        runc_root: lab_dir.join("runc"),
        sharing: 1,
        stack: "ipv4",
    }
}
