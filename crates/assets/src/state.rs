//! `.openshift_install_state.json`: what must stay the same from one `create` to the next. Holds every key of the cluster.

use crate::CreateError;
use crate::identity::Identity;
use crate::manifests::Manifests;
use seedling_pki::{CertKey, KeyPair};
use seedling_types::NodeToken;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub const FILE: &str = ".openshift_install_state.json";

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    /// The normalised install-config all of this was made for.
    pub install_config: String,
    pub identity: Identity,
    /// Certificates by file name; those of one day are added by the target that needs them.
    #[serde(default)]
    pub certificates: BTreeMap<String, CertKey>,
    #[serde(default)]
    pub service_account: Option<KeyPair>,
    #[serde(default)]
    pub bootstrap_ssh: Option<KeyPair>,
    /// By machine; the same in its pointer, and as a digest in bootstrap.ign.
    #[serde(default)]
    pub node_tokens: BTreeMap<String, NodeToken>,
    /// `manifests/` and `openshift/` as last seen.
    #[serde(default)]
    pub manifests: Manifests,
}

impl State {
    pub fn new(install_config: String, cluster_name: &str) -> Result<Self, CreateError> {
        Ok(Self {
            install_config,
            identity: Identity::new(cluster_name)?,
            certificates: BTreeMap::new(),
            service_account: None,
            bootstrap_ssh: None,
            node_tokens: BTreeMap::new(),
            manifests: Manifests::new(),
        })
    }
    pub fn parse(json: &str) -> Result<Self, CreateError> {
        serde_json::from_str(json).map_err(|e| CreateError::State(e.to_string()))
    }
    pub fn to_json(&self) -> Result<String, CreateError> {
        Ok(serde_json::to_string_pretty(self)?)
    }
}
