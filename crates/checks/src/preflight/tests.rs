//! Good and bad facts, check by check.

use super::*;
use crate::Outcome::{self, Failed, Ok as Good, Unknown};
use crate::verify::Asked;
use seedling_types::{ClusterDomain, Inventory};
use std::net::Ipv4Addr;

const NOW: i64 = 1_000_000;

fn said(facts: &Facts) -> Vec<(&'static str, Outcome, String)> {
    judge(facts).into_iter().map(|f| (f.check.name, f.result, f.says)).collect()
}

/// The one finding there is.
#[track_caller]
fn one(facts: Facts, name: &str, result: Outcome, words: &str) {
    let found = said(&Facts { now: NOW, ..facts });
    assert_eq!(found.len(), 1, "{found:?}");
    let (check, outcome, says) = &found[0];
    assert!(*check == name && *outcome == result && says.contains(words), "{words}: {found:?}");
}

fn inventory() -> Inventory {
    Inventory::parse(
        "hosts:\n- {name: bootstrap, role: bootstrap, mac: '52:54:00:5e:ed:10', address: 10.0.0.10}\n\
         - {name: master-0, role: master, mac: '52:54:00:5e:ed:11', address: 10.0.0.11}\n",
    )
    .unwrap_or_else(|e| panic!("{e:?}"))
}

fn answered(answers: impl Fn(&str) -> Asked<Vec<String>>, inventory: &Inventory) -> Facts {
    let mut names = questions(&ClusterDomain("c.example.com".into()), Some(inventory), "nobody");
    names.iter_mut().for_each(|resolved| resolved.answer = answers(&resolved.name));
    Facts { names, ..Facts::default() }
}

fn well(name: &str) -> Asked<Vec<String>> {
    let address = match name {
        "nobody.c.example.com" => return Ok(vec![]),
        "bootstrap.c.example.com" => "10.0.0.10",
        "master-0.c.example.com" => "10.0.0.11",
        "10.0.0.10" => "bootstrap.c.example.com",
        "10.0.0.11" => "Master-0.c.example.com.",
        _ => "10.0.0.1",
    };
    Ok(vec![address.into()])
}

#[test]
fn names_that_lead_where_they_should_are_good() {
    let found = said(&answered(well, &inventory()));
    assert_eq!(found.len(), 8);
    assert!(found.iter().all(|(_, result, _)| *result == Good), "{found:?}");
}

#[test]
fn each_trap_of_dns_is_named() {
    type Answer = fn(&str) -> Asked<Vec<String>>;
    let cases: [(&str, Outcome, &str, Answer); 7] = [
        (
            "dns-api",
            Failed,
            "does not resolve",
            |n| if n.starts_with("api-int") { Ok(vec![]) } else { well(n) },
        ),
        ("dns-api", Failed, "that is a machine, not the balancer", |n| {
            if n.starts_with("api.") { Ok(vec!["10.0.0.11".into()]) } else { well(n) }
        }),
        ("dns-hosts", Failed, "should be 10.0.0.11", |n| {
            if n.starts_with("master-0") { Ok(vec!["10.0.0.99".into()]) } else { well(n) }
        }),
        ("dns-reverse", Failed, "should be bootstrap.c.example.com", |n| {
            if n == "10.0.0.10" { Ok(vec!["localhost".into()]) } else { well(n) }
        }),
        ("dns-apps", Failed, "does not resolve", |n| if n.contains(".apps.") { Ok(vec![]) } else { well(n) }),
        ("dns-wildcard-trap", Failed, "there is a wildcard record", |n| {
            if n.starts_with("nobody.c") { Ok(vec!["10.0.0.1".into()]) } else { well(n) }
        }),
        ("dns-hosts", Unknown, "does not answer", |n| {
            if n.starts_with("boots") { Err("10.0.0.1 does not answer".into()) } else { well(n) }
        }),
    ];
    for (check, result, words, answer) in cases {
        let found = said(&answered(answer, &inventory()));
        let wrong: Vec<_> = found.iter().filter(|(_, result, _)| *result != Good).collect();
        assert_eq!(wrong.len(), 1, "{check} {words}: {wrong:?}");
        assert!(
            wrong[0].0 == check && wrong[0].1 == result && wrong[0].2.contains(words),
            "{words}: {wrong:?}"
        );
    }
}

