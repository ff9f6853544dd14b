//! The helper in a network namespace of its own, asked by real clients from others: busybox udhcpc, dig, curl.
//! Needs root, iproute2, util-linux, busybox, bind9-dnsutils and curl; nothing leaves the namespaces.
#![expect(clippy::unwrap_used, reason = "tests")]

mod backend;
mod export;
mod hostile;
mod lab;
mod load_balancer;
mod network_boot;
mod preflight;
mod qemu;
mod reload;
mod site;

use lab::{HELPER, Lab};
use seedling_types::HelperConfig;
use seedling_types::helper::HelperEventKind::{Dhcp, Door, Http, Refused, Registry};
use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// No test: the helper's process, started by the tests with its config.
#[test]
#[ignore = "run by the other tests as their helper"]
fn helper_process() {
    let Some(path) = std::env::var_os(lab::CONFIG_VARIABLE) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    if let Err(error) = runtime.block_on(seedling_helper::run(path.as_ref(), None)) {
        eprintln!("error: {error}");
        std::process::exit(1);
    }
    std::process::exit(0);
}

#[test]
fn udhcpc_gets_the_fixed_address() {
    let mut lab = Lab::new(&["master-0", "stranger"]);
    lab.start();
    let script = lab.write(
        "udhcpc.sh",
        "#!/bin/sh\n[ $1 = bound ] && env > $OUT && ip addr replace $ip/$mask dev $interface\nexit 0\n",
    );
    let out = lab.path("lease");
    let udhcpc = |host: &str, more: &str| {
        let command = "busybox udhcpc -f -q -n -t 2 -T 1 -i eth0 -O search -O hostname -O broadcast";
        lab.run(
            host,
            &format!("chmod +x {0}; OUT={1} {command} -s {0} {more}", script.display(), out.display()),
        )
    };

    // Even if it wishes for another address.
    let got = udhcpc("master-0", "-r 192.168.100.77");
    assert!(got.ok, "{}", got.text);
    let lease = fs::read_to_string(&out).unwrap();
    for line in [
        "ip=192.168.100.11",
        "subnet=255.255.255.0",
        "broadcast=192.168.100.255",
        "router=192.168.100.1",
        "dns=192.168.100.1",
        "serverid=192.168.100.1",
        "hostname=master-0",
        "domain=ocp4.example.com",
        "search=ocp4.example.com",
        "lease=14400",
    ] {
        assert!(lease.lines().any(|l| l.trim_end_matches('.') == line), "{line} is not in\n{lease}");
    }
    assert!(lab.run("master-0", "curl -fsS http://192.168.100.1:8080/healthz").text == "ok");

    let refused = udhcpc("stranger", "");
    assert!(!refused.ok && refused.text.contains("no lease"), "{}", refused.text);

    let heard = |wanted: &str, name: Option<&str>| {
        lab.event(|e| matches!(e, Dhcp { message, host, .. } if message == wanted && host.as_deref() == name))
    };
    for word in ["DISCOVER", "OFFER", "REQUEST", "ACK"] {
        heard(word, Some("master-0"));
    }
    heard("REFUSED", None);
}

#[test]
fn dig_finds_names() {
    let mut lab = Lab::new(&["master-0"]);
    lab.addresses();
    lab.start();
    let dig = |query: &str| lab.run("master-0", &format!("dig +time=2 +tries=1 @192.168.100.1 {query}")).text;
    let short = |query: &str| dig(&format!("+short {query}"));
    assert_eq!(short("api-int.ocp4.example.com"), "192.168.100.1\n");
    assert_eq!(short("+tcp a.b.apps.OCP4.example.com"), "192.168.100.1\n");
    assert_eq!(short("-x 192.168.100.11"), "master-0.ocp4.example.com.\n");
    assert_eq!(short("-x 192.168.100.1"), "api.ocp4.example.com.\napi-int.ocp4.example.com.\n");
    let table = [
        ("AAAA api.ocp4.example.com", "NOERROR", "AUTHORITY: 1"),
        ("A apps.ocp4.example.com", "NOERROR", "AUTHORITY: 1"),
        ("A master-7.ocp4.example.com", "NXDOMAIN", "AUTHORITY: 1"),
        ("A www.example.com", "REFUSED", "AUTHORITY: 0"),
        ("+tcp +keepopen A www.example.com +tcp A api.ocp4.example.com", "NOERROR", "ANSWER: 1"),
    ];
    for (query, status, section) in table {
        let text = dig(query);
        assert!(text.contains(&format!("status: {status}")) && text.contains(section), "{query}\n{text}");
        assert!(!text.contains("malformed") && !text.contains("WARNING: Message"), "{query}\n{text}");
    }
}

