//! release.json: what `seedling release build` made and every later station refers to.

use serde::{Deserialize, Serialize};
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
