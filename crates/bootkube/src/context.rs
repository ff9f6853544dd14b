//! What every stage may read: the cluster's settings, the release, the inventory, and where files go.

use crate::error::{cannot, in_file};
use crate::identity::{Identity, Pins};
use crate::{Error, Result, settings};
use seedling_cluster::etcd::EtcdTls;
use seedling_cluster::inventory::{self, InventoryError};
use seedling_components::ClusterConfig;
use seedling_components::pod::{Pod, to_yaml};
use seedling_steps::{Journal, if_there};
use seedling_types::{Inventory, ReleaseInfo, paths};
use serde_json::Value;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

pub struct Context {
    /// `/`, or a scratch directory in tests.
    root: PathBuf,
    pub config: ClusterConfig,
    pub identity: Identity,
    /// Where bootkube's stages write down their parts.
    pub journal: Journal,
    pub release: ReleaseInfo,
    pub inventory: Inventory,
    /// The bootstrap node's own name.
    pub node: String,
    /// The bootstrap node's own address: the inventory's, else the one that leads to the helper.
    pub address: IpAddr,
}

impl Context {
    pub fn load(root: &Path) -> Result<Self> {
        let dir = root.join(paths::OPT_OPENSHIFT.trim_start_matches('/'));
        let read = |name: &str| {
            let path = dir.join(name);
            std::fs::read_to_string(&path).map_err(cannot("read", &path))
        };
        let config = ClusterConfig::from_manifest(&read("manifests/cluster-config.yaml")?)?;
        let release: ReleaseInfo =
            serde_json::from_str(&read("release.json")?).map_err(in_file("release.json"))?;
        let inventory = inventory::read(&dir.join("hosts.yaml")).map_err(|error| match error {
            InventoryError::NoFile { .. } => Error::NoInventory(error),
            wrong => wrong.into(),
        })?;
        let Some(bootstrap) = inventory.bootstrap() else {
            return Err(Error::Seen("hosts.yaml names no bootstrap host".into()));
        };
        let (node, address) = (bootstrap.name.clone(), bootstrap.address);
        if let Some(minutes) = settings::no_progress_minutes(&dir) {
            seedling_steps::configure_no_progress(minutes);
        }
        let identity = Identity::of_assets(&dir)?;
        let journal = Journal::of(root, "bootkube");
        Ok(Self { root: root.into(), config, identity, journal, release, inventory, node, address })
    }

    pub fn pins(&self) -> Pins<'_> {
        let etcd_data = self.path(paths::ETCD_DATA);
        Pins { identity: &self.identity, journal: &self.journal, etcd_data }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// An absolute path of the node.
    pub fn path(&self, absolute: &str) -> PathBuf {
        self.root.join(absolute.trim_start_matches('/'))
    }

    /// A path below bootkube's working directory.
    pub fn dir(&self, relative: &str) -> PathBuf {
        self.path(paths::OPT_OPENSHIFT).join(relative)
    }

    pub fn read(&self, relative: &str) -> Result<String> {
        let path = self.dir(relative);
        std::fs::read_to_string(&path).map_err(cannot("read", &path))
    }

    /// See [`if_there`].
    pub fn read_if_there(&self, relative: &str) -> Result<Option<String>> {
        let path = self.dir(relative);
        if_there(std::fs::read_to_string(&path)).map_err(cannot("read", &path))
    }

    pub fn write(&self, path: &Path, contents: impl AsRef<[u8]>, mode: u32) -> Result<()> {
        seedling_steps::write_atomic(path, contents, mode).map_err(cannot("write", path))
    }

    /// An object that cb-bootstrap will create.
    pub fn manifest(&self, name: &str, object: &Value) -> Result<()> {
        let mode = if object["kind"] == "Secret" { 0o600 } else { 0o644 };
        self.write(&self.dir("manifests").join(name), to_yaml(object), mode)
    }

    /// A static pod that cb-bootstrap will start.
    pub fn bootstrap_pod(&self, name: &str, pod: &Pod) -> Result<()> {
        self.write(&self.dir("bootstrap-manifests").join(name), to_yaml(pod), 0o600)
    }

    /// A static pod that starts at once.
    pub fn start_pod(&self, name: &str, pod: &Pod) -> Result<()> {
        self.write(&self.path(paths::STATIC_PODS).join(name), to_yaml(pod), 0o600)
    }

    /// Stops what `start_pod` started, or finds it stopped.
    pub fn remove_pod(&self, name: &str) -> Result<()> {
        let path = self.path(paths::STATIC_PODS).join(name);
        if_there(std::fs::remove_file(&path)).map(drop).map_err(cannot("remove", path))
    }

    /// Admin access to this node's own API server.
    pub fn loopback_kubeconfig(&self) -> PathBuf {
        self.dir("auth/kubeconfig-loopback")
    }

    /// Admin access through the load balancer.
    pub fn kubeconfig(&self) -> PathBuf {
        self.dir("auth/kubeconfig")
    }

    pub fn etcd_tls(&self) -> Result<EtcdTls> {
        Ok(EtcdTls {
            ca: self.read("tls/etcd-ca-bundle.crt")?,
            cert: self.read("tls/etcd-client.crt")?,
            key: self.read("tls/etcd-client.key")?,
        })
    }
}
