//! What the cluster talks to: proxy, mirrors, and how it is published; and the keys of its signers.

use super::Merged;
use super::model::KeyConfig;
use super::network::parse_cidr;
use super::problem::Problem;
use super::{reference, text, url};
use serde_json::Value;
use std::collections::HashSet;
use std::net::IpAddr;

pub(super) fn proxy(merged: &Merged, problems: &mut Vec<Problem>) {
    let Some(proxy) = &merged.proxy else { return };
    if proxy.http_proxy.is_empty() && proxy.https_proxy.is_empty() {
        let why = "must include httpProxy or httpsProxy";
        problems.push(Problem::required("proxy", why).hint("add httpProxy, or remove proxy"));
    }
    for (path, value, schemes) in [
        ("proxy.httpProxy", &proxy.http_proxy, &["http"][..]),
        ("proxy.httpsProxy", &proxy.https_proxy, &["http", "https"][..]),
    ] {
        if value.is_empty() {
            continue;
        }
        let hint = "http://proxy.example.com:3128";
        match url::parse(value) {
            Err(why) => problems.push(Problem::invalid_text(path, value, why).hint(hint)),
            Ok(url) => {
                if !schemes.contains(&url.scheme.as_str()) {
                    problems.push(Problem::unsupported(path, &url.scheme, schemes).hint(hint));
                }
                if let Ok(address) = url.host.parse() {
                    proxy_address(merged, path, value, address, problems);
                }
            }
        }
    }
    no_proxy(&proxy.no_proxy, problems);
}

/// A proxy is outside.
fn proxy_address(merged: &Merged, path: &str, value: &str, address: IpAddr, problems: &mut Vec<Problem>) {
    let net = &merged.networking;
    let in_cluster = net.cluster_network.iter().filter_map(|n| n.cidr).any(|n| n.contains(&address));
    let in_service = net.service_network.iter().flatten().any(|n| n.contains(&address));
    let in_join = net.join_subnet().is_some_and(|n| n.contains(&address));
    for (inside, what) in [
        (in_cluster, "cluster networks"),
        (in_service, "service networks"),
        (in_join, "ovn-kubernetes IPv4 InternalJoinSubnet"),
    ] {
        if inside {
            let why = format!("proxy value is part of the {what}");
            problems.push(Problem::invalid_text(path, value, why).hint("a proxy is outside the cluster"));
        }
    }
}

fn no_proxy(list: &str, problems: &mut Vec<Problem>) {
    if list.is_empty() || list == "*" {
        return;
    }
    let path = "proxy.noProxy";
    if list.contains(' ') {
        problems.push(Problem::invalid_text(path, list, "noProxy must not have spaces").hint("only commas"));
    }
    for (i, element) in list.split(',').map(str::trim).enumerate() {
        let name = element.strip_prefix('.').unwrap_or(element);
        let name = name.strip_suffix('.').unwrap_or(name);
        let good = text::subdomain(name).is_ok()
            || parse_cidr(element).is_some()
            || element.parse::<IpAddr>().is_ok();
        if !good {
            let why = format!(
                "each element of noProxy must be a IP, CIDR or domain without wildcard characters, which is violated by element {i} \
                 {}",
                super::go::quote(element)
            );
            problems.push(Problem::invalid_text(path, list, why).hint(".example.com means everything below"));
        }
    }
}

pub(super) fn content_sources(merged: &Merged, problems: &mut Vec<Problem>) {
    for (i, group) in merged.image_content_sources.iter().enumerate() {
        mirrors(&format!("imageContentSources[{i}]"), &group.source, &group.mirrors, problems);
    }
}

pub(super) fn digest_sources(merged: &Merged, problems: &mut Vec<Problem>) {
    for (i, group) in merged.image_digest_sources.iter().enumerate() {
        let path = format!("imageDigestSources[{i}]");
        mirrors(&path, &group.source, &group.mirrors, problems);
        let path = format!("{path}.sourcePolicy");
        let policy = &group.source_policy;
        if policy.is_empty() {
            continue;
        }
        if !["NeverContactSource", "AllowContactingSource"].contains(&policy.as_str()) {
            let why = "supported values are \"NeverContactSource\" and \"AllowContactingSource\"";
            problems.push(Problem::invalid_json(&path, policy, why));
        }
        if group.mirrors.is_empty() {
            let why = "sourcePolicy cannot be configured without a mirror";
            problems.push(Problem::invalid_json(&path, policy, why).hint("add mirrors, or remove it"));
        }
    }
    if !merged.image_content_sources.is_empty() {
        if !merged.image_digest_sources.is_empty() {
            // Upstream shows another field's value.
            let why = "cannot set imageContentSources and imageDigestSources at the same time";
            let problem = Problem::invalid_json("imageContentSources", &merged.publish, why);
            problems.push(problem.hint("keep imageDigestSources"));
        }
        let text = "imageContentSources is deprecated, please use ImageDigestSources";
        problems.push(Problem::warning("imageContentSources", text));
    }
}

/// A mirror may be open to everybody, so this is only said.
pub(super) fn mirrors_without_credentials(merged: &Merged, problems: &mut Vec<Problem>) {
    let content = merged.image_content_sources.iter().flat_map(|group| &group.mirrors);
    let all = content.chain(merged.image_digest_sources.iter().flat_map(|group| &group.mirrors));
    let secret: Value = serde_json::from_str(&merged.pull_secret).unwrap_or_default();
    let known = |host: &str| {
        let mut names = secret["auths"].as_object().into_iter().flat_map(|auths| auths.keys());
        names.any(|name| name.split('/').next() == Some(host))
    };
    let mut told = HashSet::new();
    for host in all.filter_map(|mirror| mirror.split('/').next()).filter(|host| !known(host)) {
        if told.insert(host) {
            let text = format!("Mirror registry {} is not found in pullSecret", super::go::quote(host));
            problems.push(Problem::warning("pullSecret", text));
        }
    }
}

