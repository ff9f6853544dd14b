//! A disk image: what the installer makes of a disk, made here without one. Written to a disk or given to a virtual machine, it boots, runs
//! Ignition once, and takes the rest of the disk.
//!
//! In: the boot image, an Ignition config or none, kernel arguments. Out: one sparse file. Neither loop devices nor mounts: every tool
//! is told where in the file its partition begins.

pub(crate) mod layout;

use crate::boot::{INITRAMFS, KERNEL, ROOT, TIME, grub};
use crate::furnish::put;
use crate::recipe::DISK_CFG;
use crate::run::{Progress, Result, at, finish, remove_tree, run, unusable};
use crate::{Contents, arguments_cfg};
use layout::{Partition, SECTOR, partitions, script, uuid};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// Room for the boot partition and a root partition to start from; the first boot takes the rest of the disk.
const SIZE: u64 = 3 << 30;
/// The code at the disk's beginning; behind it is the partition table.
const BOOT_CODE: usize = 440;

/// Writes `out`, whole or not at all.
pub(crate) async fn raw(image: &Path, contents: &Contents, out: &Path, progress: Progress<'_>) -> Result<()> {
    let (making, work) = (out.with_extension("making"), out.with_extension("work"));
    remove_tree(&making)?;
    remove_tree(&work)?;
    at(&work, fs::create_dir_all(&work))?;
    progress("disk image: partitions and file systems");
    let seed = seed(image, contents);
    let disk = SIZE / SECTOR;
    let file = at(&making, File::create(&making))?;
    at(&making, file.set_len(SIZE))?;
    // It may carry secrets.
    at(&making, file.set_permissions(fs::Permissions::from_mode(0o600)))?;
    partition(&making, &script(disk, &seed)).await?;
    let loaders = work.join("loaders");
    at(&loaders, fs::create_dir_all(&loaders))?;
    grub::make(&loaders).await?;
    for part in partitions(disk) {
        match part.name {
            "bios" => write_at(&making, &read(&loaders.join(grub::CORE))?, part.offset())?,
            "esp" => esp(&making, &part, &loaders.join(grub::EFI), &work, &seed).await?,
            "boot" => {
                let folder = work.join("boot");
                boot_files(image, contents, &uuid(&seed, "root"), &folder)?;
                ext4(&making, &part, &seed, Some(&folder)).await?;
            }
            _ => ext4(&making, &part, &seed, None).await?,
        }
    }
    let code = read(&loaders.join(grub::BOOT))?;
    write_at(&making, code.get(..BOOT_CODE).unwrap_or_default(), 0)?;
    remove_tree(&work)?;
    at(out, fs::rename(&making, out))
}

/// The same in QEMU's own form.
pub(crate) async fn qcow2(
    image: &Path,
    contents: &Contents,
    out: &Path,
    progress: Progress<'_>,
) -> Result<()> {
    let (plain, making) = (out.with_extension("raw-part"), out.with_extension("making-qcow2"));
    raw(image, contents, &plain, progress).await?;
    progress("disk image: as qcow2");
    let arguments = ["convert", "-f", "raw", "-O", "qcow2"];
    let files = [plain.as_os_str(), making.as_os_str()];
    run("qemu-img", arguments.iter().map(AsRef::as_ref).chain(files)).await?;
    at(&making, fs::set_permissions(&making, fs::Permissions::from_mode(0o600)))?;
    remove_tree(&plain)?;
    at(out, fs::rename(&making, out))
}

/// The same boot image with the same contents is the same disk.
fn seed(image: &Path, contents: &Contents) -> String {
    let name = image.file_name().unwrap_or_default().to_string_lossy();
    let config = contents.ignition.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
    format!("{name}\0{config}\0{}", contents.arguments.join(" "))
}

async fn partition(image: &Path, script: &str) -> Result<()> {
    let mut command = Command::new("sfdisk");
    command.arg("--quiet").arg(image).env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = at(image, command.spawn())?;
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(script.as_bytes()).await; // its own words are better than our EPIPE
    }
    let said = at(image, child.wait_with_output().await)?;
    match said.status.success() {
        true => Ok(()),
        false => Err(unusable(image, format!("sfdisk: {}", String::from_utf8_lossy(&said.stderr).trim()))),
    }
}

/// In a file of its own first: not every mkfs.vfat does it right at an offset.
async fn esp(image: &Path, part: &Partition, loader: &Path, work: &Path, seed: &str) -> Result<()> {
    let alone = work.join("esp.img");
    at(&alone, File::create(&alone).and_then(|file| file.set_len(part.kib() * 1024)))?;
    let id = uuid(seed, "esp")[..8].to_string();
    let mut command = Command::new("mkfs.vfat");
    command.args(["-F", "32", "-n", "ESP", "--invariant", "-i", &id]).arg(&alone);
    finish(command).await?;
    let name = alone.display().to_string();
    for folder in ["::/EFI", "::/EFI/BOOT"] {
        finish(timed("mmd", &["-i", &name, folder])).await?;
    }
    finish(timed("mcopy", &["-i", &name, &loader.display().to_string(), "::/EFI/BOOT/BOOTX64.EFI"])).await?;
    write_at(image, &read(&alone)?, part.offset())
}

/// Of mtools, with our time for all it writes.
fn timed(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).env("SOURCE_DATE_EPOCH", TIME).env("MTOOLS_SKIP_CHECK", "1");
    command
}

