//! Where the server gets a pool's parts from: files on the bootstrap node, the API in the cluster.

use super::document::Parts;
use base64::{Engine, engine::general_purpose::STANDARD};
use kube::Client;
use seedling_cluster::get;
use seedling_components::machine_config::{API_VERSION, CONTROLLER_CONFIG, MachineConfig};
use seedling_types::Admission;
use seedling_types::names::NS_MCO;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use thiserror::Error;

pub enum Source {
    Bootstrap {
        /// `/etc/mcs/bootstrap`
        base: PathBuf,
        /// The kubelets' bootstrap kubeconfig.
        kubeconfig: PathBuf,
        /// Whom to answer; changes as certificates are issued.
        tokens: PathBuf,
    },
    Cluster {
        client: Client,
        /// `https://api-int.CD:6443`
        api_server: String,
    },
}

#[derive(Debug, Error)]
pub enum SourceError {
    #[error("refusing to serve bootstrap configuration to pool {0:?}")]
    Refused(String),
    #[error("{0} is not there")]
    NotThere(String),
    #[error("{0}")]
    Failed(String),
}

impl Source {
    pub async fn parts(&self, pool: &str) -> Result<Parts, SourceError> {
        match self {
            Source::Bootstrap { base, kubeconfig, .. } => from_files(base, kubeconfig, pool),
            Source::Cluster { client, api_server } => from_cluster(client, api_server, pool).await,
        }
    }

    /// Asked anew for every config: a spent token is refused from that moment on.
    pub async fn admission(&self) -> Result<Admission, SourceError> {
        let failed = |e: &dyn std::fmt::Display| SourceError::Failed(e.to_string());
        match self {
            Source::Bootstrap { tokens, .. } => {
                let text = std::fs::read_to_string(tokens)
                    .map_err(|e| SourceError::Failed(format!("{}: {e}", tokens.display())))?;
                serde_json::from_str(&text).map_err(|e| failed(&e))
            }
            Source::Cluster { client, .. } => crate::admission::read(client).await.map_err(|e| failed(&e)),
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
            _ => SourceError::Failed(format!("{}: {e}", path.display())),
        })
    };
    let object = |path: String| {
        let path = base.join(path);
        let text = read(&path)?;
        serde_saphyr::from_str::<Value>(&text)
            .map_err(|e| SourceError::Failed(format!("{}: {e}", path.display())))
    };
    let pool = object(format!("machine-pools/{pool}.yaml"))?;
    let name = pool.pointer("/status/configuration/name").and_then(Value::as_str).unwrap_or_default();
    let controller_config = object(format!("controller-config/{CONTROLLER_CONFIG}.yaml"))?;
    let rendered = machine_config(object(format!("machine-configs/{name}.yaml"))?)?;
    Ok(Parts { rendered, controller_config, kubeconfig: read(kubeconfig)? })
}

async fn from_cluster(client: &Client, api_server: &str, pool: &str) -> Result<Parts, SourceError> {
    let find = async |api_version: &str, kind: &str, namespace: Option<&str>, name: &str| {
        let found = get(client, api_version, kind, namespace, name).await;
        found.map_err(|e| SourceError::Failed(e.to_string()))
    };
    let must = async |api_version: &str, kind: &str, namespace: Option<&str>, name: &str| {
        let missing = || SourceError::Failed(format!("{kind} {name} is not there"));
        find(api_version, kind, namespace, name).await?.ok_or_else(missing)
    };
    let pool = must(API_VERSION, "MachineConfigPool", None, pool).await?;
    let controller_config = must(API_VERSION, "ControllerConfig", None, CONTROLLER_CONFIG).await?;
    let rendered = machine_config(must(API_VERSION, "MachineConfig", None, configuration(&pool)).await?)?;
    let token = must("v1", "Secret", Some(NS_MCO), "node-bootstrapper-token").await?;
    let override_ca = find("v1", "ConfigMap", Some(NS_MCO), "kubeconfig-data").await?;
    let override_ca =
        override_ca.and_then(|cm| cm["data"]["ca-bundle.crt"].as_str().map(|ca| STANDARD.encode(ca)));
    let secret = |key: &str| token["data"][key].as_str().filter(|v| !v.is_empty()).map(String::from);
    let missing = |key: &str| SourceError::Failed(format!("Secret node-bootstrapper-token has no {key} yet"));
    let ca = override_ca.or_else(|| secret("ca.crt")).ok_or_else(|| missing("ca.crt"))?;
    let token = secret("token").and_then(|t| STANDARD.decode(t).ok()).ok_or_else(|| missing("token"))?;
    Ok(Parts {
        rendered,
        controller_config,
        kubeconfig: kubeconfig(api_server, &ca, &String::from_utf8_lossy(&token)),
    })
}

/// A pool that is being updated serves the new config as soon as one machine runs it.
fn configuration(pool: &Value) -> &str {
    let updated = pool.pointer("/status/updatedMachineCount").and_then(Value::as_u64).unwrap_or(0) > 0;
    let name = |part: &str| pool[part]["configuration"]["name"].as_str().filter(|n| !n.is_empty());
    let chosen = if updated { name("spec") } else { name("status") };
    chosen.unwrap_or_default()
}

fn machine_config(object: Value) -> Result<MachineConfig, SourceError> {
    serde_json::from_value(object).map_err(|e| SourceError::Failed(format!("MachineConfig: {e}")))
}

fn kubeconfig(api_server: &str, ca: &str, token: &str) -> String {
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "local", "cluster": {"server": api_server, "certificate-authority-data": ca}}],
        "users": [{"name": "kubelet", "user": {"token": token}}],
        "contexts": [{"name": "kubelet", "context": {"cluster": "local", "user": "kubelet"}}],
        "current-context": "kubelet",
    });
    serde_saphyr::to_string(&config).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

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
