//! What `helper export` writes is read by the programs it is for, in a namespace that has the helper's interface and address.
//! `scripts/export-check.sh` installs them.

use super::lab::Lab;
use super::network_boot::booting;
use seedling_helper::export::{Program, export};
use seedling_types::HelperConfig;
use seedling_types::helper::AddressPool;
use std::fs;

fn exported(lab: &Lab, config: &HelperConfig, program: Program) {
    for file in export(program, config).unwrap() {
        lab.write(&format!("{}/{}", program.as_str(), file.name), file.content);
    }
}

#[test]
#[ignore = "needs haproxy, dnsmasq, bind9-utils, isc-dhcp-server, kea, nginx and libvirt-clients: scripts/export-check.sh"]
fn the_real_programs_take_what_is_exported() {
    let lab = booting(&["worker-0"], &[("undionly.kpxe", b"x")]);
    lab.write("ignition/bootstrap.ign", "{}");
    let whole = HelperConfig {
        ingress: true,
        etcd_srv: true,
        forwarders: vec![[192, 168, 100, 253].into()],
        ntp_servers: vec![[192, 168, 100, 253].into()],
        router: Some([192, 168, 100, 254].into()),
        pool: Some(AddressPool { from: [192, 168, 100, 200].into(), to: [192, 168, 100, 219].into() }),
        ..lab.config.clone()
    };
    let plain = HelperConfig { boot: None, ..lab.config.clone() };
    for (name, config) in [("everything", &whole), ("little", &plain)] {
        for program in Program::ALL {
            if config.boot.is_some() || !matches!(program, Program::Pxelinux | Program::Matchbox) {
                exported(&lab, config, program);
            }
        }
        let at = |file: &str| lab.path(file).display().to_string();
        // Where the files are in the test, and not on a machine of a site.
        let moved = |file: &str, from: &str, to: &str| {
            let text = fs::read_to_string(lab.path(file)).unwrap();
            fs::write(lab.path(file), text.replace(from, to)).unwrap();
        };
        moved("bind/named.conf", "/etc/bind/", &format!("{}/", at("bind")));
        moved("bind/named.conf", "/var/cache/bind", &at("bind"));
        moved("nginx/nginx.conf", "/etc/nginx/seedling/", &format!("{}/", at("nginx")));
        moved("nginx/nginx.conf", "/var/log/nginx", &at("nginx"));
        moved("kea/kea-dhcp4.conf", "/var/lib/kea", &at("kea"));
        let table = [
            format!("haproxy -c -f {}", at("haproxy/haproxy.cfg")),
            format!("dnsmasq --test -C {}", at("dnsmasq/dnsmasq.conf")),
            format!("named-checkconf -z {}", at("bind/named.conf")),
            format!("touch {0}; dhcpd -t -cf {1} -lf {0} br0", at("dhcpd/leases"), at("dhcpd/dhcpd.conf")),
            format!("kea-dhcp4 -t {}", at("kea/kea-dhcp4.conf")),
            format!("nginx -t -g 'pid {};' -c {}", at("nginx/pid"), at("nginx/nginx.conf")),
            format!("virt-xml-validate {} network", at("libvirt/network.xml")),
            format!("virt-xml-validate {} domain", at("libvirt/master-0.xml")),
            format!("sh -n {}", at("libvirt/define.sh")),
        ];
        for command in table {
            let said = lab.run("bridge", &format!("export PATH=$PATH:/usr/sbin:/sbin; {command} 2>&1"));
            assert!(said.ok, "{name}: {command}\n{}", said.text);
            for word in ["[WARNING]", "deprecated", "ignored"] {
                assert!(!said.text.contains(word), "{name}: {command}\n{}", said.text);
            }
        }
    }
    for mac in ["52-54-00-00-00-21", "52-54-00-00-00-11"] {
        assert!(lab.path(&format!("pxelinux/pxelinux.cfg/01-{mac}")).exists());
    }
    let profile = fs::read_to_string(lab.path("matchbox/profiles/worker-0.json")).unwrap();
    assert!(profile.contains("seedling.install_dev=auto"), "{profile}");
}

