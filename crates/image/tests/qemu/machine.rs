//! A machine in QEMU: its console is a file, and waiting is reading it. Emulated, for a /dev/kvm that opens may still hang its guests.

use crate::place::{ADDRESS, Place};
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub(crate) const MAC: &str = "52:54:00:77:00:01";
const FIRMWARE: &str = "/usr/share/OVMF/OVMF_CODE_4M.fd";
const VARIABLES: &str = "/usr/share/OVMF/OVMF_VARS_4M.fd";
/// A console that says nothing for so long belongs to a machine that has stopped. Emulation on a busy machine is slow.
const NO_PROGRESS: Duration = Duration::from_secs(300);
const LOOK: Duration = Duration::from_millis(100);

pub(crate) struct Machine<'a> {
    place: &'a Place,
    process: Child,
    console: PathBuf,
    /// What was read of the console already.
    seen: usize,
    started: Instant,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Firmware {
    Bios,
    Uefi,
}

impl<'a> Machine<'a> {
    /// `arguments` are QEMU's: disks, kernel, what happens on a reboot.
    pub(crate) fn switch_on(
        place: &'a Place,
        name: &str,
        firmware: Firmware,
        arguments: &[String],
    ) -> Result<Machine<'a>> {
        println!("--- {name}");
        let console = place.dir.join(format!("{name}.log"));
        let mut command = place.inside("qemu-system-x86_64");
        command.args([
            "-accel",
            "tcg,thread=multi",
            "-machine",
            "q35",
            "-cpu",
            "max",
            "-m",
            "2048",
            "-smp",
            "2",
        ]);
        command.args(["-display", "none", "-nodefaults", "-vga", "std"]);
        command.arg("-serial").arg(format!("file:{}", console.display()));
        command.args(["-netdev", "tap,id=n0,ifname=tap0,script=no,downscript=no"]);
        command.arg("-device").arg(format!("virtio-net-pci,netdev=n0,mac={MAC},romfile="));
        if firmware == Firmware::Uefi {
            let variables = place.dir.join(format!("{name}.vars"));
            fs::copy(VARIABLES, &variables).context("apt install ovmf")?;
            command.arg("-drive").arg(format!("if=pflash,format=raw,unit=0,readonly=on,file={FIRMWARE}"));
            command.arg("-drive").arg(format!("if=pflash,format=raw,unit=1,file={}", variables.display()));
        }
        let process = command.args(arguments).stdin(Stdio::null()).spawn()?;
        Ok(Machine { place, process, console, seen: 0, started: Instant::now() })
    }

    /// Waits until the console says it; what it said before the last find does not count.
    pub(crate) fn says(&mut self, words: &str) -> Result<()> {
        let (mut length, mut moved) = (0, Instant::now());
        loop {
            let text = fs::read(&self.console).unwrap_or_default();
            let fresh = String::from_utf8_lossy(text.get(self.seen..).unwrap_or_default()).into_owned();
            if let Some(at) = fresh.find(words) {
                self.seen += at + words.len();
                println!("{:>6.1} s  {words}", self.started.elapsed().as_secs_f64());
                return Ok(());
            }
            for bad in ["STUCK", "FAILED:", "Kernel panic"] {
                ensure!(!fresh.contains(bad), "waiting for {words:?}, the console says:\n{}", tail(&fresh));
            }
            if text.len() != length {
                (length, moved) = (text.len(), Instant::now());
            }
            if let Some(status) = self.process.try_wait()? {
                bail!("QEMU ended ({status}) before {words:?}:\n{}", tail(&fresh));
            }
            ensure!(
                moved.elapsed() < NO_PROGRESS,
                "waiting for {words:?}, nothing is said any more:\n{}",
                tail(&fresh)
            );
            std::thread::sleep(LOOK);
        }
    }

    /// Waits until QEMU ends by itself: `-no-reboot`, or a machine that was switched off.
    pub(crate) fn ends(mut self) -> Result<()> {
        let (mut length, mut moved) = (0, Instant::now());
        while self.process.try_wait()?.is_none() {
            let now = fs::metadata(&self.console).map(|file| file.len()).unwrap_or_default();
            if now != length {
                (length, moved) = (now, Instant::now());
            }
            ensure!(moved.elapsed() < NO_PROGRESS, "QEMU does not end");
            std::thread::sleep(LOOK);
        }
        println!("{:>6.1} s  ended", self.started.elapsed().as_secs_f64());
        Ok(())
    }

    /// Pulls the plug.
    pub(crate) fn cut_off(mut self) -> Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        println!("{:>6.1} s  cut off", self.started.elapsed().as_secs_f64());
        Ok(())
    }

    /// As user core, by ssh. 255 is ssh's own: a machine as slow as this one may need more than one attempt.
    pub(crate) fn ssh(&self, command: &str) -> Result<String> {
        for attempt in 1.. {
            let mut ssh = self.place.inside("ssh");
            ssh.args([
                "-o",
                "StrictHostKeyChecking=no",
                "-o",
                "UserKnownHostsFile=/dev/null",
                "-o",
                "LogLevel=ERROR",
            ]);
            ssh.args(["-o", "ConnectTimeout=120", "-i"]).arg(self.place.dir.join("key"));
            let said = ssh.arg(format!("core@{ADDRESS}")).arg(command).stdin(Stdio::null()).output()?;
            let complaint = String::from_utf8_lossy(&said.stderr);
            if said.status.success() {
                return Ok(String::from_utf8_lossy(&said.stdout).trim().to_string());
            }
            ensure!(said.status.code() == Some(255) && attempt < 5, "{command}: {} {complaint}", said.status);
            println!("ssh, attempt {attempt}: {}", complaint.trim());
        }
        bail!("{command}: never asked")
    }
}

impl Drop for Machine<'_> {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(crate) fn key(dir: &Path) -> Result<String> {
    let path = dir.join("key");
    let made =
        Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&path).status()?;
    ensure!(made.success(), "ssh-keygen");
    Ok(fs::read_to_string(path.with_extension("pub"))?.trim().into())
}

fn tail(text: &str) -> String {
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}
