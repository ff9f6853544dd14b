//! The boot image: what a real machine boots over the network, from a CD or from its disk. Kernel, initramfs, root file system, and the
//! boot loaders that fetch them.
//!
//! In: the recipe. Out: a folder named after the hash of its inputs with `vmlinuz`, `initramfs.img`, `rootfs.squashfs`, `undionly.kpxe`,
//! `ipxe.efi`, `pxelinux.0`, `ldlinux.c32`, and `snponly.efi` where there is one. The root file system has in /usr/lib/seedling what the
//! installer puts on a disk.

mod cpio;
pub(crate) mod grub;
mod initramfs;
mod modules;

use crate::debian::Workshop;
use crate::furnish::{furnish, put};
use crate::needs::{BOOT_IMAGE, IPXE_EFI, LDLINUX, PXELINUX, SNPONLY, UNDIONLY, check};
use crate::recipe::{DISK_CFG, DISK_LAYOUT, Kind};
use crate::run::{Progress, Result, at, finish, remove_tree, run, unusable};
use std::fs;
use std::path::{Path, PathBuf};
use tokio::process::Command;

pub const KERNEL: &str = "vmlinuz";
pub const INITRAMFS: &str = "initramfs.img";
pub const ROOT: &str = "rootfs.squashfs";
/// Of the root file system: what the installer puts on a disk.
pub(crate) const DISK_FILES: &str = "usr/lib/seedling";
/// The time of everything that has one: the same inputs give the same bytes.
pub(crate) const TIME: &str = "1700000000";

/// Where the image for this program is, or will be.
pub fn path(cache: &Path) -> PathBuf {
    cache.join("boot-image").join(Kind::Machine.hash())
}

/// Makes the image unless it is there. Safe to call from several processes at once, and after one that was killed.
pub async fn ensure(cache: &Path, progress: Progress<'_>) -> Result<PathBuf> {
    let image = path(cache);
    if image.exists() {
        return Ok(image);
    }
    check(BOOT_IMAGE)?;
    let workshop = Workshop::enter(cache, progress).await?;
    if image.exists() {
        return Ok(image); // made while we waited
    }
    let (bench, out) = (workshop.bench()?, cache.join("boot-image/.building"));
    let (root, kernel) = (bench.join("root"), bench.join("kernel"));
    remove_tree(&out)?;
    for folder in [&bench, &out] {
        at(folder, fs::create_dir_all(folder))?;
    }
    workshop.unpack(Kind::Machine, &root, progress).await?;
    furnish(&root, Kind::Machine)?;
    workshop.kernel(&bench, &kernel, progress).await?;
    let version = add_modules(&kernel, &root).await?;
    progress("boot image: kernel, initramfs, boot loaders");
    let (vmlinuz, initramfs) = (out.join(KERNEL), out.join(INITRAMFS));
    copy(&kernel.join(format!("boot/vmlinuz-{version}")), &vmlinuz)?;
    write_initramfs(&root, &version, &initramfs).await?;
    add_disk_files(&root, &vmlinuz, &initramfs).await?;
    for (from, name) in loaders() {
        copy(Path::new(from), &out.join(name))?;
    }
    progress("boot image: packing the root file system");
    pack(&root, &out.join(ROOT)).await?;
    at(&image, fs::rename(&out, &image))?;
    remove_tree(&bench)?;
    progress("boot image ready");
    Ok(image)
}

/// The modules of the one kernel there is, but for those that no node has a use for, with depmod's lists. Returns its version.
async fn add_modules(kernel: &Path, root: &Path) -> Result<String> {
    let modules = kernel.join("lib/modules");
    let mut versions = at(&modules, fs::read_dir(&modules))?.filter_map(|entry| entry.ok());
    let Some(version) = versions.next().map(|entry| entry.file_name().to_string_lossy().into_owned()) else {
        return Err(unusable(&modules, "the kernel has no modules"));
    };
    let to = root.join("usr/lib/modules").join(&version);
    at(&to, fs::rename(modules.join(&version), &to))?;
    for path in modules::LEFT_OUT {
        remove_tree(&to.join("kernel").join(path))?;
    }
    // The image's own depmod: this machine may have none, or a newer one.
    run("chroot", [root.as_os_str(), "depmod".as_ref(), version.as_ref()]).await?;
    Ok(version)
}

async fn write_initramfs(root: &Path, version: &str, to: &Path) -> Result<()> {
    let (root, version) = (root.to_path_buf(), version.to_string());
    let made = tokio::task::spawn_blocking(move || initramfs::make(&root, &version)).await;
    let bytes = at(to, made.map_err(std::io::Error::other))??;
    at(to, fs::write(to, bytes))
}

async fn add_disk_files(root: &Path, vmlinuz: &Path, initramfs: &Path) -> Result<()> {
    let folder = root.join(DISK_FILES);
    at(&folder, fs::create_dir_all(&folder))?;
    copy(vmlinuz, &folder.join(KERNEL))?;
    copy(initramfs, &folder.join(INITRAMFS))?;
    put(&folder.join("disk.cfg"), DISK_CFG.as_bytes(), 0o644)?;
    put(&folder.join("disk-layout.sfdisk"), DISK_LAYOUT.as_bytes(), 0o644)?;
    grub::make(&folder).await
}

/// Boot loaders for the network, and their names for those who ask.
fn loaders() -> Vec<(&'static str, &'static str)> {
    let snponly = Path::new(SNPONLY).exists().then_some((SNPONLY, "snponly.efi"));
    [(UNDIONLY, "undionly.kpxe"), (IPXE_EFI, "ipxe.efi"), (PXELINUX, "pxelinux.0"), (LDLINUX, "ldlinux.c32")]
        .into_iter()
        .chain(snponly)
        .collect()
}

/// zstd: a small machine unpacks it quickly.
async fn pack(root: &Path, to: &Path) -> Result<()> {
    let mut command = Command::new("mksquashfs");
    command.arg(root).arg(to);
    command.args([
        "-noappend",
        "-quiet",
        "-no-progress",
        "-comp",
        "zstd",
        "-Xcompression-level",
        "9",
        "-b",
        "256K",
    ]);
    command.args(["-all-time", TIME, "-mkfs-time", TIME]).env_remove("SOURCE_DATE_EPOCH");
    finish(command).await.map(drop)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    at(from, fs::copy(from, to)).map(drop)
}
