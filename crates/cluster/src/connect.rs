//! A client from a kubeconfig, or from inside a pod.

use crate::ClusterError;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube::{Client, config::KubeconfigError};
use std::path::Path;
use std::time::Duration;

/// On every node; names api-int, so that host-network pods need no service address (which needs kube-proxy, which needs them).
const API_SERVER_URL_ENV: &str = "/etc/kubernetes/apiserver-url.env";

/// Watches are re-opened by the server within five to ten minutes; silence beyond that is a dead connection.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// `None`: the pod's service account.
pub async fn connect(kubeconfig: Option<&Path>) -> Result<Client, ClusterError> {
    match kubeconfig {
        Some(path) => {
            let fail = |source: KubeconfigError| error(&path.display().to_string(), source);
            from_kubeconfig(Kubeconfig::read_from(path).map_err(fail)?, &path.display().to_string()).await
        }
        None => in_cluster(),
    }
}

/// For those who want to see every failure: an answer of 429, 503 or 504 is an error at once.
pub async fn connect_without_retries(kubeconfig: &Path) -> Result<Client, ClusterError> {
    let name = kubeconfig.display().to_string();
    let read = Kubeconfig::read_from(kubeconfig).map_err(|e| error(&name, e))?;
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(read, &options).await.map_err(|e| error(&name, e))?;
    config.default_retry = false;
    client(config, &name)
}

pub async fn connect_yaml(kubeconfig: &str) -> Result<Client, ClusterError> {
    let parsed = Kubeconfig::from_yaml(kubeconfig).map_err(|e| error("given", e))?;
    from_kubeconfig(parsed, "given").await
}

async fn from_kubeconfig(kubeconfig: Kubeconfig, name: &str) -> Result<Client, ClusterError> {
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|e| error(name, e))?;
    client(config, name)
}

fn in_cluster() -> Result<Client, ClusterError> {
    const NAME: &str = "of the service account";
    let mut config = Config::incluster().map_err(|e| error(NAME, e))?;
    if let Ok(env) = std::fs::read_to_string(API_SERVER_URL_ENV)
        && let Some(url) = server_url(&env)
    {
        config.cluster_url = url.parse().map_err(|e: http::uri::InvalidUri| error(NAME, e))?;
    }
    client(config, NAME)
}

fn client(mut config: Config, name: &str) -> Result<Client, ClusterError> {
    config.connect_timeout = Some(Duration::from_secs(5));
    config.read_timeout = Some(READ_TIMEOUT);
    config.reset_reader_on_write = true;
    Client::try_from(config).map_err(|e| error(name, e))
}

fn server_url(env: &str) -> Option<String> {
    let value = |key: &str| {
        let line = env.lines().find_map(|l| l.trim().strip_prefix(key)?.strip_prefix('='))?;
        Some(line.trim_matches(['\'', '"']).to_string())
    };
    Some(format!("https://{}:{}", value("KUBERNETES_SERVICE_HOST")?, value("KUBERNETES_SERVICE_PORT")?))
}

fn error(path: &str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> ClusterError {
    ClusterError::Kubeconfig { path: path.into(), source: source.into() }
}

#[cfg(test)]
mod tests {
    #[test]
    fn reads_the_environment_file() {
        let env = "KUBERNETES_SERVICE_HOST='api-int.ocp4.alchemy.com'\nKUBERNETES_SERVICE_PORT='6443'\n";
        assert_eq!(super::server_url(env).as_deref(), Some("https://api-int.ocp4.alchemy.com:6443"));
        assert_eq!(super::server_url(""), None);
    }
}
