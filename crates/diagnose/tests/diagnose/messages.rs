//! A person's own words find the rule.

use seedling_diagnose::{RULES, matches};

#[test]
fn every_rules_own_messages_find_it() {
    for rule in RULES {
        for message in rule.messages {
            let found: Vec<_> = matches(message).iter().map(|rule| rule.name).collect();
            assert!(found.contains(&rule.name), "{message:?}: {found:?}");
        }
    }
}

#[test]
fn peoples_words_find_the_rule() {
    for (text, want) in [
        (
            "Get \"https://api-int.x:6443/\": x509: certificate has expired or is not yet valid: current time 2026-01-03",
            "certificate-expired",
        ),
        ("lookup api-int.ocp4.example.com on 10.0.0.2:53: no such host", "dns-record-missing"),
        (
            "masters loop on GET https://api-int.x:22623/config/master: dial tcp: i/o timeout",
            "machine-config-port-blocked",
        ),
        ("write /var/lib/etcd/member/wal: no space left on device", "disk-full"),
        ("my nodes stay NotReady: cni plugin not initialized", "cni-broken"),
        ("csr stays pending", "csr-not-approved"),
        ("ErrImagePull: unauthorized: authentication required", "pull-unauthorized"),
        // Nothing but one telling word.
        ("image pull back off unauthorized", "pull-unauthorized"),
        ("why does everything end with UnknownIssuer today", "registry-untrusted"),
    ] {
        assert_eq!(matches(text).first().map(|rule| rule.name), Some(want), "{text}");
    }
    assert!(matches("").is_empty() && matches("qwertz").is_empty());
}