async fn ext4(image: &Path, part: &Partition, seed: &str, from: Option<&Path>) -> Result<()> {
    let (id, hashes) = (uuid(seed, part.name), uuid(seed, "hashes"));
    let mut command = Command::new("mkfs.ext4");
    // GRUB does not read these two
    command.args(["-q", "-F", "-L", part.name, "-U", &id, "-O", "^metadata_csum_seed,^orphan_file"]);
    command.arg("-E").arg(format!("offset={},hash_seed={hashes},root_owner=0:0", part.offset()));
    if let Some(from) = from {
        command.arg("-d").arg(from);
    }
    command.arg(image).arg(format!("{}k", part.kib()));
    command.env("E2FSPROGS_FAKE_TIME", TIME).env("SOURCE_DATE_EPOCH", TIME);
    finish(command).await?;
    match from {
        Some(from) => set_times(image, part, from).await,
        None => Ok(()),
    }
}

/// mkfs copies the times of files, and when a file was last changed cannot be chosen before.
async fn set_times(image: &Path, part: &Partition, from: &Path) -> Result<()> {
    let mut script = String::new();
    for path in paths(from)? {
        let name = path.strip_prefix(from).unwrap_or(&path).display();
        for time in ["atime", "ctime", "mtime"] {
            script += &format!("set_inode_field /{name} {time} @{TIME}\n");
        }
    }
    let commands = from.with_extension("times");
    put(&commands, script.as_bytes(), 0o600)?;
    let mut command = Command::new("debugfs");
    command.arg("-w").arg("-f").arg(&commands).arg(format!("{}?offset={}", image.display(), part.offset()));
    command.env("E2FSPROGS_FAKE_TIME", TIME);
    finish(command).await.map(drop)
}

/// A folder and all that is in it.
fn paths(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = vec![folder.to_path_buf()];
    for entry in at(folder, fs::read_dir(folder))? {
        let entry = at(folder, entry)?;
        match at(folder, entry.file_type())?.is_dir() {
            true => found.extend(paths(&entry.path())?),
            false => found.push(entry.path()),
        }
    }
    Ok(found)
}

/// As seedling-install leaves them: see node/rootfs-machine.
fn boot_files(image: &Path, contents: &Contents, root: &str, folder: &Path) -> Result<()> {
    at(folder, fs::create_dir_all(folder))?;
    for name in [KERNEL, INITRAMFS, ROOT] {
        crate::link(&image.join(name), &folder.join(name))?;
    }
    put(&folder.join("grub/grub.cfg"), DISK_CFG.as_bytes(), 0o644)?;
    put(&folder.join("grub/arguments.cfg"), arguments_cfg(&contents.arguments).as_bytes(), 0o644)?;
    put(&folder.join("root-uuid"), format!("{root}\n").as_bytes(), 0o644)?;
    if let Some(config) = &contents.ignition {
        put(&folder.join("ignition/config.ign"), config, 0o600)?;
    }
    put(&folder.join("ignition.firstboot"), b"", 0o644)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    at(path, fs::read(path))
}

/// Leaves out what is zero: the image stays sparse.
fn write_at(image: &Path, bytes: &[u8], offset: u64) -> Result<()> {
    const BLOCK: usize = 64 << 10;
    let file = at(image, OpenOptions::new().write(true).open(image))?;
    let blocks = bytes.chunks(BLOCK).enumerate().filter(|(_, block)| block.iter().any(|byte| *byte != 0));
    for (number, block) in blocks {
        at(image, file.write_all_at(block, offset + (number * BLOCK) as u64))?;
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    /// By the real mkfs and debugfs.
    #[tokio::test]
    async fn the_same_files_are_the_same_file_system_whenever_it_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let part = Partition { name: "boot", start: 2048, sectors: 64 << 10 };
        let mut images = vec![];
        for name in ["a", "b"] {
            let (image, folder) = (dir.path().join(name), dir.path().join("boot"));
            remove_tree(&folder).unwrap();
            put(&folder.join("grub/grub.cfg"), b"menu", 0o644).unwrap();
            put(&folder.join(KERNEL), b"kernel", 0o644).unwrap();
            File::create(&image).unwrap().set_len(40 << 20).unwrap();
            ext4(&image, &part, "seed", Some(&folder)).await.unwrap();
            images.push(fs::read(&image).unwrap());
            // Times are whole seconds.
            tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
        }
        assert!(images[0] == images[1], "they differ");
        let stat = format!("{}?offset={}", dir.path().join("a").display(), part.offset());
        let told = run("debugfs", ["-R", "stat /grub/grub.cfg", &stat]).await.unwrap();
        assert_eq!(told.matches("0x6553f100").count(), 4, "{told}");
    }

    #[test]
    fn a_config_is_readable_for_root_only() {
        let dir = tempfile::tempdir().unwrap();
        for name in [KERNEL, INITRAMFS, ROOT] {
            fs::write(dir.path().join(name), name).unwrap();
        }
        let folder = dir.path().join("boot");
        let contents = Contents { ignition: Some(b"{}".to_vec()), arguments: vec!["ip=dhcp".into()] };
        boot_files(dir.path(), &contents, "id", &folder).unwrap();
        let mode = |name: &str| fs::metadata(folder.join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode("ignition/config.ign"), 0o600);
        assert_eq!(fs::read_to_string(folder.join("root-uuid")).unwrap(), "id\n");
        assert!(folder.join("ignition.firstboot").exists());
        boot_files(dir.path(), &Contents::default(), "id", &dir.path().join("b")).unwrap();
        assert!(!dir.path().join("b/ignition").exists());
        assert_ne!(seed(dir.path(), &contents), seed(dir.path(), &Contents::default()));
    }
}
