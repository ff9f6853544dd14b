//! What a node carries to reach what is not in the cluster: the fourth fragment, MachineConfig `99-<role>-generated-registries`.
//!
//! It is apart from the others because it alone changes while a cluster lives: with the pull secret, the mirror sets, the trust bundle
//! and the proxy. What is not asked for leaves no file.

use crate::outside::{MirrorSource, Outside, Proxy, registries_conf};
use seedling_ignition::{Config, Dropin, File, Storage, Systemd, Unit};
use seedling_types::names::REGISTRY;
use seedling_types::{ClusterDomain, paths, ports};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// What containerd and others have to show to be served: nobody but root may use the node's pull secret.
pub const MIRRORS_HEADER: &str = "x-registry-mirrors";
const MIRRORS_UNIT: &str = "registry-mirrors.service";
const TRUST_UNIT: &str = "update-ca-trust.service";
/// Who goes out: the kubelet's credential plugins, containerd, the mirrors' service; on the bootstrap node its own services.
const THROUGH_THE_PROXY: [&str; 5] =
    ["kubelet.service", "containerd.service", MIRRORS_UNIT, "release-image.service", "bootkube.service"];

/// `/etc/containerd/registry-mirrors.json`, which `seedling registry-mirrors` serves from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MirrorsFile {
    /// The value of `MIRRORS_HEADER`.
    pub key: String,
    pub sources: Vec<MirrorSource>,
    /// Registries that are somewhere else than their name says.
    #[serde(default)]
    pub places: BTreeMap<String, String>,
}

/// `bootstrap`: with the drop-ins for the bootstrap node's own services.
pub fn outside(domain: &ClusterDomain, given: &Outside, bootstrap: bool) -> Config {
    let mut files = Vec::new();
    let mut units = Vec::new();
    if !given.pull_secret.is_empty() {
        files.push(File::inline(paths::KUBELET_PULL_SECRET, 0o600, &given.pull_secret));
    }
    if !given.trust_bundle.is_empty() {
        files.push(File::inline(paths::USER_CA_BUNDLE, 0o644, &given.trust_bundle));
        units.push(Unit::new(TRUST_UNIT, true, include_str!("files/update-ca-trust.service")));
    }
    if !given.mirrors.is_empty() {
        let served = mirrors_file(domain, given);
        let conf = registries_conf(&given.mirrors);
        files.push(File::inline("/etc/containers/registries.conf", 0o644, conf));
        for host in hosts(&given.mirrors) {
            let path = format!("/etc/containerd/certs.d/{}/hosts.toml", folder(&host));
            files.push(File::inline(path, 0o600, hosts_toml(&served.key)));
        }
        let json = serde_json::to_string_pretty(&served).unwrap_or_default() + "\n";
        files.push(File::inline(paths::REGISTRY_MIRRORS, 0o600, json));
        units.push(Unit::new(MIRRORS_UNIT, true, include_str!("files/registry-mirrors.service")));
    }
    if given.proxy.is_set() {
        files.push(File::inline(paths::PROXY_ENV, 0o600, proxy_env(domain, &given.proxy)));
        let mirrored = !given.mirrors.is_empty();
        let of_every_node = if bootstrap { THROUGH_THE_PROXY.len() } else { 3 };
        for name in THROUGH_THE_PROXY.iter().take(of_every_node).filter(|n| mirrored || **n != MIRRORS_UNIT) {
            let contents = format!("[Service]\nEnvironmentFile={}\n", paths::PROXY_ENV);
            let dropin = Dropin { name: "10-mco-default-env.conf".into(), contents };
            match units.iter_mut().find(|unit| unit.name == *name) {
                Some(unit) => unit.dropins.push(dropin),
                None => {
                    units.push(Unit { name: (*name).into(), dropins: vec![dropin], ..Unit::default() });
                }
            }
        }
    }
    Config { storage: Storage { files }, systemd: Systemd { units }, ..Config::default() }
}

fn mirrors_file(domain: &ClusterDomain, given: &Outside) -> MirrorsFile {
    let digest = Sha256::new().chain_update("registry-mirrors").chain_update(&given.pull_secret).finalize();
    let helper = format!("http://{}:{}", domain.helper(), ports::HELPER_REGISTRY);
    MirrorsFile {
        key: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
        sources: given.mirrors.clone(),
        places: BTreeMap::from([(REGISTRY.to_string(), helper)]),
    }
}

