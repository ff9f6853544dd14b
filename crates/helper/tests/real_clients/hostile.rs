//! Somebody on the nodes' network who is not what they say: real clients, with an address, a MAC or words that are not theirs.

use crate::HELPER;
use crate::backend::Backend;
use crate::lab::{Lab, wait_until};
use nix::sys::signal::Signal;
use seedling_types::helper::HelperEventKind::{Connection, Dhcp, Door, Refused};
use seedling_types::ports::MCS;
use seedling_types::proxy_protocol;
use std::fs;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const UDHCPC: &str = "#!/bin/sh\n[ $1 = bound ] && ip addr replace $ip/24 dev $interface\nexit 0\n";

/// The address it got.
fn udhcpc(lab: &Lab, machine: &str) -> String {
    let script = lab.write("udhcpc.sh", UDHCPC);
    let run = format!(
        "chmod +x {0}; ip addr flush dev eth0; busybox udhcpc -f -q -n -t 5 -T 1 -i eth0 -s {0} >/dev/null 2>&1; \
         ip -4 -brief address show dev eth0 | tr -s ' ' | cut -d ' ' -f 3",
        script.display()
    );
    lab.run(machine, &run).text.trim().trim_end_matches("/24").to_string()
}

fn config_of(lab: &Lab, from: &str, mac: &str) -> String {
    let url = format!("http://{HELPER}:8080/ign/{mac}");
    lab.run(from, &format!("curl -s --max-time 5 -o /dev/null -w '%{{http_code}}' {url}")).text
}

/// Whoever takes a machine's address gets its config only while that machine boots; and a pointer that was used is not given again.
#[test]
fn a_taken_address_gets_no_config() {
    let mut lab = Lab::new(&["bootstrap", "master-1", "stranger"]);
    lab.write("ignition/bootstrap.ign", "{}");
    lab.write("ignition/master.ign", "{}");
    lab.write("release/bin/kubelet", "x");
    lab.addresses();
    lab.start();
    // As the machine itself does at the end of its first boot.
    for (machine, mac) in [("bootstrap", "52:54:00:00:00:10"), ("master-1", "52:54:00:00:00:12")] {
        lab.boots(machine);
        assert_eq!(config_of(&lab, machine, mac), "200");
    }
    assert!(lab.run("master-1", &format!("curl -fsS http://{HELPER}:8080/bin/kubelet")).ok);
    lab.event(|e| matches!(e, Door { host, open: false, .. } if host == "master-1"));
    lab.event(|e| matches!(e, Door { host, open: false, .. } if host == "bootstrap"));

    for (machine, last, mac) in
        [("bootstrap", 10, "52:54:00:00:00:10"), ("master-1", 12, "52:54:00:00:00:12")]
    {
        lab.link(machine, "down");
        let taken = format!("ip addr flush dev eth0; ip addr add 192.168.100.{last}/24 dev eth0");
        assert!(lab.run("stranger", &taken).ok);
        wait_until("the stranger is answered", || !config_of(&lab, "stranger", mac).starts_with("000"));
        assert_eq!(config_of(&lab, "stranger", mac), "410", "{machine} has its config");
        lab.event(|e| matches!(e, Refused { host, .. } if host.as_deref() == Some(machine)));
    }
}

/// A machine's MAC gets its address, since DHCP knows nothing else; it opens no door where somebody tells when machines are switched on.
#[test]
fn a_taken_mac_opens_no_door() {
    let mut lab = Lab::new(&["stranger"]);
    lab.write("ignition/bootstrap.ign", "{\"secret\":1}");
    lab.config.told_of_power = true;
    lab.start();
    assert!(lab.run("stranger", "ip link set eth0 address 52:54:00:00:00:10").ok);
    assert_eq!(udhcpc(&lab, "stranger"), "192.168.100.10");
    assert_eq!(config_of(&lab, "stranger", "52:54:00:00:00:10"), "403");
    assert!(!lab.events().iter().any(|e| matches!(e, Door { open: true, .. })), "{:?}", lab.events());
}

