//! What QEMU machines are made of, as flags of `lab up` and `lab add`.

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use seedling_machines::{Boot, Firmware, Hardware};
use seedling_types::Role;
use std::path::PathBuf;

/// A control plane needs so much.
const MASTER_MIB: u32 = 4096;

#[derive(Args, Clone, Debug, Default)]
pub(super) struct HardwareArgs {
    /// Memory of each QEMU machine in MiB [default: 2048 for workers, 4096 for others]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1024..))]
    memory: Option<u32>,
    /// Processors of each QEMU machine [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    cpus: Option<u8>,
    /// Disk of each QEMU machine in GiB; it takes only what is written to it [default: 20]
    #[arg(long, value_name = "GIB", value_parser = clap::value_parser!(u32).range(4..))]
    disk: Option<u32>,
    /// Firmware of QEMU machines [default: bios]
    #[arg(long)]
    firmware: Option<FirmwareArg>,
    /// What QEMU machines boot first; a machine that was installed boots from its disk [default: pxe]
    #[arg(long)]
    boot: Option<BootArg>,
    /// The ISO for `--boot iso`, or the raw image that disks are copies of for `--boot disk`
    #[arg(long, value_name = "FILE")]
    media: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FirmwareArg {
    Bios,
    Uefi,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum BootArg {
    /// Over the network
    Pxe,
    /// From the disk
    Disk,
    /// From a CD
    Iso,
}

impl HardwareArgs {
    pub(super) fn given(&self) -> bool {
        let Self { memory, cpus, disk, firmware, boot, media } = self;
        memory.is_some()
            || cpus.is_some()
            || disk.is_some()
            || firmware.is_some()
            || boot.is_some()
            || media.is_some()
    }

    pub(super) fn check(&self) -> Result<()> {
        match (self.boot, &self.media) {
            (Some(BootArg::Disk | BootArg::Iso), None) => {
                bail!("--boot disk and --boot iso need --media FILE: what is on the disk, or the ISO")
            }
            (None | Some(BootArg::Pxe), Some(_)) => bail!("--media is for --boot disk and --boot iso"),
            (_, Some(media)) if !media.is_file() => bail!("--media: {} is not a file", media.display()),
            _ => Ok(()),
        }
    }

    pub(super) fn of(&self, role: Role) -> Hardware {
        let usual = Hardware::default();
        let memory = if role == Role::Worker { usual.memory_mib } else { MASTER_MIB };
        Hardware {
            memory_mib: self.memory.unwrap_or(memory),
            cpus: self.cpus.unwrap_or(usual.cpus),
            disk_gib: self.disk.unwrap_or(usual.disk_gib),
            firmware: match self.firmware {
                Some(FirmwareArg::Uefi) => Firmware::Uefi,
                Some(FirmwareArg::Bios) | None => Firmware::Bios,
            },
            boot: match self.boot {
                Some(BootArg::Disk) => Boot::Disk,
                Some(BootArg::Iso) => Boot::Iso,
                Some(BootArg::Pxe) | None => Boot::Pxe,
            },
            media: self.media.as_ref().map(|file| std::path::absolute(file).unwrap_or_else(|_| file.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_become_hardware() {
        let args = HardwareArgs { cpus: Some(4), firmware: Some(FirmwareArg::Uefi), ..Default::default() };
        assert!(args.given() && args.check().is_ok() && !HardwareArgs::default().given());
        let (worker, master) = (args.of(Role::Worker), args.of(Role::Master));
        assert_eq!((worker.memory_mib, master.memory_mib), (2048, 4096));
        assert_eq!((worker.cpus, worker.firmware, worker.boot), (4, Firmware::Uefi, Boot::Pxe));
        let disk = HardwareArgs { boot: Some(BootArg::Disk), ..Default::default() };
        assert!(disk.check().is_err_and(|why| why.to_string().contains("--media FILE")));
        let media = HardwareArgs { media: Some("/nowhere".into()), ..Default::default() };
        assert!(media.check().is_err_and(|why| why.to_string().contains("is for --boot")));
    }
}
