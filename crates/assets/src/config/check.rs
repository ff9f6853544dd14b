//! The third of three types: a valid configuration. Every rule runs, in upstream's order; after this nothing is checked again.

use super::model::{ClusterEntry, Pool};
use super::problem::Problem;
use super::{
    ClusterNetwork, Context, InstallConfig, Merged, Networks, Platform, capabilities, features, network,
    platform, pools, secret, services, ssh, text, vips,
};
use seedling_types::ClusterDomain;
use serde_json::Value;

/// `api-int.` and `*.apps.` must fit in front of it.
const NAME_LENGTH: usize = 54;
const BYPASSED: &str = "install.openshift.io/hostcrypt-check-bypassed";

pub(super) fn check(merged: &mut Merged, context: &Context, problems: &mut Vec<Problem>) {
    if merged.fips {
        fips(merged, context, problems);
    } else {
        ssh_key(merged, problems);
    }
    trust_bundle(merged, problems);
    names(merged, problems);
    network::check(&merged.networking, problems);
    if let Some(b) = &merged.platform.baremetal {
        let lists = [(&b.api_vips[..], "apiVIPs"), (&b.ingress_vips[..], "ingressVIPs")];
        let user_managed = b.load_balancer.as_ref().is_some_and(|l| l.kind == "UserManaged");
        vips::check(&merged.networking, "platform.baremetal", lists, user_managed, problems);
    }
    network::check_ovn(&merged.networking, problems);
    let name = platform::active(&merged.platform);
    platform::check(merged, problems);
    pools::check(merged, name, problems);
    pull_secret(&merged.pull_secret, problems);
    services::proxy(merged, problems);
    services::content_sources(merged, problems);
    services::publish_known(merged, problems);
    services::digest_sources(merged, problems);
    services::credentials_mode(merged, name, problems);
    capabilities::check_names(merged, problems);
    services::publish(merged, name, problems);
    capabilities::check_needs(merged, problems);
    in_place(merged, name, problems);
    services::pki(merged, problems);
    features::check(merged, problems);
    services::mirrors_without_credentials(merged, problems);
}

/// The typed view of a config without problems.
pub(super) fn valid(merged: Merged, warnings: Vec<String>) -> InstallConfig {
    let count = |pool: &Pool| u32::try_from(pool.replicas.unwrap_or_default()).unwrap_or(u32::MAX);
    let net = &merged.networking;
    let cluster = |entry: &ClusterEntry| {
        Some(ClusterNetwork {
            cidr: entry.cidr?,
            host_prefix: u8::try_from(entry.host_prefix).unwrap_or_default(),
        })
    };
    let pools = std::iter::once(&merged.control_plane).chain(&merged.arbiter).chain(&merged.compute);
    let gates = features::custom(&merged.feature_gates).into_iter().map(|(name, on)| (name.to_string(), on));
    InstallConfig {
        name: merged.metadata.name.clone(),
        domain: ClusterDomain::new(&merged.metadata.name, &merged.base_domain),
        masters: count(&merged.control_plane),
        arbiters: merged.arbiter.as_ref().map_or(0, count),
        workers: merged.compute.iter().map(count).fold(0, u32::saturating_add),
        without_hyperthreading: pools
            .filter(|pool| pool.hyperthreading == "Disabled")
            .map(|pool| pool.name.clone())
            .collect(),
        networks: Networks {
            network_type: net.network_type.clone(),
            machine: net.machine_network.iter().filter_map(|entry| entry.cidr).collect(),
            cluster: net.cluster_network.iter().filter_map(cluster).collect(),
            service: net.service_network.iter().copied().flatten().collect(),
        },
        platform: match &merged.platform.baremetal {
            Some(baremetal) => Platform::Baremetal(Box::new(baremetal.clone())),
            None => Platform::None,
        },
        feature_gates: gates.collect(),
        warnings,
        merged,
    }
}

fn ssh_key(merged: &Merged, problems: &mut Vec<Problem>) {
    if merged.ssh_key.is_empty() {
        return;
    }
    if let Err(why) = ssh::first_key(&merged.ssh_key) {
        let hint = "paste the contents of a public key file, e.g. ~/.ssh/id_ed25519.pub";
        problems.push(Problem::invalid_text("sshKey", &merged.ssh_key, why).hint(hint));
    }
}

