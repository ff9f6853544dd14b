//! GRUB as a machine's disk needs it, for BIOS and for UEFI: made once, with the image. Where on the disk it lies is fixed, so that
//! installing it is copying it.
//!
//! On BIOS the first sector of the disk (`boot.img`) loads the first sector of `core.img`, which loads the rest: both name sectors, and
//! both are told here. On UEFI the firmware loads one file. Either has all its modules built in and looks for its configuration on the
//! third partition of the disk it came from.

use crate::disk::layout;
use crate::needs::{GRUB_BIOS, GRUB_EFI};
use crate::run::{Result, at, run, unusable};
use std::fs;
use std::path::Path;

/// The partition of the disk that GRUB itself was loaded from.
const PREFIX: &str = "(,gpt3)/grub";
#[rustfmt::skip]
const MODULES: &[&str] = &[
    "part_gpt", "ext2", "fat", "normal", "linux", "probe", "test", "echo", "configfile", "search", "search_fs_uuid", "regexp", "ls",
    "cat", "reboot", "halt", "minicmd", "true", "sleep",
];
const BIOS_MODULES: &[&str] = &["biosdisk"];
const EFI_MODULES: &[&str] = &["all_video", "efi_gop", "efi_uga"];

pub(crate) const BOOT: &str = "boot.img";
pub(crate) const CORE: &str = "core.img";
pub(crate) const EFI: &str = "BOOTX64.EFI";

const SECTOR: usize = 512;
/// Where `boot.img` has the number of the sector to load.
const KERNEL_SECTOR: usize = 0x5c;
/// Where it has a jump that skips the mending of a drive number that some firmware gives wrongly.
const DRIVE_CHECK: usize = 0x66;
/// Where the first sector of `core.img` says where its rest is: first sector, number of sectors, segment to load it to.
const BLOCK_LIST: usize = SECTOR - 12;
const SEGMENT: u16 = 0x820;

/// Writes the three files into `folder`.
pub(crate) async fn make(folder: &Path) -> Result<()> {
    for (format, modules_in, own, name) in
        [("i386-pc", GRUB_BIOS, BIOS_MODULES, CORE), ("x86_64-efi", GRUB_EFI, EFI_MODULES, EFI)]
    {
        let to = folder.join(name).display().to_string();
        let arguments = ["-O", format, "-d", modules_in, "-p", PREFIX, "-o", &to];
        run("grub-mkimage", arguments.iter().chain(MODULES).chain(own)).await?;
    }
    let bios = layout::BIOS_START;
    let first = Path::new(GRUB_BIOS).join("boot.img");
    let boot = boot_sector(&at(&first, fs::read(&first))?, bios).map_err(|why| unusable(&first, why))?;
    let path = folder.join(BOOT);
    at(&path, fs::write(&path, boot))?;
    let path = folder.join(CORE);
    let core = core_image(&at(&path, fs::read(&path))?, bios, layout::BIOS_SECTORS)
        .map_err(|why| unusable(&path, why))?;
    at(&path, fs::write(&path, core))
}

/// Loads the sector `core`.
fn boot_sector(image: &[u8], core: u64) -> Result<Vec<u8>, String> {
    if image.len() != SECTOR {
        return Err(format!("{} bytes, not {SECTOR}: not GRUB's first sector", image.len()));
    }
    let mut image = image.to_vec();
    image[KERNEL_SECTOR..KERNEL_SECTOR + 8].copy_from_slice(&core.to_le_bytes());
    image[DRIVE_CHECK..DRIVE_CHECK + 2].copy_from_slice(&[0x90, 0x90]); // no jump: mend it
    Ok(image)
}

/// Lies at sector `at`, where there is room for so many.
fn core_image(image: &[u8], at: u64, room: u64) -> Result<Vec<u8>, String> {
    let sectors = image.len().div_ceil(SECTOR);
    if sectors as u64 > room || sectors < 2 {
        return Err(format!("{sectors} sectors, and there is room for {room}"));
    }
    let rest = u16::try_from(sectors - 1).map_err(|e| e.to_string())?;
    let mut image = image.to_vec();
    let list = [&(at + 1).to_le_bytes()[..], &rest.to_le_bytes(), &SEGMENT.to_le_bytes()].concat();
    image[BLOCK_LIST..SECTOR].copy_from_slice(&list);
    Ok(image)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn sectors_name_each_other() {
        let boot = boot_sector(&[7; 512], 2048).unwrap();
        assert_eq!(boot[0x5b..0x69], [7, 0, 8, 0, 0, 0, 0, 0, 0, 7, 7, 0x90, 0x90, 7]);
        let core = core_image(&[7; 1300], 2048, 2048).unwrap();
        assert_eq!(core.len(), 1300);
        assert_eq!(core[499..513], [7, 1, 8, 0, 0, 0, 0, 0, 0, 2, 0, 0x20, 0x08, 7]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(boot_sector(&[0; 511], 2048).is_err());
        assert_eq!(core_image(&[0; 2048], 2048, 3).unwrap_err(), "4 sectors, and there is room for 3");
        assert!(core_image(&[0; 512], 2048, 3).is_err(), "nothing to load");
    }
}
