//! Real machines: a boot image is booted over the network by QEMU, installs itself to an empty disk, boots from it on BIOS and on UEFI, and
//! is cut off on the way. Disk images and ISOs boot too. Minutes each, in software emulation: `scripts/qemu.sh` runs them.

mod machine;
mod place;

use anyhow::{Context, Result, ensure};
use machine::{Firmware, MAC, Machine, key};
use place::{Place, SERVER};
use seedling_image::{Contents, Format, boot, build};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

/// Counts boots, and says so on the console when one can log in: what is waited for.
const UNIT: &str = "[Unit]\nAfter=ssh.service\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sh -c 'echo boot >> /var/lib/boots; \
    echo \"<5>boots: $(wc -l < /var/lib/boots)\" > /dev/kmsg'\n[Install]\nWantedBy=multi-user.target\n";

fn cache() -> PathBuf {
    std::env::var_os("SEEDLING_CACHE").map_or("/var/cache/seedling".into(), PathBuf::from)
}

fn scene() -> Result<(tempfile::TempDir, PathBuf)> {
    ensure!(nix::unistd::geteuid().is_root(), "only root can make network namespaces");
    let dir = tempfile::Builder::new().prefix("seedling-qemu-").tempdir_in("/var/tmp")?;
    let config = json!({
        "ignition": { "version": "3.2.0" },
        "passwd": { "users": [{ "name": "core", "sshAuthorizedKeys": [key(dir.path())?] }] },
        "storage": { "files": [{ "path": "/etc/role", "mode": 0o644, "contents": { "source": "data:,worker" } }] },
        "systemd": { "units": [{ "name": "boots.service", "enabled": true, "contents": UNIT }] },
    });
    fs::write(dir.path().join("x.ign"), config.to_string())?;
    let image =
        tokio::runtime::Runtime::new()?.block_on(boot::ensure(&cache(), &|text| println!("{text}")))?;
    Ok((dir, image))
}

fn drive(path: &Path, format: &str) -> Vec<String> {
    ["-drive".into(), format!("file={},if=virtio,format={format},cache=unsafe", path.display())].to_vec()
}

fn over_the_network(image: &Path, more: &str) -> Vec<String> {
    let line = format!(
        "ip=dhcp net.ifnames=0 BOOTIF=01-{} console=tty0 console=ttyS0,115200 seedling.rootfs_url=http://{SERVER}/boot/rootfs.squashfs \
         ignition.firstboot ignition.platform.id=metal ignition.config.url=http://{SERVER}/x.ign {more}",
        MAC.replace(':', "-")
    );
    let file = |name: &str| image.join(name).display().to_string();
    ["-kernel", &file(boot::KERNEL), "-initrd", &file(boot::INITRAMFS), "-append", &line, "-no-reboot"]
        .map(String::from)
        .to_vec()
}

/// Whatever it booted from: the config is applied, once, and nothing has failed.
fn as_told(machine: &Machine, boots: usize) -> Result<()> {
    let answers = [
        ("cat /etc/role", "worker".to_string()),
        ("sudo id -u", "0".into()),
        ("wc -l < /var/lib/boots", boots.to_string()),
        ("id -nG", "core adm sudo systemd-journal".into()),
        ("grep -c '\"ignition/files\",\"event\":\"end\"' /var/log/openshift/journal.jsonl", "1".into()),
        ("sudo systemctl --failed --no-legend", String::new()),
        // this boot's kernel log
        ("sudo journalctl -k | grep -c 'preinit: starting systemd'", "1".into()),
    ];
    for (question, answer) in answers {
        let got = machine.ssh(question)?;
        ensure!(got == answer, "{question} answered {got:?}, not {answer:?}");
    }
    Ok(())
}

