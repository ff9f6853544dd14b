//! Where on a disk is what: `node/disk-layout.sfdisk`, which the installer gives to sfdisk on a machine, read for disk images. Pure.

use crate::recipe::DISK_LAYOUT;
use sha2::{Digest, Sha256};

pub(crate) const SECTOR: u64 = 512;
/// GRUB's second part names this place; a test holds it to the file.
pub(crate) const BIOS_START: u64 = 2048;
pub(crate) const BIOS_SECTORS: u64 = 2048;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Partition {
    pub name: &'static str,
    /// In sectors.
    pub start: u64,
    pub sectors: u64,
}

impl Partition {
    pub(crate) fn offset(&self) -> u64 {
        self.start * SECTOR
    }

    pub(crate) fn kib(&self) -> u64 {
        self.sectors * SECTOR / 1024
    }
}

/// The partitions of a disk of so many sectors; the last one takes what is left, but for GPT's copy at the end.
pub(crate) fn partitions(disk: u64) -> Vec<Partition> {
    let field = |line: &'static str, key: &str| {
        line.split(", ").find_map(|word| word.strip_prefix(key)?.strip_prefix('=')).map(str::trim)
    };
    let number = |text: Option<&str>| text.and_then(|text| text.parse().ok());
    let rows = DISK_LAYOUT.lines().filter_map(|line| {
        let start: u64 = number(field(line, "start"))?;
        let rest = (disk.saturating_sub(2048) / 2048 * 2048).saturating_sub(start);
        let sectors = number(field(line, "size")).unwrap_or(rest);
        Some(Partition { name: field(line, "name").unwrap_or_default(), start, sectors })
    });
    rows.collect()
}

/// The same for sfdisk, with names that depend on `seed` only and not on chance.
pub(crate) fn script(disk: u64, seed: &str) -> String {
    let ends: Vec<_> = partitions(disk);
    let mut rows = ends.iter();
    let lines = DISK_LAYOUT.lines().map(|line| match line.starts_with("start=") {
        false => format!("{line}\nlabel-id: {}\n", uuid(seed, "disk")),
        true => {
            let size = match (line.contains("size="), rows.next()) {
                (false, Some(row)) => format!(", size={}", row.sectors),
                _ => String::new(),
            };
            format!("{line}{size}, uuid={}\n", uuid(seed, line))
        }
    });
    lines.collect()
}

/// Looks like a random one; the same for the same words.
pub(crate) fn uuid(seed: &str, what: &str) -> String {
    let hash = Sha256::digest(format!("{seed}\0{what}"));
    let mut bytes: Vec<u8> = hash.iter().take(16).copied().collect();
    if let [.., a, _, b, _, _, _, _, _, _, _] = bytes.as_mut_slice() {
        (*a, *b) = (*a & 0x0f | 0x40, *b & 0x3f | 0x80);
    }
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_follow_each_other() {
        let disk = 4 * 1024 * 2048;
        let rows = partitions(disk);
        let names: Vec<_> = rows.iter().map(|row| row.name).collect();
        assert_eq!(names, ["bios", "esp", "boot", "root"]);
        assert_eq!((rows[0].start, rows[0].sectors), (BIOS_START, BIOS_SECTORS));
        for pair in rows.windows(2) {
            assert_eq!(pair[0].start + pair[0].sectors, pair[1].start, "{pair:?}");
        }
        assert_eq!(rows[3].start + rows[3].sectors, disk - 2048);
        assert!(
            rows.iter().all(|row| row.start % 2048 == 0 && row.sectors % 2048 == 0),
            "whole MiB: {rows:?}"
        );
    }

    #[test]
    fn nothing_is_left_to_chance() {
        let disk = 4 * 1024 * 2048;
        assert_eq!(script(disk, "a"), script(disk, "a"));
        assert_ne!(script(disk, "a"), script(disk, "b"));
        assert_eq!(script(disk, "a").matches("uuid=").count(), 4);
        assert_eq!(script(disk, "a").matches("size=").count(), 4);
        let id = uuid("a", "disk");
        assert_eq!((id.len(), &id[14..15]), (36, "4"));
        assert!("89ab".contains(&id[19..20]), "{id}");
    }
}