#[test]
fn a_named_balancer_is_the_only_right_answer() {
    let mut inventory = inventory();
    inventory.load_balancers = vec![[10, 0, 0, 2].into()];
    let found = said(&answered(well, &inventory));
    let wrong: Vec<_> = found.iter().filter(|(_, result, _)| *result == Failed).collect();
    assert!(wrong.len() == 2 && wrong[0].2.contains("should be 10.0.0.2"), "{wrong:?}");
}

#[test]
fn who_answers_behind_the_balancer_matters() {
    let answers = |who: Asked<Option<(&str, &str)>>, ours: Option<bool>| Facts {
        balancer: vec![Answers {
            at: "api-int.c:6443".into(),
            who: Some(who.map(|who| who.map(|(a, b)| (a.to_string(), b.to_string())))),
            ours,
        }],
        ..Facts::default()
    };
    one(answers(Ok(None), None), "balancer", Good, "nobody is behind it yet");
    one(answers(Ok(Some(("CN=a", "CN=ours"))), Some(true)), "balancer", Good, "CN=a");
    one(
        answers(Ok(Some(("CN=a", "CN=root-ca"))), Some(false)),
        "balancer",
        Failed,
        "another cluster answers",
    );
    one(answers(Err("refused".into()), None), "balancer", Failed, "refused");
    let nowhere = Answers { at: "api-int.c:6443".into(), who: None, ours: None };
    one(Facts { balancer: vec![nowhere], ..Facts::default() }, "balancer", Unknown, "see dns-api");
}

#[test]
fn ports_dhcp_and_addresses() {
    let port = |holder: Option<&str>| {
        let holder = holder.map(str::to_string);
        let use_ = PortUse { port: 53, protocol: "UDP", what: "DNS", holder, ours: &["seedling"] };
        Facts { ports: vec![use_], ..Facts::default() }
    };
    one(port(None), "ports-free", Good, "free");
    one(port(Some("seedling")), "ports-free", Good, "seedling holds it");
    one(port(Some("dnsmasq")), "ports-free", Failed, "dnsmasq holds it, and DNS needs it");

    let (ours, other) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 254));
    let dhcp = |servers: Asked<Vec<Ipv4Addr>>| Facts {
        dhcp: Some(Offers { interface: "eth0".into(), servers, ours: Some(ours) }),
        ..Facts::default()
    };
    one(dhcp(Ok(vec![])), "foreign-dhcp", Good, "nobody");
    one(dhcp(Ok(vec![ours])), "foreign-dhcp", Good, "only ours");
    one(dhcp(Ok(vec![ours, other])), "foreign-dhcp", Failed, "10.0.0.254 offers");
    one(dhcp(Err("not allowed".into())), "foreign-dhcp", Unknown, "not allowed");

    let neighbour = |seen: Asked<Option<&str>>| {
        let seen = seen.map(|mac| mac.map(str::to_string));
        let (name, mac) = ("m".into(), "52:54:00:5e:ed:11".into());
        Facts { neighbours: vec![Neighbour { name, address: ours.into(), mac, seen }], ..Facts::default() }
    };
    one(neighbour(Ok(None)), "address-clash", Good, "nobody has it");
    one(neighbour(Ok(Some("52:54:00:5E:ED:11"))), "address-clash", Good, "its own machine");
    one(neighbour(Ok(Some("52:54:00:00:00:01"))), "address-clash", Failed, "52:54:00:00:00:01 has it");
    one(
        neighbour(Err("not on a network of this machine".into())),
        "address-clash",
        Unknown,
        "not on a network",
    );

    let errors = vec!["hosts[1].mac: already used".to_string(), "hosts[2].address: already used".into()];
    one(Facts { inventory: Some(Err(errors)), ..Facts::default() }, "inventory", Failed, "2 problems");
    one(Facts { inventory: Some(Ok(4)), ..Facts::default() }, "inventory", Good, "4 machines");
}