fn fips(merged: &mut Merged, context: &Context, problems: &mut Vec<Problem>) {
    const NOT_HERE: &str = "target cluster is in FIPS mode, use the FIPS-capable installer binary for RHEL 9 on a host with FIPS \
         enabled.\nTo obtain a suitable binary, download the openshift-install-rhel9 archive from the client mirror, or extract the \
         openshift-install-fips command from the release payload.";
    if !merged.ssh_key.is_empty() {
        let nist = |kind: &str| kind.strip_prefix("ecdsa-sha2-nistp").is_some_and(|n| n.len() == 3);
        let why = match ssh::first_key(&merged.ssh_key) {
            Err(why) => Some(format!("Fatal error trying to parse configured public key: {why}")),
            Ok(kind) if kind != "ssh-rsa" && !nist(&kind) => Some(format!(
                "SSH key type {kind} unavailable when FIPS is enabled. Please use rsa or ecdsa."
            )),
            Ok(_) => None,
        };
        if let Some(why) = why {
            problems.push(Problem::invalid_text("sshKey", &merged.ssh_key, why).hint("ssh-keygen -t ecdsa"));
        }
    }
    if context.skip_host_crypto {
        problems.push(Problem::warning("fips", NOT_HERE));
        let annotations =
            merged.metadata.other.entry("annotations").or_insert_with(|| Value::Object(Default::default()));
        annotations[BYPASSED] = "true".into();
    } else {
        problems.push(
            Problem::forbidden("fips", NOT_HERE).hint("remove it or write false: seedling has no FIPS mode"),
        );
    }
}

fn trust_bundle(merged: &Merged, problems: &mut Vec<Problem>) {
    if !merged.additional_trust_bundle.is_empty() {
        match text::trust_bundle(&merged.additional_trust_bundle) {
            Ok(warnings) => {
                problems.extend(warnings.into_iter().map(|w| Problem::warning("additionalTrustBundle", w)));
            }
            Err(why) => {
                let hint =
                    "certificates in PEM, from -----BEGIN CERTIFICATE----- to -----END CERTIFICATE-----";
                let value = &merged.additional_trust_bundle;
                problems.push(Problem::invalid_text("additionalTrustBundle", value, why).hint(hint));
            }
        }
    }
    if !["Proxyonly", "Always"].contains(&merged.additional_trust_bundle_policy.as_str()) {
        let why = "supported values \"Proxyonly\", \"Always\"";
        let path = "additionalTrustBundlePolicy";
        problems.push(Problem::invalid_json(path, &merged.additional_trust_bundle_policy, why));
    }
}

fn names(merged: &Merged, problems: &mut Vec<Problem>) {
    let name = &merged.metadata.name;
    let named = if merged.platform.baremetal.is_some() && name.contains('.') {
        Err("cluster name must not contain '.'".to_string())
    } else if name.chars().count() > NAME_LENGTH {
        Err(format!("must be no more than {NAME_LENGTH} characters"))
    } else {
        text::subdomain(name)
    };
    if let Err(why) = &named {
        let hint = "use lower-case letters, digits and '-', e.g. ocp4";
        problems.push(Problem::invalid_text("metadata.name", name, why).hint(hint));
    }
    let domain = merged.base_domain.strip_suffix('.').unwrap_or(&merged.base_domain);
    if let Err(why) = text::subdomain(domain) {
        let hint = "the domain below which the cluster's name lives, e.g. example.com";
        problems.push(Problem::invalid_text("baseDomain", &merged.base_domain, why).hint(hint));
    } else if named.is_ok() {
        let whole = format!("{name}.{domain}");
        if let Err(why) = text::subdomain(&whole) {
            problems.push(Problem::invalid_text("baseDomain", &whole, why).hint("choose a shorter domain"));
        }
    }
}

/// The value itself is a secret and never repeated.
fn pull_secret(value: &str, problems: &mut Vec<Problem>) {
    if let Err(why) = secret::check(value) {
        let shown = if value.is_empty() { "\"\"" } else { "(redacted)" };
        let hint =
            "one line of JSON, e.g. '{\"auths\":{\"registry.example.com\":{\"auth\":\"dXNlcjpwYXNz\"}}}'";
        problems.push(Problem::invalid("pullSecret", shown, why).hint(hint));
    }
}

fn in_place(merged: &Merged, platform: &str, problems: &mut Vec<Problem>) {
    if merged.bootstrap_in_place.is_some()
        && platform == "baremetal"
        && merged.control_plane.replicas == Some(1)
    {
        let why = "Single Node OpenShift is not supported on the baremetal platform";
        problems.push(Problem::invalid_text("bootstrapInPlace", "", why).hint("use platform: {none: {}}"));
    }
}
