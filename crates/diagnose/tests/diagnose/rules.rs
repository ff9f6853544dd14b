//! Each rule finds its fault in a small bundle, with lines as real bring-ups wrote them, and the earlier link of the chain wins.

use seedling_diagnose::{Bundle, RULES, diagnose};

/// Two machines that are where they should be, but for what a case says.
const MACHINES: &str = r#"[
 {"name":"bootstrap","role":"bootstrap","address":"192.168.100.10","power":"on","position":"fetched","firstBootDone":true},
 {"name":"master-0","role":"master","address":"192.168.100.11","power":"on","position":"fetched","firstBootDone":true}]"#;

fn first(files: &[(&str, &str)]) -> Option<&'static str> {
    let mut bundle = Bundle::default();
    bundle.insert("machines.json", MACHINES.into());
    bundle.insert("helper/address.txt", b"192.168.100.1\n".to_vec());
    bundle.insert("clock.txt", b"2026-11-17T19:00:00Z\n".to_vec());
    files.iter().for_each(|(path, text)| bundle.insert(*path, text.as_bytes().to_vec()));
    diagnose(&bundle).first().map(|cause| cause.rule)
}

/// The master, at another place of its first boot.
fn at(position: &str) -> String {
    MACHINES.replacen(
        r#""power":"on","position":"fetched","firstBootDone":true}]"#,
        &format!(r#""power":"on","position":"{position}","firstBootDone":false}}]"#),
        1,
    )
}

const IGNITION: &str = "control-plane/192.168.100.11/ignition.log";

#[test]
fn a_first_boot_that_does_not_end_is_explained() {
    let (no_dhcp, no_mcs, no_ignition) = (at("noDhcp"), at("noMcsFetch"), at("noIgnitionFetch"));
    let unknown = r#"{"time":"t","event":"dhcp","message":"DISCOVER","mac":"52:54:00:5e:ed:11","host":null,"address":null}"#;
    let missing = r#"GET error: Get "https://api-int.x:22623/config/master": dial tcp: lookup api-int.x on 192.168.100.1:53: no such host"#;
    let refused = r#"GET error: Get "https://api-int.x:22623/config/master": dial tcp: lookup api-int.x on 192.168.100.1:53: server misbehaving"#;
    let silent = "GET error: lookup api-int.x on 192.168.100.1:53: read udp 192.168.100.10:4->192.168.100.1:53: i/o timeout";
    let wrong = r#"GET error: Get "https://api-int.x:22623/config/master": dial tcp 192.168.100.99:22623: connect: no route to host"#;
    let authority = "GET error: x509: certificate signed by unknown authority";
    for (want, files) in [
        ("mac-unknown", vec![("machines.json", no_dhcp.as_str()), ("helper/events.jsonl", unknown)]),
        ("dns-record-missing", vec![("machines.json", &no_mcs), (IGNITION, missing)]),
        ("dns-record-missing", vec![("machines.json", &no_mcs), (IGNITION, refused)]),
        ("dns-silent", vec![("machines.json", &no_mcs), (IGNITION, silent)]),
        ("dns-record-wrong", vec![("machines.json", &no_mcs), (IGNITION, wrong)]),
        ("ignition-server-unreachable", vec![("machines.json", &no_ignition)]),
        ("machine-config-port-blocked", vec![("machines.json", &no_mcs)]),
        ("machine-config-wrong-ca", vec![("machines.json", &at("fetched")), (IGNITION, authority)]),
    ] {
        assert_eq!(first(&files), Some(want), "{files:?}");
    }
}

/// As the kubelet and release-image.service said it of a registry behind a proxy.
#[test]
fn a_pull_that_fails_is_explained() {
    const KUBELET: &str = "bootstrap/journals/kubelet.log";
    let mirror = "Failed to pull image \"quay.io/app@sha256:00\": failed to resolve image: unexpected status from HEAD request to \
                  http://127.0.0.1:22625/v2/app/manifests/sha256:00?ns=quay.io: 403 Forbidden\\ndenied: nobody gives quay.io/app: m/app: ";
    for (want, said) in [
        ("registry-untrusted", format!("{mirror}invalid peer certificate: UnknownIssuer")),
        ("pull-unauthorized", format!("{mirror}401 Unauthorized: the pull secret has no credentials for it, or wrong ones")),
        ("proxy-refuses", format!("{mirror}tunnel error: unsuccessful")),
        ("registry-unreachable", format!("{mirror}tcp connect error")),
        (
            "registry-untrusted",
            "Failed to pull image \"r/app:1\": tls: failed to verify certificate: x509: certificate signed by unknown authority".into(),
        ),
        ("pull-unauthorized", "Failed to pull image \"r/app:1\": unexpected status from HEAD request to https://r/v2/: 403 Forbidden".into()),
    ] {
        assert_eq!(first(&[(KUBELET, said.as_str())]), Some(want), "{said}");
    }
}

/// Whatever the others' logs say of an etcd that does not answer.
#[test]
fn without_a_majority_nothing_else_is_the_cause() {
    let machine = |name: &str, role: &str, n: u8, power: &str| {
        format!(
            r#"{{"name":"{name}","role":"{role}","address":"192.168.100.{n}","power":"{power}","position":"fetched","firstBootDone":true}}"#
        )
    };
    let silent = "dial tcp 192.168.100.11:2379: context deadline exceeded";
    for (bootstrap, masters, want) in [
        ("off", ["on", "off", "off"], "majority-off"),
        ("on", ["on", "off", "off"], "etcd-silent"),
        ("off", ["on", "on", "off"], "etcd-silent"),
    ] {
        let masters =
            (0..).zip(masters).map(|(n, power)| machine(&format!("master-{n}"), "master", 11 + n, power));
        let all: Vec<_> =
            std::iter::once(machine("bootstrap", "bootstrap", 10, bootstrap)).chain(masters).collect();
        let done = r#"[{"phase":"service start"},{"phase":"service end","result":"success"}]"#;
        let files = [
            ("machines.json", &*format!("[{}]", all.join(","))),
            ("bootstrap/services/bootkube.json", done),
            ("control-plane/192.168.100.11/containers/kube-apiserver-0.log", silent),
        ];
        assert_eq!(first(&files), Some(want), "{bootstrap} {all:?}");
    }
}

#[test]
fn a_good_bring_up_has_no_cause() {
    let passing = "bootstrap kubelet[1]: dial tcp 192.168.100.1:6443: connect: connection refused\n";
    assert_eq!(first(&[("bootstrap/journals/kubelet.log", passing)]), None);
    let done = r#"[{"phase":"service start"},{"phase":"service end","result":"success"}]"#;
    let off = MACHINES.replacen(r#""power":"on""#, r#""power":"off""#, 1);
    assert_eq!(first(&[("machines.json", &off), ("bootstrap/services/bootkube.json", done)]), None);
    assert_eq!(first(&[("machines.json", &off)]), Some("bootstrap-off"));
}

/// A bundle by ssh, of a cluster that works: `seedling verify` was refused, as every stranger is.
#[test]
fn a_machine_with_a_kubelet_has_its_config() {
    let refused = r#"{"verdict":"refused","reason":"it brings no token","address":"192.168.100.11","request":{"status":403}}"#;
    let audit = ("control-plane/192.168.100.12/machine-config-server-audit.log", refused);
    let ignition = ("control-plane/192.168.100.11/ignition.log", "fetched");
    let kubelet = ("control-plane/192.168.100.11/journals/kubelet.log", "started");
    let found = |files: &[(&str, &str)]| {
        let mut bundle = Bundle::default();
        files.iter().for_each(|(path, text)| bundle.insert(*path, text.as_bytes().to_vec()));
        diagnose(&bundle).iter().any(|cause| cause.rule == "machine-config-refused")
    };
    assert!(found(&[audit, ignition]));
    assert!(!found(&[audit, ignition, kubelet]));
}

#[test]
fn the_earlier_link_wins() {
    let full = "panic: write /var/lib/etcd/member/wal: no space left on device";
    let files = [("bootstrap/containers/etcd-x-0.log", full)];
    let off = MACHINES.replacen(r#""power":"on""#, r#""power":"paused""#, 1);
    assert_eq!(first(&files), Some("disk-full"));
    assert_eq!(first(&[files[0], ("machines.json", &off)]), Some("machine-frozen"));
}

#[test]
fn rules_have_names_of_their_own_and_say_what_to_do() {
    let names: std::collections::BTreeSet<_> = RULES.iter().map(|rule| rule.name).collect();
    assert_eq!(names.len(), RULES.len());
    for rule in RULES {
        assert!(
            !rule.messages.is_empty() && !rule.next.is_empty() && !rule.cause.ends_with('.'),
            "{}",
            rule.name
        );
    }
}
