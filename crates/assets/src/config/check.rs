//! The third of three types: a valid configuration. After this nothing is checked again.

use super::merge::{Merged, Pool};
use super::problem::Problem;
use super::read::Read;
use super::{ClusterNetwork, InstallConfig, network, text};
use ipnet::IpNet;
use seedling_types::ClusterDomain;

/// `api-int.` and `*.apps.` must fit in front of it.
const NAME_LENGTH: usize = 54;

pub fn check(read: &Read, merged: Merged, problems: &mut Vec<Problem>) -> Option<InstallConfig> {
    let before = problems.len();
    ssh_key(&merged, problems);
    names(&merged, problems);
    let networks = network::check(&merged.networking, read.networking.mtu, problems);
    platform(read, problems);
    pools(&merged, problems);
    pull_secret(&merged.pull_secret, problems);
    the_rest(read, &merged, problems);
    let networks = networks.filter(|_| problems.len() == before)?;
    Some(InstallConfig {
        name: merged.metadata.name.clone(),
        domain: ClusterDomain::new(&merged.metadata.name, &merged.base_domain),
        masters: u32::try_from(merged.control_plane.replicas).ok()?,
        workers: merged.compute.iter().filter_map(|p| u32::try_from(p.replicas).ok()).sum(),
        without_hyperthreading: without_hyperthreading(&merged),
        networks,
        merged,
    })
}

fn without_hyperthreading(merged: &Merged) -> Vec<String> {
    let pools = std::iter::once(&merged.control_plane).chain(&merged.compute);
    pools.filter(|pool| pool.hyperthreading == "Disabled").map(|pool| pool.name.clone()).collect()
}

fn ssh_key(merged: &Merged, problems: &mut Vec<Problem>) {
    for line in merged.ssh_key.lines().filter(|line| !line.trim().is_empty()) {
        if !text::is_ssh_key(line) {
            let hint = "paste the contents of a public key file, e.g. ~/.ssh/id_ed25519.pub";
            problems.push(Problem::invalid("sshKey", format!("{line:?}"), "ssh: no key found").hint(hint));
        }
    }
}

fn names(merged: &Merged, problems: &mut Vec<Problem>) {
    let name = &merged.metadata.name;
    let hint = "use lower-case letters, digits and '-', e.g. ocp4";
    if let Err(why) = text::subdomain(name) {
        problems.push(Problem::invalid("metadata.name", format!("{name:?}"), why).hint(hint));
    } else if name.len() > NAME_LENGTH {
        let why = format!("must be no more than {NAME_LENGTH} characters");
        problems
            .push(Problem::invalid("metadata.name", format!("{name:?}"), why).hint("choose a shorter name"));
    }
    let domain = merged.base_domain.strip_suffix('.').unwrap_or(&merged.base_domain);
    if let Err(why) = text::subdomain(domain) {
        let hint = "the domain under which the cluster's name lives, e.g. example.com";
        problems.push(Problem::invalid("baseDomain", format!("{:?}", merged.base_domain), why).hint(hint));
    } else if let Err(why) = text::subdomain(&format!("{name}.{domain}"))
        && why.contains("253")
    {
        problems.push(
            Problem::invalid("baseDomain", format!("\"{name}.{domain}\""), why)
                .hint("choose a shorter domain"),
        );
    }
}

fn platform(read: &Read, problems: &mut Vec<Problem>) {
    const ALL: &str =
        "aws, azure, baremetal, external, gcp, ibmcloud, none, nutanix, openstack, powervc, powervs, vsphere";
    match &read.platforms[..] {
        [] => {
            let why = format!("must specify one of the platforms ({ALL})");
            problems.push(Problem::invalid("platform", "\"\"", why).hint("write platform: {none: {}}"));
        }
        [one] if one == "none" => {}
        [one] => problems.push(
            Problem::unsupported("platform", one, &["none"])
                .hint("seedling installs machines it does not own: none"),
        ),
        [one, two, ..] => {
            let why =
                format!("must only specify a single type of platform; cannot use both {one:?} and {two:?}");
            problems.push(Problem::invalid("platform", format!("{one:?}"), why).hint("keep none"));
        }
    }
}

