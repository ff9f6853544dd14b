//! An OCI image layout on disk: blobs by digest, one index, nothing that nothing refers to.

use crate::error::{At, Result};
use crate::tree::{Tree, hex};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
/// Uncompressed: unpacking is CPU time on the critical path, and the wire is a LAN.
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
const REF_NAME: &str = "org.opencontainers.image.ref.name";
/// Nothing in an image may depend on when it was made.
const CREATED: &str = "1970-01-01T00:00:00Z";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blob {
    /// `sha256:…`
    pub digest: String,
    pub size: u64,
}

pub struct Layout {
    dir: PathBuf,
}

/// How a container of the image starts.
#[derive(Default)]
pub struct Start {
    pub entrypoint: Vec<String>,
    /// Arguments of the entry point where a pod gives none.
    pub command: Vec<String>,
    pub labels: BTreeMap<String, String>,
}

impl Layout {
    pub fn open(dir: &Path) -> Result<Self> {
        let layout = Self { dir: dir.into() };
        fs::create_dir_all(layout.blobs()).at(dir)?;
        write_atomically(&dir.join("oci-layout"), br#"{"imageLayoutVersion":"1.0.0"}"#)?;
        Ok(layout)
    }

    fn blobs(&self) -> PathBuf {
        self.dir.join("blobs/sha256")
    }
    pub fn path(&self, digest: &str) -> PathBuf {
        self.blobs().join(digest.trim_start_matches("sha256:"))
    }
    pub fn has(&self, blob: &Blob) -> bool {
        fs::metadata(self.path(&blob.digest)).is_ok_and(|m| m.len() == blob.size)
    }

    pub fn put_layer(&self, tree: &Tree) -> Result<Blob> {
        let mut temporary = tempfile::NamedTempFile::new_in(self.blobs()).at(self.blobs())?;
        let (digest, size) = tree.write_tar(BufWriter::with_capacity(1 << 20, &mut temporary))?;
        let blob = Blob { digest: format!("sha256:{digest}"), size };
        keep(temporary, &self.path(&blob.digest))?;
        Ok(blob)
    }

    fn put(&self, value: &Value) -> Result<Blob> {
        let bytes = serde_json::to_vec(value).at(&self.dir)?;
        let blob =
            Blob { digest: format!("sha256:{}", hex(&Sha256::digest(&bytes))), size: bytes.len() as u64 };
        if !self.has(&blob) {
            write_atomically(&self.path(&blob.digest), &bytes)?;
        }
        Ok(blob)
    }

    /// Writes config and manifest over the layers; returns the manifest.
    pub fn put_image(&self, layers: &[Blob], start: &Start) -> Result<Blob> {
        let mut config = json!({
            "created": CREATED,
            "architecture": "amd64",
            "os": "linux",
            "config": {
                "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
                "Entrypoint": start.entrypoint,
                "WorkingDir": "/",
                "Labels": start.labels,
            },
            // Layers are not compressed, so a layer's digest is its diff id.
            "rootfs": {"type": "layers", "diff_ids": layers.iter().map(|l| &l.digest).collect::<Vec<_>>()},
            "history": layers.iter().map(|_| json!({"created": CREATED, "created_by": "seedling release build"})).collect::<Vec<_>>(),
        });
        if !start.command.is_empty() {
            config["config"]["Cmd"] = json!(start.command);
        }
        let config = self.put(&config)?;
        self.put(&json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": descriptor(CONFIG, &config),
            "layers": layers.iter().map(|l| descriptor(LAYER, l)).collect::<Vec<_>>(),
        }))
    }

    /// Name → manifest, with the name containerd gives the image on import.
    pub fn write_index(
        &self,
        images: &BTreeMap<String, Blob>,
        pull_spec: impl Fn(&str, &Blob) -> String,
    ) -> Result<()> {
        let manifests: Vec<_> = images
            .iter()
            .map(|(name, blob)| {
                let mut value = descriptor(MANIFEST, blob);
                value["platform"] = json!({"architecture": "amd64", "os": "linux"});
                value["annotations"] = json!({
                    REF_NAME: name,
                    "io.containerd.image.name": pull_spec(name, blob),
                });
                value
            })
            .collect();
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests});
        write_atomically(&self.dir.join("index.json"), &serde_json::to_vec_pretty(&index).at(&self.dir)?)
    }

    /// Takes the images of another layout in. Blobs are hard links; a name that both have stays ours.
    pub fn take_in(&self, other: &Self) -> Result<()> {
        for entry in fs::read_dir(other.blobs()).at(other.blobs())? {
            let (from, to) = {
                let entry = entry.at(other.blobs())?;
                (entry.path(), self.blobs().join(entry.file_name()))
            };
            if !to.exists() {
                fs::hard_link(&from, &to).at(&from)?;
            }
        }
        let mut index = self.index()?;
        let theirs = other.index()?;
        if let (Some(ours), Some(theirs)) =
            (index["manifests"].as_array_mut(), theirs["manifests"].as_array())
        {
            let known: BTreeSet<_> =
                ours.iter().map(|m| m["annotations"][REF_NAME].clone().to_string()).collect();
            let new = |m: &&Value| !known.contains(&m["annotations"][REF_NAME].to_string());
            ours.extend(theirs.iter().filter(new).cloned());
        }
        write_atomically(&self.dir.join("index.json"), &serde_json::to_vec_pretty(&index).at(&self.dir)?)
    }

    fn index(&self) -> Result<Value> {
        let path = self.dir.join("index.json");
        serde_json::from_slice(&fs::read(&path).at(&path)?).at(&path)
    }

    /// Removes every blob that no image refers to.
    pub fn remove_unused(&self, images: &BTreeMap<String, Blob>) -> Result<()> {
        let mut used = BTreeSet::new();
        for blob in images.values() {
            used.insert(blob.digest.clone());
            used.extend(self.parts(&blob.digest)?.into_iter().map(|b| b.digest));
        }
        for entry in fs::read_dir(self.blobs()).at(self.blobs())? {
            let entry = entry.at(self.blobs())?;
            if !used.contains(&format!("sha256:{}", entry.file_name().to_string_lossy())) {
                fs::remove_file(entry.path()).at(entry.path())?;
            }
        }
        Ok(())
    }

    /// The index with only the given manifests.
    pub fn index_of(&self, digests: &BTreeSet<String>) -> Result<Value> {
        let mut index = self.index()?;
        if let Some(manifests) = index["manifests"].as_array_mut() {
            manifests.retain(|m| m["digest"].as_str().is_some_and(|d| digests.contains(d)));
        }
        Ok(index)
    }

    /// Config and layers of an image.
    pub fn parts(&self, manifest: &str) -> Result<Vec<Blob>> {
        #[derive(Deserialize)]
        struct Manifest {
            config: Blob,
            layers: Vec<Blob>,
        }
        let path = self.path(manifest);
        let manifest: Manifest = serde_json::from_slice(&fs::read(&path).at(&path)?).at(&path)?;
        Ok(std::iter::once(manifest.config).chain(manifest.layers).collect())
    }
}