#[test]
fn certificates_that_do_not_last_are_found() {
    let ages = |lives: &[(i64, i64)]| {
        let ages = lives.iter().map(|(from, until)| Age {
            place: "a.crt".into(),
            from: NOW + from,
            until: NOW + until,
        });
        Facts { certificates: Some(("d".into(), Ok(ages.collect()))), ..Facts::default() }
    };
    let (hour, day) = (3600, 86400);
    one(ages(&[(-hour, 23 * hour), (-hour, 365 * day)]), "certificate-ages", Good, "first expires in 23 h");
    one(ages(&[(-23 * hour, hour)]), "certificate-ages", Failed, "a.crt expires in 60 min");
    one(ages(&[(-25 * hour, -hour), (-hour, day)]), "certificate-ages", Failed, "1 of 2 have expired");
    one(ages(&[(hour, day)]), "certificate-ages", Failed, "not valid yet");
    let unread = Facts { certificates: Some(("d".into(), Err("no".into()))), ..Facts::default() };
    one(unread, "certificate-ages", Unknown, "no");
}

#[test]
fn specs_pulls_clocks_and_disks() {
    let spec = |version: Asked<&str>| Facts {
        ignition: vec![Spec {
            file: "f".into(),
            version: version.map(str::to_string).map_err(|e| e.to_string()),
            newest: 4,
        }],
        ..Facts::default()
    };
    one(spec(Ok("3.2.0")), "ignition-spec", Good, "3.2.0");
    for bad in ["3.5.0", "2.2.0", "4.0.0", "", "x"] {
        one(spec(Ok(bad)), "ignition-spec", Failed, "understand 3.0 to 3.4");
    }
    let pull = |pulled: Asked<(u64, usize)>| Facts {
        pull: Some(Pull { image: "r/i@sha256:1".into(), from: "u".into(), pulled }),
        ..Facts::default()
    };
    one(pull(Ok((9, 2))), "release-pull", Good, "9 bytes have their digest, 2 layers");
    one(pull(Err("404".into())), "release-pull", Failed, "404");
    let clock =
        |ahead: Asked<i64>| Facts { clock: Some(Clock { url: "u".into(), ahead }), ..Facts::default() };
    one(clock(Ok(-3)), "clock", Good, "3 s");
    one(clock(Ok(3600)), "clock", Failed, "3600 s ahead of u");
    one(clock(Ok(-60)), "clock", Failed, "60 s behind u");
    one(clock(Err("refused".into())), "clock", Unknown, "refused");
    let disk =
        |micros: Asked<Vec<u64>>| Facts { disk: Some(Disk { dir: "/d".into(), micros }), ..Facts::default() };
    let mut fast = vec![800; 299];
    fast.push(60_000);
    one(disk(Ok(fast.clone())), "etcd-disk", Good, "99% 0.8 ms, worst 60.0 ms");
    fast[..5].fill(60_000);
    one(disk(Ok(fast)), "etcd-disk", Failed, "etcd wants");
    one(disk(Ok(vec![])), "etcd-disk", Unknown, "nothing");
}

#[test]
fn a_bad_machine_says_all_at_once() {
    let machine = |good: bool| Machine {
        memory_bytes: if good { 8 << 30 } else { 1 << 30 },
        processors: if good { 2 } else { 1 },
        host_name: if good { "master-0" } else { "localhost.localdomain" }.into(),
        kernel: vec![("overlayfs", true), ("br_netfilter", good)],
    };
    let found = |good: bool| said(&Facts { machine: Some(machine(good)), ..Facts::default() });
    assert!(found(true).iter().all(|(_, result, _)| *result == Good), "{:?}", found(true));
    let bad = found(false);
    assert!(bad.len() == 4 && bad.iter().all(|(_, result, _)| *result == Failed), "{bad:?}");
    assert!(bad[2].2 == "missing: br_netfilter", "{bad:?}");
}

#[test]
fn names_are_stable_and_used_once() {
    let names: Vec<_> = crate::all().iter().flat_map(|(_, checks)| checks.iter().map(|c| c.name)).collect();
    let once: std::collections::BTreeSet<_> = names.iter().collect();
    assert_eq!(once.len(), names.len(), "{names:?}");
    for (_, checks) in crate::all() {
        for check in checks {
            let kebab = check.name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
            assert!(
                kebab && check.what.ends_with('?') && !check.why.is_empty() && !check.next.is_empty(),
                "{check:?}"
            );
        }
    }
}

