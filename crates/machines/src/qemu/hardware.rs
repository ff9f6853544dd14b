//! What a QEMU machine is made of, and QEMU's arguments for it. Pure.

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hardware {
    pub memory_mib: u32,
    pub cpus: u8,
    pub disk_gib: u32,
    #[serde(default)]
    pub firmware: Firmware,
    #[serde(default)]
    pub boot: Boot,
    /// The ISO, or the raw image that its disk is a copy of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media: Option<PathBuf>,
}

/// A small worker.
impl Default for Hardware {
    fn default() -> Self {
        Self {
            memory_mib: 2048,
            cpus: 2,
            disk_gib: 20,
            firmware: Firmware::Bios,
            boot: Boot::Pxe,
            media: None,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Firmware {
    #[default]
    Bios,
    Uefi,
}

/// What the firmware tries first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Boot {
    /// The network, then the disk.
    #[default]
    Pxe,
    Disk,
    Iso,
}

/// Who runs the guest's instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Acceleration {
    Kvm,
    /// QEMU itself, many times slower.
    Emulation,
}

impl Acceleration {
    pub(crate) fn arguments(self) -> [&'static str; 4] {
        match self {
            Acceleration::Kvm => ["-accel", "kvm", "-cpu", "host"],
            Acceleration::Emulation => ["-accel", "tcg,thread=multi", "-cpu", "max"],
        }
    }
}

pub(super) const OVMF_CODE: &str = "/usr/share/OVMF/OVMF_CODE_4M.fd";
pub(super) const OVMF_VARS: &str = "/usr/share/OVMF/OVMF_VARS_4M.fd";

/// Files of a machine, in its directory.
pub(crate) const DISK: &str = "disk.raw";
pub(crate) const VARS: &str = "firmware.vars";
pub(crate) const QMP: &str = "qmp.sock";
pub(crate) const PID: &str = "qemu.pid";

/// `port` is the tap. QEMU starts as root, opens all of this and is nobody afterwards; it can start no program.
pub(crate) fn arguments(
    name: &str,
    mac: &str,
    port: &str,
    dir: &Path,
    hardware: &Hardware,
    acceleration: Acceleration,
) -> Vec<String> {
    let file = |name: &str| dir.join(name).display().to_string().replace(',', ",,");
    let mut words: Vec<String> = vec!["-name".into(), name.into()];
    let mut add = |line: &[&str]| words.extend(line.iter().map(ToString::to_string));
    // Without graphics the firmware, and with it iPXE, speaks on the serial console.
    add(&["-nodefaults", "-no-user-config", "-machine", "q35,graphics=off", "-display", "none"]);
    add(&acceleration.arguments());
    add(&["-m", &hardware.memory_mib.to_string(), "-smp", &hardware.cpus.to_string()]);
    add(&["-chardev", &format!("file,id=console,append=on,path={}", file("console.log"))]);
    add(&["-serial", "chardev:console"]);
    add(&["-qmp", &format!("unix:{},server=on,wait=off", file(QMP)), "-pidfile", &file(PID)]);
    if hardware.firmware == Firmware::Uefi {
        add(&["-drive", &format!("if=pflash,format=raw,unit=0,readonly=on,file={OVMF_CODE}")]);
        add(&["-drive", &format!("if=pflash,format=raw,unit=1,file={}", file(VARS))]);
    }
    let (network, disk) = if hardware.boot == Boot::Pxe { (1, 2) } else { (3, 2) };
    add(&["-netdev", &format!("tap,id=lan,ifname={port},script=no,downscript=no")]);
    add(&["-device", &format!("virtio-net-pci,netdev=lan,mac={mac},bootindex={network}")]);
    add(&["-drive", &format!("if=none,id=disk,format=raw,discard=unmap,file={}", file(DISK))]);
    add(&["-device", &format!("virtio-blk-pci,drive=disk,bootindex={disk}")]);
    if let (Boot::Iso, Some(media)) = (hardware.boot, &hardware.media) {
        let media = media.display().to_string().replace(',', ",,");
        add(&["-drive", &format!("if=none,id=media,format=raw,readonly=on,media=cdrom,file={media}")]);
        add(&["-device", "ide-cd,drive=media,bootindex=1"]);
    }
    add(&["-device", "virtio-rng-pci"]);
    add(&["-sandbox", "on,obsolete=deny,spawn=deny,resourcecontrol=deny", "-runas", "nobody"]);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(hardware: &Hardware, acceleration: Acceleration) -> String {
        let mac = "52:54:00:5e:ed:1b";
        arguments(
            "a/worker-0",
            mac,
            "v-worker-0",
            Path::new("/labs/a/nodes/worker-0"),
            hardware,
            acceleration,
        )
        .join(" ")
    }

    /// What is asked for, what QEMU is told, and what it is not.
    #[test]
    fn hardware_becomes_arguments() {
        let usual = Hardware::default;
        let iso = Some(PathBuf::from("/isos/a,b.iso"));
        let table = [
            (usual(), vec!["-m 2048 -smp 2", "mac=52:54:00:5e:ed:1b,bootindex=1", "drive=disk,bootindex=2"]),
            (usual(), vec!["ifname=v-worker-0,script=no", "file=/labs/a/nodes/worker-0/disk.raw"]),
            (usual(), vec!["-sandbox on,", "-runas nobody", "-accel tcg,thread=multi -cpu max"]),
            (usual(), vec!["append=on,path=/labs/a/nodes/worker-0/console.log", "graphics=off"]),
            (Hardware { memory_mib: 4096, cpus: 4, ..usual() }, vec!["-m 4096 -smp 4"]),
            (Hardware { firmware: Firmware::Uefi, ..usual() }, vec![OVMF_CODE, "unit=1,file=/labs/a/nodes/"]),
            (Hardware { boot: Boot::Disk, ..usual() }, vec!["ed:1b,bootindex=3", "drive=disk,bootindex=2"]),
            (
                Hardware { boot: Boot::Iso, media: iso, ..usual() },
                vec!["file=/isos/a,,b.iso", "drive=media,bootindex=1", "ed:1b,bootindex=3"],
            ),
        ];
        for (hardware, wanted) in table {
            let line = line(&hardware, Acceleration::Emulation);
            for words in wanted {
                assert!(line.contains(words), "{words}: {line}");
            }
            assert_eq!(line.contains("pflash"), hardware.firmware == Firmware::Uefi, "{line}");
            assert_eq!(line.contains("ide-cd"), hardware.boot == Boot::Iso, "{line}");
        }
        assert!(line(&usual(), Acceleration::Kvm).contains("-accel kvm -cpu host"));
    }

    #[test]
    fn short_files_are_enough() {
        let read: Result<Hardware, _> = serde_json::from_str(r#"{"memoryMib":2048,"cpus":2,"diskGib":20}"#);
        assert_eq!(read.ok(), Some(Hardware::default()));
    }
}
