//! A network that is not a lab's: other DNS servers, strangers, applications, masters that come and go.

use super::backend::Backend;
use super::lab::{HELPER, Lab, wait_until};
use nix::sys::signal::Signal;
use seedling_types::helper::AddressPool;
use seedling_types::helper::HelperEventKind::{Backend as Checked, Dhcp, Reloaded};
use seedling_types::ports::API;
use seedling_types::{HelperConfig, Host, Role};
use std::io::{ErrorKind, Read};

fn reload(lab: &Lab, config: &HelperConfig) {
    lab.write("helper.yaml", serde_json::to_vec(config).unwrap());
    lab.signal(Signal::SIGHUP);
}

/// The other server is a second helper, of another cluster, in a namespace of its own.
#[test]
fn other_names_are_asked_of_other_servers() {
    let mut lab = Lab::new(&["master-0", "master-1"]);
    lab.addresses();
    let mut other = Lab::new(&[]);
    other.config.cluster_domain = seedling_types::ClusterDomain("other.example.org".into());
    // master-1's namespace is where the other server answers.
    let shared = lab.namespace("master-1");
    other.serve_in(&shared, "eth0", [192, 168, 100, 12].into());
    lab.config.forwarders = vec![[192, 168, 100, 77].into(), [192, 168, 100, 12].into()];
    lab.config.etcd_srv = true;
    lab.start();
    let dig = |query: &str| lab.run("master-0", &format!("dig +time=6 +tries=1 @192.168.100.1 {query}")).text;
    for more in ["", "+tcp"] {
        let answer = dig(&format!("{more} api.other.example.org"));
        assert!(answer.contains("192.168.100.12") && answer.contains("flags: qr aa rd"), "{answer}");
    }
    assert!(dig("api.ocp4.example.com").contains("flags: qr aa rd ra"));
    let members = dig("+short SRV _etcd-server-ssl._tcp.ocp4.example.com");
    assert_eq!(members.lines().count(), 2, "{members}");
    assert!(dig("+norecurse api.other.example.org").contains("REFUSED"));
    // Nobody else's questions are carried outside.
    lab.run("master-0", "ip addr add 10.9.9.9/24 dev eth0");
    lab.run("bridge", "ip route add 10.9.9.0/24 dev br0");
    assert!(dig("-b 10.9.9.9 api.other.example.org").contains("REFUSED"));
    let serial = |text: String| text.split_whitespace().nth(2).unwrap().parse::<u32>().unwrap();
    let before = serial(dig("+short SOA ocp4.example.com"));
    let with = HelperConfig { forwarders: vec![], ..lab.config.clone() };
    reload(&lab, &with);
    lab.event(|e| matches!(e, Reloaded { .. }));
    assert!(serial(dig("+short SOA ocp4.example.com")) > before);
    assert!(dig("api.other.example.org").contains("REFUSED"));
}

#[test]
fn a_stranger_gets_an_address_of_the_pool_that_survives_a_kill() {
    let mut lab = Lab::new(&["stranger", "master-0"]);
    lab.config.pool = Some(AddressPool { from: [192, 168, 100, 90].into(), to: [192, 168, 100, 91].into() });
    lab.start();
    let script = lab.write(
        "udhcpc.sh",
        "#!/bin/sh\n[ $1 = bound ] && echo $ip $lease $hostname $boot_file > $OUT\nexit 0\n",
    );
    let out = lab.path("lease");
    let command = |more: &str| {
        format!(
            "chmod +x {0}; OUT={1} busybox udhcpc -f -q -n -t 2 -T 1 -i eth0 -V PXEClient -s {0} {more}",
            script.display(),
            out.display()
        )
    };
    let ask = |lab: &Lab, more: &str| {
        let _ = std::fs::remove_file(&out);
        lab.run("stranger", &command(more));
        std::fs::read_to_string(&out).unwrap_or_default().trim().to_string()
    };
    assert_eq!(ask(&lab, ""), "192.168.100.90 600");
    lab.kill();
    lab.start();
    assert_eq!(ask(&lab, ""), "192.168.100.90 600", "it has its address still");
    lab.run("stranger", "ip link set eth0 address 52:54:00:00:00:98");
    assert_eq!(ask(&lab, "-r 192.168.100.90"), "192.168.100.91 600", "that one is another's");
    lab.run("stranger", "ip link set eth0 address 52:54:00:00:00:97");
    assert_eq!(ask(&lab, ""), "", "the pool is empty");
    lab.event(|e| matches!(e, Dhcp { message, host: None, .. } if message == "REFUSED"));

    // Enrolled, it gets what the inventory says.
    let host = Host {
        name: "worker-9".into(),
        role: Role::Worker,
        mac: "52:54:00:00:00:98".into(),
        address: [192, 168, 100, 29].into(),
        second_address: None,
    };
    reload(&lab, &HelperConfig { inventory: lab.config.inventory.with(host).unwrap(), ..lab.config.clone() });
    lab.event(|e| matches!(e, Reloaded { .. }));
    lab.run("stranger", "ip link set eth0 address 52:54:00:00:00:98");
    assert_eq!(ask(&lab, ""), "192.168.100.29 14400 worker-9");
}