/// Judging is a table; asking is tried with a real server of our own on loopback.
#[tokio::test]
async fn a_registry_is_asked_by_digest() {
    use sha2::{Digest, Sha256};
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let digest = |bytes: &[u8]| {
        let hex: String = Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect();
        format!("sha256:{hex}")
    };
    let config = b"{}".to_vec();
    let manifest =
        format!(r#"{{"config":{{"digest":"{}"}},"layers":[{{"digest":"sha256:aa"}}]}}"#, digest(&config));
    let good = digest(manifest.as_bytes());
    let files = std::collections::BTreeMap::from([
        (format!("/v2/i/manifests/{good}"), manifest.clone().into_bytes()),
        (format!("/v2/i/manifests/sha256:{}", "0".repeat(64)), b"something else".to_vec()),
        (format!("/v2/i/blobs/{}", digest(&config)), config),
        ("/v2/i/blobs/sha256:aa".to_string(), b"layer".to_vec()),
    ]);
    let Ok(listener) = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await else { panic!("no port") };
    let registry = format!("http://{}", listener.local_addr().map(|a| a.to_string()).unwrap_or_default());
    let served = tokio::spawn(serve(listener, files));
    let pulled = trial_pull(&format!("r.internal/i@{good}"), &registry).await.pulled;
    assert_eq!(pulled, Ok((manifest.len() as u64 + 2, 1)));
    let wrong = trial_pull(&format!("r.internal/i@sha256:{}", "0".repeat(64)), &registry).await.pulled;
    assert!(wrong.as_ref().is_err_and(|e| e.contains("the answer's digest is")), "{wrong:?}");
    let missing = trial_pull("r.internal/i@sha256:ff", &registry).await.pulled;
    assert!(missing.as_ref().is_err_and(|e| e.contains("404")), "{missing:?}");
    let tag = trial_pull("r.internal/i:latest", &registry).await.pulled;
    assert!(tag.is_err_and(|e| e.contains("has no digest")));
    served.abort();
}

async fn serve(listener: tokio::net::TcpListener, files: std::collections::BTreeMap<String, Vec<u8>>) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut buffer = vec![0; 4096];
        let length = stream.read(&mut buffer).await.unwrap_or_default();
        let request = String::from_utf8_lossy(&buffer[..length]).into_owned();
        let mut words = request.split(' ');
        let (head, path) = (words.next() == Some("HEAD"), words.next().unwrap_or_default());
        let (status, body) = match files.get(path) {
            Some(body) => ("200 OK", body.as_slice()),
            None => ("404 Not Found", &b""[..]),
        };
        let _ = stream
            .write_all(
                format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len())
                    .as_bytes(),
            )
            .await;
        if !head {
            let _ = stream.write_all(body).await;
        }
    }
}

/// Every cluster's authorities have the same names: only the signature tells.
#[tokio::test]
#[expect(clippy::unwrap_used, reason = "tests")]
async fn another_cluster_is_told_by_its_signature() {
    use std::sync::Arc;
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let _ = provider.clone().install_default();
    let certified = || rcgen::generate_simple_self_signed(vec!["api-int.c.example.com".into()]).unwrap();
    let (ours, theirs) = (certified(), certified());
    let key = rustls::pki_types::PrivateKeyDer::try_from(ours.signing_key.serialize_der()).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![ours.cert.der().clone()], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let served = tokio::spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let _ = stream.read(&mut [0; 4096]).await;
            let _ =
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await;
            let _ = stream.shutdown().await;
        }
    });
    let ask = async |authorities: Option<String>| {
        let loopback = Some(Ipv4Addr::LOCALHOST.into());
        let answers = answers("api-int.c.example.com", loopback, port, authorities.as_deref()).await;
        assert!(matches!(&answers.who, Some(Ok(Some(_)))), "{answers:?}");
        answers.ours
    };
    assert_eq!(ask(Some(ours.cert.pem())).await, Some(true));
    assert_eq!(ask(Some(theirs.cert.pem())).await, Some(false));
    assert_eq!(ask(None).await, None);
    served.abort();
}
