//! A client from a kubeconfig, or from inside a pod.

use crate::ClusterError;
use http::Request;
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::{self, connect::HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ConfigExt, retry::RetryPolicy};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube::{Client, config::KubeconfigError};
use rustls_pki_types::InvalidDnsNameError;
use std::path::Path;
use std::time::Duration;
use tower::retry::{Policy, RetryLayer};
use tower::{BoxError, ServiceBuilder};

/// On every node; names api-int, so that host-network pods need no service address (which needs kube-proxy, which needs them).
const API_SERVER_URL_ENV: &str = "/etc/kubernetes/apiserver-url.env";

/// TCP and TLS: a frozen server's kernel still accepts connections.
const CONNECT: Duration = Duration::from_secs(5);
/// A connection over which nothing comes is asked whether it lives, and given up when it does not say so.
const PING: Duration = Duration::from_secs(10);

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

/// HTTP/2, as kubectl and the components speak it: one connection for all requests and watches of a process, and a server that
/// leaves says so. Over HTTP/1.1 it closes idle connections, and whoever asks in that moment gets an error instead of an answer.
fn client(config: Config, name: &str) -> Result<Client, ClusterError> {
    let failed = |e: kube::Error| error(name, e);
    let tls = config.rustls_client_config().map_err(failed)?;
    let mut https = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    if let Some(server) = &config.tls_server_name {
        let server = server.clone().try_into().map_err(|e: InvalidDnsNameError| error(name, e))?;
        https = https.with_server_name_resolver(FixedServerNameResolver::new(server));
    }
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let mut connector = TimeoutConnector::new(https.enable_all_versions().wrap_connector(tcp));
    connector.set_connect_timeout(Some(CONNECT));
    let http: legacy::Client<_, Body> = legacy::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_keep_alive_interval(PING)
        .http2_keep_alive_timeout(PING)
        .http2_keep_alive_while_idle(true)
        .build(connector);
    let retry = config.default_retry.then(|| RetryLayer::new(RetryPolicy::server_retry()));
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(retry)
        .layer(RetryLayer::new(Unprocessed))
        .option_layer(config.auth_layer().map_err(failed)?)
        .layer(config.extra_headers_layer().map_err(failed)?)
        .map_err(BoxError::from)
        .service(http);
    Ok(Client::new(service, config.default_namespace))
}

/// A server that leaves names the last request it will answer; later ones, already on their way, it has not looked at. They
/// are sent again over a new connection, as the protocol says and Go's client does.
#[derive(Clone)]
struct Unprocessed;

impl<Response> Policy<Request<Body>, Response, BoxError> for Unprocessed {
    type Future = std::future::Ready<()>;

    fn retry(
        &mut self,
        _: &mut Request<Body>,
        result: &mut Result<Response, BoxError>,
    ) -> Option<Self::Future> {
        let error = result.as_ref().err()?;
        let causes = std::iter::successors(Some(&**error as &dyn std::error::Error), |e| e.source());
        let h2 = causes.filter_map(|e| e.downcast_ref::<h2::Error>()).next()?;
        let gone = h2.is_remote() && h2.is_go_away() && h2.reason() == Some(h2::Reason::NO_ERROR);
        let refused = h2.reason() == Some(h2::Reason::REFUSED_STREAM);
        (gone || refused).then(|| std::future::ready(()))
    }

    fn clone_request(&mut self, request: &Request<Body>) -> Option<Request<Body>> {
        let mut again = Request::new(request.body().try_clone()?);
        *again.method_mut() = request.method().clone();
        *again.uri_mut() = request.uri().clone();
        *again.headers_mut() = request.headers().clone();
        *again.extensions_mut() = request.extensions().clone();
        Some(again)
    }
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
