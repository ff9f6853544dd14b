//! The payload: a directory of manifests whose names say run level and component.

use seedling_cluster::manifest::describe;
use seedling_types::release::fill_release_image;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use thiserror::Error;

#[derive(Debug, Error)]
pub enum PayloadError {
    #[error("reading {path}: {source}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{file}: {message}")]
    Malformed { file: String, message: String },
    #[error("release-metadata says version {metadata}, image-references says {references}")]
    Mismatch { metadata: String, references: String },
    #[error("RELEASE_IMAGE is not set; it is the pull spec of the release image")]
    NoReleaseImage,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    pub file: String,
    /// `0000_50_dns-operator` of `0000_50_dns-operator_02_deployment.yaml`; files of one group are applied in series.
    pub group: Option<Group>,
    pub object: Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub level: u32,
    pub component: String,
}

#[derive(Clone, Debug)]
pub struct Payload {
    pub version: String,
    pub image: String,
    /// In load order.
    pub manifests: Vec<Manifest>,
    /// Of all manifests, so that two payloads of one version can be told apart.
    pub hash: String,
}

impl Manifest {
    fn field(&self, path: &str) -> &str {
        self.object.pointer(path).and_then(Value::as_str).unwrap_or_default()
    }
    pub fn api_version(&self) -> &str {
        self.field("/apiVersion")
    }
    /// Empty for core kinds.
    pub fn api_group(&self) -> &str {
        self.api_version().split_once('/').map_or("", |(group, _)| group)
    }
    pub fn kind(&self) -> &str {
        self.field("/kind")
    }
    pub fn namespace(&self) -> &str {
        self.field("/metadata/namespace")
    }
    pub fn name(&self) -> &str {
        self.field("/metadata/name")
    }
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.object.get("metadata")?.get("annotations")?.get(key)?.as_str()
    }
    pub fn is_cluster_operator(&self) -> bool {
        self.kind() == "ClusterOperator" && self.api_group() == "config.openshift.io"
    }
    pub fn is_job(&self) -> bool {
        self.kind() == "Job" && self.api_group() == "batch"
    }
}

impl Payload {
    pub fn load(directory: &Path, release_image: &str) -> Result<Self, PayloadError> {
        let read = |path: &Path| {
            std::fs::read_to_string(path).map_err(|source| PayloadError::Read { path: path.into(), source })
        };
        let entries = std::fs::read_dir(directory)
            .map_err(|source| PayloadError::Read { path: directory.into(), source })?;
        let mut files: Vec<String> = entries
            .filter_map(|e| e.ok()?.file_name().into_string().ok())
            .filter(|f| is_manifest(f))
            .collect();
        files.sort();
        let mut hash = Sha256::new();
        let mut manifests = Vec::new();
        for file in files {
            let text = read(&directory.join(&file))?;
            hash.update(&text);
            manifests.extend(parse(file, &text, release_image)?);
        }
        let digest: String = hash.finalize()[..8].iter().map(|b| format!("{b:02x}")).collect();
        let version = version(
            &read(&directory.join("release-metadata"))?,
            &read(&directory.join("image-references"))?,
        )?;
        Ok(Self { version, image: release_image.into(), manifests, hash: digest })
    }
}

fn is_manifest(file: &str) -> bool {
    matches!(file.rsplit_once('.'), Some((_, "yaml" | "yml" | "json")))
}

fn parse(file: String, text: &str, release_image: &str) -> Result<Option<Manifest>, PayloadError> {
    let malformed = |error: String| PayloadError::Malformed {
        message: error.lines().next().unwrap_or_default().into(),
        file: file.clone(),
    };
    let mut object: Value = serde_saphyr::from_str(text).map_err(|e| malformed(e.to_string()))?;
    if object.is_null() {
        return Ok(None);
    }
    fill_release_image(&mut object, release_image).map_err(|e| malformed(e.to_string()))?;
    let manifest = Manifest { group: group(&file), file, object };
    if [manifest.api_version(), manifest.kind(), manifest.name()].contains(&"") {
        let message = format!("{} has no apiVersion, kind or metadata.name", describe(&manifest.object));
        return Err(PayloadError::Malformed { file: manifest.file, message });
    }
    Ok(Some(manifest))
}

