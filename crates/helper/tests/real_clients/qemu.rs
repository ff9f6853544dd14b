//! Firmware itself: iPXE's ROM and OVMF in QEMU (software emulation) boot from the helper, over a tap in the test's own namespace.
//! `scripts/network-boot.sh` installs what they need and runs them.

use super::lab::{HELPER, Lab, output};
use super::network_boot::{MAC, booting};
use seedling_types::boot::BootStep;
use seedling_types::helper::HelperEventKind::{Boot, Http, Tftp};
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Without a new word on the serial line or a new event. Emulated firmware on a busy machine takes its time.
const PATIENCE: Duration = Duration::from_secs(180);
const KERNEL_VARIABLE: &str = "SEEDLING_TEST_KERNEL";

/// A kernel of Debian's, and an init that says what it was given and ends.
fn image(loader: &str) -> Vec<(String, Vec<u8>)> {
    let kernel = std::env::var_os(KERNEL_VARIABLE)
        .map(PathBuf::from)
        .unwrap_or_else(|| panic!("{KERNEL_VARIABLE} is not set"));
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    fs::create_dir_all(root.join("bin")).unwrap();
    fs::create_dir_all(root.join("proc")).unwrap();
    let init = "#!/bin/busybox sh\n/bin/busybox mount -t proc proc /proc\necho INIT: $(/bin/busybox cat /proc/cmdline)\n/bin/busybox poweroff -f\n";
    fs::write(root.join("init"), init).unwrap();
    let made = output(&format!(
        "cd {} && chmod +x init && cp $(command -v busybox) bin/ && find . | busybox cpio -o -H newc | gzip > ../initramfs.img",
        root.display()
    ));
    assert!(made.ok, "{}", made.text);
    let loader_file = format!("/usr/lib/ipxe/{loader}");
    vec![
        ("vmlinuz".into(), fs::read(kernel).unwrap()),
        ("initramfs.img".into(), fs::read(folder.path().join("initramfs.img")).unwrap()),
        (loader.into(), fs::read(loader_file).unwrap()),
    ]
}

struct Qemu {
    process: Child,
    serial: PathBuf,
}

impl Drop for Qemu {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Qemu {
    /// On the lab's bridge, with worker-0's MAC address.
    fn start(lab: &Lab, number: u32, more: &[&str]) -> Self {
        let (bridge, tap) = (lab.namespace("bridge"), format!("tap{number}"));
        let made = output(&format!(
            "ip -n {bridge} tuntap add {tap} mode tap && ip -n {bridge} link set {tap} master br0 up"
        ));
        assert!(made.ok, "{}", made.text);
        let serial = lab.path(&format!("serial{number}"));
        let process = Command::new("nsenter")
            .arg(format!("--net=/run/netns/{bridge}"))
            .args([
                "qemu-system-x86_64",
                "-accel",
                "tcg",
                "-m",
                "768",
                "-display",
                "none",
                "-no-reboot",
                "-monitor",
                "none",
            ])
            .args(["-netdev", &format!("tap,id=n,ifname={tap},script=no,downscript=no")])
            .args(["-serial", &format!("file:{}", serial.display())])
            .args(more)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Self { process, serial }
    }

