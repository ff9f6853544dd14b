//! Names of image repositories, as upstream's reference package reads them.

use super::text;
use std::net::IpAddr;

/// A repository with its registry, or a registry alone; no tag, no digest.
pub(super) fn repository(name: &str) -> Result<(), String> {
    match canonical(name) {
        Ok(true) => Ok(()),
        Ok(false) => Err("must be repository--not reference".into()),
        Err(Fault::NotCanonical) => {
            let host = name.rsplit_once(':').map_or(name, |(host, _)| host);
            if host.parse::<IpAddr>().is_ok() {
                return Ok(());
            }
            text::subdomain(host).map_err(|why| format!("the repository provided is invalid: {why}"))
        }
        Err(Fault::Malformed(why)) => Err(format!("failed to parse: {why}")),
    }
}

enum Fault {
    /// Something is left to guess: the registry.
    NotCanonical,
    Malformed(String),
}

/// Whether it is only a name.
fn canonical(name: &str) -> Result<bool, Fault> {
    let malformed = |why: String| Err(Fault::Malformed(why));
    if name.len() == 64 && name.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) {
        return malformed(format!(
            "invalid repository name ({name}), cannot specify 64-byte hexadecimal strings"
        ));
    }
    let (domain, remainder) = split_domain(name);
    let remote = remainder.split(':').next().unwrap_or_default();
    if remote.chars().any(char::is_uppercase) {
        return malformed(format!("invalid reference format: repository name ({remote}) must be lowercase"));
    }
    let Some(only_name) = well_formed(&domain, &remainder) else {
        return malformed("invalid reference format".into());
    };
    if domain.len() + 1 + remote.len() > 255 {
        return malformed("repository name must not be more than 255 characters".into());
    }
    if format!("{domain}/{remainder}") == name { Ok(only_name) } else { Err(Fault::NotCanonical) }
}

/// The registry is what looks like a host in front of the first slash.
fn split_domain(name: &str) -> (String, String) {
    const HUB: &str = "docker.io";
    let (domain, rest) = match name.split_once('/') {
        Some(("index.docker.io", rest)) => (HUB, rest),
        Some((first, rest))
            if first == "localhost"
                || first.contains(['.', ':'])
                || first.chars().any(char::is_uppercase) =>
        {
            (first, rest)
        }
        _ => (HUB, name),
    };
    let official = domain == HUB && !rest.contains('/');
    (domain.into(), if official { format!("library/{rest}") } else { rest.into() })
}

/// Whether there is neither tag nor digest; nothing if it does not fit the grammar.
fn well_formed(domain: &str, remainder: &str) -> Option<bool> {
    let (named, digest) = remainder.split_once('@').map_or((remainder, None), |(n, d)| (n, Some(d)));
    let (path, tag) = named.split_once(':').map_or((named, None), |(p, t)| (p, Some(t)));
    let good = is_domain(domain)
        && path.split('/').all(is_component)
        && tag.is_none_or(is_tag)
        && digest.is_none_or(is_digest);
    good.then_some(tag.is_none() && digest.is_none())
}

fn is_domain(domain: &str) -> bool {
    let (host, port) = match domain.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, port)) if address.parse::<std::net::Ipv6Addr>().is_ok() => {
                ("", port.strip_prefix(':'))
            }
            _ => return false,
        },
        None => domain.split_once(':').map_or((domain, None), |(host, port)| (host, Some(port))),
    };
    let label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    (host.is_empty() && domain.starts_with('[') || host.split('.').all(label))
        && port.is_none_or(|port| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()))
}

/// Lower-case letters and digits with separators between: one dot, one or two underscores, any hyphens.
fn is_component(component: &str) -> bool {
    let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if !component.starts_with(letter) || !component.ends_with(letter) {
        return false;
    }
    component
        .split(letter)
        .filter(|separator| !separator.is_empty())
        .all(|separator| matches!(separator, "." | "_" | "__") || separator.bytes().all(|b| b == b'-'))
}

fn is_tag(tag: &str) -> bool {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    tag.len() <= 128
        && tag.bytes().next().is_some_and(word)
        && tag.bytes().all(|b| word(b) || b == b'.' || b == b'-')
}

fn is_digest(digest: &str) -> bool {
    digest.split_once(':').is_some_and(|(algorithm, hex)| {
        algorithm.starts_with(|c: char| c.is_ascii_alphabetic())
            && algorithm.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_+.".contains(&b))
            && hex.len() >= 32
            && hex.bytes().all(|b| b.is_ascii_hexdigit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What upstream's reference package answered: `Err("")` is a name that leaves its registry to guess.
    #[test]
    fn as_upstream_reads_them() {
        let digest = format!("quay.io/a/b@sha256:{}", "1".repeat(64));
        let hex = "1".repeat(64);
        let not_hex = format!("invalid repository name ({hex}), cannot specify 64-byte hexadecimal strings");
        let cases = [
            ("", Err("invalid reference format")),
            ("quay.io/a/b", Ok(true)),
            ("ocp/release", Err("")),
            ("registry.lab:5000", Err("")),
            ("registry.lab:5000/x", Ok(true)),
            ("quay.io/a/b:tag", Ok(false)),
            ("quay.io/a/b@sha256:aaaa", Err("invalid reference format")),
            (&digest, Ok(false)),
            (&hex, Err(not_hex.as_str())),
            ("quay.io/A/b", Err("invalid reference format: repository name (A/b) must be lowercase")),
            ("host:5000/A", Err("invalid reference format: repository name (A) must be lowercase")),
            ("Foo", Err("invalid reference format: repository name (library/Foo) must be lowercase")),
            ("localhost/a", Ok(true)),
            ("quay.io", Err("")),
            ("https://x/y", Err("invalid reference format")),
            ("*.quay.io", Err("invalid reference format")),
            ("quay.io//b", Err("invalid reference format")),
            ("quay.io/a/", Err("invalid reference format")),
            ("x y", Err("invalid reference format")),
            ("[::1]:5000/a", Ok(true)),
            ("QUAY.io/a", Ok(true)),
            ("10.0.0.1:5000", Err("")),
            ("docker.io/library/x", Ok(true)),
            ("docker.io/x", Err("")),
            ("index.docker.io/x", Err("")),
            ("foo_bar/x", Err("")),
        ];
        for (name, want) in cases {
            let got = canonical(name).map_err(|fault| match fault {
                Fault::NotCanonical => String::new(),
                Fault::Malformed(why) => why,
            });
            assert_eq!(got.as_ref().map_err(String::as_str), want.as_ref().map_err(|why| *why), "{name:?}");
        }
        assert!(repository("registry.lab:5000").is_ok() && repository("10.0.0.1:5000").is_ok());
    }
}
