//! What an image is made of: Debian's packages, our files, the units that are switched off. One recipe with two outcomes: what a lab's
//! container boots, and what a real machine boots. Everything is `node/` of the source tree, built into this binary.

use sha2::{Digest, Sha256};

pub(crate) const SUITE: &str = "bookworm";
/// Counted up when the steps change what they make of the same inputs.
const RECIPE: u32 = 4;
const PACKAGES: &str = include_str!("../../../node/packages.txt");
const PACKAGES_MACHINE: &str = include_str!("../../../node/packages-machine.txt");
const MASKED: &str = include_str!("../../../node/masked-units.txt");
const MASKED_LAB: &str = include_str!("../../../node/masked-units-lab.txt");
/// Taken out of its package: see packages-machine.txt.
pub(crate) const KERNEL: &str = "linux-image-amd64";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Shares the kernel of the machine below.
    Lab,
    /// Has devices, a kernel and a disk of its own.
    Machine,
}

pub(crate) struct Overlay {
    pub path: &'static str,
    pub mode: u32,
    pub contents: &'static str,
}

macro_rules! overlay {
    ($folder:literal: $($mode:literal $path:literal),* $(,)?) => {
        &[$(Overlay { path: $path, mode: $mode, contents: include_str!(concat!("../../../node/", $folder, "/", $path)) }),*]
    };
}

const ROOTFS: &[Overlay] = overlay!["rootfs":
    0o644 "etc/hostname",
    0o644 "etc/hosts",
    0o644 "etc/machine-id",
    0o644 "etc/resolv.conf",
    0o644 "etc/selinux/config",
    0o644 "etc/ssh/sshd_config.d/10-node.conf",
    0o440 "etc/sudoers.d/10-node",
    0o644 "usr/lib/systemd/journald.conf.d/10-node.conf",
    0o644 "usr/lib/systemd/system-preset/99-default-disable.preset",
    0o644 "usr/lib/systemd/system/lab-dhcp.service",
    0o644 "usr/lib/systemd/system/multi-user.target.d/10-lab.conf",
    0o644 "usr/lib/systemd/system/ssh.service.d/10-node.conf",
    0o644 "usr/local/lib/seedling/boot.sh",
    0o755 "usr/local/sbin/dhclient6-script",
    0o755 "usr/local/sbin/preinit",
    0o755 "usr/local/sbin/setfiles",
    0o755 "usr/local/sbin/udhcpc-script",
];
const ROOTFS_LAB: &[Overlay] = overlay!["rootfs-lab":
    0o644 "etc/containerd/conf.d/10-lab.toml",
    0o644 "etc/ssh/sshd_config.d/05-lab.conf",
    0o644 "usr/lib/systemd/journald.conf.d/20-lab.conf",
];
const ROOTFS_MACHINE: &[Overlay] = overlay!["rootfs-machine":
    0o644 "etc/systemd/network/99-default.link",
    0o755 "usr/local/sbin/seedling-grow",
    0o755 "usr/local/sbin/seedling-install",
];

/// What a machine puts on its disk, besides kernel, initramfs and GRUB, which are made here.
pub(crate) const DISK_CFG: &str = include_str!("../../../node/grub/disk.cfg");
pub(crate) const MEDIUM_CFG: &str = include_str!("../../../node/grub/medium.cfg");
pub(crate) const DISK_LAYOUT: &str = include_str!("../../../node/disk-layout.sfdisk");
pub(crate) const INIT: &str = include_str!("../../../node/initramfs/init");

