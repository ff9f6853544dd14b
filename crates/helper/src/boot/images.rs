//! `seedling helper images add`: the files of a live image of Fedora CoreOS or RHCOS, under the names that network boot serves, and the
//! boot loaders of this machine's packages beside them.

use super::script::{INITRAMFS, KERNEL, ROOTFS, ROOTFS_IMG};
use crate::HelperError;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Where Debian has them, and the package.
const LOADERS: &[(&str, &str, &str)] = &[
    ("undionly.kpxe", "/usr/lib/ipxe/undionly.kpxe", "ipxe"),
    ("ipxe.efi", "/usr/lib/ipxe/ipxe.efi", "ipxe"),
    ("snponly.efi", "/usr/lib/ipxe/snponly.efi", "ipxe"),
    ("pxelinux.0", "/usr/lib/PXELINUX/pxelinux.0", "pxelinux"),
    ("ldlinux.c32", "/usr/lib/syslinux/modules/bios/ldlinux.c32", "syslinux-common"),
];
/// Without them nothing boots.
const NEEDED: &[&str] = &["undionly.kpxe", "ipxe.efi"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Kernel,
    Initramfs,
    /// A squashfs, or CoreOS's archive that holds one.
    Rootfs,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Part::Kernel => "a Linux kernel",
            Part::Initramfs => "an initramfs",
            Part::Rootfs => "a root file system for booting live",
        }
    }

    /// The first bytes tell what a file is: three files are easily given in the wrong order. Pure.
    fn accepts(self, head: &[u8]) -> bool {
        let starts = |magic: &[u8]| head.starts_with(magic);
        let kernel = head.get(0x202..0x206) == Some(b"HdrS");
        let squashfs = starts(b"hsqs");
        let packed = starts(b"\x1f\x8b") || starts(b"\x28\xb5\x2f\xfd") || starts(b"\xfd7zXZ");
        let archive = starts(b"070701") || starts(b"070702") || packed;
        match self {
            Part::Kernel => kernel,
            Part::Initramfs => archive && !kernel,
            Part::Rootfs => squashfs || archive,
        }
    }
}

/// What became of it: the files that are there now, and the boot loaders that are not.
pub struct Added {
    pub files: Vec<String>,
    /// Package and file.
    pub missing: Vec<(&'static str, &'static str)>,
}

/// Nothing is written unless all three are what they should be; each file appears whole.
pub fn add(dir: &Path, kernel: &Path, initramfs: &Path, rootfs: &Path) -> Result<Added, HelperError> {
    let parts = [(Part::Kernel, kernel), (Part::Initramfs, initramfs), (Part::Rootfs, rootfs)];
    let heads: Result<Vec<_>, _> = parts.iter().map(|(part, path)| head(*part, path)).collect();
    let is_squashfs = heads?.last().is_some_and(|head| head.starts_with(b"hsqs"));
    let (root, other) = if is_squashfs { (ROOTFS, ROOTFS_IMG) } else { (ROOTFS_IMG, ROOTFS) };
    fs::create_dir_all(dir).map_err(|source| HelperError::Write { path: dir.into(), source })?;
    let mut files = Vec::new();
    for (from, name) in [(kernel, KERNEL), (initramfs, INITRAMFS), (rootfs, root)] {
        copy(from, &dir.join(name))?;
        files.push(name.to_string());
    }
    // Of an image that was here before.
    let _ = fs::remove_file(dir.join(other));
    let mut missing = Vec::new();
    for (name, from, package) in LOADERS {
        let to = dir.join(name);
        match Path::new(from).is_file() {
            true => {
                copy(Path::new(from), &to)?;
                files.push((*name).into());
            }
            false if NEEDED.contains(name) && !to.exists() => missing.push((*package, *name)),
            false => {}
        }
    }
    Ok(Added { files, missing })
}

fn head(part: Part, path: &Path) -> Result<Vec<u8>, HelperError> {
    let fail = |message: String| HelperError::Config { path: path.into(), message };
    let mut head = Vec::new();
    let file = File::open(path).map_err(|e| fail(e.to_string()))?;
    file.take(0x400).read_to_end(&mut head).map_err(|e| fail(e.to_string()))?;
    match part.accepts(&head) {
        true => Ok(head),
        false => {
            Err(fail(format!("this is not {}; give KERNEL INITRAMFS ROOTFS in this order", part.name())))
        }
    }
}

fn copy(from: &Path, to: &Path) -> Result<(), HelperError> {
    let mut partial = to.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let copied = fs::copy(from, &partial).and_then(|_| fs::rename(&partial, to));
    copied.map_err(|source| {
        let _ = fs::remove_file(&partial);
        HelperError::Write { path: to.into(), source }
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn files_in_the_wrong_order_change_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            path
        };
        let mut kernel = vec![0; 0x300];
        kernel[0x202..0x206].copy_from_slice(b"HdrS");
        let kernel = write("k", &kernel);
        let (initramfs, squashfs, archive) =
            (write("i", b"\x28\xb5\x2f\xfd.."), write("s", b"hsqs...."), write("a", b"070701..."));
        let to = folder.path().join("boot");
        for wrong in [
            [&initramfs, &kernel, &squashfs],
            [&kernel, &squashfs, &initramfs],
            [&kernel, &kernel, &squashfs],
        ] {
            let error = add(&to, wrong[0], wrong[1], wrong[2]).err().unwrap().to_string();
            assert!(error.contains("in this order"), "{error}");
            assert!(!to.exists(), "{error}");
        }
        assert!(add(&to, &kernel, &initramfs, &archive).unwrap().files.contains(&"rootfs.img".to_string()));
        let added = add(&to, &kernel, &initramfs, &squashfs).unwrap();
        assert!(added.files.contains(&"rootfs.squashfs".to_string()));
        assert!(!to.join("rootfs.img").exists(), "of the image before");
        assert_eq!(fs::read(to.join("initramfs.img")).unwrap(), b"\x28\xb5\x2f\xfd..");
        assert!(
            fs::read_dir(&to).unwrap().all(|f| !f.unwrap().path().to_string_lossy().ends_with("partial"))
        );
    }
}
