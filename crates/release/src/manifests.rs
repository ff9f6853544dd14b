//! `/release-manifests/` of the release image: the manifests with pull specs and versions filled in, the CRDs,
//! `image-references` and `release-metadata`. The version operator applies them.

use crate::error::{At, ReleaseError, Result};
use crate::operators::OPERATORS;
use crate::tree::{Source, Tree};
use seedling_types::template::{map_strings, render};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const DIR: &str = "release-manifests";
/// The annotation without which the version operator skips a manifest.
const INCLUDE: &str = "include.release.openshift.io/self-managed-high-availability";
/// Stands for the release's version, and with `-<component>` for a component's. A convention of upstream's manifests, which
/// `oc adm release new` replaces in the same way.
pub(crate) const VERSION: &str = "0.0.1-snapshot";

/// What the names in manifests stand for.
pub struct Payload<'a> {
    pub version: &'a str,
    /// Component → pull spec.
    pub images: &'a BTreeMap<String, String>,
    /// Component → upstream version.
    pub components: &'a BTreeMap<String, String>,
}

impl Payload<'_> {
    pub fn tree(&self, source: &Path, crds: &Path, crd_list: &str) -> Result<Tree> {
        let mut tree = Tree::default();
        let mut add =
            |name: &str, text: String| tree.file(&format!("{DIR}/{name}"), 0o444, Source::Bytes(text.into()));
        for (name, text) in self.manifests(source)? {
            add(&name, text);
        }
        for name in crd_list.lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
            let path = find_crd(crds, name)?;
            add(name, checked(name, fs::read_to_string(&path).at(&path)?)?);
        }
        add("image-references", pretty(&self.image_references())?);
        add("release-metadata", pretty(&self.release_metadata())?);
        Ok(tree)
    }

    /// File name → text of the manifests in `source` and of the operators' rows.
    pub fn manifests(&self, source: &Path) -> Result<BTreeMap<String, String>> {
        let mut texts = BTreeMap::new();
        let dir = source.join("manifests");
        for entry in fs::read_dir(&dir).at(&dir)? {
            let path = entry.at(&dir)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if [".yaml", ".yml", ".json"].iter().any(|e| name.ends_with(e)) {
                let text = checked(&name, self.fill(&name, &fs::read_to_string(&path).at(&path)?)?)?;
                texts.insert(name, text);
            }
        }
        for operator in OPERATORS {
            for (name, mut object) in operator.manifests()? {
                map_strings(&mut object, &|text| self.fill(&name, text))?;
                let text = serde_saphyr::to_string(&object).map_err(|e| bad(&name, &e.to_string()))?;
                if texts.insert(name.clone(), checked(&name, text)?).is_some() {
                    return Err(bad(&name, "it is a file, and made from a row of operators.rs too"));
                }
            }
        }
        Ok(texts)
    }

    /// `${image:<component>}` → pull spec; `0.0.1-snapshot-<component>` → its version; `0.0.1-snapshot` → the release's.
    fn fill(&self, file: &str, text: &str) -> Result<String> {
        let image = |name: &str| self.images.get(name.strip_prefix("image:")?).cloned();
        let mut out = render(text, image).map_err(|e| bad(file, &e.to_string()))?;
        // Longest names first: kube-proxy must not be cut at kube.
        let mut components: Vec<_> = self.components.iter().collect();
        components.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        for (name, version) in components {
            out = out.replace(&format!("{VERSION}-{name}"), version.trim_start_matches('v'));
        }
        Ok(out.replace(VERSION, self.version))
    }

    fn image_references(&self) -> Value {
        let tag = |(name, image): (&String, &String)| {
            let version = self.components.get(name).map(String::as_str).unwrap_or_default();
            json!({
                "name": name,
                "annotations": {"io.openshift.build.versions": format!("{name}={}", version.trim_start_matches('v'))},
                "from": {"kind": "DockerImage", "name": image},
                "generation": 2,
                "importPolicy": {},
                "referencePolicy": {"type": "Source"},
            })
        };
        json!({
            "kind": "ImageStream",
            "apiVersion": "image.openshift.io/v1",
            "metadata": {"name": self.version, "creationTimestamp": "1970-01-01T00:00:00Z"},
            "spec": {"lookupPolicy": {"local": false}, "tags": self.images.iter().map(tag).collect::<Vec<_>>()},
            "status": {"dockerImageRepository": ""},
        })
    }

    fn release_metadata(&self) -> Value {
        json!({"kind": "cincinnati-metadata-v0", "version": self.version, "previous": [], "metadata": {}})
    }
}

/// The name must follow the grammar by which the version operator groups and orders, and the profile must be included.
fn checked(name: &str, text: String) -> Result<String> {
    let mut parts = name.splitn(4, '_');
    let level =
        parts.next() == Some("0000") && parts.next().is_some_and(|l| l.len() == 2 && l.parse::<u8>().is_ok());
    if !level || parts.next().is_none_or(str::is_empty) || parts.next().is_none() {
        return Err(bad(name, "the name does not read 0000_<run level>_<component>_<what>"));
    }
    let object: Value = serde_saphyr::from_str(&text).map_err(|e| bad(name, &e.to_string()))?;
    if object["metadata"]["annotations"][INCLUDE] != "true" {
        return Err(bad(name, &format!("annotation {INCLUDE}: \"true\" is missing")));
    }
    Ok(text)
}

