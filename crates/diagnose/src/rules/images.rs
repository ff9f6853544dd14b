//! Images: the registry, what it answers, and what stands in between.

use super::{Facts, Finding, Link, Rule};
use crate::Evidence;

/// What failed pulls say, on any machine: the journals of those who pull. The kubelet's and containerd's begin with the same words.
fn pulled(facts: &Facts, words: &[&str]) -> Option<Evidence> {
    pulled_where(facts, |line| words.iter().any(|word| line.contains(word)))
}

fn pulled_where(facts: &Facts, says: impl Fn(&str) -> bool) -> Option<Evidence> {
    const FAILED: &[&str] = &[
        "Failed to pull image",
        "failed to pull",
        "Failed to create sandbox",
        "PullImage",
        "pulling image",
        "release image",
    ];
    let is_pull = |line: &str| {
        (FAILED.iter().any(|start| line.contains(start)) || line.contains("release-image[")) && says(line)
    };
    facts.machines.iter().find_map(|machine| {
        ["release-image", "bootkube", "kubelet", "containerd"]
            .iter()
            .find_map(|unit| facts.last_where(&format!("{}journals/{unit}.log", machine.dir()), "", is_pull))
    })
}

fn image(evidence: &Evidence) -> String {
    let words =
        evidence.text.split([' ', '"', '\\', ',', '\'', '(', ')']).map(|word| word.trim_end_matches(':'));
    let mut named = words.filter(|word| word.contains("@sha256:"));
    named.next_back().map_or_else(|| "an image".into(), |image| image.to_string())
}

pub(super) const PROXY: Rule = Rule {
    name: "proxy-unreachable",
    link: Link::Images,
    cause: "the proxy that machines are told to use does not answer",
    next: "correct `proxy` in install-config.yaml, or add the registry's address to `proxy.noProxy`",
    messages: &[
        "proxyconnect tcp: dial tcp",
        "proxy unreachable",
        "error trying to connect to proxy",
        "HTTP_PROXY wrong",
    ],
    find: |facts| {
        let silent = facts.last_where("", "checks/proxy.txt", |line| line.contains(": 000 "));
        let said = pulled(facts, &["proxyconnect", ":3128", "error trying to connect to proxy"]);
        let first = silent.clone().or_else(|| said.clone())?;
        let proxy = first.text.split_once(": 000").map_or("of install-config.yaml", |(proxy, _)| proxy);
        let says = format!("the proxy {proxy} does not answer, so images cannot be pulled");
        Some(Finding::new(says, silent.into_iter().chain(said)))
    },
};

pub(super) const PROXY_REFUSES: Rule = Rule {
    name: "proxy-refuses",
    link: Link::Images,
    cause: "the proxy does not let machines through to the registry",
    next: "look into the proxy's log: its user and password are in `proxy` of install-config.yaml, and it must resolve the registry's name and \
           allow CONNECT to its port",
    messages: &[
        "proxyconnect tcp: Proxy Authentication Required",
        "407 Proxy Authentication Required",
        "tunnel error: unsuccessful",
        "proxy refuses CONNECT",
    ],
    find: |facts| {
        let said = pulled(
            facts,
            &["tunnel error", "Proxy Authentication Required", "proxy authorization required"],
        )?;
        Some(Finding::new(
            format!("the proxy does not let machines through to the registry: {}", image(&said)),
            [said],
        ))
    },
};

pub(super) const UNTRUSTED: Rule = Rule {
    name: "registry-untrusted",
    link: Link::Images,
    cause: "the registry's certificate is signed by an authority that the machines do not know",
    next: "put the certificate of that authority into `additionalTrustBundle` of install-config.yaml; \
           `openssl s_client -connect REGISTRY -showcerts` shows who signed",
    messages: &[
        "failed to pull image: x509: certificate signed by unknown authority",
        "invalid peer certificate: UnknownIssuer",
        "registry certificate private CA",
    ],
    find: |facts| {
        let said = pulled(facts, &["unknown authority", "UnknownIssuer"])?;
        Some(Finding::new(format!("the registry's certificate is not trusted: {}", image(&said)), [said]))
    },
};

pub(super) const UNAUTHORIZED: Rule = Rule {
    name: "pull-unauthorized",
    link: Link::Images,
    cause: "the registry refuses the pull secret",
    next: "put credentials of that registry into `pullSecret` of install-config.yaml; `curl -u USER https://REGISTRY/v2/` tries them",
    messages: &[
        "unauthorized: authentication required",
        "401 Unauthorized",
        "pull access denied",
        "wrong pull secret",
        "no basic auth credentials",
    ],
    find: |facts| {
        // The service for mirrors says 403 whatever it was, and then what it was.
        let said = pulled_where(facts, |line| {
            let words = ["401 ", "nauthorized", "authorization failed"];
            let refused = line.contains("403 Forbidden") && !line.contains("denied: ");
            refused || words.iter().any(|word| line.contains(word))
        })?;
        Some(Finding::new(format!("the registry refuses the pull secret: {}", image(&said)), [said]))
    },
};

pub(super) const DAMAGED: Rule = Rule {
    name: "image-damaged",
    link: Link::Images,
    cause: "the registry gives something else than the digest names",
    next: "copy the image into the registry again; `seedling release build` makes the lab's",
    messages: &[
        "failed size validation",
        "unexpected commit digest",
        "digest mismatch",
        "wrong digest",
        "sha256 is not the one",
    ],
    find: |facts| {
        let said = pulled(
            facts,
            &[
                "unexpected commit digest",
                "failed size validation",
                "digest mismatch",
                "is not what",
                "another digest",
                "not have the digest",
            ],
        )?;
        Some(Finding::new(
            format!("the registry gives something else than the digest names: {}", image(&said)),
            [said],
        ))
    },
};

pub(super) const REGISTRY_DOWN: Rule = Rule {
    name: "registry-unreachable",
    link: Link::Images,
    cause: "the registry does not answer",
    next: "look whether the registry runs and whether its port reaches it from the machines: `curl -i http://REGISTRY/v2/`",
    messages: &[
        "dial tcp :5000: connect: connection refused",
        "registry does not answer",
        "pull i/o timeout registry",
        "failed to do request: Head /v2/",
    ],
    find: |facts| {
        let said = pulled(
            facts,
            &[
                ":5000: connect: ",
                ":5000: i/o timeout",
                "tcp connect error",
                "error sending request",
                "operation timed out",
                "deadline has elapsed",
            ],
        )?;
        Some(Finding::new(format!("the registry does not answer: {}", image(&said)), [said]))
    },
};

pub(super) const MISSING: Rule = Rule {
    name: "image-missing",
    link: Link::Images,
    cause: "the registry does not have an image of the release",
    next: "copy the image into the registry: build or load the release again (`seedling release build`, `seedling release load`)",
    messages: &[
        "manifest unknown",
        "ErrImagePull not found",
        "ImagePullBackOff",
        "failed to resolve reference not found",
        "image missing from the registry",
    ],
    find: |facts| {
        let said = pulled(facts, &["not found", "manifest unknown", "404 Not Found", "answered 404"])?;
        Some(Finding::new(format!("the registry does not have {}", image(&said)), [said]))
    },
};