fn mirrors(path: &str, source: &str, mirrors: &[String], problems: &mut Vec<Problem>) {
    let sources = std::iter::once((format!("{path}.source"), source));
    let mirrors = mirrors.iter().enumerate().map(|(i, m)| (format!("{path}.mirrors[{i}]"), m.as_str()));
    for (path, name) in sources.chain(mirrors) {
        if let Err(why) = reference::repository(name) {
            let hint = "a registry and a repository, e.g. registry.example.com/ocp/release";
            problems.push(Problem::invalid_text(&path, name, why).hint(hint));
        }
    }
}

/// The value is one that exists. Upstream asks twice.
pub(super) fn publish_known(merged: &Merged, problems: &mut Vec<Problem>) {
    let all = ["External", "Internal", "Mixed"];
    if !all.contains(&merged.publish.as_str()) {
        problems.push(Problem::unsupported("publish", &merged.publish, &all).hint("leave it out"));
    }
}

pub(super) fn publish(merged: &Merged, platform: &str, problems: &mut Vec<Problem>) {
    let publish = &merged.publish;
    let operators = merged.operator_publishing_strategy.as_ref();
    let mut refuse = |why: String| {
        problems.push(Problem::invalid_json("publish", publish, why).hint("leave it out"));
    };
    match publish.as_str() {
        "Internal" => refuse(format!("Internal publish strategy is not supported on {platform:?} platform")),
        "Mixed" => {
            refuse(format!("mixed publish strategy is not supported on {platform:?} platform"));
            if operators.is_none() {
                refuse("please specify the operator publishing strategy for mixed publish strategy".into());
            }
        }
        _ => {}
    }
    if publish != "Mixed" && operators.is_some() {
        let why = "operator publishing strategy is only allowed with mixed publishing strategy installs";
        problems.push(Problem::invalid_json("operatorPublishingStrategy", publish, why).hint("remove it"));
    }
    let Some(operators) = operators else { return };
    let or_external = |value: &str| if value.is_empty() { "External" } else { value }.to_string();
    let (apiserver, ingress) = (or_external(&operators.apiserver), or_external(&operators.ingress));
    for (name, value) in [("apiserver", &apiserver), ("ingress", &ingress)] {
        if !["External", "Internal"].contains(&value.as_str()) {
            let problem = Problem::unsupported(name, value, &["External", "Internal"]);
            problems.push(problem.at_field(&format!("operatorPublishingStrategy.{name}")));
        }
    }
    if apiserver == "Internal" && ingress == "Internal" {
        let why = "cannot set both fields to internal in a mixed cluster, use publish internal instead";
        problems.push(Problem::invalid_text("publish", &apiserver, why));
    }
}

pub(super) fn credentials_mode(merged: &Merged, platform: &str, problems: &mut Vec<Problem>) {
    if !merged.credentials_mode.is_empty() {
        let why = format!("cannot be set when using the {platform:?} platform");
        problems
            .push(Problem::invalid_json("credentialsMode", &merged.credentials_mode, why).hint("remove it"));
    }
}

pub(super) fn pki(merged: &Merged, problems: &mut Vec<Problem>) {
    let Some(pki) = &merged.pki else { return };
    let KeyConfig { algorithm, ecdsa, rsa } = &pki.signer_certificates.key;
    let path = |field: &str| format!("pki.signerCertificates.key{field}");
    match algorithm.as_str() {
        "" => {
            let why = "signerCertificates.key is required when pki is specified";
            problems.push(Problem::required(&path(""), why).hint("or remove pki"));
        }
        "RSA" => {
            let size = rsa.key_size;
            if size == 0 {
                let why = "keySize must be specified when algorithm is RSA";
                problems.push(Problem::required(&path(".rsa.keySize"), why).hint("e.g. 4096"));
            } else if !(2048..=8192).contains(&size) || size % 1024 != 0 {
                let why = "must be a multiple of 1024 from 2048 to 8192";
                problems.push(Problem::invalid(&path(".rsa.keySize"), size, why).hint("e.g. 4096"));
            }
            if !ecdsa.curve.is_empty() {
                let why = "ecdsa must not be set when algorithm is RSA";
                problems.push(Problem::forbidden(&path(".ecdsa"), why).hint("remove it"));
            }
        }
        "ECDSA" => {
            let curves = ["P256", "P384", "P521"];
            if ecdsa.curve.is_empty() {
                let why = "curve must be specified when algorithm is ECDSA";
                problems.push(Problem::required(&path(".ecdsa.curve"), why).hint("e.g. P384"));
            } else if !curves.contains(&ecdsa.curve.as_str()) {
                problems.push(Problem::unsupported(&path(".ecdsa.curve"), &ecdsa.curve, &curves));
            }
            if rsa.key_size != 0 {
                let why = "rsa must not be set when algorithm is ECDSA";
                problems.push(Problem::forbidden(&path(".rsa"), why).hint("remove it"));
            }
        }
        other => problems.push(Problem::unsupported(&path(".algorithm"), other, &["RSA", "ECDSA"])),
    }
}
