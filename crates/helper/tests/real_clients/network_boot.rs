//! Network boot with real clients: udhcpc as firmware asks, busybox tftp, curl with ranges; the rest of the way in `qemu.rs`.

use super::lab::{HELPER, Lab, Output};
use seedling_types::boot::BootStep;
use seedling_types::helper::BootConfig;
use seedling_types::helper::HelperEventKind::{Boot, Http, Limited, Tftp};
use std::fs;

pub(crate) const MAC: &str = "52:54:00:00:00:21";

/// With a boot image of these files.
pub(crate) fn booting(machines: &[&str], files: &[(&str, &[u8])]) -> Lab {
    let mut lab = Lab::new(machines);
    for (name, content) in files {
        lab.write(&format!("boot/{name}"), content);
    }
    let yaml = format!("{{imageDir: {}, hosts: [worker-0, master-0]}}", lab.path("boot").display());
    lab.config.boot = Some(serde_saphyr::from_str::<BootConfig>(&yaml).unwrap());
    lab
}

fn noise(length: usize) -> Vec<u8> {
    let mut state = 1u32;
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..length).map(next).collect()
}

fn tftp(lab: &Lab, machine: &str, options: &str, file: &str) -> (Output, Vec<u8>) {
    let out = lab.path("fetched");
    let _ = fs::remove_file(&out);
    let run = format!("timeout 60 busybox tftp -g {options} -r {file} -l {} {HELPER}", out.display());
    (lab.run(machine, &run), fs::read(&out).unwrap_or_default())
}

#[test]
fn busybox_tftp_gets_the_image_and_nothing_else() {
    let (loader, exact) = (noise(70_123), noise(512 * 4));
    // More blocks than sixteen bits count, in blocks of 512.
    let large = noise(34_000_000);
    let mut lab = booting(
        &["worker-0", "master-1", "stranger"],
        &[("undionly.kpxe", &loader), ("exact", &exact), ("empty", b""), ("large", &large)],
    );
    lab.write("secret", "secret");
    std::os::unix::fs::symlink(lab.path("secret"), lab.path("boot/link")).unwrap();
    fs::create_dir(lab.path("boot/folder")).unwrap();
    lab.addresses();
    lab.run("stranger", "ip addr add 192.168.100.99/24 dev eth0");
    lab.start();

    for (file, content) in
        [("undionly.kpxe", &loader), ("/undionly.kpxe", &loader), ("exact", &exact), ("large", &large)]
    {
        for options in ["", "-b 1432", "-b 8192"] {
            if file == "large" && options == "-b 8192" {
                continue;
            }
            let (said, got) = tftp(&lab, "worker-0", options, file);
            assert!(said.ok && got == *content, "{file} {options}: {} bytes, {}", got.len(), said.text);
        }
    }
    assert!(tftp(&lab, "worker-0", "", "empty").0.ok);
    for file in [
        "secret",
        "../secret",
        "folder",
        "link",
        "boot/undionly.kpxe",
        "pxelinux.cfg/default",
        "%2e%2e/secret",
    ] {
        let (said, got) = tftp(&lab, "worker-0", "", file);
        assert!(!said.ok && got.is_empty() && said.text.contains("no such file"), "{file}: {}", said.text);
    }
    let (said, got) = tftp(&lab, "stranger", "", "undionly.kpxe");
    assert!(!said.ok && got.is_empty() && said.text.contains("no machine of the inventory"), "{}", said.text);
    let (said, _) = tftp(&lab, "master-1", "", "undionly.kpxe");
    assert!(said.text.contains("no such file"), "it does not boot over the network: {}", said.text);
    let put = lab.run("worker-0", &format!("timeout 20 busybox tftp -p -l /etc/hostname -r new {HELPER}"));
    assert!(
        !put.ok && put.text.contains("nothing is written here") && !lab.path("boot/new").exists(),
        "{}",
        put.text
    );

    let (said, menu) = tftp(&lab, "worker-0", "", "pxelinux.cfg/01-52-54-00-00-00-21");
    let menu = String::from_utf8(menu).unwrap();
    assert!(
        said.ok && menu.contains("KERNEL vmlinuz") && menu.contains("seedling.install_dev=auto"),
        "{menu}"
    );
    assert!(!tftp(&lab, "worker-0", "", "pxelinux.cfg/01-52-54-00-00-00-11").0.ok, "another machine's");

    let heard = |file: &str, name: Option<&str>, word: &str| {
        lab.event(|e| matches!(e, Tftp { file: f, host, status, .. } if f == file && host.as_deref() == name && status.contains(word)))
    };
    heard("large", Some("worker-0"), "ok");
    heard("../secret", Some("worker-0"), "not found");
    heard("undionly.kpxe", None, "refused");
    lab.event(|e| matches!(e, Tftp { file, bytes: 70_123, .. } if file == "undionly.kpxe"));
}

