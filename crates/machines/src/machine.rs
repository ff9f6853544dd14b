//! One machine, whatever it is made of: what both kinds can do, and a clear refusal of what only one can.

use crate::bad_disk::{self, Trouble};
use crate::cgroup::{self, Usage};
use crate::container::Container;
use crate::disk::Disk;
use crate::network::Network;
use crate::qemu::Qemu;
use crate::run::{MachineError, Result, finish};
use serde::Serialize;
use std::path::PathBuf;
use std::process::Stdio;
use tokio::process::Command;

/// Where a machine is: what it is called, and what is its own.
#[derive(Clone, Debug)]
pub struct Place {
    pub lab: String,
    pub name: String,
    /// Lower case, colon separated.
    pub mac: String,
    /// All that is the machine's own: disk, console log, runc's bundle or QEMU's sockets.
    pub dir: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Power {
    On,
    Off,
    /// Frozen: no process of it runs.
    Paused,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Inspection {
    pub power: Power,
    /// PID 1 of a container machine, or QEMU, as seen from outside.
    pub pid: Option<u32>,
    #[serde(flatten)]
    pub usage: Usage,
}

impl Inspection {
    pub(crate) fn off() -> Self {
        Self { power: Power::Off, pid: None, usage: Usage::default() }
    }
}

impl Place {
    pub fn console_log(&self) -> PathBuf {
        self.dir.join("console.log")
    }

    /// A file of the node as it is on its disk, readable whether the machine runs or not; only what was written there. A QEMU machine's
    /// disk cannot be looked into: there is never such a file.
    pub fn on_disk(&self, path: &str) -> PathBuf {
        self.dir.join("upper").join(path.trim_start_matches('/'))
    }

    /// Where a file lies that is on the disk from the first boot on.
    pub fn at_first_boot(&self, path: &str) -> PathBuf {
        self.dir.join("first-boot").join(path.trim_start_matches('/'))
    }

    pub fn cgroup(&self) -> String {
        cgroup::path_of(&self.lab, &self.name)
    }

    /// Pulls its network cable, or puts it back.
    pub async fn plug(&self, plugged: bool) -> Result<()> {
        Network::of_lab(&self.lab).plug(&self.name, &self.mac, plugged).await
    }
}

#[derive(Clone, Debug)]
pub enum Machine {
    Container(Container),
    Qemu(Qemu),
}

impl std::ops::Deref for Machine {
    type Target = Place;
    fn deref(&self) -> &Place {
        match self {
            Machine::Container(machine) => &machine.place,
            Machine::Qemu(machine) => &machine.place,
        }
    }
}

/// The same of either kind.
macro_rules! either {
    ($machine:expr, $of:ident => $does:expr) => {
        match $machine {
            Machine::Container($of) => $does,
            Machine::Qemu($of) => $does,
        }
    };
}

impl Machine {
    /// Makes the disk and plugs the machine in. Done again, it changes nothing.
    pub async fn prepare(&self) -> Result<()> {
        either!(self, machine => machine.prepare().await)
    }

    /// Boots it, unless it runs. Returns when PID 1 is started, or the firmware.
    pub async fn switch_on(&self) -> Result<()> {
        either!(self, machine => machine.switch_on().await)
    }

    /// As by its power button; a machine that does not go off is cut off.
    pub async fn switch_off(&self) -> Result<()> {
        either!(self, machine => machine.switch_off().await)
    }

    /// Pulls the plug: no process of it lives on when this returns. The disk stays.
    pub async fn cut_off(&self) -> Result<()> {
        either!(self, machine => machine.cut_off().await)
    }

    /// Off and on again, with the disk kept.
    pub async fn restart(&self) -> Result<()> {
        self.switch_off().await?;
        self.switch_on().await
    }

    /// Freezes it: a container still answers ping, and accepts connections that nobody serves. Switched on, it goes on.
    pub async fn pause(&self) -> Result<()> {
        either!(self, machine => machine.pause().await)
    }

    /// Cuts it off; nothing of what it had written is left. It can be prepared again.
    pub async fn throw_disks_away(&self) -> Result<()> {
        either!(self, machine => machine.throw_disks_away().await)
    }

    pub async fn inspect(&self) -> Result<Inspection> {
        either!(self, machine => machine.inspect().await)
    }

    /// Cuts it off, unplugs it, throws the disk away.
    pub async fn remove(&self) -> Result<()> {
        either!(self, machine => machine.remove().await)
    }

    /// A command to run inside as root; its streams are the caller's to set.
    pub fn exec(&self, args: &[String], tty: bool) -> Command {
        either!(self, machine => machine.exec(args, tty))
    }

    /// Runs inside to the end and returns stdout.
    pub async fn exec_output(&self, args: &[&str]) -> Result<String> {
        let args: Vec<_> = args.iter().map(|a| a.to_string()).collect();
        let mut command = self.exec(&args, false);
        let program = command.as_std().get_program().to_string_lossy().into_owned();
        let output = command.stdin(Stdio::null()).output().await;
        finish(&format!("{}: {}", self.name, args.join(" ")), output, &program)
    }

    /// Ignition is through; a QEMU machine keeps that to itself.
    pub fn first_boot_done(&self) -> bool {
        matches!(self, Machine::Container(machine) if machine.first_boot_done())
    }

    /// Gives a directory a disk of its own, of this many MiB, from the next boot on.
    pub async fn give_disk(&self, disk: Disk, mib: u32) -> Result<()> {
        self.container("a directory cannot be given a disk of its own")?.give_disk(disk, mib).await
    }

    /// Leaves no room on one of its own disks, or gives it back.
    pub async fn fill_disk(&self, disk: Disk, full: bool) -> Result<()> {
        self.container("its disk cannot be filled from outside")?.fill_disk(disk, full).await
    }

    /// Gives etcd a disk that can be made to fail, from the next boot on.
    pub fn give_bad_disk(&self) -> Result<()> {
        self.container("it cannot be given a disk that fails")?.give_bad_disk()
    }

    /// Something is wrong with etcd's disk as long as the answer is held.
    pub async fn trouble_disk(&self, trouble: Trouble) -> Result<bad_disk::Held> {
        self.container("its disk cannot be made to fail")?.trouble_disk(trouble).await
    }

    /// Makes every write to its disk wait its turn, or no longer.
    pub fn slow_disk(&self, slow: bool) -> Result<()> {
        self.container("its disk cannot be slowed down")?.slow_disk(slow)
    }

    /// What runs on it: numbers as seen from outside, and arguments.
    pub fn processes(&self) -> Result<Vec<(i32, Vec<String>)>> {
        Ok(self.container("its processes cannot be seen from outside")?.processes())
    }

    fn container(&self, what: &'static str) -> Result<&Container> {
        match self {
            Machine::Container(machine) => Ok(machine),
            Machine::Qemu(machine) => Err(MachineError::OnlyContainers { name: machine.name.clone(), what }),
        }
    }
}