    fn said(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.serial).unwrap_or_default()).into_owned()
    }

    fn says(&mut self, lab: &Lab, words: &str) {
        let (mut last, mut since) = ((0, 0), Instant::now());
        while !self.said().contains(words) {
            let now = (self.said().len(), lab.events().len());
            if now != last {
                (last, since) = (now, Instant::now());
            }
            let ended = self.process.try_wait().unwrap().is_some() && !self.said().contains(words);
            assert!(
                !ended && since.elapsed() < PATIENCE,
                "no {words:?}\n{}\n{:#?}",
                self.said(),
                lab.events()
            );
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

fn lab_with(files: &[(String, Vec<u8>)]) -> Lab {
    let files: Vec<_> = files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    booting(&["worker-0"], &files)
}

/// The machine of the inventory is the one in QEMU: its namespace's cable is pulled.
fn only_qemu(lab: &Lab) {
    lab.link("worker-0", "down");
}

fn installed(lab: &Lab) {
    let state = br#"{"install":"installed","since":1}"#;
    fs::create_dir_all(lab.config.boot_state("worker-0").parent().unwrap()).unwrap();
    fs::write(lab.config.boot_state("worker-0"), state).unwrap();
}

const ARGUMENTS: &str =
    "seedling.install_dev=auto seedling.report_url=http://192.168.100.1:8080/boot/report/52:54:00:00:00:21";

/// A boot sector that says so on the serial line, and stops.
fn disk_that_speaks(lab: &Lab) -> PathBuf {
    let mut sector = vec![0xba, 0xf8, 0x03]; // mov dx, 0x3f8
    for letter in b"FROM-DISK" {
        sector.extend([0xb0, *letter, 0xee]); // mov al, letter; out dx, al
    }
    sector.extend([0xfa, 0xf4]); // cli; hlt
    sector.resize(510, 0);
    sector.extend([0x55, 0xaa]);
    sector.resize(1 << 20, 0);
    lab.write("disk.raw", sector)
}

#[test]
#[ignore = "needs QEMU, iPXE's ROMs and a kernel: scripts/network-boot.sh"]
fn ipxe_in_a_bios_boots_its_script_and_then_the_disk() {
    for (number, card) in (0..).zip(["virtio-net-pci", "e1000"]) {
        let mut lab = lab_with(&image("undionly.kpxe"));
        only_qemu(&lab);
        lab.start();
        // QEMU's own choice of a ROM is iPXE's.
        let device = format!("{card},netdev=n,mac={MAC},bootindex=1");
        let mut qemu = Qemu::start(&lab, number, &["-device", &device]);
        qemu.says(&lab, "INIT: ");
        qemu.says(&lab, ARGUMENTS);
        lab.event(|e| matches!(e, Boot { host, state: BootStep::Install, .. } if host == "worker-0"));
        lab.event(|e| matches!(e, Http { path, status: 200, user_agent, .. } if path == "/boot/vmlinuz" && user_agent.contains("iPXE")));
        drop(qemu);

        installed(&lab);
        let disk = format!("file={},format=raw,if=ide", disk_that_speaks(&lab).display());
        let mut qemu = Qemu::start(&lab, number + 10, &["-device", &device, "-drive", &disk]);
        qemu.says(&lab, "FROM-DISK");
        lab.event(|e| matches!(e, Boot { state: BootStep::Disk, .. }));
    }
}

/// A BIOS whose network card knows only PXE: iPXE's ROM, told to be nothing more, fetches the loader by TFTP.
#[test]
#[ignore = "needs QEMU, iPXE and a kernel: scripts/network-boot.sh"]
fn undionly_and_pxelinux_are_fetched_by_tftp() {
    let mut files = image("undionly.kpxe");
    for (name, from) in [
        ("pxelinux.0", "/usr/lib/PXELINUX/pxelinux.0"),
        ("ldlinux.c32", "/usr/lib/syslinux/modules/bios/ldlinux.c32"),
    ] {
        files.push((name.into(), fs::read(from).unwrap()));
    }
    for (number, loader) in (0..).zip(["undionly.kpxe", "pxelinux.0"]) {
        let mut lab = lab_with(&files);
        only_qemu(&lab);
        lab.start();
        // A floppy with an iPXE that is told to chain the loader as firmware would: by TFTP, from the server that DHCP named.
        let script = lab.write(
            "chain.ipxe",
            format!("#!ipxe\ndhcp\nset 210:string tftp://{HELPER}/\nchain tftp://{HELPER}/{loader}\n"),
        );
        let script = script.display().to_string();
        let device = format!("virtio-net-pci,netdev=n,mac={MAC},romfile=");
        let more = ["-device", &device, "-kernel", "/usr/lib/ipxe/ipxe.lkrn", "-initrd", &script];
        let mut qemu = Qemu::start(&lab, number, &more);
        qemu.says(&lab, "INIT: ");
        qemu.says(&lab, ARGUMENTS);
        lab.event(|e| matches!(e, Tftp { file, status, .. } if file == loader && status == "ok"));
        if loader == "pxelinux.0" {
            lab.event(|e| matches!(e, Tftp { file, status, .. } if file.ends_with("pxelinux.cfg/01-52-54-00-00-00-21") && status == "ok"));
            lab.event(|e| matches!(e, Tftp { file, status, .. } if file == "vmlinuz" && status == "ok"));
        } else {
            lab.event(|e| matches!(e, Http { path, status: 200, .. } if path == "/boot/initramfs.img"));
        }
    }
}

fn uefi(lab: &Lab, more: &[&str]) -> Vec<String> {
    let variables = lab.path("variables.fd");
    fs::copy("/usr/share/OVMF/OVMF_VARS_4M.fd", &variables).unwrap();
    let device = format!("virtio-net-pci,netdev=n,mac={MAC},romfile=,bootindex=1");
    let mut all: Vec<String> = vec![
        // It would wait for a long time.
        "-fw_cfg".into(),
        "name=opt/org.tianocore/IPv6PXESupport,string=n".into(),
        "-machine".into(),
        "q35".into(),
        "-drive".into(),
        "if=pflash,unit=0,format=raw,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd".into(),
        "-drive".into(),
        format!("if=pflash,unit=1,format=raw,file={}", variables.display()),
        "-device".into(),
        device,
    ];
    all.extend(more.iter().map(|word| (*word).to_string()));
    all
}

#[test]
#[ignore = "needs QEMU, OVMF and a kernel: scripts/network-boot.sh"]
fn uefi_boots_by_pxe_and_then_from_its_disk() {
    let files = image("snponly.efi");
    let mut lab = lab_with(&files);
    only_qemu(&lab);
    lab.start();
    let arguments = uefi(&lab, &[]);
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let mut qemu = Qemu::start(&lab, 0, &arguments);
    qemu.says(&lab, "INIT: ");
    qemu.says(&lab, ARGUMENTS);
    lab.event(|e| matches!(e, Tftp { file, status, .. } if file == "snponly.efi" && status == "ok"));
    lab.event(|e| matches!(e, Http { path, status: 200, .. } if path.starts_with("/boot/ipxe/")));
    drop(qemu);

    // The kernel is also an EFI program. Without a console it says nothing; the firmware says that it starts what is on the disk.
    installed(&lab);
    lab.write("esp/EFI/BOOT/BOOTX64.EFI", &files[0].1);
    let disk = format!("file=fat:rw:{},format=raw,if=none,id=d", lab.path("esp").display());
    let arguments = uefi(&lab, &["-drive", &disk, "-device", "virtio-blk-pci,drive=d,bootindex=2"]);
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let mut qemu = Qemu::start(&lab, 1, &arguments);
    qemu.says(&lab, "\"UEFI Misc Device\" from PciRoot");
    lab.event(|e| matches!(e, Boot { state: BootStep::Disk, .. }));
}

#[test]
#[ignore = "needs QEMU, OVMF and a kernel: scripts/network-boot.sh"]
fn uefi_boots_by_http() {
    let mut lab = lab_with(&image("ipxe.efi"));
    only_qemu(&lab);
    lab.start();
    // No PXE, so that HTTP is what remains.
    let arguments = uefi(&lab, &["-fw_cfg", "name=opt/org.tianocore/IPv4PXESupport,string=n"]);
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let mut qemu = Qemu::start(&lab, 0, &arguments);
    qemu.says(&lab, "INIT: ");
    lab.event(|e| matches!(e, Http { path, status: 200, user_agent, .. } if path == "/boot/ipxe.efi" && user_agent.contains("UefiHttpBoot")));
    assert!(!lab.events().iter().any(|e| matches!(e, Tftp { .. })));
}

/// The clients that administrators try it with.
#[test]
#[ignore = "needs tftp-hpa and atftp: scripts/network-boot.sh"]
fn tftp_hpa_and_atftp_get_a_file() {
    let content: Vec<u8> = (0..5_000_003u32).map(|i| (i * 7 / 3) as u8).collect();
    let mut lab = booting(&["worker-0"], &[("ipxe.efi", &content)]);
    lab.addresses();
    lab.start();
    let out = lab.path("out").display().to_string();
    for command in [
        format!("tftp -m binary {HELPER} -c get ipxe.efi {out}"),
        format!("atftp --get -r ipxe.efi -l {out} {HELPER}"),
        format!(
            "atftp --option 'blksize 1428' --option 'windowsize 8' --option 'tsize 0' --option 'timeout 2' --get -r ipxe.efi -l {out} {HELPER}"
        ),
    ] {
        let _ = fs::remove_file(&out);
        let said = lab.run("worker-0", &format!("timeout 60 {command}"));
        assert!(fs::read(&out).is_ok_and(|got| got == content), "{command}: {}", said.text);
    }
    let said = lab.run("worker-0", &format!("timeout 20 tftp -m ascii {HELPER} -c get ipxe.efi {out}"));
    assert!(said.text.contains("only mode octet"), "{}", said.text);
}
