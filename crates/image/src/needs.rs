//! What building an image needs of this machine, and which Debian packages bring it. Nobody who only runs labs of containers needs it.

use crate::Format;
use crate::run::{ImageError, Result};
use std::collections::BTreeSet;
use std::path::Path;

/// A program, or a file by its path, and its package.
pub(crate) type Need = (&'static str, &'static str);

pub(crate) const UNDIONLY: &str = "/usr/lib/ipxe/undionly.kpxe";
pub(crate) const IPXE_EFI: &str = "/usr/lib/ipxe/ipxe.efi";
pub(crate) const SNPONLY: &str = "/usr/lib/ipxe/snponly.efi";
pub(crate) const PXELINUX: &str = "/usr/lib/PXELINUX/pxelinux.0";
pub(crate) const LDLINUX: &str = "/usr/lib/syslinux/modules/bios/ldlinux.c32";
pub(crate) const GRUB_BIOS: &str = "/usr/lib/grub/i386-pc";
pub(crate) const GRUB_EFI: &str = "/usr/lib/grub/x86_64-efi";

pub(crate) const BOOT_IMAGE: &[Need] = &[
    ("debootstrap", "debootstrap"),
    ("dpkg-deb", "dpkg"),
    ("mksquashfs", "squashfs-tools"),
    ("grub-mkimage", "grub-common"),
    (GRUB_BIOS, "grub-pc-bin"),
    (GRUB_EFI, "grub-efi-amd64-bin"),
    (UNDIONLY, "ipxe"),
    (IPXE_EFI, "ipxe"),
    (PXELINUX, "pxelinux"),
    (LDLINUX, "syslinux-common"),
];
pub(crate) const DISK: &[Need] =
    &[("sfdisk", "fdisk"), ("mkfs.ext4", "e2fsprogs"), ("mkfs.vfat", "dosfstools"), ("mcopy", "mtools")];
pub(crate) const QCOW2: &[Need] = &[("qemu-img", "qemu-utils")];
pub(crate) const ISO: &[Need] =
    &[("grub-mkrescue", "grub-common"), ("xorriso", "xorriso"), ("mformat", "mtools")];

/// Of a whole build, the boot image included.
pub(crate) fn of(format: Format) -> Vec<Need> {
    let more = match format {
        Format::Netboot => vec![],
        Format::Raw => DISK.to_vec(),
        Format::Qcow2 => [DISK, QCOW2].concat(),
        Format::Iso => ISO.to_vec(),
    };
    [BOOT_IMAGE.to_vec(), more].concat()
}

/// Fails with one command that installs all that is missing.
pub(crate) fn check(needs: &[Need]) -> Result<()> {
    missing(needs, |need| match need.starts_with('/') {
        true => Path::new(need).exists(),
        false => in_path(need),
    })
}

fn in_path(program: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    path.split(':').any(|folder| Path::new(folder).join(program).is_file())
}

fn missing(needs: &[Need], there: impl Fn(&str) -> bool) -> Result<()> {
    let missing: Vec<_> = needs.iter().filter(|(need, _)| !there(need)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let packages: BTreeSet<_> = missing.iter().map(|(_, package)| package.to_string()).collect();
    Err(ImageError::Missing {
        what: missing.iter().map(|(need, _)| need.to_string()).collect(),
        packages: packages.into_iter().collect(),
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_missing_is_named_at_once() {
        assert!(missing(BOOT_IMAGE, |_| true).is_ok());
        let error = missing(BOOT_IMAGE, |need| !need.contains("ipxe") && need != "mksquashfs").unwrap_err();
        assert_eq!(
            error.to_string(),
            "missing on this machine: mksquashfs, /usr/lib/ipxe/undionly.kpxe, /usr/lib/ipxe/ipxe.efi; \
             run `apt install ipxe squashfs-tools`"
        );
        assert!(in_path("sh") && !in_path("no-such-program"));
        let error =
            missing(&of(Format::Iso), |need| !["debootstrap", "xorriso"].contains(&need)).unwrap_err();
        assert!(error.to_string().ends_with("run `apt install debootstrap xorriso`"), "{error}");
    }

    /// The script that tests use to install what is missing knows every package.
    #[test]
    fn the_script_installs_them() {
        let script = include_str!("../../../scripts/qemu.sh");
        for (need, package) in [Format::Qcow2, Format::Iso].into_iter().flat_map(of) {
            let known = script.split([' ', '\n', '(', ')']).any(|word| word == package);
            assert!(known || package == "dpkg", "{need}: {package}");
        }
    }
}