fn descriptor(media_type: &str, blob: &Blob) -> Value {
    json!({"mediaType": media_type, "digest": blob.digest, "size": blob.size})
}

pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let mut temporary = tempfile::NamedTempFile::new_in(dir).at(dir)?;
    temporary.write_all(bytes).at(path)?;
    keep(temporary, path)
}

pub(crate) fn keep(temporary: tempfile::NamedTempFile, path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    temporary.as_file().set_permissions(fs::Permissions::from_mode(0o644)).at(path)?;
    temporary.as_file().sync_data().at(path)?;
    temporary.persist(path).map_err(|e| e.error).at(path).map(drop)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::tree::Source;

    fn layer(text: &str) -> Tree {
        let mut tree = Tree::base();
        tree.file("usr/bin/x", 0o755, Source::Bytes(text.into()));
        tree
    }

    #[test]
    fn an_image_is_complete_and_leftovers_go() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::open(dir.path()).unwrap();
        let old = layout.put_layer(&layer("old")).unwrap();
        let new = layout.put_layer(&layer("new")).unwrap();
        let start = Start { entrypoint: vec!["/usr/bin/x".into()], ..Start::default() };
        let image = layout.put_image(std::slice::from_ref(&new), &start).unwrap();
        let again = layout.put_image(std::slice::from_ref(&new), &start).unwrap();
        assert_eq!(image, again);

        let images = BTreeMap::from([("x".to_string(), image.clone())]);
        layout.write_index(&images, |name, blob| format!("r/{name}@{}", blob.digest)).unwrap();
        layout.remove_unused(&images).unwrap();
        assert!(!layout.has(&old) && layout.has(&new));
        let parts = layout.parts(&image.digest).unwrap();
        assert_eq!(parts.len(), 2);
        let config: Value =
            serde_json::from_slice(&fs::read(layout.path(&parts[0].digest)).unwrap()).unwrap();
        assert_eq!(config["rootfs"]["diff_ids"][0], new.digest);
        let index: Value = serde_json::from_slice(&fs::read(dir.path().join("index.json")).unwrap()).unwrap();
        let annotations = &index["manifests"][0]["annotations"];
        assert_eq!(annotations["org.opencontainers.image.ref.name"], "x");
        assert_eq!(annotations["io.containerd.image.name"], format!("r/x@{}", image.digest));
    }
}
