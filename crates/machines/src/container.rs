//! A container machine: switched on, off, cut off, inspected, entered. Its disk is a directory and survives all but `remove`.

use crate::Place;
use crate::bad_disk::{self, Trouble};
use crate::cgroup;
use crate::config::{self, OWN_DIRECTORIES, Parts};
use crate::disk::{self, Disk};
use crate::image::remove_tree;
use crate::machine::{Inspection, Power};
use crate::network::Network;
use crate::run::{MachineError, Result, at, run};
use serde::Deserialize;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::process::Command;

/// Written by preinit when Ignition is through; see node/rootfs.
const IGNITION_STAMP: &str = "etc/.ignition-applied";
/// How long systemd may take to stop its units before the machine is cut off.
const POWER_OFF_WITHIN: Duration = Duration::from_secs(60);
/// systemd's "power off" signal: SIGRTMIN+4.
const POWER_OFF: &str = "38";
/// How often a machine with a slow disk may write a second: an agreement of etcd then takes longer than its heartbeat.
const SLOW_WRITES: u32 = 25;
/// Fills the disk below a directory, until there is no room for another block.
const FILL: &str = r#"cat /dev/zero > "$1/full" 2>/dev/null; df --output=avail "$1" | tail -1"#;
/// Its directory and this program, for [`bad_disk::MOUNT`].
const GIVEN: &str = "set -e\ndir=$4 program=$6\n";
/// Mounts the disks in a mount namespace of its own and starts runc there: the mount is nowhere else, on no machine can it
/// be seen, propagate or be left behind, and it goes when the machine's last process goes.
const START: &str = r#"for disk in "$4"/*.disk; do [ ! -e "$disk" ] || mount -o loop "$disk" "${disk%.disk}"; done
mount -t overlay overlay -o "$1" "$2"
exec runc --root "$3" run --detach --bundle "$4" "$5""#;

#[derive(Clone, Debug)]
pub struct Container {
    pub place: Place,
    pub image: PathBuf,
    /// runc's records, one place a lab.
    pub runc_root: PathBuf,
    /// How many machines of the lab share this one's memory and disk, itself included.
    pub sharing: usize,
    /// Which addresses it asks for: ipv4, ipv6 or dual.
    pub stack: &'static str,
}

impl std::ops::Deref for Container {
    type Target = Place;
    fn deref(&self) -> &Place {
        &self.place
    }
}

impl Container {
    /// Makes the disk and plugs the machine in. Done again, it changes nothing.
    pub async fn prepare(&self) -> Result<()> {
        let own = OWN_DIRECTORIES.iter().map(|(from, _)| *from);
        for name in ["upper", "work", "root"].into_iter().chain(own) {
            let path = self.dir.join(name);
            at(&path, fs::create_dir_all(&path))?;
        }
        at(&self.runc_root, fs::create_dir_all(&self.runc_root))?;
        Network::of_lab(&self.lab).ensure_node(&self.name, &self.mac).await
    }

