//! What every stage may read: the cluster's settings, the release, the inventory, and where files go.

use crate::identity::{Identity, Pins};
use crate::settings;
use anyhow::{Context as _, Result};
use seedling_components::ClusterConfig;
use seedling_steps::Journal;
use seedling_types::{Inventory, ReleaseInfo, paths};
use serde_json::Value;
use std::net::Ipv4Addr;
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
    pub address: Ipv4Addr,
}

impl Context {
    pub fn load(root: &Path) -> Result<Self> {
        let dir = root.join(paths::OPT_OPENSHIFT.trim_start_matches('/'));
        let read = |name: &str| {
            let path = dir.join(name);
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
        };
        let config = ClusterConfig::from_manifest(&read("manifests/cluster-config.yaml")?)?;
        let release: ReleaseInfo = serde_json::from_str(&read("release.json")?).context("release.json")?;
        let hosts =
            read("hosts.yaml").context("this profile needs the inventory: create with --hosts hosts.yaml")?;
        let inventory = Inventory::parse(&hosts).map_err(|errors| {
            anyhow::anyhow!(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
        })?;
        let bootstrap = inventory.bootstrap().context("hosts.yaml names no bootstrap host")?;
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
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    }

    pub fn write(&self, path: &Path, contents: impl AsRef<[u8]>, mode: u32) -> Result<()> {
        seedling_steps::write_atomic(path, contents, mode)
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// An object that cb-bootstrap will create.
    pub fn manifest(&self, name: &str, object: &Value) -> Result<()> {
        let mode = if object["kind"] == "Secret" { 0o600 } else { 0o644 };
        self.write(&self.dir("manifests").join(name), seedling_components::pod::to_yaml(object), mode)
    }

    /// A static pod that cb-bootstrap will start.
    pub fn bootstrap_pod(&self, name: &str, pod: &Value) -> Result<()> {
        self.write(&self.dir("bootstrap-manifests").join(name), seedling_components::pod::to_yaml(pod), 0o600)
    }

    /// A static pod that starts at once.
    pub fn start_pod(&self, name: &str, pod: &Value) -> Result<()> {
        let path = self.path(paths::STATIC_PODS).join(name);
        self.write(&path, seedling_components::pod::to_yaml(pod), 0o600)
    }

    /// Admin access to this node's own API server.
    pub fn loopback_kubeconfig(&self) -> PathBuf {
        self.dir("auth/kubeconfig-loopback")
    }

    /// Admin access through the load balancer.
    pub fn kubeconfig(&self) -> PathBuf {
        self.dir("auth/kubeconfig")
    }

    pub fn etcd_tls(&self) -> Result<seedling_cluster::etcd::EtcdTls> {
        Ok(seedling_cluster::etcd::EtcdTls {
            ca: self.read("tls/etcd-ca-bundle.crt")?,
            cert: self.read("tls/etcd-client.crt")?,
            key: self.read("tls/etcd-client.key")?,
        })
    }
}
