//! What nodes need to reach what is not in the cluster: pull secret, mirrors, trust bundle, proxy.
//!
//! In: the objects that the installer writes as manifests and the cluster keeps. Out: one value, the same on the bootstrap node, in
//! bootkube and in the machine-config operator, so that all of them make the same files of it.

use base64::{Engine, engine::general_purpose::STANDARD};
use seedling_types::names::NS_CONFIG;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt::Write;

pub const PULL_SECRET: &str = "pull-secret";
pub const USER_CA_BUNDLE: &str = "user-ca-bundle";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outside {
    /// As docker's config.json.
    pub pull_secret: String,
    pub mirrors: Vec<MirrorSource>,
    /// PEM.
    pub trust_bundle: String,
    pub proxy: Proxy,
}

/// Where images of a source are looked for, in this order; by digest only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MirrorSource {
    /// A registry with or without a repository; everything below belongs to it.
    pub source: String,
    pub mirrors: Vec<String>,
    #[serde(default)]
    pub never_contact_source: bool,
}

/// `no` is complete: what the user wrote, and what is the cluster's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxy {
    pub http: String,
    pub https: String,
    pub no: String,
}

impl Proxy {
    pub fn is_set(&self) -> bool {
        !self.http.is_empty() || !self.https.is_empty()
    }
}

impl Outside {
    /// Of all objects there are; those of other kinds are not looked at.
    pub fn of<'a>(objects: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut outside = Self::default();
        for object in objects {
            outside.add(object);
        }
        outside
    }

    /// The same from manifests. What is no YAML is somebody else's to complain about.
    pub fn of_manifests<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let objects: Vec<Value> =
            texts.into_iter().filter_map(|text| serde_saphyr::from_str(text).ok()).collect();
        Self::of(&objects)
    }

    fn add(&mut self, object: &Value) {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let name = (text("/metadata/namespace"), text("/metadata/name"));
        match (text("/kind"), name) {
            ("Secret", (NS_CONFIG, PULL_SECRET)) => {
                let decoded = STANDARD.decode(text("/data/.dockerconfigjson")).unwrap_or_default();
                self.pull_secret = String::from_utf8(decoded).unwrap_or_default();
            }
            ("ConfigMap", (NS_CONFIG, USER_CA_BUNDLE)) => {
                self.trust_bundle = text("/data/ca-bundle.crt").into();
            }
            ("Proxy", (_, "cluster")) => {
                let of = |key: &str| text(&format!("/status/{key}")).to_string();
                self.proxy = Proxy { http: of("httpProxy"), https: of("httpsProxy"), no: of("noProxy") };
            }
            ("ImageDigestMirrorSet", _) => self.add_mirrors(&object["spec"]["imageDigestMirrors"]),
            ("ImageContentSourcePolicy", _) => self.add_mirrors(&object["spec"]["repositoryDigestMirrors"]),
            _ => {}
        }
    }

    /// Several entries of one source are one: all their mirrors, in order; one that forbids the source is enough.
    fn add_mirrors(&mut self, entries: &Value) {
        for entry in entries.as_array().into_iter().flatten() {
            let source = entry["source"].as_str().unwrap_or_default();
            let known = self.mirrors.iter_mut().position(|have| have.source == source);
            let at = known.unwrap_or_else(|| {
                self.mirrors.push(MirrorSource { source: source.into(), ..MirrorSource::default() });
                self.mirrors.len() - 1
            });
            let Some(have) = self.mirrors.get_mut(at) else { continue };
            have.never_contact_source |= entry["mirrorSourcePolicy"] == "NeverContactSource";
            for mirror in entry["mirrors"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                if !have.mirrors.iter().any(|known| known == mirror) {
                    have.mirrors.push(mirror.into());
                }
            }
        }
    }
}

/// `/etc/containers/registries.conf`, for people and their podman: one block a source, in the order of the mirrors.
pub fn registries_conf(mirrors: &[MirrorSource]) -> String {
    let mut text = String::new();
    for MirrorSource { source, mirrors, never_contact_source } in mirrors {
        let _ = write!(
            text,
            "\n[[registry]]\nprefix = \"\"\nlocation = {source:?}\nmirror-by-digest-only = true\n"
        );
        if *never_contact_source {
            text.push_str("blocked = true\n");
        }
        for mirror in mirrors {
            let _ = write!(text, "\n[[registry.mirror]]\nlocation = {mirror:?}\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFESTS: [&str; 6] = [
        "kind: Secret\nmetadata: {namespace: openshift-config, name: pull-secret}\ndata: {.dockerconfigjson: e30=}\n",
        "kind: Secret\nmetadata: {namespace: openshift-config, name: other}\ndata: {.dockerconfigjson: AAAA}\n",
        "kind: ConfigMap\nmetadata: {namespace: openshift-config, name: user-ca-bundle}\ndata: {ca-bundle.crt: PEM}\n",
        "kind: Proxy\nmetadata: {name: cluster}\nspec: {httpProxy: 'http://p:1', noProxy: .a}\n\
         status: {httpProxy: 'http://p:1', noProxy: '.a,.svc'}\n",
        "kind: ImageContentSourcePolicy\nspec: {repositoryDigestMirrors: [{source: q/a, mirrors: [m/a]}]}\n",
        "kind: ImageDigestMirrorSet\nspec: {imageDigestMirrors: [{source: q/b, mirrors: [m/b], mirrorSourcePolicy: NeverContactSource}, \
         {source: q/a, mirrors: [m/a, n/a], mirrorSourcePolicy: AllowContactingSource}]}\n",
    ];

    #[test]
    fn everything_is_found_among_the_manifests() {
        let source = |source: &str, mirrors: &[&str], never_contact_source| MirrorSource {
            source: source.into(),
            mirrors: mirrors.iter().map(ToString::to_string).collect(),
            never_contact_source,
        };
        let found = Outside::of_manifests(MANIFESTS.into_iter().chain(["kind: [", "kind: Pod\n"]));
        let proxy = Proxy { http: "http://p:1".into(), https: String::new(), no: ".a,.svc".into() };
        assert_eq!(
            found,
            Outside {
                pull_secret: "{}".into(),
                mirrors: vec![source("q/a", &["m/a", "n/a"], false), source("q/b", &["m/b"], true)],
                trust_bundle: "PEM".into(),
                proxy,
            }
        );
        assert!(found.proxy.is_set() && !Outside::default().proxy.is_set());
        assert_eq!(
            registries_conf(&found.mirrors[1..]),
            "\n[[registry]]\nprefix = \"\"\nlocation = \"q/b\"\nmirror-by-digest-only = true\nblocked = true\n\
             \n[[registry.mirror]]\nlocation = \"m/b\"\n"
        );
    }
}