pub(crate) fn bad(file: &str, what: &str) -> ReleaseError {
    ReleaseError::invalid(format!("manifest {file}: {what}"), "see \"Manifests\" in docs/design/release.md")
}

/// CRDs are beside the types they belong to: `<group>/<version>/zz_generated.crd-manifests/<name>`.
fn find_crd(module: &Path, name: &str) -> Result<PathBuf> {
    let children = |dir: &Path| {
        fs::read_dir(dir).into_iter().flatten().filter_map(|e| Some(e.ok()?.path())).collect::<Vec<_>>()
    };
    let versions = children(module).into_iter().flat_map(|group| children(&group));
    let mut found: Vec<_> =
        versions.map(|v| v.join("zz_generated.crd-manifests").join(name)).filter(|p| p.exists()).collect();
    found.sort();
    found.into_iter().next().ok_or_else(|| bad(name, &format!("not in {}", module.display())))
}

fn pretty(value: &Value) -> Result<String> {
    serde_json::to_string_pretty(value).at(DIR)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::bill::IMAGES;

    fn with<T>(check: impl FnOnce(&Payload) -> T) -> T {
        let images = BTreeMap::from([("etcd".to_string(), "r/etcd@sha256:1".to_string())]);
        let components = BTreeMap::from(
            [("etcd", "v3.6.16"), ("kube", "v1"), ("kube-proxy", "v1.36.4")]
                .map(|(k, v)| (k.into(), v.into())),
        );
        check(&Payload { version: "0.1.0", images: &images, components: &components })
    }

    #[test]
    fn placeholders() {
        let cases = [
            ("image: ${image:etcd}\n", "image: r/etcd@sha256:1\n"),
            ("a ${image:etcd} b ${image:etcd}", "a r/etcd@sha256:1 b r/etcd@sha256:1"),
            ("version: 0.0.1-snapshot", "version: 0.1.0"),
            ("version: 0.0.1-snapshot-kube-proxy", "version: 1.36.4"),
            ("$(HOME) $${release-image} plain", "$(HOME) ${release-image} plain"),
        ];
        for (text, expected) in cases {
            assert_eq!(with(|p| p.fill("f", text)).unwrap(), expected);
        }
        for wrong in ["a\n${image:nope}", "a\n${etcd}", "a\n${release-image}", "a\n${image:etcd"] {
            let error = with(|p| p.fill("0000_50_x_y.yaml", wrong)).unwrap_err().to_string();
            assert!(error.contains("0000_50_x_y.yaml: line 2: "), "{error}");
        }
    }

    /// Files and rows alike: every name is known, and nothing is made twice.
    #[test]
    fn the_source_trees_manifests_can_be_completed() {
        let images =
            IMAGES.iter().map(|image| (image.name.to_string(), format!("r/{}@sha256:1", image.name)));
        let (images, components) = (images.collect(), BTreeMap::new());
        let payload = Payload { version: "0.1.0", images: &images, components: &components };
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../release");
        let texts = payload.manifests(Path::new(source)).unwrap();
        let versioned = texts.values().filter(|text| text.contains("0.1.0")).count();
        assert!(texts.len() > 100 && versioned > 10, "{} {versioned}", texts.len());
        for (name, text) in texts {
            let left = text.replace("${release-image}", "").contains("${") || text.contains(VERSION);
            assert!(!left, "{name}: {text}");
        }
    }

    #[test]
    fn references_look_like_an_image_stream() {
        let stream = with(|p| p.image_references());
        assert_eq!(
            (&stream["kind"], &stream["apiVersion"]),
            (&json!("ImageStream"), &json!("image.openshift.io/v1"))
        );
        assert_eq!(stream["metadata"]["name"], "0.1.0");
        assert_eq!(stream["spec"]["tags"][0]["name"], "etcd");
        assert_eq!(
            stream["spec"]["tags"][0]["from"],
            json!({"kind": "DockerImage", "name": "r/etcd@sha256:1"})
        );
        let metadata = with(|p| p.release_metadata());
        assert_eq!(
            (&metadata["kind"], &metadata["version"]),
            (&json!("cincinnati-metadata-v0"), &json!("0.1.0"))
        );
    }

    #[test]
    fn names_and_annotation_are_checked() {
        let good = format!("metadata:\n  annotations:\n    {INCLUDE}: \"true\"\n");
        let cases = [
            ("0000_10_config-operator_01_dnses.crd.yaml", good.as_str(), true),
            ("0000_10_config-operator_01_dnses.crd.yaml", "metadata: {}", false),
            ("0000_10_config-operator_01_dnses.crd.yaml", "metadata: {", false),
            ("dnses.yaml", &good, false),
            ("0000_xx_a_b.yaml", &good, false),
            ("0000_10_a.yaml", &good, false),
        ];
        for (name, text, ok) in cases {
            assert_eq!(checked(name, text.into()).is_ok(), ok, "{name}");
        }
    }
}
