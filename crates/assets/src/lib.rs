//! From an install-config to an asset directory: certificates, kubeconfigs, manifests, Ignition.
//!
//! In: `install-config.yaml` (and `hosts.yaml`, `release.json`) in or beside the asset directory. Out: `manifests/` and
//! `openshift/`, or `auth/`, `*.ign` and `metadata.json`. Everything between is pure; [`store`] alone touches the disk.
//! Next: a helper serves the Ignition files to machines.

mod bootstrap;
pub mod config;
mod create;
mod error;
mod identity;
mod kubeconfig;
mod machine_config;
mod manifests;
mod overrides;
mod pointer;
mod state;
mod store;
mod yaml;

pub use create::create;
pub use error::CreateError;
pub use kubeconfig::lab_kubeconfig;
pub use pointer::{new_token, node_file, node_pointer};

use seedling_pki::KeyAlgorithm;
use std::path::PathBuf;
use time::OffsetDateTime;

/// What `create` makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    InstallConfig,
    Manifests,
    IgnitionConfigs,
}

#[derive(Clone, Debug)]
pub struct Options {
    /// The inventory; without it `hosts.yaml` in the asset directory is taken, if there is one.
    pub hosts: Option<PathBuf>,
    /// Where `release.json` is.
    pub release: PathBuf,
    pub now: OffsetDateTime,
    pub keys: KeyAlgorithm,
    /// Who runs this, as noted in the cluster.
    pub invoker: String,
    /// The machine-config server answers whoever reaches it, as upstream's: no tokens.
    pub open: bool,
}

impl Default for Options {
    fn default() -> Self {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let cache = set("SEEDLING_CACHE").unwrap_or_else(|| "/var/cache/seedling".into());
        Self {
            hosts: None,
            release: PathBuf::from(cache).join("release"),
            now: OffsetDateTime::now_utc(),
            keys: KeyAlgorithm::default(),
            invoker: set("OPENSHIFT_INSTALL_INVOKER").unwrap_or_else(|| "user".into()),
            open: false,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Info,
    Warning,
}
