//! A QEMU machine: one process that has a MAC address, an empty disk and a serial console, and boots what the network gives it. What it
//! runs cannot be seen from outside: its console is a file, and it is entered by ssh.

mod hardware;
mod qmp;
mod trial;

pub use hardware::{Acceleration, Boot, Firmware, Hardware};
pub use trial::acceleration;

use crate::cgroup;
use crate::image::remove_tree;
use crate::machine::{Inspection, Place, Power};
use crate::network::{Network, namespace_path, port_name};
use crate::run::{MachineError, Result, at};
use crate::ssh::Access;
use hardware::{DISK, OVMF_CODE, OVMF_VARS, PID, QMP, VARS};
use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};

const PROGRAM: &str = "qemu-system-x86_64";
/// The virtio card's ROM, by which a BIOS boots over the network; the one for UEFI is in it as well.
const ROM: &str = "/usr/lib/ipxe/qemu/pxe-virtio.rom";
/// How long an emulated systemd may take to stop its units before the machine is cut off.
const POWER_OFF_WITHIN: Duration = Duration::from_secs(240);
const START_WITHIN: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(50);
/// The kernel's limit for a socket's path.
const SOCKET_PATH_MAX: usize = 107;
/// Enters the control groups before it becomes QEMU, so that they always hold all of the machine.
const JOIN: &str = r#"while [ "$1" != -- ]; do echo $$ >"$1" || exit; shift; done; shift; exec "$@""#;

#[derive(Clone, Debug)]
pub struct Qemu {
    pub place: Place,
    pub hardware: Hardware,
    /// The boot image's directory: by its kernel it is found out whether KVM works.
    pub image: PathBuf,
    pub access: Access,
}

impl std::ops::Deref for Qemu {
    type Target = Place;
    fn deref(&self) -> &Place {
        &self.place
    }
}

/// Every program and file that such a machine needs, or the package to install.
pub fn check_installed(firmware: Firmware) -> Result<()> {
    installed()?;
    let mut needed = vec![(ROM, "ipxe-qemu")];
    if firmware == Firmware::Uefi {
        needed.extend([(OVMF_CODE, "ovmf"), (OVMF_VARS, "ovmf")]);
    }
    match needed.into_iter().find(|(file, _)| !Path::new(file).exists()) {
        Some((program, package)) => Err(MachineError::Missing { program, package }),
        None => Ok(()),
    }
}

fn installed() -> Result<&'static str> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    match std::env::split_paths(&path).any(|dir| dir.join(PROGRAM).exists()) {
        true => Ok(PROGRAM),
        false => Err(MachineError::Missing {
            program: PROGRAM,
            package: "qemu-system-x86 ipxe-qemu ovmf openssh-client",
        }),
    }
}

impl Qemu {
    pub(crate) async fn prepare(&self) -> Result<()> {
        check_installed(self.hardware.firmware)?;
        let socket = self.socket();
        if socket.as_os_str().len() > SOCKET_PATH_MAX {
            return Err(MachineError::LongPath { path: socket, most: SOCKET_PATH_MAX });
        }
        at(&self.dir, fs::create_dir_all(&self.dir))?;
        self.make_disk()?;
        Network::of_lab(&self.lab).ensure_tap(&self.name, &self.mac).await
    }

