//! What a machine that boots over the network is given: its kernel's arguments, a script for iPXE, a menu for PXELINUX. Pure.

use seedling_types::boot::Next;
use seedling_types::helper::{BootConfig, ImageKind};
use seedling_types::{HelperConfig, Host, ports};
use std::net::SocketAddr;

pub const KERNEL: &str = "vmlinuz";
pub const INITRAMFS: &str = "initramfs.img";
/// Of CoreOS, as it is called there; if it is not in the folder, the other one is meant.
pub const ROOTFS_IMG: &str = "rootfs.img";
pub const ROOTFS: &str = "rootfs.squashfs";
/// Boots live, and leaves the disks alone.
pub const NO_DEVICE: &str = "none";

/// One machine's boot.
pub struct Boot<'a> {
    pub config: &'a HelperConfig,
    pub boot: &'a BootConfig,
    pub host: &'a Host,
    /// Which of the two names the root file system has.
    pub rootfs: &'a str,
}

impl Boot<'_> {
    fn base(&self) -> String {
        format!("http://{}", SocketAddr::new(self.config.address, ports::HELPER_HTTP))
    }

    pub fn arguments(&self) -> Vec<String> {
        let (base, mac) = (self.base(), &self.host.mac);
        let rootfs = format!("{base}/boot/{}", self.rootfs);
        let ignition = format!("{base}/ign/{mac}");
        let device = Some(self.boot.device(&self.host.name)).filter(|device| *device != NO_DEVICE);
        let live = ["ignition.firstboot", "ignition.platform.id=metal"].map(String::from);
        let mut all = vec!["ip=dhcp".to_string()];
        match self.boot.kind {
            ImageKind::Seedling => {
                all.push("net.ifnames=0".into());
                all.push(format!("BOOTIF=01-{}", dashes(mac)));
                all.extend(["console=tty0", "console=ttyS0,115200"].map(String::from));
                all.push(format!("seedling.rootfs_url={rootfs}"));
                all.extend(live);
                all.push(format!("ignition.config.url={ignition}"));
                if let Some(device) = device {
                    all.push(format!("seedling.install_dev={device}"));
                    all.push(format!("seedling.report_url={base}/boot/report/{mac}"));
                }
            }
            ImageKind::Coreos => {
                all.push("rd.neednet=1".into());
                all.push(format!("coreos.live.rootfs_url={rootfs}"));
                match device {
                    Some(device) => {
                        all.push(format!("coreos.inst.install_dev={device}"));
                        all.push(format!("coreos.inst.ignition_url={ignition}"));
                    }
                    None => {
                        all.extend(live);
                        all.push(format!("ignition.config.url={ignition}"));
                    }
                }
            }
        }
        all.extend(self.boot.arguments.iter().cloned());
        all
    }

    /// For iPXE.
    pub fn script(&self, next: Next) -> String {
        let (base, name, mac) = (self.base(), &self.host.name, &self.host.mac);
        match next {
            // After `exit 0` UEFI shows its menu; after an error it goes on to the next device.
            Next::Disk => format!(
                "#!ipxe\necho {name} boots from its disk\niseq ${{platform}} efi && exit 1 ||\n\
                 sanboot --no-describe --drive 0x80 ||\nexit 1\n"
            ),
            Next::Install => format!(
                "#!ipxe\necho {name} boots {KERNEL} from {base}\n\
                 kernel {base}/boot/{KERNEL} initrd={INITRAMFS} {} || goto again\n\
                 initrd --name {INITRAMFS} {base}/boot/{INITRAMFS} || goto again\n\
                 boot || goto again\n\
                 :again\necho this did not work; once more in 10 seconds\nsleep 10\n\
                 chain --replace {base}/boot/ipxe/{mac} || goto again\n",
                self.arguments().join(" ")
            ),
        }
    }

    /// For PXELINUX.
    pub fn menu(&self, next: Next) -> String {
        let name = &self.host.name;
        let entry = match next {
            Next::Disk => "LOCALBOOT 0".to_string(),
            Next::Install => {
                format!("KERNEL {KERNEL}\n  INITRD {INITRAMFS}\n  APPEND {}", self.arguments().join(" "))
            }
        };
        format!("DEFAULT {name}\nPROMPT 0\nTIMEOUT 0\nLABEL {name}\n  {entry}\n")
    }
}

pub fn dashes(mac: &str) -> String {
    mac.replace(':', "-")
}

/// The machine's MAC address in the name of its menu.
pub fn menu_of(file: &str) -> Option<String> {
    Some(file.strip_prefix("pxelinux.cfg/01-")?.replace('-', ":"))
}

/// CoreOS's installer wants a disk by its name.
pub fn problems(boot: &BootConfig) -> Vec<String> {
    let mut problems = Vec::new();
    let names = std::iter::once(("boot.installDevice".to_string(), &boot.install_device)).chain(
        boot.install_devices.iter().map(|(host, device)| (format!("boot.installDevices.{host}"), device)),
    );
    for (field, device) in names {
        if boot.kind == ImageKind::Coreos && device == "auto" {
            problems.push(format!(
                "{field}: CoreOS's installer takes no `auto`; name the disk, such as /dev/sda"
            ));
        }
        if device.is_empty() || device.contains(char::is_whitespace) {
            problems.push(format!(
                "{field}: {device:?} is no name of a disk; write it like /dev/sda, auto or none"
            ));
        }
    }
    if let Some(bad) = boot.arguments.iter().find(|text| text.contains(char::is_control)) {
        problems.push(format!("boot.arguments: {bad:?} is more than one line"));
    }
    problems
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
#[path = "script_tests.rs"]
mod tests;
