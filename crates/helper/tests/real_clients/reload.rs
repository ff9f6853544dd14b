//! SIGHUP: machines come and go, and nobody else notices.

use crate::backend::Backend;
use crate::lab::{HELPER, Lab};
use nix::sys::signal::Signal;
use seedling_types::helper::HelperEventKind::{Backend as Checked, NotReloaded, Reloaded};
use seedling_types::ports::API;
use seedling_types::{HelperConfig, Host, Role};
use std::io::{ErrorKind, Read, Write};

fn reload(lab: &Lab, config: &HelperConfig) {
    lab.write("helper.yaml", serde_json::to_vec(config).unwrap());
    lab.signal(Signal::SIGHUP);
}

#[test]
fn a_new_machine_is_served_and_open_connections_stay() {
    let mut lab = Lab::new(&["master-0", "worker-0", "new"]);
    lab.addresses();
    let _master = Backend::start(&lab, "master-0", API);
    lab.start();
    lab.event(|e| matches!(e, Checked { host, healthy: true, .. } if host == "master-0"));
    let udhcpc = || lab.run("new", "busybox udhcpc -f -q -n -t 2 -T 1 -i eth0 -s /bin/true").ok;
    let dig =
        || lab.run("worker-0", "dig +short +time=2 +tries=1 @192.168.100.1 worker-9.ocp4.example.com").text;
    assert_eq!((udhcpc(), dig().as_str()), (false, ""), "nobody knows it yet");
    let mut through_balancer = lab.connections("worker-0", (HELPER, API).into(), 1, b"");
    let mut half = lab.connections(
        "worker-0",
        (HELPER, 8080).into(),
        1,
        b"GET /healthz HTTP/1.1\r\nConnection: close\r\nHost: x\r\n",
    );

    let (mac, address) = ("52:54:00:00:00:99".to_string(), [192, 168, 100, 29].into());
    let host = Host { name: "worker-9".into(), role: Role::Worker, mac, address, second_address: None };
    let more = HelperConfig { inventory: lab.config.inventory.with(host).unwrap(), ..lab.config.clone() };
    reload(&lab, &more);
    lab.event(|e| matches!(e, Reloaded { machines: 5 }));
    assert_eq!((udhcpc(), dig().as_str()), (true, "192.168.100.29\n"));
    let ready = std::fs::read_to_string(&lab.config.ready_file).unwrap();
    let digest = seedling_types::admission::digest_of(&serde_json::to_vec(&more).unwrap());
    assert_eq!(ready.lines().nth(1), Some(digest.as_str()));

    half[0].write_all(b"\r\n").unwrap();
    let mut answer = String::new();
    half[0].read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    through_balancer[0].set_nonblocking(true).unwrap();
    let open = through_balancer[0].read(&mut [0]).map_err(|e| e.kind());
    assert_eq!(open, Err(ErrorKind::WouldBlock), "the balancer's connection was cut off");

    // What cannot be used changes nothing.
    reload(&lab, &HelperConfig { interface: "br1".into(), ..lab.config.clone() });
    lab.event(|e| matches!(e, NotReloaded { reason } if reason.contains("restart the helper")));
    lab.write("helper.yaml", "nonsense: [");
    lab.signal(Signal::SIGHUP);
    lab.event(|e| matches!(e, NotReloaded { reason } if reason.contains("cannot read")));
    assert_eq!(dig(), "192.168.100.29\n");

    reload(&lab, &lab.config);
    lab.event(|e| matches!(e, Reloaded { machines: 4 }));
    assert_eq!((udhcpc(), dig().as_str()), (false, ""), "it is gone");
}
