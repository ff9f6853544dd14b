//! The bootstrap node's own settings, under the paths that upstream's payloads and people look at: mirrors, trust, proxy.

use crate::config::InstallConfig;
use crate::config::model::Proxy;
use crate::shape;
use seedling_components::outside::{MirrorSource, registries_conf};
use seedling_ignition::{Dropin, File, Unit};
use serde_json::json;

pub(super) fn files(config: &InstallConfig) -> Vec<File> {
    let given = &config.merged;
    let proxy = given.proxy.as_ref().map(|proxy| variables(config, proxy)).unwrap_or_default();
    vec![
        File::inline("/etc/containers/registries.conf", 0o644, registries(config)),
        File::inline("/etc/ignition-machine-config-encapsulated.json", 0o600, encapsulated(given.fips)),
        File::inline("/etc/pki/ca-trust/source/anchors/ca.crt", 0o600, &given.additional_trust_bundle),
        File::inline("/etc/profile.d/proxy.sh", 0o600, exports(&proxy)),
        File::inline("/etc/systemd/system.conf.d/10-default-env.conf", 0o600, default_environment(&proxy)),
        File::inline("/root/.docker/config.json", 0o600, &given.pull_secret),
    ]
}

/// The journal by HTTPS on port 19531, for those who gather logs, where the node OS has the server for it.
pub(super) fn units() -> Vec<Unit> {
    let dropin = |unit: &str, name: &str, contents: &str| Unit {
        name: unit.into(),
        dropins: vec![Dropin { name: name.into(), contents: contents.into() }],
        ..Unit::default()
    };
    vec![
        Unit::new(
            "chown-gatewayd-key.service",
            true,
            include_str!("files/etc/systemd/system/chown-gatewayd-key.service"),
        ),
        dropin(
            "systemd-journal-gatewayd.service",
            "certs.conf",
            include_str!("files/etc/systemd/system/systemd-journal-gatewayd.service.d/certs.conf"),
        ),
        Unit::new("systemd-journal-gatewayd.socket", true, ""),
        // It would update and restart the node in the middle of its work.
        dropin("zincati.service", "okd-machine-os-disabled.conf", "[Unit]\nConditionPathExists=/enoent\n"),
    ]
}

fn registries(config: &InstallConfig) -> String {
    let given = &config.merged;
    let content = given.image_content_sources.iter().map(|s| (&s.source, &s.mirrors, ""));
    let digest = given.image_digest_sources.iter().map(|s| (&s.source, &s.mirrors, s.source_policy.as_str()));
    let sources = content.chain(digest).map(|(source, mirrors, policy)| MirrorSource {
        source: source.clone(),
        mirrors: mirrors.clone(),
        never_contact_source: policy == "NeverContactSource",
    });
    registries_conf(&sources.collect::<Vec<_>>())
}

/// What a node OS reads on its first boot: whether to run in FIPS mode.
fn encapsulated(fips: bool) -> String {
    let config = json!({
        "metadata": { "name": "bootstrap-fips" },
        "spec": { "config": { "ignition": { "version": "3.1.0" } }, "kernelArguments": [], "fips": fips },
    });
    format!("{config:#}\n")
}

/// Both spellings are in use.
fn variables(config: &InstallConfig, proxy: &Proxy) -> Vec<(&'static str, String)> {
    let no_proxy = shape::no_proxy(config, &proxy.no_proxy);
    let all = [
        ("HTTP_PROXY", "http_proxy", proxy.http_proxy.clone()),
        ("HTTPS_PROXY", "https_proxy", proxy.https_proxy.clone()),
        ("NO_PROXY", "no_proxy", no_proxy),
    ];
    let given = all.into_iter().filter(|(_, _, value)| !value.is_empty());
    given.flat_map(|(upper, lower, value)| [(upper, value.clone()), (lower, value)]).collect()
}

fn exports(variables: &[(&str, String)]) -> String {
    variables.iter().map(|(name, value)| format!("export {name}={value:?}\n")).collect()
}

/// `%` is systemd's, and a URL's.
fn default_environment(variables: &[(&str, String)]) -> String {
    let line = |(name, value): &(&str, String)| {
        format!("DefaultEnvironment={name}=\"{}\"\n", value.replace('%', "%%"))
    };
    format!("[Manager]\n{}", variables.iter().map(line).collect::<String>())
}