/// The registries that have a source.
fn hosts(mirrors: &[MirrorSource]) -> BTreeSet<String> {
    mirrors.iter().filter_map(|m| m.source.split('/').next()).map(String::from).collect()
}

/// As containerd looks for it.
fn folder(host: &str) -> String {
    match host.rsplit_once(':') {
        Some((name, port)) => format!("{name}_{port}_"),
        None => host.into(),
    }
}

/// Everything of a registry that has mirrors goes through the service: hosts.toml knows registries only, mirrors are of repositories.
fn hosts_toml(key: &str) -> String {
    let server = format!("http://127.0.0.1:{}", ports::REGISTRY_MIRRORS);
    format!(
        "server = \"{server}\"\ncapabilities = [\"pull\", \"resolve\"]\n\n[header]\n{MIRRORS_HEADER} = [\"{key}\"]\n"
    )
}

/// Both spellings are in use. The helper is on the machines' network, and asked by name.
fn proxy_env(domain: &ClusterDomain, proxy: &Proxy) -> String {
    let no = match proxy.no.as_str() {
        "*" => "*".into(),
        "" => domain.helper(),
        list => format!("{list},{}", domain.helper()),
    };
    let all = [("HTTP_PROXY", &proxy.http), ("HTTPS_PROXY", &proxy.https), ("NO_PROXY", &no)];
    let given = all.into_iter().filter(|(_, value)| !value.is_empty());
    given.map(|(name, value)| format!("{name}={value}\n{}={value}\n", name.to_lowercase())).collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use seedling_ignition::decode;

    fn given() -> Outside {
        let source = |source: &str| MirrorSource {
            source: source.into(),
            mirrors: vec!["m.example.com/x".into()],
            never_contact_source: true,
        };
        Outside {
            pull_secret: "{}".into(),
            mirrors: vec![source("quay.io/a"), source("quay.io/b"), source("r.example.com:5000")],
            trust_bundle: "PEM\n".into(),
            proxy: Proxy { http: "http://p:3128".into(), https: String::new(), no: ".svc".into() },
        }
    }

    fn file(config: &Config, path: &str) -> String {
        let file = config.storage.files.iter().find(|file| file.path == path);
        let source = file.unwrap_or_else(|| panic!("{path} is not there")).contents.clone().unwrap().source;
        String::from_utf8(decode(&source.unwrap()).unwrap()).unwrap()
    }

    #[test]
    fn nothing_asked_for_is_nothing_written() {
        assert_eq!(outside(&ClusterDomain("c.d".into()), &Outside::default(), true), Config::default());
    }

    #[test]
    fn a_registry_with_mirrors_is_asked_through_the_service() {
        let config = outside(&ClusterDomain("c.d".into()), &given(), false);
        let toml = file(&config, "/etc/containerd/certs.d/quay.io/hosts.toml");
        let served: MirrorsFile = serde_json::from_str(&file(&config, paths::REGISTRY_MIRRORS)).unwrap();
        assert_eq!(toml, file(&config, "/etc/containerd/certs.d/r.example.com_5000_/hosts.toml"));
        assert!(toml.starts_with("server = \"http://127.0.0.1:") && toml.contains(&served.key), "{toml}");
        assert_eq!(served.places[REGISTRY], "http://helper.c.d:5000");
        let readable: Vec<_> =
            config.storage.files.iter().filter(|f| f.mode != Some(0o600)).map(|f| f.path.as_str()).collect();
        assert_eq!(readable, [paths::USER_CA_BUNDLE, "/etc/containers/registries.conf"]);
    }

    #[test]
    fn those_who_go_out_know_the_proxy_and_the_helper_is_no_outside() {
        let of = |bootstrap| outside(&ClusterDomain("c.d".into()), &given(), bootstrap);
        assert_eq!(
            file(&of(false), paths::PROXY_ENV),
            "HTTP_PROXY=http://p:3128\nhttp_proxy=http://p:3128\nNO_PROXY=.svc,helper.c.d\nno_proxy=.svc,helper.c.d\n"
        );
        let told = |config: &Config| -> Vec<String> {
            let told = config.systemd.units.iter().filter(|unit| !unit.dropins.is_empty());
            told.map(|unit| unit.name.clone()).collect()
        };
        assert_eq!(told(&of(false)), [MIRRORS_UNIT, "kubelet.service", "containerd.service"]);
        assert_eq!(told(&of(true)).len(), 5);
    }
}