#[test]
fn curl_gets_its_own_ignition_file_and_software() {
    let mut lab = Lab::new(&["bootstrap", "master-0", "master-1"]);
    lab.addresses();
    lab.write("ignition/bootstrap.ign", "{\"secret\":1}");
    lab.write("ignition/master.ign", "{\"role\":1}");
    lab.write("ignition/nodes/master-1.ign", "{\"own\":1}");
    lab.write("secret", "secret");
    let kubelet: Vec<u8> = (0..3_000_001u32).map(|i| (i * 7 / 5) as u8).collect();
    lab.write("release/bin/kubelet", &kubelet);
    lab.start();
    let curl = |host: &str, what: &str| {
        lab.run(host, &format!("curl -sS --path-as-is {}", what.replace('@', "http://192.168.100.1:8080")))
    };
    let status = |host: &str, what: &str| {
        curl(host, &format!("-o /dev/null -w '%{{http_code}} %{{content_type}}' {what}")).text
    };

    assert!(status("bootstrap", "@/ign/52:54:00:00:00:10").starts_with("403"), "before it is switched on");
    ["bootstrap", "master-0", "master-1"].iter().for_each(|machine| lab.boots(machine));
    let own = "200 application/vnd.coreos.ignition+json";
    assert_eq!(status("bootstrap", "-A Ignition/2.14.0 @/ign/52:54:00:00:00:10"), own);
    assert_eq!(status("master-0", "@/ign/52:54:00:00:00:10"), "403 text/plain; charset=utf-8");
    let again = curl("bootstrap", "@/ign/52:54:00:00:00:10").text;
    assert!(again.contains("was given already since its machine was switched on"), "{again}");
    assert_eq!(curl("master-0", "@/ign/52-54-00-00-00-11").text, "{\"role\":1}");
    assert_eq!(curl("master-0", "@/ign/52-54-00-00-00-11").text, "{\"role\":1}", "it waits, and asks again");
    assert_eq!(curl("master-1", "@/ign/52:54:00:00:00:12").text, "{\"own\":1}");

    let out = lab.path("kubelet");
    assert!(curl("master-0", &format!("-f -o {} @/bin/kubelet", out.display())).ok);
    assert!(fs::read(out).unwrap() == kubelet);
    // It has its config: whoever asks from its address now is not its Ignition.
    assert!(status("master-0", "@/ign/52-54-00-00-00-11").starts_with("410"));
    assert!(curl("master-0", "-I @/bin/kubelet").text.contains("content-length: 3000001"));
    for path in
        ["/bin/../../secret", "/bin/..%2f..%2fsecret", "/bin/%2e%2e", "/bin/", "/bin/nothing", "/ign/", "/"]
    {
        assert!(status("master-0", &format!("@{path}")).starts_with("404"), "{path}");
    }
    assert!(status("master-0", "-X POST -d x @/bin/kubelet").starts_with("405"));

    lab.event(|e| matches!(e, Http { path, status: 200, user_agent, host, bytes: 12, .. }
        if path == "/ign/52:54:00:00:00:10" && user_agent == "Ignition/2.14.0" && host.as_deref() == Some("bootstrap")));
    lab.event(|e| {
        matches!(e, Http { path, status: 403, remote, .. }
        if path == "/ign/52:54:00:00:00:10" && *remote == IpAddr::from([192, 168, 100, 11]))
    });
    lab.event(|e| matches!(e, Http { path, status: 404, .. } if path == "/"));
    lab.event(|e| matches!(e, Refused { host: Some(host), reason, .. } if host == "bootstrap" && reason.contains("given already")));
    lab.event(|e| matches!(e, Door { host, open: false, .. } if host == "master-0"));
}

/// On real machines nobody tells of power: the packet a machine begins with opens its door, and what it does later does not.
#[test]
fn a_machine_that_asks_for_an_address_may_fetch_its_config() {
    let mut lab = Lab::new(&["bootstrap"]);
    lab.write("ignition/bootstrap.ign", "{}");
    lab.start();
    let ask = || {
        let url = "http://192.168.100.1:8080/ign/52:54:00:00:00:10";
        lab.run("bootstrap", &format!("curl -s -o /dev/null -w '%{{http_code}}' {url}")).text
    };
    let udhcpc = || {
        let script = lab.write(
            "udhcpc.sh",
            "#!/bin/sh\n[ $1 = bound ] && ip addr replace $ip/$mask dev $interface\nexit 0\n",
        );
        let run = format!("chmod +x {0}; busybox udhcpc -f -q -n -t 2 -T 1 -i eth0 -s {0}", script.display());
        let run = lab.run("bootstrap", &run);
        assert!(run.ok, "{}", run.text);
    };
    udhcpc();
    assert_eq!((ask(), ask()), ("200".into(), "410".into()));
    lab.event(|e| matches!(e, Door { host, open: true, .. } if host == "bootstrap"));
    udhcpc();
    assert_eq!((ask(), ask()), ("200".into(), "410".into()));
}