fn pools(merged: &Merged, problems: &mut Vec<Problem>) {
    pool(&merged.control_plane, "controlPlane", problems);
    if merged.control_plane.architecture != "amd64" {
        let given = &merged.control_plane.architecture;
        let problem = Problem::unsupported("controlPlane.architecture", given, &["amd64"]);
        problems.push(problem.hint("the release is built for amd64"));
    }
    match merged.control_plane.replicas {
        0 => {
            let why = "number of control plane replicas must be positive";
            problems
                .push(Problem::invalid("controlPlane.replicas", 0, why).hint("3 survive the loss of one"));
        }
        2 => {
            let why =
                "two control plane replicas need fencing credentials, which seedling does not act on yet";
            problems.push(
                Problem::invalid("controlPlane.replicas", 2, why).hint("3 survive the loss of one, 2 do not"),
            );
        }
        _ => {}
    }
    for (i, compute) in merged.compute.iter().enumerate() {
        let path = format!("compute[{i}]");
        let name = format!("{path}.name");
        match compute.name.as_str() {
            "worker" if merged.compute[..i].iter().any(|p| p.name == "worker") => {
                let problem = Problem::new(
                    super::Step::Validate,
                    &name,
                    format!("{name}: Duplicate value: \"worker\""),
                );
                problems.push(problem.hint("keep one pool"));
            }
            "worker" => {}
            "edge" => problems.push(Problem::unsupported(&name, "edge", &["worker"]).hint("name it worker")),
            other => {
                problems.push(Problem::unsupported(&name, other, &["worker", "edge"]).hint("name it worker"))
            }
        }
        pool(compute, &path, problems);
        if compute.architecture != merged.control_plane.architecture {
            let why = "heteregeneous multi-arch is not supported; compute pool architecture must match control plane";
            let path = format!("{path}.architecture");
            problems.push(
                Problem::invalid(&path, format!("{:?}", compute.architecture), why).hint("leave it out"),
            );
        }
    }
}

fn pool(pool: &Pool, path: &str, problems: &mut Vec<Problem>) {
    if pool.replicas < 0 {
        let why = "number of replicas must not be negative";
        problems.push(Problem::invalid(&format!("{path}.replicas"), pool.replicas, why).hint("0 or more"));
    }
    if !["Enabled", "Disabled"].contains(&pool.hyperthreading.as_str()) {
        let path = format!("{path}.hyperthreading");
        problems.push(Problem::unsupported(&path, &pool.hyperthreading, &["Disabled", "Enabled"]));
    }
}

/// The value itself is a secret and never repeated.
fn pull_secret(secret: &str, problems: &mut Vec<Problem>) {
    if let Err(why) = text::pull_secret(secret) {
        let shown = if secret.is_empty() { "\"\"" } else { "(redacted)" };
        let hint =
            "one line of JSON, e.g. '{\"auths\":{\"registry.example.com\":{\"auth\":\"dXNlcjpwYXNz\"}}}'";
        problems.push(Problem::invalid("pullSecret", shown, why).hint(hint));
    }
}

fn the_rest(read: &Read, merged: &Merged, problems: &mut Vec<Problem>) {
    match merged.publish.as_str() {
        "External" => {}
        "Internal" | "Mixed" => {
            let word = if merged.publish == "Mixed" { "mixed" } else { "Internal" };
            let why = format!("{word} publish strategy is not supported on \"none\" platform");
            problems
                .push(Problem::invalid("publish", format!("{:?}", merged.publish), why).hint("leave it out"));
        }
        other => problems.push(Problem::unsupported("publish", other, &["External", "Internal", "Mixed"])),
    }
    if let Some(mode) = &read.credentials_mode {
        let why = "cannot be set when using the \"none\" platform";
        problems.push(Problem::invalid("credentialsMode", format!("{mode:?}"), why).hint("remove it"));
    }
    if !["Proxyonly", "Always"].contains(&merged.additional_trust_bundle_policy.as_str()) {
        let value = format!("{:?}", merged.additional_trust_bundle_policy);
        problems.push(Problem::invalid(
            "additionalTrustBundlePolicy",
            value,
            "supported values \"Proxyonly\", \"Always\"",
        ));
    }
    if read.fips == Some(true) {
        problems
            .push(Problem::forbidden("fips", "seedling has no FIPS mode").hint("remove it or write false"));
    }
    for field in &read.not_yet {
        problems.push(Problem::forbidden(field, "seedling does not act on it yet").hint("remove it"));
    }
}

/// What [`network::check`] found valid.
pub(super) fn cluster_networks(parsed: Vec<(IpNet, i64)>) -> Option<Vec<ClusterNetwork>> {
    let each = |(net, prefix): (IpNet, i64)| match net {
        IpNet::V4(cidr) => Some(ClusterNetwork { cidr, host_prefix: u8::try_from(prefix).ok()? }),
        IpNet::V6(_) => None,
    };
    parsed.into_iter().map(each).collect()
}
