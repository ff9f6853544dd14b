use super::*;
use crate::testing::config;

fn with<T>(yaml: &str, of: impl FnOnce(&Boot) -> T) -> T {
    let mut config = config();
    config.boot = Some(serde_saphyr::from_str(yaml).unwrap());
    let host = config.inventory.by_name("worker-0").unwrap().clone();
    let boot = config.boot.clone().unwrap();
    of(&Boot { config: &config, boot: &boot, host: &host, rootfs: ROOTFS })
}

const URL: &str = "http://192.168.100.1:8080";

#[test]
fn the_arguments_are_those_that_the_images_know() {
    let table = [
        (
            "{imageDir: /b, installDevice: /dev/vda, arguments: [quiet, nomodeset]}",
            "ip=dhcp net.ifnames=0 BOOTIF=01-52-54-00-00-00-21 console=tty0 console=ttyS0,115200 \
             seedling.rootfs_url=@/boot/rootfs.squashfs ignition.firstboot ignition.platform.id=metal \
             ignition.config.url=@/ign/52:54:00:00:00:21 seedling.install_dev=/dev/vda \
             seedling.report_url=@/boot/report/52:54:00:00:00:21 quiet nomodeset",
        ),
        (
            "{imageDir: /b, installDevice: /dev/vda, installDevices: {worker-0: none}}",
            "ip=dhcp net.ifnames=0 BOOTIF=01-52-54-00-00-00-21 console=tty0 console=ttyS0,115200 \
             seedling.rootfs_url=@/boot/rootfs.squashfs ignition.firstboot ignition.platform.id=metal \
             ignition.config.url=@/ign/52:54:00:00:00:21",
        ),
        (
            "{imageDir: /b, kind: coreos, installDevice: /dev/sda}",
            "ip=dhcp rd.neednet=1 coreos.live.rootfs_url=@/boot/rootfs.squashfs coreos.inst.install_dev=/dev/sda \
             coreos.inst.ignition_url=@/ign/52:54:00:00:00:21",
        ),
        (
            "{imageDir: /b, kind: coreos, installDevice: none}",
            "ip=dhcp rd.neednet=1 coreos.live.rootfs_url=@/boot/rootfs.squashfs ignition.firstboot \
             ignition.platform.id=metal ignition.config.url=@/ign/52:54:00:00:00:21",
        ),
    ];
    for (yaml, want) in table {
        assert_eq!(with(yaml, |boot| boot.arguments().join(" ")), want.replace('@', URL), "{yaml}");
    }
}

#[test]
fn scripts_and_menus() {
    let yaml = "{imageDir: /b}";
    let install = with(yaml, |boot| boot.script(Next::Install));
    assert!(install.starts_with("#!ipxe\n"), "{install}");
    for line in [
        "kernel http://192.168.100.1:8080/boot/vmlinuz initrd=initramfs.img ip=dhcp ",
        "initrd --name initramfs.img http://192.168.100.1:8080/boot/initramfs.img || goto again",
        "chain --replace http://192.168.100.1:8080/boot/ipxe/52:54:00:00:00:21 || goto again",
    ] {
        assert!(install.lines().any(|l| l.starts_with(line)), "{line} is not in\n{install}");
    }
    let disk = with(yaml, |boot| boot.script(Next::Disk));
    assert!(disk.contains("sanboot --no-describe --drive 0x80") && !disk.contains("kernel"), "{disk}");
    let menu = with(yaml, |boot| boot.menu(Next::Install));
    assert!(menu.contains("  KERNEL vmlinuz\n  INITRD initramfs.img\n  APPEND ip=dhcp "), "{menu}");
    assert!(with(yaml, |boot| boot.menu(Next::Disk)).ends_with("LABEL worker-0\n  LOCALBOOT 0\n"));
    assert_eq!(menu_of("pxelinux.cfg/01-52-54-00-00-00-21").as_deref(), Some("52:54:00:00:00:21"));
    assert_eq!(menu_of("pxelinux.cfg/default"), None);
}

#[test]
fn what_cannot_work_is_said() {
    let table = [
        ("{imageDir: /b}", 0),
        ("{imageDir: /b, kind: coreos}", 1),
        ("{imageDir: /b, kind: coreos, installDevice: /dev/sda, installDevices: {a: auto, b: none}}", 1),
        ("{imageDir: /b, installDevice: '', arguments: [\"a\\nb\"]}", 2),
        ("{imageDir: /b, installDevice: /dev/a b}", 1),
    ];
    for (yaml, count) in table {
        let found = problems(&serde_saphyr::from_str(yaml).unwrap());
        assert_eq!(found.len(), count, "{yaml}: {found:?}");
    }
}