/// One machine that begins transfers and says nothing more has a few places; others are served.
#[test]
fn one_client_cannot_have_all_transfers() {
    let loader = noise(70_123);
    let mut lab = booting(&["worker-0", "master-0"], &[("undionly.kpxe", &loader)]);
    lab.addresses();
    lab.start();
    let namespace = fs::File::open(format!("/run/netns/{}", lab.namespace("worker-0"))).unwrap();
    let silent = std::thread::spawn(move || {
        nix::sched::setns(namespace, nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
        let ask = |_| {
            let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
            socket.send_to(b"\0\x01undionly.kpxe\0octet\0", (HELPER, 69)).unwrap();
            socket
        };
        (0..30).map(ask).collect::<Vec<_>>()
    });
    let _sockets = silent.join().unwrap();
    lab.event(|e| matches!(e, Limited { service, .. } if service == "TFTP"));
    let (said, got) = tftp(&lab, "master-0", "", "undionly.kpxe");
    assert!(said.ok && got == loader, "{}", said.text);
}

#[test]
fn udhcpc_is_told_what_to_boot_as_firmware_is() {
    let mut lab = booting(&["worker-0", "master-1"], &[("undionly.kpxe", b"x")]);
    lab.config.router = Some([192, 168, 100, 254].into());
    lab.config.ntp_servers = vec![[192, 168, 100, 253].into()];
    lab.start();
    let script = lab.write("udhcpc.sh", "#!/bin/sh\n[ $1 = bound ] && env > $OUT\nexit 0\n");
    let ask = |machine: &str, more: &str| {
        let out = lab.path("lease");
        let _ = fs::remove_file(&out);
        let run = format!(
            "chmod +x {0}; OUT={1} busybox udhcpc -f -q -n -t 2 -T 1 -i eth0 -O bootfile -O tftp -O ntpsrv -s {0} {more}",
            script.display(),
            out.display()
        );
        let said = lab.run(machine, &run);
        assert!(said.ok, "{}", said.text);
        fs::read_to_string(out).unwrap()
    };
    let arch = |number: u8| format!("-V PXEClient:Arch:000{number:02}:UNDI:003016 -x 0x5d:00{number:02x}");
    let table = [
        ("worker-0", arch(0), Some("undionly.kpxe")),
        ("worker-0", arch(7), Some("ipxe.efi")),
        ("worker-0", arch(6), None),
        ("worker-0", "-V HTTPClient -x 0x5d:0010".into(), Some("http://192.168.100.1:8080/boot/ipxe.efi")),
        (
            "worker-0",
            format!("{} -x 0x4d:69505845", arch(7)),
            Some("http://192.168.100.1:8080/boot/ipxe/52:54:00:00:00:21"),
        ),
        ("worker-0", String::new(), None),
        ("master-1", arch(0), None),
    ];
    for (machine, more, file) in table {
        let lease = ask(machine, &more);
        let line = |text: &str| lease.lines().any(|line| line == text);
        match file {
            Some(file) => {
                assert!(
                    line(&format!("boot_file={file}")) && line(&format!("bootfile={file}")),
                    "{more}\n{lease}"
                );
                assert!(line("siaddr=192.168.100.1") && line("tftp=192.168.100.1"), "{more}\n{lease}");
            }
            None => assert!(!lease.contains("boot_file=") && !lease.contains("tftp="), "{more}\n{lease}"),
        }
        assert!(line("router=192.168.100.254") && line("ntpsrv=192.168.100.253"), "{lease}");
    }
}

#[test]
fn curl_fetches_by_ranges_and_reports() {
    let rootfs = noise(3_000_000);
    let mut lab =
        booting(&["worker-0", "master-0", "stranger"], &[("rootfs.squashfs", &rootfs), ("vmlinuz", b"k")]);
    lab.write("secret", "secret");
    std::os::unix::fs::symlink(lab.path("secret"), lab.path("boot/link")).unwrap();
    lab.addresses();
    lab.run("stranger", "ip addr add 192.168.100.99/24 dev eth0");
    lab.start();
    let curl = |machine: &str, what: &str| {
        lab.run(
            machine,
            &format!("curl -sS --path-as-is {}", what.replace('@', "http://192.168.100.1:8080/boot")),
        )
        .text
    };
    let status =
        |machine: &str, what: &str| curl(machine, &format!("-o /dev/null -w '%{{http_code}}' {what}"));

    let out = lab.path("out");
    curl("worker-0", &format!("-r 0-999999 -o {0}.1 @/rootfs.squashfs", out.display()));
    curl("worker-0", &format!("-C 1000000 -o {0}.2 @/rootfs.squashfs", out.display()));
    // What curl continues is a file of that length; only the rest was fetched.
    let parts = [fs::read(out.with_extension("1")).unwrap(), fs::read(out.with_extension("2")).unwrap()];
    assert!(parts[0] == rootfs[..1_000_000] && parts[1].ends_with(&rootfs[1_000_000..]));
    assert_eq!(status("worker-0", "-r 5-9 @/rootfs.squashfs"), "206");
    assert_eq!(status("worker-0", "-r 9000000-9000001 @/rootfs.squashfs"), "416");
    assert!(curl("worker-0", "-I @/rootfs.squashfs").contains("accept-ranges: bytes"));
    for path in ["/", "/nothing", "/link", "/..%2fsecret", "/ipxe", "/report/52:54:00:00:00:21"] {
        let code = status("worker-0", &format!("@{path}"));
        assert!(code == "404" || code == "405", "{path}: {code}");
    }
    assert_eq!(status("stranger", "@/vmlinuz"), "403");

    let script = |machine: &str, mac: &str| curl(machine, &format!("@/ipxe/{mac}"));
    assert!(script("worker-0", MAC).contains("kernel http://192.168.100.1:8080/boot/vmlinuz"));
    assert_eq!(status("master-0", &format!("@/ipxe/{MAC}")), "403");
    assert_eq!(status("worker-0", "@/ipxe/52:54:00:00:00:99"), "404");

    let report = |machine: &str, body: &str| status(machine, &format!("-d '{body}' @/report/{MAC}"));
    assert_eq!(report("worker-0", r#"{"state":"installing"}"#), "204");
    assert!(script("worker-0", MAC).contains("kernel "), "it is not installed yet");
    assert_eq!(report("master-0", r#"{"state":"installed"}"#), "403");
    assert_eq!(report("worker-0", r#"{"state":"wanted"}"#), "400");
    assert_eq!(
        report("worker-0", &format!("{{\"state\":\"failed\",\"message\":\"{}\"}}", "x".repeat(20_000))),
        "413"
    );
    assert_eq!(report("worker-0", r#"{"state":"installed"}"#), "204");
    assert_eq!(report("worker-0", r#"{"state":"installed"}"#), "204", "said again");
    assert!(script("worker-0", MAC).contains("sanboot"));
    // A killed helper knows it still.
    lab.kill();
    lab.start();
    let script = |machine: &str, mac: &str| {
        lab.run(machine, &format!("curl -sS http://192.168.100.1:8080/boot/ipxe/{mac}")).text
    };
    assert!(script("worker-0", MAC).contains("sanboot"));
    assert!(seedling_helper::boot::want(&lab.config, "worker-0").unwrap());
    assert!(!seedling_helper::boot::want(&lab.config, "master-1").unwrap(), "it does not take part");
    assert!(script("worker-0", MAC).contains("kernel "));

    let installed = |e: &_| matches!(e, Boot { host, state: BootStep::Installed, .. } if host == "worker-0");
    lab.event(installed);
    assert_eq!(lab.events().iter().filter(|e| installed(e)).count(), 1);
    lab.event(|e| matches!(e, Boot { state: BootStep::Disk, .. }));
    lab.event(|e| matches!(e, Http { path, status: 206, host, .. } if path == "/boot/rootfs.squashfs" && host.as_deref() == Some("worker-0")));
}

/// CoreOS's installer reports nothing: it has its config, writes the disk and boots from it.
#[test]
fn coreos_counts_as_installed_once_it_has_its_config() {
    let mut lab = booting(&["worker-0"], &[("rootfs.img", b"r"), ("vmlinuz", b"k")]);
    lab.config.boot.as_mut().unwrap().kind = seedling_types::helper::ImageKind::Coreos;
    lab.write("ignition/worker.ign", "{}");
    lab.addresses();
    lab.boots("worker-0");
    let refused = lab.fail(&lab.config);
    assert!(refused.contains("CoreOS's installer takes no `auto`"), "{refused}");
    lab.config.boot.as_mut().unwrap().install_device = "/dev/sda".into();
    lab.start();
    let curl = |path: &str| lab.run("worker-0", &format!("curl -sS http://192.168.100.1:8080{path}")).text;
    let script = curl(&format!("/boot/ipxe/{MAC}"));
    for part in [
        "coreos.live.rootfs_url=http://192.168.100.1:8080/boot/rootfs.img",
        "coreos.inst.install_dev=/dev/sda",
        "coreos.inst.ignition_url=http://192.168.100.1:8080/ign/52:54:00:00:00:21",
    ] {
        assert!(script.contains(part), "{part} is not in\n{script}");
    }
    assert_eq!(curl(&format!("/ign/{MAC}")), "{}");
    lab.event(|e| matches!(e, Boot { state: BootStep::Installed, .. }));
    assert!(curl(&format!("/boot/ipxe/{MAC}")).contains("sanboot"));
}