#[test]
#[ignore = "minutes; scripts/qemu.sh runs it"]
fn a_machine_installs_itself_and_boots_from_its_disk() -> Result<()> {
    let (dir, image) = scene()?;
    let place = Place::new(dir.path(), &image, MAC)?;
    let disk = dir.path().join("disk.raw");
    fs::File::create(&disk)?.set_len(8 << 30)?;
    let report = format!("seedling.install_dev=auto seedling.report_url=http://{SERVER}/report/x");
    let install = [over_the_network(&image, &report), drive(&disk, "raw")].concat();

    let mut machine = Machine::switch_on(&place, "install-cut-off", Firmware::Bios, &install)?;
    machine.says("init: fetched")?;
    machine.says("seedling-install: copying the system")?;
    machine.cut_off()?;
    let mut machine = Machine::switch_on(&place, "install", Firmware::Bios, &install)?;
    machine.says("seedling-install: installed to /dev/vda")?;
    machine.ends()?;
    let reports = place.reports.lock().map(|reports| reports.clone()).unwrap_or_default();
    let states: Vec<_> = reports.iter().map(String::as_str).collect();
    let installing = "/report/x {\"state\":\"installing\"}";
    ensure!(states == [installing, installing, "/report/x {\"state\":\"installed\"}"], "{states:?}");

    let mut machine = Machine::switch_on(&place, "first-boot-cut-off", Firmware::Bios, &drive(&disk, "raw"))?;
    machine.says("init: first boot from disk")?;
    machine.says("preinit: Ignition fetched its config")?;
    machine.cut_off()?;
    let mut machine = Machine::switch_on(&place, "first-boot", Firmware::Bios, &drive(&disk, "raw"))?;
    machine.says("init: first boot from disk")?;
    machine.says("preinit: Ignition applied")?;
    machine.says("boots: 1")?;
    as_told(&machine, 1)?;
    let left = machine.ssh("sudo ls -A /run/initramfs/medium")?;
    ensure!(!left.contains("ignition"), "the config or the stamp is still there: {left}");
    let id = machine.ssh("cat /etc/machine-id")?;
    let line = machine.ssh("cat /proc/cmdline")?;
    ensure!(line.contains("ip=dhcp net.ifnames=0 BOOTIF=01-52-54"), "network arguments are lost: {line}");
    machine.cut_off()?;

    let mut machine = Machine::switch_on(&place, "second-boot", Firmware::Uefi, &drive(&disk, "raw"))?;
    machine.says("boots: 2")?;
    as_told(&machine, 2)?;
    ensure!(machine.ssh("cat /etc/machine-id")? == id, "another machine");
    machine.ssh("sudo systemctl poweroff || true")?;
    machine.ends()
}

#[test]
#[ignore = "minutes; scripts/qemu.sh runs it"]
fn a_machine_runs_live() -> Result<()> {
    let (dir, image) = scene()?;
    let place = Place::new(dir.path(), &image, MAC)?;
    let mut machine =
        Machine::switch_on(&place, "live", Firmware::Bios, &over_the_network(&image, "seedling.test"))?;
    machine.says("preinit: Ignition applied")?;
    machine.says("boots: 1")?;
    as_told(&machine, 1)?;
    machine.cut_off()
}

#[test]
#[ignore = "minutes; scripts/qemu.sh runs it"]
fn disk_images_and_isos_boot() -> Result<()> {
    let (dir, image) = scene()?;
    let place = Place::new(dir.path(), &image, MAC)?;
    let contents = Contents::new(Some(&dir.path().join("x.ign")), &["ip=dhcp".to_string()])?;
    let runtime = tokio::runtime::Runtime::new()?;
    let make = |format| {
        runtime.block_on(build(&cache(), format, &contents, Some(dir.path()), &|text| println!("{text}")))
    };
    let iso = make(Format::Iso)?;
    for (name, firmware) in [("iso-bios", Firmware::Bios), ("iso-uefi", Firmware::Uefi)] {
        let cd = ["-cdrom".to_string(), iso.display().to_string()];
        let mut machine = Machine::switch_on(&place, name, firmware, &cd)?;
        machine.says("boots: 1")?;
        as_told(&machine, 1)?;
        machine.cut_off()?;
    }

    let qcow2 = make(Format::Qcow2)?;
    let grown = std::process::Command::new("qemu-img").arg("resize").arg(&qcow2).arg("10G").output()?;
    ensure!(grown.status.success(), "{}", String::from_utf8_lossy(&grown.stderr));
    let mut machine = Machine::switch_on(&place, "qcow2", Firmware::Uefi, &drive(&qcow2, "qcow2"))?;
    machine.says("seedling-grow: the root partition takes the rest")?;
    machine.says("boots: 1")?;
    as_told(&machine, 1)?;
    let size = machine.ssh("df -k --output=size /var/lib/kubelet | tail -n 1")?;
    let size: u64 = size.trim().parse().context(size)?;
    ensure!(size > 8 << 20, "{size} KiB of a disk of 10 GiB");
    machine.cut_off()
}