#[test]
fn applications_are_reached_through_the_workers_that_listen() {
    let mut lab = Lab::new(&["master-0", "master-1", "worker-0"]);
    lab.addresses();
    lab.config.ingress = true;
    lab.start();
    let listens = |machine: &str| {
        let run = format!(
            "mkdir -p {0}/{machine}; echo {machine} > {0}/{machine}/index.html; busybox httpd -p 80 -h {0}/{machine}",
            lab.path(".").display()
        );
        assert!(lab.run(machine, &run).ok);
    };
    let curl = |from: &str, path: &str| {
        lab.run(from, &format!("curl -s --max-time 6 http://192.168.100.1{path}")).text
    };
    listens("worker-0");
    lab.event(|e| matches!(e, Checked { port: 80, host, healthy: true, .. } if host == "worker-0"));
    assert_eq!(curl("master-0", "/index.html"), "worker-0\n");

    // Without workers the masters carry them; that a worker leaves needs no restart.
    listens("master-1");
    reload(&lab, &HelperConfig { inventory: lab.config.inventory.without("worker-0"), ..lab.config.clone() });
    lab.event(|e| matches!(e, Checked { port: 80, host, healthy: true, .. } if host == "master-1"));
    assert_eq!(curl("master-0", "/index.html"), "master-1\n");
    let metrics = curl("master-0", ":8080/metrics");
    for line in [
        "seedling_helper_backend_up{port=\"80\",backend=\"master-1\"} 1",
        "seedling_helper_backend_up{port=\"80\",backend=\"master-0\"} 0",
        "seedling_helper_connections_total{port=\"80\",backend=\"worker-0\"} 1",
    ] {
        assert!(metrics.lines().any(|l| l == line), "{line} is not in\n{metrics}");
    }
    assert!(curl("master-0", ":8080/stats").contains("<td>80<td>master-1<td class=up>up"));
    // Processes of a namespace do not end with it.
    for machine in ["worker-0", "master-1"] {
        let pids = super::lab::output(&format!("ip netns pids {}", lab.namespace(machine))).text;
        for pid in pids.split_whitespace() {
            super::lab::output(&format!("kill {pid}"));
        }
    }
}

#[test]
fn a_master_comes_and_goes_and_open_connections_stay() {
    let mut lab = Lab::new(&["master-0", "master-1", "worker-0"]);
    lab.addresses();
    let _first = Backend::start(&lab, "master-0", API);
    let all = lab.config.inventory.clone();
    lab.config.inventory = all.without("master-1").without("bootstrap");
    lab.start();
    lab.event(|e| matches!(e, Checked { host, healthy: true, .. } if host == "master-0"));
    let mut open = lab.connections("worker-0", (HELPER, API).into(), 1, b"");

    let _second = Backend::start(&lab, "master-1", API);
    let two = HelperConfig { inventory: all.without("bootstrap"), ..lab.config.clone() };
    reload(&lab, &two);
    lab.event(|e| matches!(e, Checked { host, healthy: true, .. } if host == "master-1"));
    // The first leaves the inventory: new connections go to the second, the open one stays.
    reload(&lab, &HelperConfig { inventory: two.inventory.without("master-0"), ..two.clone() });
    lab.event(|e| matches!(e, Reloaded { machines: 2 }));
    wait_until("the metrics name one backend", || {
        let text = lab.run("worker-0", "curl -s http://192.168.100.1:8080/metrics").text;
        text.contains("backend_up{port=\"6443\",backend=\"master-1\"} 1")
            && !text.contains("backend_up{port=\"6443\",backend=\"master-0\"}")
    });
    open[0].set_nonblocking(true).unwrap();
    assert_eq!(open[0].read(&mut [0]).map_err(|e| e.kind()), Err(ErrorKind::WouldBlock), "it was cut off");
    assert!(lab.connections("worker-0", (HELPER, API).into(), 1, b"").len() == 1);
}

/// What a site has already is not started here.
#[test]
fn servers_can_be_left_to_others() {
    let mut lab = Lab::new(&["master-0"]);
    lab.addresses();
    lab.config.without = serde_saphyr::from_str("[dhcp, dns, loadBalancer]").unwrap();
    lab.start();
    let listening =
        lab.run("bridge", "ss -Hlntu | awk '{print $5}' | sed 's/.*://' | sort -u | tr '\\n' ' '").text;
    assert_eq!(listening.trim(), "5000 8080");
}
