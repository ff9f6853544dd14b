//! The load balancer before real TLS servers, asked by curl: nobody may notice that backends come and go.

use crate::backend::Backend;
use crate::lab::{Lab, Output, wait_until};
use seedling_types::helper::HelperEventKind::{Backend as Changed, Connection, Door, Limited};
use seedling_types::ports::{API, MCS};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

fn curl(lab: &Lab, port: u16, path: &str) -> Output {
    lab.run("worker-0", &format!("curl -sSk --max-time 15 https://192.168.100.1:{port}{path}"))
}

fn wait_for(lab: &Lab, port: u16, machine: &str, up: bool, why: &str) {
    lab.event(|e| {
        matches!(e, Changed { port: p, host, healthy, reason }
        if *p == port && host == machine && *healthy == up && reason.contains(why))
    });
}

fn answering(lab: &Lab, tries: usize) -> BTreeSet<String> {
    (0..tries)
        .map(|_| {
            let out = curl(lab, API, "/name");
            assert!(out.ok, "{}", out.text);
            out.text
        })
        .collect()
}

#[test]
fn api_connections_follow_health() {
    let mut lab = Lab::new(&["bootstrap", "master-0", "worker-0"]);
    lab.addresses();
    let bootstrap = Backend::start(&lab, "bootstrap", API);
    let master = Backend::start(&lab, "master-0", API);
    lab.start();
    wait_for(&lab, API, "bootstrap", true, "ready");
    wait_for(&lab, API, "master-0", true, "ready");
    assert_eq!(answering(&lab, 4), BTreeSet::from(["bootstrap".into(), "master-0".into()]));

    // Drain: new connections go elsewhere at once, a request under way is finished, even when the listener is gone.
    std::thread::scope(|scope| {
        master.status.store(500, Relaxed);
        wait_for(&lab, API, "master-0", false, "not ready: 500");
        let slow = scope.spawn(|| curl(&lab, API, "/slow"));
        std::thread::sleep(Duration::from_millis(300));
        master.status.store(200, Relaxed);
        wait_until("master-0 is back", || answering(&lab, 2).len() == 2);
        bootstrap.status.store(500, Relaxed);
        wait_for(&lab, API, "bootstrap", false, "not ready: 500");
        assert_eq!(answering(&lab, 4), BTreeSet::from(["master-0".into()]));
        let slow = slow.join().unwrap();
        assert!(slow.ok && slow.text == "bootstrap", "{}", slow.text);
    });

    // The process ends: refused, nobody notices.
    drop(bootstrap);
    assert_eq!(answering(&lab, 4), BTreeSet::from(["master-0".into()]));
    // Checks reuse their connection: two backends, a handful of requests, hundreds of checks would show.
    assert!(master.handshakes.load(Relaxed) < 40, "{}", master.handshakes.load(Relaxed));
}

#[test]
fn a_dead_machine_costs_no_request() {
    let mut lab = Lab::new(&["bootstrap", "master-0", "worker-0"]);
    lab.addresses();
    let _bootstrap = Backend::start(&lab, "bootstrap", API);
    let master = Backend::start(&lab, "master-0", API);
    lab.start();
    wait_for(&lab, API, "bootstrap", true, "ready");
    wait_for(&lab, API, "master-0", true, "ready");

    // Killed between two checks: the balancer still believes in it, connects in vain, and takes the next one.
    drop(master);
    assert_eq!(answering(&lab, 6), BTreeSet::from(["bootstrap".into()]));
    wait_for(&lab, API, "master-0", false, "connection refused");

    // Off: requests on it are cut soon, new ones do not meet it.
    let master = Backend::start(&lab, "master-0", API);
    wait_until("master-0 is back", || answering(&lab, 2).len() == 2);
    std::thread::scope(|scope| {
        let open: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let start = Instant::now();
                    (curl(&lab, API, "/never"), start.elapsed())
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(300));
        lab.link("master-0", "down");
        assert_eq!(answering(&lab, 6), BTreeSet::from(["bootstrap".into()]));
        wait_for(&lab, API, "master-0", false, "unreachable");
        let ends: Vec<_> = open.into_iter().map(|t| t.join().unwrap()).collect();
        let cut: Vec<_> = ends.iter().filter(|(_, took)| *took < Duration::from_secs(8)).collect();
        // One of the two was on each machine; the other one waits for curl's own time-out.
        assert_eq!(cut.len(), 1, "{:?}", ends.iter().map(|(o, t)| (&o.text, t)).collect::<Vec<_>>());
    });
    lab.link("master-0", "up");
    wait_until("master-0 is back", || answering(&lab, 2).len() == 2);
    drop(master);
}

