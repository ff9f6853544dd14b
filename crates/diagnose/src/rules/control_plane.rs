//! etcd, the API server, and what bootkube gives it.

use super::{Finding, Link, Rule};
use crate::facts::evidence;

pub(super) const CERTIFICATE_EXPIRED: Rule = Rule {
    name: "certificate-expired",
    link: Link::Etcd,
    cause: "certificates have expired",
    next: "`seedling certs refresh` renews those of an asset directory; boot from it again. On a living cluster: `seedling certs recover`",
    messages: &[
        "x509: certificate has expired",
        "certificate has expired or is not yet valid",
        "tls: expired certificate",
        "certificate expired",
    ],
    find: |facts| {
        let now = facts.text("clock.txt")?.trim().to_string();
        let (file, line, text) = lifetimes(facts, |_, until| until < now.as_str())?;
        let used = facts.last_where("", ".log", |line| {
            (line.contains("certificate has expired") && !line.contains("is before"))
                || line.contains("certificate expired")
        });
        let says = format!("certificates have expired: {}", subject(&text));
        used.map(|used| Finding::new(says, [used, evidence(&file, Some(line), &text)]))
    },
};

pub(super) const CLOCK: Rule = Rule {
    name: "clock-off",
    link: Link::Etcd,
    cause: "certificates are not valid yet: the clocks of two machines differ",
    next: "set the clocks (`chronyc tracking`, `timedatectl`) of the machines and of the one that made the assets",
    messages: &["is not yet valid: current time is before", "x509 is before", "clock skew", "clock off"],
    find: |facts| {
        let now = facts.text("clock.txt")?.trim().to_string();
        let (file, line, text) = lifetimes(facts, |from, _| from > now.as_str())?;
        let used = facts.last("", ".log", &["is not yet valid", "is before", "NotValidYet", "not valid yet"]);
        let says =
            format!("a clock is wrong: it is {now} here, and certificates begin later: {}", subject(&text));
        Some(Finding::new(says, used.into_iter().chain([evidence(&file, Some(line), &text)])))
    },
};

fn subject(line: &str) -> &str {
    line.split_once("subject=").map_or(line, |(_, rest)| rest.split(" issuer").next().unwrap_or(rest).trim())
}

/// The first certificate whose begin and end are such; times as in RFC 3339.
fn lifetimes(facts: &super::Facts, is: impl Fn(&str, &str) -> bool) -> Option<(String, usize, String)> {
    facts.files("", "/certificates.txt").find_map(|(path, text)| {
        text.lines().enumerate().find_map(|(at, line)| {
            let field = |name: &str| {
                let rest = line.split_once(name)?.1;
                rfc3339(rest.split(" GMT").next()?)
            };
            let (from, until) = (field("notBefore=")?, field("notAfter=")?);
            is(&from, &until).then(|| (path.to_string(), at + 1, line.to_string()))
        })
    })
}

/// `Nov  5 18:21:31 2026`, as openssl says it.
fn rfc3339(text: &str) -> Option<String> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let [month, day, time, year] = text.split_whitespace().collect::<Vec<_>>()[..] else { return None };
    let month = MONTHS.find(month)? / 3 + 1;
    Some(format!("{year}-{month:02}-{:0>2}T{time}Z", day))
}

pub(super) const BAD_FLAG: Rule = Rule {
    name: "static-pod-crashes",
    link: Link::Api,
    cause: "a control-plane program ends at once: its manifest has a flag or a file that it does not know",
    next: "compare the manifest in /etc/kubernetes/manifests with rendered-assets; its container's log says what it refuses",
    messages: &[
        "unknown flag",
        "Error: unknown flag --",
        "invalid argument for flag",
        "CrashLoopBackOff kube-apiserver",
    ],
    find: |facts| {
        let said = facts.last(
            "",
            ".log",
            &["Error: unknown flag", "unknown flag: --", "flag provided but not defined"],
        )?;
        let name = said.file.rsplit('/').next().unwrap_or_default();
        const PROGRAMS: [&str; 4] = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"];
        let name = PROGRAMS.iter().find(|program| name.starts_with(**program)).copied().unwrap_or(name);
        Some(Finding::new(
            format!("the manifest of {name} has a flag that the program does not know, so it ends at once"),
            [said],
        ))
    },
};

pub(super) const BAD_STATIC_POD: Rule = Rule {
    name: "static-pod-unreadable",
    link: Link::Api,
    cause: "the kubelet cannot read a static pod's manifest",
    next: "correct the file in /etc/kubernetes/manifests; the kubelet reads it again by itself",
    messages: &["Could not process manifest file", "couldn't parse as pod", "static pod manifest invalid"],
    find: |facts| {
        let said = facts.last(
            "",
            "journals/kubelet.log",
            &["Could not process manifest file", "couldn't parse as pod"],
        )?;
        Some(Finding::new("the kubelet cannot read the manifest of a static pod", [said]))
    },
};

