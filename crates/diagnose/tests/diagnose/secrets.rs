//! Planted secrets of every kind are gone, what explains a failure stays, and nothing that is redacted looks like a secret.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use proptest::prelude::*;
use seedling_diagnose::{leaks, redacted};

fn key(kind: &str) -> String {
    format!(
        "-----BEGIN {kind}PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BCANARY\n-----END {kind}PRIVATE KEY-----"
    )
}

/// A text with a secret, and the part of it that must not be left.
fn planted() -> Vec<(&'static str, String, &'static str)> {
    let kubeconfig =
        "users:\n- user:\n    client-key-data: Q0FOQVJZLWtleS1kYXRh\n    token: canary-token-1\n";
    let escaped = key("").replace('\n', "\\n");
    let url: String = kubeconfig.bytes().map(|b| format!("%{b:02X}")).collect();
    let packed = {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut gz, kubeconfig.as_bytes()).and_then(|()| gz.finish())
    };
    vec![
        ("PEM", format!("x\n{}\ny", key("RSA ")), "CANARY"),
        ("PEM in JSON", format!("{{\"a\":\"{escaped}\"}}"), "CANARY"),
        ("PEM without an end", "-----BEGIN EC PRIVATE KEY-----\nCANARY".into(), "CANARY"),
        ("PEM in base64", format!("tls: {}", BASE64.encode(key("EC "))), "LS0tLS1CRUdJTiBFQyBQUklWQVRF"),
        ("kubeconfig", kubeconfig.into(), "Q0FOQVJZ"),
        (
            "kubeconfig in base64",
            format!("source: data:;base64,{}", BASE64.encode(kubeconfig)),
            "dXNlcnM6Ci0g",
        ),
        ("kubeconfig in a data URL", format!("\"source\":\"data:,{url}\""), "%75%73%65%72%73"),
        (
            "kubeconfig in gzip",
            packed.map(|gz| format!("\"{}\"", BASE64.encode(gz))).unwrap_or_default(),
            "H4sI",
        ),
        ("bootstrap token", "msg: using abcdef.0123456789canary to join".into(), "0123456789canary"),
        ("bootstrap token in a path", "GET /api/abcdef.0123456789canary/x".into(), "0123456789canary"),
        ("token by key", "{\"token\": \"canary-secret-1\"}".into(), "canary"),
        ("token by flag", "kubelet --token=canary.secret".into(), "canary"),
        ("bearer", "Authorization: Bearer 00112233445566778899aabbccddcanary".into(), "canary"),
        (
            "JSON web token",
            format!("got eyJhbGciOiJSUzI1NiIsImtpZCI6.eyJpc3MiOiJr{}.c2lnCANARY", "a".repeat(30)),
            "CANARY",
        ),
        ("pull secret", "{\"auths\":{\"r:5000\":{\"auth\":\"Y2FuYXJ5OnNlY3JldA==\"}}}".into(), "Y2FuYXJ5"),
        ("bcrypt", "admin:$2a$10$CANARYabcdefghijklmnopqrstuvwxyz0123456789ABCDEFG".into(), "CANARY"),
        ("crypt", "core:$6$salt$CANARYabcdefghijklmnopqrstuvwxyz:19000:0".into(), "CANARY"),
        ("kubeadmin", "the password is CaNaR-aaaaa-bbbbb-c1234".into(), "CaNaR"),
        ("Secret in a log", "PUT {\"kind\":\"Secret\",\"data\":{\"x\":\"Y2FuYXJ5\"}} 200".into(), "Y2FuYXJ5"),
    ]
}

#[test]
fn planted_secrets_are_gone() {
    for (what, text, canary) in planted() {
        assert!(text.contains(canary), "{what}");
        assert!(!leaks(&text).is_empty(), "{what} is not seen: {text}");
        let clean = redacted("bootstrap/journals/x.log", text.clone().into_bytes()).unwrap_or_default();
        let clean = String::from_utf8_lossy(&clean);
        assert!(!clean.contains(canary), "{what}: {clean}");
        assert!(leaks(&clean).is_empty(), "{what}: {clean}");
    }
}

#[test]
fn whole_secrets_are_left_out() {
    let secret = "apiVersion: v1\nkind: Secret\ndata: {a: Yg==}\n";
    for (path, content) in [
        ("rendered-assets/openshift/manifests/x.yaml", secret),
        ("resources/x.json", "{\"items\":[{\"kind\": \"Secret\"}]}"),
        ("rendered-assets/openshift/tls/a.key", "x"),
        ("rendered-assets/openshift/auth/kubeconfig-loopback", "x"),
        ("rendered-assets/openshift/manifests/mcs-tls-secret.yaml", "x"),
        ("bootstrap/master.ign", "{}"),
    ] {
        assert_eq!(redacted(path, content.into()), None, "{path}");
    }
    assert!(redacted("resources/secrets-names.txt", b"kube-system/a\n".to_vec()).is_some());
}

#[test]
fn what_explains_a_failure_stays() {
    let lines = "Get \"https://api-int.lab.seedling.test:6443/readyz\": x509: certificate has expired or is not yet valid\n\
        Failed to pull image \"192.168.100.1:5000/seedling@sha256:0c7a1e37ae4f0aef1b67b3d3ba0a9bb9ec4dbbd0bb7d2bb4f7e1a2b3c4d5e6f7\": not found\n\
        -----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n\
        certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUIKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=\n\
        invalid bearer token, not found; pod 12345678-1234-1234-1234-123456789abc\n\
        the node's token was spent: `seedling node reissue master-0`\n";
    let clean = redacted("a.log", lines.into()).unwrap_or_default();
    assert_eq!(String::from_utf8_lossy(&clean), lines);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_is_redacted_has_a_secret(pieces in proptest::collection::vec((0..19usize, ".{0,12}"), 0..12)) {
        let planted = planted();
        let text: String = pieces.iter().map(|(n, other)| format!("{other}{}", planted[*n].1)).collect();
        if let Some(clean) = redacted("x.log", text.into_bytes()) {
            let clean = String::from_utf8_lossy(&clean).into_owned();
            prop_assert!(leaks(&clean).is_empty(), "{clean}");
        }
    }

    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = redacted("x.log", bytes);
    }
}
