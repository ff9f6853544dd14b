//! Where the server gets a pool's parts from: files on the bootstrap node, the API in the cluster.

use crate::bootstrapper::{TokenError, Tokens};
use crate::document::Parts;
use kube::Client;
use seedling_cluster::ClusterError;
use seedling_cluster::admission::AdmissionError;
use seedling_cluster::manifest::get;
use seedling_components::machine_config::{API_VERSION, CONTROLLER_CONFIG, MachineConfig};
use seedling_types::Admission;
use serde_json::Value;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use thiserror::Error;

pub enum Source {
    Bootstrap {
        /// `/etc/mcs/bootstrap`
        base: PathBuf,
        /// The kubelets' bootstrap kubeconfig.
        kubeconfig: PathBuf,
        /// The clients to answer; changes as certificates are issued.
        tokens: PathBuf,
    },
    Cluster {
        client: Client,
        /// `https://api-int.CD:6443`
        api_server: String,
        tokens: Tokens,
    },
}

#[derive(Debug, Error)]
pub enum SourceError {
    #[error("refusing to serve bootstrap configuration to pool {0:?}")]
    Refused(String),
    /// A file of the bootstrap node.
    #[error("{0} is not there")]
    NotThere(String),
    #[error("{kind} {name} is not there")]
    NoObject { kind: &'static str, name: String },
    /// A file or an object that is not as it should be.
    #[error("{what}: {why}")]
    Unusable { what: String, why: Box<dyn std::error::Error + Send + Sync> },
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error(transparent)]
    Admission(#[from] AdmissionError),
    #[error(transparent)]
    Token(#[from] TokenError),
}

fn unusable<E>(what: impl Display) -> impl FnOnce(E) -> SourceError
where
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    move |why| SourceError::Unusable { what: what.to_string(), why: why.into() }
}

impl Source {
    pub fn cluster(client: Client, api_server: &str) -> Self {
        Self::Cluster { client, api_server: api_server.into(), tokens: Tokens::default() }
    }

    pub async fn parts(&self, pool: &str) -> Result<Parts, SourceError> {
        match self {
            Source::Bootstrap { base, kubeconfig, .. } => from_files(base, kubeconfig, pool),
            Source::Cluster { client, api_server, tokens } => {
                from_cluster(client, api_server, tokens, pool).await
            }
        }
    }

    /// Read again for every config: a spent token is refused from that moment on.
    pub async fn admission(&self) -> Result<Admission, SourceError> {
        match self {
            Source::Bootstrap { tokens, .. } => {
                let text = std::fs::read_to_string(tokens).map_err(unusable(tokens.display()))?;
                serde_json::from_str(&text).map_err(unusable(tokens.display()))
            }
            Source::Cluster { client, .. } => Ok(seedling_cluster::admission::read(client).await?),
        }
    }
}

/// Workers wait: they join the finished control plane, not the temporary one.
fn from_files(base: &Path, kubeconfig: &Path, pool: &str) -> Result<Parts, SourceError> {
    if !["master", "arbiter"].contains(&pool) {
        return Err(SourceError::Refused(pool.into()));
    }
    let read = |path: &Path| {
        std::fs::read_to_string(path).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => SourceError::NotThere(path.display().to_string()),
            _ => unusable(path.display())(e),
        })
    };
    let object = |path: String| {
        let path = base.join(path);
        serde_saphyr::from_str::<Value>(&read(&path)?).map_err(unusable(path.display()))
    };
    let pool = object(format!("machine-pools/{pool}.yaml"))?;
    let name = pool.pointer("/status/configuration/name").and_then(Value::as_str).unwrap_or_default();
    let controller_config = object(format!("controller-config/{CONTROLLER_CONFIG}.yaml"))?;
    let rendered = machine_config(object(format!("machine-configs/{name}.yaml"))?)?;
    Ok(Parts { rendered, controller_config, kubeconfig: read(kubeconfig)? })
}

async fn from_cluster(
    client: &Client,
    api_server: &str,
    tokens: &Tokens,
    pool: &str,
) -> Result<Parts, SourceError> {
    let must = async |kind: &'static str, name: &str| {
        let found = get(client, API_VERSION, kind, None, name).await?;
        found.ok_or_else(|| SourceError::NoObject { kind, name: name.into() })
    };
    let pool = must("MachineConfigPool", pool).await?;
    let controller_config = must("ControllerConfig", CONTROLLER_CONFIG).await?;
    let rendered = machine_config(must("MachineConfig", configuration(&pool)).await?)?;
    let kubeconfig = tokens.kubeconfig(client, api_server).await?;
    Ok(Parts { rendered, controller_config, kubeconfig })
}

/// A pool that is being updated serves the new config as soon as one machine runs it.
fn configuration(pool: &Value) -> &str {
    let updated = pool.pointer("/status/updatedMachineCount").and_then(Value::as_u64).unwrap_or(0) > 0;
    let name = |part: &str| pool[part]["configuration"]["name"].as_str().filter(|n| !n.is_empty());
    let chosen = if updated { name("spec") } else { name("status") };
    chosen.unwrap_or_default()
}

fn machine_config(object: Value) -> Result<MachineConfig, SourceError> {
    serde_json::from_value(object).map_err(unusable("MachineConfig"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_new_config_is_served_once_a_machine_runs_it() {
        let mut pool =
            json!({"spec": {"configuration": {"name": "new"}}, "status": {"configuration": {"name": "old"}}});
        assert_eq!(configuration(&pool), "old");
        pool["status"]["updatedMachineCount"] = json!(1);
        assert_eq!(configuration(&pool), "new");
        assert_eq!(configuration(&json!({})), "");
    }
}