    pub(crate) async fn switch_on(&self) -> Result<()> {
        match self.inspect().await?.power {
            Power::On => return Ok(()),
            Power::Paused => return self.ask("cont").await.map(drop),
            Power::Off => self.cut_off().await?,
        }
        Network::of_lab(&self.lab).ensure_tap(&self.name, &self.mac).await?;
        let acceleration = acceleration(&self.image, &|_| ()).await?;
        let mut child = self.start(acceleration)?;
        let deadline = Instant::now() + START_WITHIN;
        while self.ask("query-status").await.is_err() {
            if !matches!(child.try_wait(), Ok(None)) || Instant::now() > deadline {
                let said = fs::read_to_string(self.log()).unwrap_or_default();
                let complaint = said.lines().last().unwrap_or("it said nothing").to_string();
                self.cut_off().await?;
                return Err(MachineError::Ended { name: self.name.clone(), complaint });
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    /// Its power button; systemd does the rest.
    pub(crate) async fn switch_off(&self) -> Result<()> {
        if self.inspect().await?.power == Power::On && self.ask("system_powerdown").await.is_ok() {
            let deadline = Instant::now() + POWER_OFF_WITHIN;
            // A guest that is still in its firmware does not hear it.
            while Instant::now() < deadline && self.inspect().await?.power != Power::Off {
                tokio::time::sleep(POLL).await;
            }
        }
        self.cut_off().await
    }

    /// Nothing but this machine is ever in its control groups: whatever is there is killed.
    pub(crate) async fn cut_off(&self) -> Result<()> {
        cgroup::remove(&self.cgroup()).await?;
        for name in [QMP, PID] {
            let path = self.dir.join(name);
            if path.exists() {
                at(&path, fs::remove_file(&path))?;
            }
        }
        Ok(())
    }

    pub(crate) async fn pause(&self) -> Result<()> {
        self.ask("stop").await.map(drop)
    }

    pub(crate) async fn throw_disks_away(&self) -> Result<()> {
        self.cut_off().await?;
        for name in [DISK, VARS] {
            let path = self.dir.join(name);
            if path.exists() {
                at(&path, fs::remove_file(&path))?;
            }
        }
        Ok(())
    }

    pub(crate) async fn inspect(&self) -> Result<Inspection> {
        let Some(pid) = cgroup::processes(&self.cgroup()).first().copied() else {
            return Ok(Inspection::off());
        };
        let power = match self.ask("query-status").await {
            Ok(said) if said["status"] == "paused" => Power::Paused,
            _ => Power::On, // one that does not answer is being started, or ends
        };
        Ok(Inspection { power, pid: u32::try_from(pid).ok(), usage: cgroup::usage(&self.cgroup()) })
    }

    pub(crate) async fn remove(&self) -> Result<()> {
        self.cut_off().await?;
        Network::of_lab(&self.lab).remove_tap(&self.name, &self.mac).await?;
        remove_tree(&self.dir)
    }

    pub(crate) fn exec(&self, args: &[String], tty: bool) -> Command {
        self.access.as_root(args, tty)
    }

    fn start(&self, acceleration: Acceleration) -> Result<Child> {
        let log = self.log();
        let output = at(&log, OpenOptions::new().create(true).append(true).open(&log))?;
        let errors = at(&log, output.try_clone())?;
        let namespace = namespace_path(&Network::of_lab(&self.lab).namespace());
        let (name, port) = (format!("{}/{}", self.lab, self.name), port_name(&self.name, &self.mac));
        // A session of its own: it gets no signal of the terminal `lab up` was typed in.
        let child = Command::new("setsid")
            .args(["sh", "-c", JOIN, "sh"])
            .args(cgroup::make(&self.cgroup())?)
            .args(["--", "nsenter"])
            .arg(format!("--net={}", namespace.display()))
            .arg(PROGRAM)
            .args(hardware::arguments(&name, &self.mac, &port, &self.dir, &self.hardware, acceleration))
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .spawn();
        child.map_err(|source| MachineError::Spawn { program: "setsid".into(), source })
    }

    /// Sparse; what is there stays. Under another name first, so that it is there whole or not at all.
    fn make_disk(&self) -> Result<()> {
        let disk = self.dir.join(DISK);
        if !disk.exists() {
            let making = self.dir.join("disk.making");
            match (&self.hardware.media, self.hardware.boot) {
                (Some(media), Boot::Disk) => at(media, fs::copy(media, &making)).map(drop)?,
                _ => at(&making, File::create(&making)).map(drop)?,
            }
            let file = at(&making, OpenOptions::new().write(true).open(&making))?;
            let whole = u64::from(self.hardware.disk_gib) << 30;
            let bytes = at(&making, file.metadata())?.len().max(whole);
            at(&making, file.set_len(bytes))?;
            at(&disk, fs::rename(&making, &disk))?;
        }
        let vars = self.dir.join(VARS);
        if self.hardware.firmware == Firmware::Uefi && !vars.exists() {
            at(&vars, fs::copy(OVMF_VARS, &vars))?;
        }
        Ok(())
    }

    async fn ask(&self, command: &'static str) -> Result<serde_json::Value> {
        qmp::ask(&self.socket(), &self.name, command).await
    }

    fn socket(&self) -> PathBuf {
        self.dir.join(QMP)
    }

    /// What QEMU itself complains about.
    fn log(&self) -> PathBuf {
        self.dir.join("qemu.log")
    }
}
