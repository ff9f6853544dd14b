//! Where the server gets a pool's parts from: files on the bootstrap node, the API in the cluster.

use crate::bootstrapper::{TokenError, Tokens};
use crate::document::Parts;
use crate::kept::{Kept, Shared};
use crate::ready::POOLS;
use kube::Client;
use seedling_cluster::ClusterError;
use seedling_cluster::admission::AdmissionError;
use seedling_cluster::manifest::get;
use seedling_components::machine_config::{API_VERSION, CONTROLLER_CONFIG, MachineConfig};
use seedling_types::Admission;
use serde_json::Value;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

pub enum Source {
    Bootstrap(Box<Files>),
    Cluster(Box<Objects>),
}

/// All are read for every config, and parsed when one is another than before.
pub struct Files {
    /// `/etc/mcs/bootstrap`
    base: PathBuf,
    /// The kubelets' bootstrap kubeconfig.
    kubeconfig: PathBuf,
    /// The clients to answer; changes as certificates are issued.
    tokens: PathBuf,
    /// The rendered config's name, of the pool's text.
    names: Kept<String, String>,
    parts: Kept<Texts, Arc<Parts>>,
    admission: Kept<Vec<u8>, Arc<Admission>>,
}

#[derive(PartialEq)]
struct Texts {
    rendered: String,
    controller_config: String,
    kubeconfig: String,
}

/// Asked for every config; who comes while others are waiting for the answer waits for the next one, together with all who came since.
pub struct Objects {
    client: Client,
    /// `https://api-int.CD:6443`
    api_server: String,
    tokens: Tokens,
    parts: [Shared<Found<Parts>>; POOLS.len()],
    admission: Shared<Found<Admission>>,
}

/// For all who asked.
type Found<T> = Result<Arc<T>, Arc<SourceError>>;

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
    pub fn bootstrap(base: PathBuf, kubeconfig: PathBuf, tokens: PathBuf) -> Self {
        let (names, parts, admission) = Default::default();
        Self::Bootstrap(Box::new(Files { base, kubeconfig, tokens, names, parts, admission }))
    }

    pub fn cluster(client: Client, api_server: &str) -> Self {
        let (tokens, parts, admission) = Default::default();
        Self::Cluster(Box::new(Objects { client, api_server: api_server.into(), tokens, parts, admission }))
    }

    pub async fn parts(&self, pool: &str) -> Found<Parts> {
        match self {
            Source::Bootstrap(files) => files.parts(pool).map_err(Arc::new),
            Source::Cluster(objects) => {
                let look = async || objects.parts(pool).await.map(Arc::new).map_err(Arc::new);
                match POOLS.iter().position(|known| *known == pool) {
                    Some(i) => objects.parts[i].of(look).await,
                    None => look().await,
                }
            }
        }
    }

    /// As it is at this moment, for every config: a spent token is refused from then on.
    pub async fn admission(&self) -> Found<Admission> {
        match self {
            Source::Bootstrap(files) => files.admission().map_err(Arc::new),
            Source::Cluster(objects) => {
                let look = async || {
                    let read = seedling_cluster::admission::read(&objects.client).await;
                    read.map(Arc::new).map_err(|e| Arc::new(e.into()))
                };
                objects.admission.of(look).await
            }
        }
    }
}

impl Files {
    /// Workers wait: they join the finished control plane, not the temporary one.
    fn parts(&self, pool: &str) -> Result<Arc<Parts>, SourceError> {
        if !["master", "arbiter"].contains(&pool) {
            return Err(SourceError::Refused(pool.into()));
        }
        let read = |path: &Path| {
            std::fs::read_to_string(path).map_err(|e| match e.kind() {
                std::io::ErrorKind::NotFound => SourceError::NotThere(path.display().to_string()),
                _ => unusable(path.display())(e),
            })
        };
        let parse =
            |path: &Path, text: &str| serde_saphyr::from_str::<Value>(text).map_err(unusable(path.display()));
        let path = self.base.join(format!("machine-pools/{pool}.yaml"));
        let name = self.names.of(pool, read(&path)?, |text| {
            let pool = parse(&path, text)?;
            let name = pool.pointer("/status/configuration/name").and_then(Value::as_str);
            Ok::<_, SourceError>(name.unwrap_or_default().to_string())
        })?;
        let controller_config = self.base.join(format!("controller-config/{CONTROLLER_CONFIG}.yaml"));
        let rendered = self.base.join(format!("machine-configs/{name}.yaml"));
        let texts = Texts {
            controller_config: read(&controller_config)?,
            rendered: read(&rendered)?,
            kubeconfig: read(&self.kubeconfig)?,
        };
        self.parts.of(pool, texts, |texts| {
            Ok(Arc::new(Parts {
                rendered: machine_config(parse(&rendered, &texts.rendered)?)?,
                controller_config: parse(&controller_config, &texts.controller_config)?,
                kubeconfig: texts.kubeconfig.clone(),
            }))
        })
    }

    fn admission(&self) -> Result<Arc<Admission>, SourceError> {
        let text = std::fs::read(&self.tokens).map_err(unusable(self.tokens.display()))?;
        self.admission.of("tokens", text, |text| {
            serde_json::from_slice(text).map(Arc::new).map_err(unusable(self.tokens.display()))
        })
    }
}

impl Objects {
    async fn parts(&self, pool: &str) -> Result<Parts, SourceError> {
        let must = async |kind: &'static str, name: &str| {
            let found = get(&self.client, API_VERSION, kind, None, name).await?;
            found.ok_or_else(|| SourceError::NoObject { kind, name: name.into() })
        };
        let pool = must("MachineConfigPool", pool).await?;
        let controller_config = must("ControllerConfig", CONTROLLER_CONFIG).await?;
        let rendered = machine_config(must("MachineConfig", configuration(&pool)).await?)?;
        let kubeconfig = self.tokens.kubeconfig(&self.client, &self.api_server).await?;
        Ok(Parts { rendered, controller_config, kubeconfig })
    }
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