#[test]
fn machine_config_connections_wait_for_a_backend() {
    let mut lab = Lab::new(&["bootstrap", "worker-0"]);
    lab.addresses();
    lab.start();
    std::thread::scope(|scope| {
        let held = scope.spawn(|| curl(&lab, MCS, "/name"));
        std::thread::sleep(Duration::from_secs(3));
        let _bootstrap = Backend::start(&lab, "bootstrap", MCS);
        let held = held.join().unwrap();
        assert!(held.ok && held.text == "bootstrap", "{}", held.text);
        assert_eq!(curl(&lab, MCS, "/client").text, "192.168.100.21");
    });
    lab.event(|e| {
        matches!(e, Connection { port: MCS, host, backend, .. }
        if host.as_deref() == Some("worker-0") && backend == "bootstrap")
    });

    // The API's clients are told sooner.
    let asked = Instant::now();
    assert!(!curl(&lab, API, "/name").ok);
    let took = asked.elapsed();
    assert!(took > Duration::from_millis(1900) && took < Duration::from_secs(4), "{took:?}");
}

/// Slow requests to one port take its own places only: the balancer answers, and so does that port to others.
#[test]
fn slow_requests_to_http_do_not_take_the_api_down() {
    let mut lab = Lab::new(&["master-0", "worker-0"]);
    lab.addresses();
    let _master = Backend::start(&lab, "master-0", API);
    lab.descriptors = Some(512);
    lab.start();
    wait_for(&lab, API, "master-0", true, "ready");
    let slow = b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ";
    let held = lab.connections("worker-0", (crate::HELPER, 8080).into(), 600, slow);
    lab.event(|e| matches!(e, Limited { service, .. } if service == "HTTP"));
    assert_eq!(answering(&lab, 4), BTreeSet::from(["master-0".into()]));
    let healthz = lab.run("master-0", "curl -fsS --max-time 2 http://192.168.100.1:8080/healthz");
    assert_eq!(healthz.text, "ok");
    drop(held);
}

/// A server that has a master's address and not the cluster's certificate gets no connections; without authorities anybody does.
#[test]
fn a_stranger_at_a_masters_address_gets_nothing() {
    let mut lab = Lab::new(&["master-0", "worker-0"]);
    lab.addresses();
    let _master = Backend::start(&lab, "master-0", API);
    let other = rcgen::generate_simple_self_signed(["api-int.ocp4.example.com".into()]).unwrap();
    lab.config.server_ca = Some(lab.write("ca.crt", other.cert.pem()));
    lab.start();
    let refused = curl(&lab, API, "/name");
    assert!(!refused.ok, "{}", refused.text);
}

/// A fetch that was cut off may begin again; one that ended may not, whoever is asked then; and none once a master serves.
#[test]
fn the_bootstrap_nodes_config_is_given_once_and_not_beside_masters() {
    let mut lab = Lab::new(&["bootstrap", "master-0", "worker-0"]);
    lab.addresses();
    lab.write("ignition/bootstrap.ign", vec![b'x'; 1 << 20]);
    lab.start();
    let ask = |lab: &Lab| {
        let url = "http://192.168.100.1:8080/ign/52:54:00:00:00:10";
        lab.run("bootstrap", &format!("curl -s -o /dev/null -w '%{{http_code}}' {url}")).text
    };
    lab.boots("bootstrap");
    let request = b"GET /ign/52:54:00:00:00:10 HTTP/1.1\r\nHost: x\r\n\r\n";
    drop(lab.connections("bootstrap", (crate::HELPER, 8080).into(), 1, request));
    assert_eq!(ask(&lab), "200", "the first one was cut off");
    lab.event(|e| matches!(e, Door { host, open: false, .. } if host == "bootstrap"));
    lab.kill();
    lab.start();
    assert_eq!(ask(&lab), "410", "a helper that was killed remembers");

    lab.boots("bootstrap");
    let _master = Backend::start(&lab, "master-0", API);
    lab.event(|e| matches!(e, Door { reason, .. } if reason.contains("masters carry")));
    assert_eq!(ask(&lab), "410", "the masters carry the cluster");
}