/// `0000_<run level>_<component>_…`
fn group(file: &str) -> Option<Group> {
    let rest = file.strip_prefix("0000_")?;
    let (level, rest) = rest.split_once('_')?;
    let (component, _) = rest.split_once('_')?;
    let word = |w: &str| !w.is_empty() && w.bytes().all(|b| b.is_ascii_alphanumeric());
    let level = level.bytes().all(|b| b.is_ascii_digit()).then(|| level.parse().ok())??;
    component.split('-').all(word).then(|| Group { level, component: component.into() })
}

fn version(metadata: &str, references: &str) -> Result<String, PayloadError> {
    let field = |file: &str, text: &str, path: &str| {
        let malformed = |message: String| PayloadError::Malformed { file: file.into(), message };
        let value: Value = serde_json::from_str(text).map_err(|e| malformed(e.to_string()))?;
        let found = value.pointer(path).and_then(Value::as_str).map(str::to_string);
        found.ok_or_else(|| malformed(format!("no {path}")))
    };
    let metadata = field("release-metadata", metadata, "/version")?;
    let references = field("image-references", references, "/metadata/name")?;
    if metadata == references { Ok(metadata) } else { Err(PayloadError::Mismatch { metadata, references }) }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
pub(super) mod tests {
    use super::*;

    pub(crate) fn manifest(file: &str, yaml: &str) -> Manifest {
        parse(file.into(), yaml, "release@sha256:1").unwrap().unwrap()
    }

    #[test]
    fn file_names_say_level_and_component() {
        let parsed = |f: &str| group(f).map(|g| (g.level, g.component));
        assert_eq!(parsed("0000_70_dns-operator_02_deployment.yaml"), Some((70, "dns-operator".into())));
        assert_eq!(parsed("0000_00_cluster-version-operator_01_x.crd.yaml").unwrap().0, 0);
        for other in ["99_x.yaml", "0000_xx_dns_1.yaml", "0000_10_bad--name_1.yaml", "0000_10_noend.yaml"] {
            assert_eq!(parsed(other), None, "{other}");
        }
    }

    #[test]
    fn loads_a_directory_and_checks_the_version() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        write("release-metadata", r#"{"kind":"cincinnati-metadata-v0","version":"0.1.0"}"#);
        write("image-references", r#"{"kind":"ImageStream","metadata":{"name":"0.1.0"}}"#);
        write("0000_50_b_1.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: b}\n");
        write(
            "0000_00_cvo_1.yaml",
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {image: '${release-image}', env: [{name: RELEASE_IMAGE}]}\n",
        );
        write("0000_00_cvo_2_empty.yaml", "# nothing\n");
        let payload = Payload::load(dir.path(), "release@sha256:1").unwrap();
        let files: Vec<_> = payload.manifests.iter().map(|m| m.file.as_str()).collect();
        assert_eq!(
            (payload.version.as_str(), files),
            ("0.1.0", vec!["0000_00_cvo_1.yaml", "0000_50_b_1.yaml"])
        );
        let spec = &payload.manifests[0].object["spec"];
        assert_eq!(
            (&spec["image"], &spec["env"][0]["name"]),
            (&"release@sha256:1".into(), &"RELEASE_IMAGE".into())
        );

        write(
            "0000_60_c_1.yaml",
            "apiVersion: v1\nkind: Pod\nmetadata: {name: c}\nspec: {image: '${no-image}'}\n",
        );
        let error = Payload::load(dir.path(), "").unwrap_err().to_string();
        assert_eq!(error, "0000_60_c_1.yaml: line 1: there is no value for ${no-image}");
        std::fs::remove_file(dir.path().join("0000_60_c_1.yaml")).unwrap();

        write("image-references", r#"{"metadata":{"name":"0.2.0"}}"#);
        let error = Payload::load(dir.path(), "").unwrap_err().to_string();
        assert_eq!(error, "release-metadata says version 0.1.0, image-references says 0.2.0");
    }
}