pub(super) const ETCD_FROZEN: Rule = Rule {
    name: "etcd-silent",
    link: Link::Etcd,
    cause: "etcd runs and does not answer",
    next: "look at etcd's process and its disk; `crictl stop` of its container starts it anew",
    messages: &[
        "etcdserver: request timed out",
        "etcd context deadline exceeded",
        "etcd does not answer",
        "etcdserver: no leader",
    ],
    find: |facts| {
        let said = facts.last_where("", ".log", |line| {
            line.contains("2379")
                && (line.contains("context deadline exceeded")
                    || line.contains("i/o timeout")
                    || line.contains("DeadlineExceeded"))
        })?;
        Some(Finding::new("etcd runs and does not answer: its process is frozen or its disk hangs", [said]))
    },
};

pub(super) const SLOW_DISK: Rule = Rule {
    name: "disk-slow",
    link: Link::Etcd,
    cause: "the disk below etcd is too slow",
    next: "give etcd a disk that syncs in less than 10 ms (`fio --fdatasync=1`), or take away what else writes to it",
    messages: &[
        "slow fdatasync",
        "apply request took too long",
        "leader failed to send out heartbeat on time",
        "slow disk",
    ],
    find: |facts| {
        facts.machines.iter().find_map(|machine| {
            let (file, logs) =
                (format!("{}checks/sync.txt", machine.dir()), format!("{}containers/etcd-", machine.dir()));
            let measured =
                facts.last_where(&file, "", |line| line.contains("copied") || line.contains("took longer"));
            let seconds = measured
                .as_ref()
                .and_then(|said| said.text.split_once("copied, ")?.1.split(' ').next()?.parse::<f64>().ok());
            let full = facts.last(&file, "", &["No space left"]).is_some();
            let slow = !full && measured.is_some() && seconds.is_none_or(|seconds| seconds > 0.6);
            // More than a second each.
            let syncs = facts.count(&logs, ".log", &["slow fdatasync"]);
            let etcd = facts.last(
                &logs,
                ".log",
                &["slow fdatasync", "took too long", "failed to send out heartbeat"],
            );
            let took = seconds
                .filter(|_| slow)
                .map_or_else(|| "about a second".to_string(), |s| format!("{:.0} ms", s * 100.0));
            let says = format!("the disk below etcd on {} is too slow: a write takes {took}", machine.name);
            (slow || syncs > 2).then(|| Finding::new(says, measured.filter(|_| slow).into_iter().chain(etcd)))
        })
    },
};

pub(super) const MANIFEST_UNREADABLE: Rule = Rule {
    name: "manifest-unreadable",
    link: Link::Api,
    cause: "a manifest is not YAML",
    next: "correct the file named there, make the Ignition files again and boot from them",
    messages: &[
        "yaml: did not find expected key",
        "yaml: line: mapping values are not allowed",
        "manifest is not YAML",
        "invalid YAML",
    ],
    find: |facts| {
        const WORDS: [&str; 8] = [
            "did not find",
            "mapping values",
            "YAML",
            "yaml: ",
            "while parsing",
            " column ",
            "unexpected",
            "expected",
        ];
        let said = facts.last_where("bootstrap/journals/bootkube.log", "", |line| {
            let names_a_file = line.contains(".yaml: ") || line.contains(".yml: ");
            names_a_file && WORDS.iter().any(|word| line.contains(word))
        })?;
        let says = "a manifest of the asset directory is not YAML, so bootkube cannot create it";
        Some(Finding::new(says, [said]))
    },
};

pub(super) const MANIFEST_REFUSED: Rule = Rule {
    name: "manifest-refused",
    link: Link::Api,
    cause: "the API refuses a manifest",
    next: "correct the object named there, make the Ignition files again and boot from them",
    messages: &[
        "all manifests to be created: no progress",
        "is invalid: metadata.name",
        "admission webhook denied",
        "no matches for kind",
        "manifest refused",
    ],
    find: |facts| {
        let said = facts.last_where("bootstrap/journals/bootkube.log", "", |line| {
            [
                "is invalid",
                "BadRequest",
                "code: 422",
                "no matches for kind",
                "unknown kind",
                "could not find the requested resource",
            ]
            .iter()
            .any(|w| line.contains(w))
        })?;
        Some(Finding::new("the API refuses a manifest of the asset directory", [said]))
    },
};

pub(super) const API_PORT_BLOCKED: Rule = Rule {
    name: "api-port-blocked",
    link: Link::Api,
    cause: "the API runs on the bootstrap machine, and cannot be reached through the load balancer on port 6443",
    next: "let the load balancer pass port 6443 to the bootstrap machine and the masters, for api and api-int",
    messages: &[
        "dial tcp :6443: i/o timeout",
        "6443: connect: connection refused",
        "load balancer 6443",
        "Failed waiting for Kubernetes API",
    ],
    find: |facts| {
        let serves = facts.last("bootstrap/services/bootkube.json", "", &["cb-bootstrap"])?;
        let blocked = facts.last_where("", "checks/reach.txt", |line| {
            line.contains(":6443/") && ["timed out", "refused", "No route"].iter().any(|w| line.contains(w))
        })?;
        let _ = serves;
        Some(Finding::new(
            "the load balancer does not pass port 6443: the API is up on the bootstrap machine, and machines do not reach it",
            [blocked],
        ))
    },
};
