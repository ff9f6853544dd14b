//! MachineConfigs: what makes up a node of a role, merged into one rendered config a pool.
//!
//! In: the node's fragments, the installer's and users' MachineConfigs. Out: pools, a ControllerConfig, rendered MachineConfigs,
//! for the bootstrap machine-config server as files and for the cluster as objects. Both must come to the same rendered name,
//! so both go through `render`.

mod bootstrap;
mod daemon_set;
mod render;
mod sources;

pub use bootstrap::{Inputs, cluster_manifests, render_bootstrap};
pub use daemon_set::{AUDIT_DIR, SERVER, server_objects};
pub use render::{RenderError, render, rendered_name, selected};
pub use sources::{
    controller_config, machine_configs, outside_configs, pool, read_machine_configs, with_configuration,
};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub const API_VERSION: &str = "machineconfiguration.openshift.io/v1";
pub const ROLE_LABEL: &str = "machineconfiguration.openshift.io/role";
pub const CONTROLLER_CONFIG: &str = "machine-config-controller";
/// On Nodes: which rendered config a node has, which it shall have, and whether it got there.
pub const CURRENT_CONFIG: &str = "machineconfiguration.openshift.io/currentConfig";
pub const DESIRED_CONFIG: &str = "machineconfiguration.openshift.io/desiredConfig";
pub const STATE: &str = "machineconfiguration.openshift.io/state";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineConfig {
    pub api_version: String,
    pub kind: String,
    pub metadata: Metadata,
    pub spec: Spec,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metadata {
    pub name: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// Every member is always written, in alphabetical order: the rendered name is a digest of this.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    #[serde(default, rename = "baseOSExtensionsContainerImage", deserialize_with = "or_default")]
    pub base_os_extensions_container_image: String,
    #[serde(default, deserialize_with = "or_default")]
    pub config: Value,
    #[serde(default, deserialize_with = "or_default")]
    pub extensions: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub fips: bool,
    #[serde(default, deserialize_with = "or_default")]
    pub kernel_arguments: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub kernel_type: String,
    #[serde(default, rename = "osImageURL", deserialize_with = "or_default")]
    pub os_image_url: String,
}

impl MachineConfig {
    pub fn new(name: impl Into<String>, spec: Spec) -> Self {
        let metadata = Metadata { name: name.into(), ..Metadata::default() };
        Self { api_version: API_VERSION.into(), kind: "MachineConfig".into(), metadata, spec }
    }
    pub fn of_role(name: impl Into<String>, role: &str, config: Value) -> Self {
        let mut mc = Self::new(name, Spec { config, ..Spec::default() });
        mc.metadata.labels.insert(ROLE_LABEL.into(), role.into());
        mc
    }
    pub fn is_rendered(&self) -> bool {
        self.metadata.name.starts_with("rendered-")
    }
    pub fn to_value(&self) -> Value {
        json!(self)
    }
}

/// The installer writes `null` where it means nothing, and an API server may keep it.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Members in alphabetical order all the way down, as an API server hands them out.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let map: BTreeMap<_, _> = map.into_iter().map(|(k, v)| (k, sorted(v))).collect();
            Value::Object(map.into_iter().collect())
        }
        Value::Array(list) => Value::Array(list.into_iter().map(sorted).collect()),
        other => other,
    }
}