#[test]
fn curl_pulls_an_image() {
    let mut lab = Lab::new(&["master-0"]);
    lab.addresses();
    let store = |bytes: &[u8]| {
        let sum = lab.write("sum", bytes);
        let hex = lab::output(&format!("sha256sum {}", sum.display())).text[..64].to_string();
        lab.write(&format!("release/oci/blobs/sha256/{hex}"), bytes);
        format!("sha256:{hex}")
    };
    let layer = store(&[7; 100_000]);
    let manifest = format!(
        "{{\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\",\"layers\":[{{\"digest\":\"{layer}\"}}]}}"
    );
    let digest = store(manifest.as_bytes());
    let index = format!(
        "{{\"manifests\":[{{\"digest\":\"{digest}\",\"annotations\":{{\"org.opencontainers.image.ref.name\":\"etcd\"}}}}]}}"
    );
    lab.write("release/oci/index.json", index);
    lab.start();
    let curl = |what: &str| {
        lab.run("master-0", &format!("curl -sS {}", what.replace('@', "http://192.168.100.1:5000/v2/"))).text
    };

    let head = curl(&format!("-I '@seedling/etcd/manifests/{digest}?ns=registry.seedling.internal'"));
    for line in [
        "HTTP/1.1 200 OK".to_string(),
        "content-type: application/vnd.oci.image.manifest.v1+json".into(),
        format!("docker-content-digest: {digest}"),
        format!("content-length: {}", manifest.len()),
        "docker-distribution-api-version: registry/2.0".into(),
    ] {
        assert!(head.lines().any(|l| l == line), "{line} is not in\n{head}");
    }
    assert_eq!(curl(&format!("@seedling/etcd/manifests/{digest}")), manifest);
    assert_eq!(curl("@seedling/etcd/manifests/latest"), manifest);
    assert_eq!(curl(&format!("@any/name/blobs/{layer} | sha256sum")), format!("{}  -\n", &layer[7..]));
    assert_eq!(
        curl(&format!("-r 10-19 -o /dev/null -w '%{{http_code}} %{{size_download}}' @x/blobs/{layer}")),
        "206 10"
    );
    assert_eq!(curl("-o /dev/null -w '%{http_code}' @"), "200");
    for (path, code) in [
        ("x/manifests/v9", "MANIFEST_UNKNOWN"),
        ("x/blobs/sha256:1", "DIGEST_INVALID"),
        ("x/tags/list", "UNSUPPORTED"),
    ] {
        let text = curl(&format!("@{path}"));
        assert!(text.contains(&format!("\"errors\":[{{\"code\":\"{code}\"")), "{path}: {text}");
    }
    assert!(curl(&format!("@x/blobs/sha256:{}", "0".repeat(64))).contains("BLOB_UNKNOWN"));
    lab.event(|e| matches!(e, Registry { path, status: 206, host, .. } if path.contains("/blobs/") && host.as_deref() == Some("master-0")));
}

#[test]
fn forwards_reach_inside_and_sigterm_ends() {
    let mut lab = Lab::new(&["master-0"]);
    // Outside, on loopback; the helper inherits the socket and dials inside.
    let outside = TcpListener::bind("127.0.0.1:0").unwrap();
    lab.forward(&outside, (HELPER, 8080).into());
    lab.start();
    let mut stream = TcpStream::connect(outside.local_addr().unwrap()).unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("ok"), "{answer}");

    assert!(lab.path("ready").exists());
    let asked = Instant::now();
    assert!(lab.stop().success());
    assert!(asked.elapsed() < Duration::from_secs(2));
    assert!(!lab.path("ready").exists());
    lab.event(|e| matches!(e, Http { path, remote: HELPER, .. } if path == "/healthz"));
}

#[test]
fn a_taken_port_is_one_clear_sentence() {
    let mut lab = Lab::new(&["master-0"]);
    lab.start();
    let config = HelperConfig { ready_file: lab.path("second-ready"), ..lab.config.clone() };
    let error = lab.fail(&config);
    assert!(error.contains("error: cannot listen on 0.0.0.0:67 for DHCP: Address already in use"), "{error}");
    assert!(!config.ready_file.exists());
    let config = HelperConfig { interface: "nowhere0".into(), ..config };
    assert!(lab.fail(&config).contains("cannot listen on 0.0.0.0:67 for DHCP: No such device"));
}
