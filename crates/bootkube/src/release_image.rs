//! release-image.service: the release's manifests, from the registry or a mirror of it, verified by digest.

use crate::error::{cannot, ensure, in_file};
use crate::{Error, Result, conditions};
use seedling_components::ClusterConfig;
use seedling_components::node::{MIRRORS_HEADER, MirrorsFile};
use seedling_steps::{Condition, Recorder, if_there, wait_for};
use seedling_types::{ClusterDomain, ReleaseInfo, paths, ports};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::path::Path;
use std::time::Duration;

const STAGE: &str = "pull-release-image";
const FOLDER: &str = "release-manifests";

/// Unpacks `/release-manifests` of the release image into `/opt/openshift/release-manifests`.
pub async fn fetch_release_manifests(root: &Path) -> Result<()> {
    let dir = root.join(paths::OPT_OPENSHIFT.trim_start_matches('/'));
    if dir.join(FOLDER).exists() {
        return Ok(());
    }
    let recorder = Recorder::start(root, "release-image")?;
    recorder.stage_start(STAGE)?;
    let fetched = fetch(root, &dir).await;
    let error = fetched.as_ref().err().map(ToString::to_string);
    recorder.stage_end(STAGE, error.clone())?;
    recorder.service_end(error)?;
    fetched
}

async fn fetch(root: &Path, dir: &Path) -> Result<()> {
    let read = |name: &str| {
        let path = dir.join(name);
        std::fs::read_to_string(&path).map_err(cannot("read", &path))
    };
    let release: ReleaseInfo =
        serde_json::from_str(&read("release.json")?).map_err(in_file("release.json"))?;
    let domain = ClusterConfig::from_manifest(&read("manifests/cluster-config.yaml")?)?.domain;
    let registry = Registry::new(&domain, mirrors(root)?, &release.release_image)?;
    let condition = Condition::new(&conditions::RELEASE_IMAGE, Duration::from_secs(600), registry.hint())
        .with("IMAGE", &release.release_image);
    let layer = wait_for(&condition, Duration::from_millis(500), async || registry.last_layer().await.into());
    // Into a temporary folder first: the folder's name means that it is complete.
    let temporary = dir.join(".release-manifests");
    let count =
        unpack(&layer.await?, &temporary).map_err(cannot("unpack the release image into", &temporary))?;
    ensure!(count > 0, "release image did not contain a {FOLDER} folder");
    std::fs::rename(&temporary, dir.join(FOLDER)).map_err(cannot("rename", &temporary))?;
    tracing::info!("{count} files in {FOLDER}");
    Ok(())
}

/// A registry that says nothing for so long is asked again, and that is said.
const SILENCE: Duration = Duration::from_secs(5);

/// Where the node has mirrors.
fn mirrors(root: &Path) -> Result<Option<MirrorsFile>> {
    let path = root.join(paths::REGISTRY_MIRRORS.trim_start_matches('/'));
    let text = if_there(std::fs::read_to_string(&path)).map_err(cannot("read", &path))?;
    text.map(|text| serde_json::from_str(&text).map_err(in_file(path.display()))).transpose()
}

struct Registry {
    base: String,
    digest: String,
    /// Which registry is meant, and the key: only the service for mirrors asks.
    mirrored: Option<(String, String)>,
    http: reqwest::Client,
}

impl Registry {
    fn new(domain: &ClusterDomain, mirrors: Option<MirrorsFile>, pull_spec: &str) -> Result<Self> {
        let Some((repository, digest)) = pull_spec.split_once('@') else {
            return Err(Error::Seen("the release image is not named by digest".into()));
        };
        let (host, name) = repository.split_once('/').unwrap_or(("", repository));
        let server = match mirrors {
            Some(_) => format!("127.0.0.1:{}", ports::REGISTRY_MIRRORS),
            None => format!("{}:{}", domain.helper(), ports::HELPER_REGISTRY),
        };
        let base = format!("http://{server}/v2/{name}/");
        // A mirror may have to be given up first.
        let silence = if mirrors.is_some() { SILENCE * 12 } else { SILENCE };
        let http = reqwest::Client::builder().no_proxy().connect_timeout(SILENCE).read_timeout(silence);
        let mirrored = mirrors.map(|file| (host.to_string(), file.key));
        Ok(Self { base, digest: digest.into(), mirrored, http: http.build()? })
    }

    fn hint(&self) -> String {
        match self.mirrored {
            Some(_) => "journalctl -u registry-mirrors".into(),
            None => format!("curl -i {}manifests/{}", self.base, self.digest),
        }
    }

    /// The layer that the release image has on top of the seedling image.
    async fn last_layer(&self) -> Result<Vec<u8>> {
        let manifest = self.get("manifests", &self.digest).await?;
        let manifest: Value =
            serde_json::from_slice(&manifest).map_err(in_file("the release image's manifest"))?;
        let layer = manifest["layers"].as_array().and_then(|l| l.last()).and_then(|l| l["digest"].as_str());
        let layer = layer.ok_or_else(|| Error::Seen("the release image has no layer".into()))?;
        self.get("blobs", layer).await
    }

    async fn get(&self, kind: &str, digest: &str) -> Result<Vec<u8>> {
        let url = format!("{}{kind}/{digest}", self.base);
        let accept = "application/vnd.oci.image.manifest.v1+json, */*;q=0.1";
        let request = match &self.mirrored {
            Some((registry, key)) => {
                self.http.get(format!("{url}?ns={registry}")).header(MIRRORS_HEADER, key)
            }
            None => self.http.get(&url),
        };
        let response = request.header("Accept", accept).send().await?;
        if self.mirrored.is_some() && !response.status().is_success() {
            let status = response.status();
            return Err(Error::Seen(format!("{url}: {status}: {}", response.text().await?)));
        }
        let response = response.error_for_status()?;
        let bytes = response.bytes().await?.to_vec();
        let got: String = Sha256::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect();
        ensure!(digest == format!("sha256:{got}"), "{url} has the digest sha256:{got}");
        Ok(bytes)
    }
}

/// How many manifests it has.
fn unpack(layer: &[u8], into: &Path) -> std::io::Result<usize> {
    let _ = std::fs::remove_dir_all(into);
    std::fs::create_dir_all(into)?;
    let mut count = 0;
    for entry in tar::Archive::new(layer).entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        let Ok(relative) = path.strip_prefix(FOLDER) else { continue };
        if entry.header().entry_type().is_file() && relative.components().count() == 1 {
            entry.unpack(into.join(relative))?;
            count += 1;
        }
    }
    Ok(count)
}