impl Kind {
    pub(crate) fn packages(self) -> Vec<&'static str> {
        let own = match self {
            Kind::Lab => "",
            Kind::Machine => PACKAGES_MACHINE,
        };
        lines(PACKAGES).chain(lines(own)).collect()
    }

    pub(crate) fn files(self) -> impl Iterator<Item = &'static Overlay> {
        let own = match self {
            Kind::Lab => ROOTFS_LAB,
            Kind::Machine => ROOTFS_MACHINE,
        };
        ROOTFS.iter().chain(own)
    }

    /// Links in /etc/systemd/system, or below it, that lead to nothing.
    pub(crate) fn masked(self) -> Vec<String> {
        let own = match self {
            Kind::Lab => MASKED_LAB,
            Kind::Machine => "",
        };
        let units = lines(MASKED).chain(lines(own)).map(|unit| format!("etc/systemd/system/{unit}"));
        // It would mount partitions of the disk that the initramfs has found already.
        let generator = "etc/systemd/system-generators/systemd-gpt-auto-generator".to_string();
        units.chain((self == Kind::Machine).then_some(generator)).collect()
    }

    /// Names Debian's part of the image.
    pub(crate) fn debian_hash(self) -> String {
        hash_of(&format!("{SUITE} {}", self.packages().join(",")))
    }

    /// Names the image.
    pub(crate) fn hash(self) -> String {
        let files = self.files().map(|f| format!("{} {:o} {}\0", f.path, f.mode, f.contents));
        let (debian, masked) = (self.debian_hash(), self.masked().join(" "));
        let own = match self {
            Kind::Lab => String::new(),
            Kind::Machine => [KERNEL, DISK_CFG, MEDIUM_CFG, DISK_LAYOUT, INIT].join("\0"),
        };
        hash_of(&format!("{RECIPE}\0{debian}\0{masked}\0{}\0{own}", files.collect::<String>()))
    }
}

pub(crate) fn hash_of(input: &str) -> String {
    Sha256::digest(input).iter().take(8).map(|b| format!("{b:02x}")).collect()
}

/// A file of the recipe, for what is made of more than one of them.
pub(crate) fn text_of(path: &str) -> &'static str {
    ROOTFS.iter().find(|file| file.path == path).map_or("", |file| file.contents)
}

fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    /// A file added to a folder and forgotten in its table would silently not be in the image.
    #[test]
    fn the_tables_list_the_whole_folders() {
        for (folder, table) in
            [("rootfs", ROOTFS), ("rootfs-lab", ROOTFS_LAB), ("rootfs-machine", ROOTFS_MACHINE)]
        {
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../node").join(folder);
            let mut found = Vec::new();
            let mut folders = vec![root.clone()];
            while let Some(folder) = folders.pop() {
                for entry in fs::read_dir(folder).unwrap() {
                    let path = entry.unwrap().path();
                    if path.is_dir() {
                        folders.push(path);
                    } else {
                        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o111;
                        found.push((path.strip_prefix(&root).unwrap().display().to_string(), mode != 0));
                    }
                }
            }
            found.sort();
            let listed: Vec<_> = table.iter().map(|f| (f.path.to_string(), f.mode & 0o111 != 0)).collect();
            assert_eq!(found, listed, "{folder}");
        }
    }

    #[test]
    fn two_images_of_one_recipe() {
        let (lab, machine) = (Kind::Lab, Kind::Machine);
        for package in lab.packages() {
            assert!(machine.packages().contains(&package), "{package}: the package list is the lab's");
        }
        assert!(!lab.packages().contains(&"udev") && machine.packages().contains(&"udev"));
        let udev = "etc/systemd/system/systemd-udevd.service".to_string();
        assert!(lab.masked().contains(&udev) && !machine.masked().contains(&udev));
        assert!(!machine.files().any(|file| file.path.contains("10-lab.toml")));
        assert_ne!(lab.hash(), machine.hash());
        assert!(!text_of("usr/local/lib/seedling/boot.sh").is_empty());
    }

    /// sudo ignores a file that others could write, and refuses one with a mistake.
    #[test]
    fn sudo_takes_its_file() {
        let file = Kind::Lab.files().find(|file| file.path.starts_with("etc/sudoers.d")).unwrap();
        assert_eq!(file.mode, 0o440);
        assert!(
            !file.path.contains('.') || file.path.starts_with("etc/sudoers.d/10-"),
            "a dot would hide it"
        );
    }
}
