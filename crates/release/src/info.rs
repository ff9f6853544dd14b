//! release.json, read and written; and the table of `seedling release info`.

use crate::error::{At, ReleaseError, Result};
use crate::oci::{Layout, write_atomically};
use seedling_types::ReleaseInfo;
use std::path::Path;

const FILE: &str = "release.json";

/// One line of `release info`.
pub struct Row {
    pub component: String,
    pub version: String,
    pub digest: String,
    /// Bytes of config and layers.
    pub size: u64,
}

pub fn load(dir: &Path) -> Result<ReleaseInfo> {
    let path = dir.join(FILE);
    let bytes = std::fs::read(&path).map_err(|e| {
        ReleaseError::invalid(
            format!("no release in {}: {e}", dir.display()),
            "take one in: seedling release load ARCHIVE; or make one: seedling release build",
        )
    })?;
    serde_json::from_slice(&bytes).at(&path)
}

pub(crate) fn save(dir: &Path, info: &ReleaseInfo) -> Result<()> {
    write_atomically(&dir.join(FILE), &serde_json::to_vec_pretty(info).at(dir)?)
}

pub fn rows(dir: &Path, info: &ReleaseInfo) -> Result<Vec<Row>> {
    let layout = Layout::open(&dir.join("oci"))?;
    let release = ("release".to_string(), info.release_image.clone());
    let images = info.images.iter().map(|(n, s)| (n.clone(), s.clone())).chain([release]);
    images
        .map(|(component, spec)| {
            let digest = spec.rsplit_once('@').map_or(spec.as_str(), |(_, d)| d).to_string();
            let size = layout.parts(&digest)?.iter().map(|b| b.size).sum();
            let version = info.components.get(&component).unwrap_or(&info.version).clone();
            Ok(Row { component, version, digest, size })
        })
        .collect()
}