    /// Boots it, unless it runs. Returns when PID 1 is started.
    pub async fn switch_on(&self) -> Result<()> {
        match self.inspect().await?.power {
            Power::On => return Ok(()),
            Power::Paused => return self.runc(&["resume", &self.name]).await.map(drop),
            Power::Off => self.forget().await?,
        }
        if !self.first_boot_done() {
            self.blank_disk()?;
        }
        Network::of_lab(&self.lab).renew_node(&self.name, &self.mac).await?;
        cgroup::hold_devices(&self.lab)?;
        self.write_bundle()?;
        let log = self.console_log();
        let console = at(&log, OpenOptions::new().create(true).append(true).open(&log))?;
        let copy = at(&log, console.try_clone())?;
        let start = [GIVEN, bad_disk::MOUNT, START].concat();
        let status = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "--", "sh", "-c", &start, "sh"])
            .arg(self.overlay_options())
            .args([self.dir.join("root"), self.runc_root.clone(), self.dir.clone()])
            .arg(&self.name)
            .arg(at(&self.dir, std::env::current_exe())?)
            .stdin(Stdio::null())
            .stdout(console)
            .stderr(copy)
            .status()
            .await;
        let status = status.map_err(|source| MachineError::Spawn { program: "unshare".into(), source })?;
        if status.success() {
            return Ok(());
        }
        let command = format!("runc run {}", self.name);
        Err(MachineError::Failed { command, status, complaint: last_line(&log) })
    }

    /// Asks systemd to power off, and waits; a machine that does not is cut off.
    pub async fn switch_off(&self) -> Result<()> {
        if self.inspect().await?.power == Power::On
            && self.runc(&["kill", &self.name, POWER_OFF]).await.is_ok()
        {
            let _ = self.wait_until_off(POWER_OFF_WITHIN).await;
        }
        self.cut_off().await
    }

    /// Pulls the plug: no process of it lives on when this returns. The disk stays.
    pub async fn cut_off(&self) -> Result<()> {
        let before = self.inspect().await?.power;
        if before != Power::Off {
            // It may die between the question and the kill; what counts is that it is off afterwards.
            let _ = self.runc(&["kill", &self.name, "KILL"]).await;
            if before == Power::Paused {
                let _ = self.runc(&["resume", &self.name]).await; // a frozen process does not die
            }
            self.wait_until_off(Duration::from_secs(20)).await?;
        }
        self.forget().await
    }

    /// Freezes it: it still answers ping, and accepts connections that nobody serves.
    pub async fn pause(&self) -> Result<()> {
        self.runc(&["pause", &self.name]).await.map(drop)
    }

    /// Cuts it off; nothing of what it had written is left. It can be prepared again.
    pub async fn throw_disks_away(&self) -> Result<()> {
        self.cut_off().await?;
        let own = OWN_DIRECTORIES.iter().map(|(from, _)| *from);
        for name in ["upper", "work", Disk::PodLogs.directory()].into_iter().chain(own) {
            remove_tree(&self.dir.join(name))?;
            let image = self.dir.join(name).with_extension(disk::IMAGE);
            if image.exists() {
                at(&image, fs::remove_file(&image))?;
            }
        }
        Ok(())
    }

    /// Gives a directory a disk of its own, of this many MiB, from the next boot on.
    pub async fn give_disk(&self, disk: Disk, mib: u32) -> Result<()> {
        let directory = self.dir.join(disk.directory());
        at(&directory, fs::create_dir_all(&directory))?;
        disk::make(&directory, mib).await
    }

    fn has_disk(&self, disk: Disk) -> bool {
        self.dir.join(disk.directory()).with_extension(disk::IMAGE).exists()
    }

    /// Leaves no room on one of its own disks, or gives it back.
    pub async fn fill_disk(&self, disk: Disk, full: bool) -> Result<()> {
        let data = disk.path();
        if !self.has_disk(disk) {
            let none =
                format!("{data} has no disk of its own on {}; filling this one would fill yours", self.name);
            return at(&self.dir, Err(std::io::Error::other(none)));
        }
        match full {
            true => self.runc(&["exec", &self.name, "sh", "-c", FILL, "sh", data]).await.map(drop),
            false => self.runc(&["exec", &self.name, "rm", "-f", &format!("{data}/full")]).await.map(drop),
        }
    }

    /// Gives etcd a disk that can be made to fail, from the next boot on.
    pub fn give_bad_disk(&self) -> Result<()> {
        let mark = self.dir.join(bad_disk::MARK);
        at(&mark, fs::write(&mark, ""))
    }

    /// Something is wrong with etcd's disk as long as the answer is held.
    pub async fn trouble_disk(&self, trouble: Trouble) -> Result<bad_disk::Held> {
        bad_disk::trouble(&self.dir, trouble).await
    }

    /// Makes every write to its disk wait its turn, or no longer.
    pub fn slow_disk(&self, slow: bool) -> Result<()> {
        let device = disk::device_of(&self.dir)?;
        cgroup::limit_writes(&self.cgroup(), &device, slow.then_some(SLOW_WRITES))
    }

    /// What runs on it: numbers as seen from outside, and arguments.
    pub fn processes(&self) -> Vec<(i32, Vec<String>)> {
        let arguments = |pid: i32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let text = String::from_utf8_lossy(&line).into_owned();
            Some((pid, text.split_terminator('\0').map(str::to_string).collect()))
        };
        cgroup::processes(&self.cgroup()).into_iter().filter_map(arguments).collect()
    }

    pub async fn inspect(&self) -> Result<Inspection> {
        #[derive(Deserialize)]
        struct State {
            status: String,
            pid: u32,
        }
        if !self.runc_root.join(&self.name).exists() {
            return Ok(Inspection::off());
        }
        let state: State = match self.runc(&["state", &self.name]).await {
            Ok(json) => serde_json::from_str(&json)?,
            Err(MachineError::Failed { .. }) => return Ok(Inspection::off()), // runc was killed while it made the container
            Err(e) => return Err(e),
        };
        let power = match state.status.as_str() {
            "running" | "created" => Power::On,
            "paused" => Power::Paused,
            _ => return Ok(Inspection::off()),
        };
        Ok(Inspection { power, pid: Some(state.pid), usage: cgroup::usage(&self.cgroup()) })
    }

    /// A command to run inside; its streams are the caller's to set.
    pub fn exec(&self, args: &[String], tty: bool) -> Command {
        let mut command = Command::new("runc");
        command.arg("--root").arg(&self.runc_root).arg("exec");
        if tty {
            command.arg("--tty");
            if let Ok(term) = std::env::var("TERM") {
                command.arg("--env").arg(format!("TERM={term}"));
            }
        }
        command.arg(&self.name).args(args);
        command
    }

    /// Cuts it off, unplugs it, throws the disk away.
    pub async fn remove(&self) -> Result<()> {
        self.cut_off().await?;
        Network::of_lab(&self.lab).remove_node(&self.name).await?;
        remove_tree(&self.dir)
    }

    pub fn first_boot_done(&self) -> bool {
        self.on_disk(IGNITION_STAMP).exists()
    }

    /// A first boot that was cut off starts from a blank disk: Ignition refuses files that a half-done run has left.
    fn blank_disk(&self) -> Result<()> {
        for name in ["upper", "work"] {
            let path = self.dir.join(name);
            remove_tree(&path)?;
            at(&path, fs::create_dir_all(&path))?;
        }
        copy_tree(&self.at_first_boot("/"), &self.on_disk("/"))
    }

    fn write_bundle(&self) -> Result<()> {
        let status = Path::new("/proc/self/status");
        let capabilities = config::capabilities(&at(status, fs::read_to_string(status))?);
        let namespace = Network::of_lab(&self.lab).node_namespace(&self.name);
        let parts = Parts {
            dir: &self.dir,
            namespace: &namespace,
            cgroup: &self.cgroup(),
            capabilities: &capabilities,
            sharing: self.sharing,
            stack: self.stack,
            pod_logs: self.has_disk(Disk::PodLogs),
        };
        let path = self.dir.join("config.json");
        at(&path, fs::write(&path, config::oci(&parts).to_string()))
    }

    fn overlay_options(&self) -> String {
        let (upper, work) = (self.dir.join("upper"), self.dir.join("work"));
        format!("lowerdir={},upperdir={},workdir={}", self.image.display(), upper.display(), work.display())
    }

    /// Drops runc's record and the control groups of a machine that is off.
    async fn forget(&self) -> Result<()> {
        if self.runc_root.join(&self.name).exists() {
            self.runc(&["delete", "--force", &self.name]).await?;
        }
        cgroup::remove(&self.cgroup()).await
    }

    async fn wait_until_off(&self, limit: Duration) -> Result<()> {
        let deadline = Instant::now() + limit;
        while self.inspect().await?.power != Power::Off {
            if Instant::now() > deadline {
                return Err(MachineError::DoesNotStop(
                    self.name.clone(),
                    format!("still there after {limit:?}"),
                ));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    async fn runc(&self, args: &[&str]) -> Result<String> {
        let root = self.runc_root.display().to_string();
        run("runc", ["--root", &root].iter().chain(args)).await
    }
}

/// Nothing, where there is nothing to copy.
fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    if !from.exists() {
        return Ok(());
    }
    at(to, fs::create_dir_all(to))?;
    for entry in at(from, fs::read_dir(from))? {
        let entry = at(from, entry)?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        match at(&from, entry.file_type())?.is_dir() {
            true => copy_tree(&from, &to)?,
            false => at(&to, fs::copy(&from, &to)).map(drop)?,
        }
    }
    Ok(())
}

/// What runc complains about is on the console, the machine's last words with it.
fn last_line(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    text.lines().last().unwrap_or_default().to_string()
}