/// dnsmasq in the place of our DHCP, DNS and TFTP: machines are told the same.
#[test]
#[ignore = "needs dnsmasq: scripts/export-check.sh"]
fn dnsmasq_says_what_the_helper_says() {
    let mut lab = booting(&["worker-0", "stranger"], &[("undionly.kpxe", b"loader"), ("ipxe.efi", b"efi")]);
    exported(&lab, &lab.config, Program::Dnsmasq);
    let ask = |lab: &Lab, machine: &str, more: &str| {
        let script = lab.write("udhcpc.sh", "#!/bin/sh\n[ $1 = bound ] && env > $OUT\nexit 0\n");
        let out = lab.path("lease");
        let _ = fs::remove_file(&out);
        lab.run(
            machine,
            &format!(
                "chmod +x {0}; OUT={1} busybox udhcpc -f -q -n -t 3 -T 1 -i eth0 -O search -O bootfile -s {0} {more}",
                script.display(),
                out.display()
            ),
        );
        let lease = fs::read_to_string(out).unwrap_or_default();
        let keep =
            ["ip=", "subnet=", "router=", "dns=", "domain=", "search=", "hostname=", "bootfile=", "siaddr="];
        // dnsmasq names the file in the header or as an option, as it was asked; the helper does both.
        let lease = lease.replace("boot_file=", "bootfile=");
        let mut lines: Vec<_> = lease
            .lines()
            .filter(|line| keep.iter().any(|key| line.starts_with(key)))
            .map(|line| line.trim_end_matches('.').to_string())
            .collect();
        lines.sort();
        lines.dedup();
        lines
    };
    let dig = |lab: &Lab, what: &str| {
        lab.run("bridge", &format!("dig +short +time=2 +tries=2 @192.168.100.1 {what} | sort")).text
    };
    let questions = [
        "api.ocp4.example.com",
        "api-int.ocp4.example.com",
        "x.apps.ocp4.example.com",
        "worker-0.ocp4.example.com",
        "-x 192.168.100.21",
        "nobody.ocp4.example.com",
    ];
    let clients = [
        "",
        "-V PXEClient:Arch:00000:UNDI:002001 -x 0x5d:0000",
        "-V PXEClient:Arch:00007:UNDI:003016 -x 0x5d:0007",
        "-V PXEClient -x 0x5d:0007 -x 0x4d:69505845",
    ];
    let all = |lab: &Lab| {
        let names: Vec<_> = questions.iter().map(|what| dig(lab, what)).collect();
        let leases: Vec<_> = clients.iter().map(|more| ask(lab, "worker-0", more)).collect();
        (names, leases, ask(lab, "stranger", ""))
    };
    lab.start();
    let ours = all(&lab);
    assert!(lab.stop().success());
    let conf = lab.path("dnsmasq/dnsmasq.conf").display().to_string();
    let pid = lab.path("dnsmasq.pid").display().to_string();
    let leases = lab.path("dnsmasq.leases").display().to_string();
    let started = lab.run("bridge", &format!("PATH=$PATH:/usr/sbin dnsmasq -C {conf} --pid-file={pid} --dhcp-leasefile={leases} --user=root 2>&1"));
    assert!(started.ok, "{}", started.text);
    let theirs = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| all(&lab)));
    lab.run("bridge", &format!("kill $(cat {pid})"));
    let theirs = theirs.unwrap();
    assert_eq!(ours.1, theirs.1);
    assert_eq!(ours.2, theirs.2, "a stranger gets nothing");
    // The one difference: by address dnsmasq knows one name only.
    assert_eq!(ours.0, theirs.0);
    assert_eq!((ours.1[1].len(), ours.2.len()), (9, 0), "{:?}", ours.1);
}
