//! From an install-config to an asset directory: certificates, kubeconfigs, manifests, Ignition.
//!
//! In: `install-config.yaml` (and `hosts.yaml`, `release.json`) in or beside the asset directory. Out: `manifests/` and
//! `openshift/`, or `auth/`, `*.ign` and `metadata.json`. Everything between is pure; [`store`] alone touches the disk.
//! Next: a helper serves the Ignition files to machines.

mod bootstrap;
mod certificates;
pub mod config;
mod create;
mod error;
mod expiry;
mod given;
mod graph;
mod identity;
mod inspect;
mod install_config;
mod keys;
mod kubeconfig;
mod machine_config;
mod manifests;
mod metadata;
mod nodes;
mod overrides;
mod pointer;
mod refresh;
mod release;
mod roles;
mod shape;
mod state;
mod store;
mod yaml;

pub use create::{create, create_on, platform, recover, refresh, refuse_cluster};
pub use error::{CreateError, Result};
pub use graph::dot;
pub use inspect::{Listed, certificates, in_kubeconfig};
pub use kubeconfig::lab_kubeconfig;
pub use overrides::ignore as version_overrides;
pub use pointer::{new_token, node_file, node_pointer};
pub use state::state_files;
pub use store::{Disk, Files, Folder};

use seedling_pki::KeyAlgorithm;
use std::path::PathBuf;
use time::OffsetDateTime;

/// Who runs this, unless a program says that it does.
pub(crate) const USER: &str = "user";

/// What `create` makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    InstallConfig,
    Manifests,
    IgnitionConfigs,
    /// One file for live media: the node installs itself.
    SingleNodeIgnitionConfig,
}

impl Target {
    pub const ALL: [Target; 4] =
        [Self::InstallConfig, Self::Manifests, Self::IgnitionConfigs, Self::SingleNodeIgnitionConfig];

    /// As people read it.
    pub fn title(self) -> &'static str {
        match self {
            Self::InstallConfig => "Install Config",
            Self::Manifests => "Manifests",
            Self::IgnitionConfigs => "Ignition Configs",
            Self::SingleNodeIgnitionConfig => "Single Node Ignition Config",
        }
    }
}

#[derive(Clone, Debug)]
pub struct Options {
    /// The inventory; without it `hosts.yaml` in the asset directory is taken, if there is one.
    pub hosts: Option<PathBuf>,
    /// Where `release.json` is.
    pub release: PathBuf,
    pub now: OffsetDateTime,
    /// What signers' keys are made with, if not with the default.
    pub keys: Option<KeyAlgorithm>,
    /// Signers in `tls/` of the asset directory are used instead of new ones. They stay there.
    pub own_signers: bool,
    /// Certificates of an earlier run are renewed.
    pub refresh: bool,
    /// Who runs this, as noted in the cluster.
    pub invoker: String,
    /// The machine-config server answers every client, as upstream's: no tokens.
    pub open: bool,
    /// FIPS clusters are let through, although this program is not FIPS-capable.
    pub skip_host_crypto: bool,
    /// The bootstrap node's address, where it has several and its kubelet would choose another.
    pub bootstrap_node_ip: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let cache = set("SEEDLING_CACHE").unwrap_or_else(|| "/var/cache/seedling".into());
        Self {
            hosts: None,
            release: PathBuf::from(cache).join("release"),
            now: OffsetDateTime::now_utc(),
            keys: None,
            own_signers: set("OPENSHIFT_INSTALL_LOAD_CLUSTER_CERTS").is_some_and(|value| value == "true"),
            refresh: false,
            invoker: set("OPENSHIFT_INSTALL_INVOKER").unwrap_or_else(|| USER.into()),
            open: false,
            skip_host_crypto: set("OPENSHIFT_INSTALL_SKIP_HOSTCRYPT_VALIDATION").is_some(),
            bootstrap_node_ip: set("OPENSHIFT_INSTALL_BOOTSTRAP_NODE_IP"),
        }
    }
}

/// What a run has to say, for a log or a person.
#[derive(Debug)]
pub struct Outcome {
    pub messages: Vec<Message>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub level: Level,
    pub text: String,
}

impl Message {
    pub fn info(text: impl Into<String>) -> Self {
        Self { level: Level::Info, text: text.into() }
    }
    pub fn warning(text: impl Into<String>) -> Self {
        Self { level: Level::Warning, text: text.into() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Info,
    Warning,
}

impl Level {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
        }
    }
}
