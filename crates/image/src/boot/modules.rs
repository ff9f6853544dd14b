//! Which of the kernel's modules go where: into the initramfs those that find a network card or a disk and read what is on it, into the
//! image all but those that no server has a use for. Pure: lists of names in, lists of names out.

use std::collections::{BTreeMap, BTreeSet};

/// Below `kernel/`: for screens, speakers, cameras, radios and file systems that no node has.
#[rustfmt::skip]
pub(crate) const LEFT_OUT: &[&str] = &[
    "sound", "drivers/accel", "drivers/bluetooth", "drivers/comedi", "drivers/gpu", "drivers/iio", "drivers/isdn", "drivers/leds",
    "drivers/media", "drivers/net/wireless", "drivers/pinctrl", "drivers/staging", "drivers/video", "fs/afs",
    "fs/ceph", "fs/coda", "fs/dlm", "fs/f2fs", "fs/gfs2", "fs/hfs", "fs/hfsplus", "fs/jfs", "fs/nilfs2", "fs/ntfs", "fs/ntfs3",
    "fs/ocfs2", "fs/orangefs", "fs/reiserfs", "fs/udf", "fs/ufs", "net/bluetooth", "net/mac80211", "net/wireless",
];

/// Below `kernel/`: what the initramfs needs before there is a root file system. What these need comes along.
#[rustfmt::skip]
const FIRST: &[&str] = &[
    // cards
    "drivers/net/ethernet/", "drivers/net/phy/", "drivers/net/mdio/", "drivers/net/virtio_net", "drivers/net/net_failover",
    "drivers/net/vmxnet3/", "drivers/net/hyperv/", "drivers/net/xen-netfront",
    // disks, and the buses they hang on
    "drivers/ata/", "drivers/nvme/host/", "drivers/scsi/", "drivers/message/fusion/", "drivers/block/virtio_blk",
    "drivers/block/xen-blkfront", "drivers/block/loop", "drivers/virtio/", "drivers/usb/host/", "drivers/usb/storage/",
    "drivers/cdrom/", "drivers/mmc/", "drivers/hv/",
    // what is on them
    "fs/squashfs/", "fs/overlayfs/", "fs/ext4/", "fs/isofs/", "fs/fat/", "fs/nls/", "crypto/crc32", "arch/x86/crypto/crc32",
];

/// modules.dep: a module's path → the paths of what it needs.
pub(crate) type Needs<'a> = BTreeMap<&'a str, Vec<&'a str>>;

pub(crate) fn parse(modules_dep: &str) -> Needs<'_> {
    let rows = modules_dep.lines().filter_map(|line| line.split_once(':'));
    rows.map(|(module, needs)| (module, needs.split_whitespace().collect())).collect()
}

/// The paths of the initramfs' modules, sorted.
pub(crate) fn first<'a>(needs: &Needs<'a>) -> BTreeSet<&'a str> {
    let mut taken = BTreeSet::new();
    let wanted = |path: &str| {
        path.strip_prefix("kernel/").is_some_and(|path| FIRST.iter().any(|first| path.starts_with(first)))
    };
    let mut open: Vec<_> = needs.keys().copied().filter(|path| wanted(path)).collect();
    while let Some(path) = open.pop() {
        if taken.insert(path) {
            open.extend(needs.get(path).into_iter().flatten());
        }
    }
    taken
}

/// `kernel/drivers/block/virtio_blk.ko` → `virtio_blk`, as modules.alias has it.
fn name(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.split(".ko").next().unwrap_or(file).replace('-', "_")
}

/// modules.dep with the rows of these modules only.
pub(crate) fn rows_of(modules_dep: &str, taken: &BTreeSet<&str>) -> String {
    let kept =
        modules_dep.lines().filter(|line| line.split_once(':').is_some_and(|(path, _)| taken.contains(path)));
    kept.map(|line| format!("{line}\n")).collect()
}

/// modules.alias (`alias pci:v00001AF4* virtio_pci`), the same.
pub(crate) fn aliases_of(modules_alias: &str, taken: &BTreeSet<&str>) -> String {
    let names: BTreeSet<_> = taken.iter().map(|path| name(path)).collect();
    let kept = modules_alias.lines().filter(|line| {
        let module = line.strip_prefix("alias ").and_then(|rest| rest.rsplit(' ').next());
        module.is_some_and(|module| names.contains(&module.replace('-', "_")))
    });
    kept.map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEP: &str = "kernel/drivers/net/virtio_net.ko: kernel/drivers/net/net_failover.ko kernel/net/core/failover.ko\n\
        kernel/drivers/net/net_failover.ko: kernel/net/core/failover.ko\n\
        kernel/net/core/failover.ko:\n\
        kernel/drivers/block/virtio_blk.ko:\n\
        kernel/drivers/block/drbd/drbd.ko: kernel/lib/lru_cache.ko\n\
        kernel/lib/lru_cache.ko:\n\
        kernel/crypto/crc32c_generic.ko.xz:\n";

    #[test]
    fn what_a_module_needs_comes_along() {
        let taken = first(&parse(DEP));
        let want = [
            "kernel/crypto/crc32c_generic.ko.xz",
            "kernel/drivers/block/virtio_blk.ko",
            "kernel/drivers/net/net_failover.ko",
            "kernel/drivers/net/virtio_net.ko",
            "kernel/net/core/failover.ko",
        ];
        assert_eq!(taken.iter().copied().collect::<Vec<_>>(), want);
        assert_eq!(rows_of(DEP, &taken).lines().count(), 5);
    }

    #[test]
    fn aliases_follow_their_modules() {
        let taken = BTreeSet::from(["kernel/a/virtio_blk.ko", "kernel/a/crc32c-intel.ko.xz"]);
        let aliases = "# made by depmod\nalias virtio:d00000002v* virtio_blk\nalias crypto-crc32c crc32c_intel\n\
            alias pci:v1 snd_hda_intel\n";
        assert_eq!(
            aliases_of(aliases, &taken),
            "alias virtio:d00000002v* virtio_blk\nalias crypto-crc32c crc32c_intel\n"
        );
    }
}
