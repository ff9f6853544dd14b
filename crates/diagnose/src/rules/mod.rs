//! The table of rules, in the order of the chain: each looks at the facts of a bundle and says whether it is the cause. Pure.
//!
//! A bring-up is full of errors that pass: connections that are refused for a second, pods without a node. A rule therefore looks for what
//! stays, or for words that never come in a good bring-up.

mod control_plane;
mod first_boot;
mod images;
mod join;
mod machine;

use crate::bundle::Bundle;
use crate::cause::{Cause, Finding, Link};
use crate::facts::Facts;

pub struct Rule {
    /// Stable: the score, the docs and `-o json` go by it.
    pub name: &'static str,
    pub link: Link,
    /// In general; a finding says it of this bundle.
    pub cause: &'static str,
    pub next: &'static str,
    /// What people see of it, for `--message` and the page on messages.
    pub messages: &'static [&'static str],
    find: fn(&Facts) -> Option<Finding>,
}

/// The order is the rank: of two findings the earlier one is the cause.
pub const RULES: &[Rule] = &[
    machine::MACHINE_FROZEN,
    machine::MAJORITY_OFF,
    machine::HELPER_DOWN,
    first_boot::MAC_UNKNOWN,
    first_boot::NO_DHCP,
    first_boot::CABLE,
    first_boot::DNS_SILENT,
    first_boot::DNS_MISSING,
    first_boot::DNS_WRONG,
    first_boot::IGNITION_FILE_MISSING,
    first_boot::IGNITION_UNREACHABLE,
    machine::DISK_FULL,
    machine::CONTAINERD_DOWN,
    images::PROXY,
    images::PROXY_REFUSES,
    images::UNTRUSTED,
    images::UNAUTHORIZED,
    images::DAMAGED,
    images::REGISTRY_DOWN,
    images::MISSING,
    machine::PORT_TAKEN,
    control_plane::CERTIFICATE_EXPIRED,
    control_plane::CLOCK,
    control_plane::BAD_FLAG,
    control_plane::BAD_STATIC_POD,
    control_plane::ETCD_FROZEN,
    control_plane::SLOW_DISK,
    machine::BOOTSTRAP_OFF,
    control_plane::MANIFEST_UNREADABLE,
    control_plane::MANIFEST_REFUSED,
    control_plane::API_PORT_BLOCKED,
    join::MCS_PORT_BLOCKED,
    join::MCS_WRONG_CA,
    join::MCS_REFUSED,
    machine::MASTER_OFF,
    machine::KUBELET_DOWN,
    join::CSR_NOT_APPROVED,
    join::CNI_BROKEN,
];

/// What was found, the cause first.
pub fn diagnose(bundle: &Bundle) -> Vec<Cause> {
    let facts = Facts::of(bundle);
    let found = RULES.iter().filter_map(|rule| Some((rule, (rule.find)(&facts)?)));
    let cause = |(rule, finding): (&Rule, Finding)| Cause {
        rule: rule.name,
        link: rule.link,
        cause: finding.says,
        evidence: finding.evidence,
        next: finding.next.unwrap_or_else(|| rule.next.into()),
    };
    found.map(cause).collect()
}

/// The book's page: every cause with the messages that lead to it.
pub fn page() -> String {
    let mut text = "\nWhat `seedling analyze` finds in a log bundle, and `seedling analyze --message 'TEXT'` in your own words. The order is that \
                    of a bring-up: of two causes the earlier one explains the other.\n"
        .to_string();
    for rule in RULES {
        let seen: String = rule.messages.iter().map(|message| format!("- `{message}`\n")).collect();
        text += &format!("\n## {}\n{}.\n\n{seen}\nNext: {}.\n", rule.name, capital(rule.cause), rule.next);
    }
    text
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
