//! release.json: what `seedling release build` made and every later station refers to.

use crate::template::{TemplateError, map_strings, render, table};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseInfo {
    /// Version of the payload, e.g. `0.1.0`.
    pub version: String,
    pub kubernetes_version: String,
    /// Pull spec by digest of the release image: the seedling image plus `/release-manifests`.
    pub release_image: String,
    /// Component name (`etcd`, `kube-apiserver`, `pause`, `seedling`, …) → pull spec by digest.
    pub images: BTreeMap<String, String>,
    /// Node software by file name, as the helper serves it under `/bin/<name>`.
    pub binaries: BTreeMap<String, Binary>,
    /// Component name → upstream version, for people.
    pub components: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binary {
    /// Lower-case hex.
    pub sha512: String,
    pub size: u64,
}

impl ReleaseInfo {
    /// Pull spec of a component; the name is one of the bill of materials, so a miss is a broken release.
    pub fn image(&self, component: &str) -> Result<&str, MissingComponent> {
        self.images.get(component).map(String::as_str).ok_or_else(|| MissingComponent(component.into()))
    }
    pub fn binary(&self, name: &str) -> Result<&Binary, MissingComponent> {
        self.binaries.get(name).ok_or_else(|| MissingComponent(name.into()))
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the release has no component {0:?}; run `seedling release build` again")]
pub struct MissingComponent(pub String);

/// Completes a manifest of the payload: an image cannot contain its own digest, so `${release-image}` stands in its place. CRDs are
/// upstream's files, and no templates.
pub fn fill_release_image(manifest: &mut Value, image: &str) -> Result<(), TemplateError> {
    if manifest["kind"] == "CustomResourceDefinition" {
        return Ok(());
    }
    map_strings(manifest, &|text| render(text, table(&[("release-image", image)])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_release_image_is_filled_in_except_in_crds() {
        let mut pod = json!({"kind": "Pod", "image": "${release-image}", "env": [{"name": "RELEASE_IMAGE"}]});
        assert_eq!(fill_release_image(&mut pod, "r@sha256:1"), Ok(()));
        assert_eq!(pod, json!({"kind": "Pod", "image": "r@sha256:1", "env": [{"name": "RELEASE_IMAGE"}]}));
        assert!(fill_release_image(&mut json!({"kind": "Pod", "image": "${other}"}), "").is_err());
        assert_eq!(fill_release_image(&mut Value::Null, ""), Ok(()));
        let crd = json!({"kind": "CustomResourceDefinition", "pattern": "${a}"});
        let mut filled = crd.clone();
        assert_eq!((fill_release_image(&mut filled, ""), filled), (Ok(()), crd));
    }
}