/// Ends with the test, also by a panic.
struct Rogue(Child);

impl Drop for Rogue {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Rogue {
    fn start(lab: &Lab) -> Self {
        assert!(lab.run("stranger", "ip addr add 192.168.100.99/24 dev eth0").ok);
        fs::write(lab.path("rogue.leases"), "").unwrap();
        let config = format!(
            "interface eth0\nstart 192.168.100.200\nend 192.168.100.210\nlease_file {}\npidfile {}\nopt subnet 255.255.255.0\n",
            lab.path("rogue.leases").display(),
            lab.path("rogue.pid").display()
        );
        let config = lab.write("rogue.conf", config);
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", lab.namespace("stranger")));
        command.args(["busybox", "udhcpd", "-f"]).arg(config).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

/// A machine that a second DHCP server leads astray gets no config at that address; the helper tells of it, does not disturb, and gives
/// the right address as soon as it is asked again.
#[test]
fn a_second_dhcp_server_is_told_of_and_gets_nobody_a_config() {
    let mut lab = Lab::new(&["master-0", "stranger"]);
    lab.write("ignition/master.ign", "{}");
    lab.start();
    let rogue = Rogue::start(&lab);
    // Slower than the other one: it hears later what was said.
    lab.signal(Signal::SIGSTOP);
    let mut astray = String::new();
    wait_until("the other server answers", || {
        astray = udhcpc(&lab, "master-0");
        !astray.is_empty()
    });
    lab.signal(Signal::SIGCONT);
    assert!(astray.starts_with("192.168.100.2"), "{astray}");
    lab.event(|e| matches!(e, Dhcp { message, host, address, .. }
        if message == "ELSEWHERE" && host.as_deref() == Some("master-0") && address.map(|a| a.to_string()) == Some(astray.clone())));
    assert!(
        !lab.events().iter().any(|e| matches!(e, Dhcp { message, .. } if message == "NAK")),
        "it was not asked"
    );
    assert_eq!(config_of(&lab, "master-0", "52:54:00:00:00:11"), "403", "not at that address");
    drop(rogue);
    assert_eq!(udhcpc(&lab, "master-0"), "192.168.100.11");
    assert_eq!(config_of(&lab, "master-0", "52:54:00:00:00:11"), "200");
}

/// What a client writes before TLS is data: who it is says only the load balancer.
#[test]
fn a_forged_proxy_header_is_believed_by_nobody() {
    let mut lab = Lab::new(&["master-0", "worker-0"]);
    lab.addresses();
    let _master = Backend::start(&lab, "master-0", MCS);
    lab.start();
    let ask = || lab.run("worker-0", &format!("curl -sSk --max-time 15 https://{HELPER}:{MCS}/client")).text;
    assert_eq!(ask(), "192.168.100.21");
    let forged =
        proxy_protocol::header("192.168.100.11:1".parse().unwrap(), "192.168.100.1:22623".parse().unwrap());
    let words: &'static [u8] =
        Box::leak([&forged[..], b"GET /client HTTP/1.1\r\n\r\n"].concat().into_boxed_slice());
    for mut connection in lab.connections("worker-0", (HELPER, MCS).into(), 2, words) {
        connection.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let mut answer = Vec::new();
        let _ = connection.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer);
        assert!(!text.contains("192.168.100.11") && !text.contains("HTTP/1.1 200"), "{text}");
    }
    lab.event(|e| matches!(e, Connection { port: MCS, host, .. } if host.as_deref() == Some("worker-0")));
    assert!(
        !lab.events()
            .iter()
            .any(|e| matches!(e, Connection { port: MCS, host, .. } if host.as_deref() == Some("master-0")))
    );
    assert_eq!(ask(), "192.168.100.21");
}
