//! A client from a kubeconfig, or from inside a pod.

use crate::overload::{Overloaded, Paced};
use crate::refused::Watched;
use crate::{ClusterError, Result, expired};
use http::Request;
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::{self, connect::HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ConfigExt};
use kube::config::{AuthInfo, Config, KubeConfigOptions, Kubeconfig};
use kube::{Client, config::KubeconfigError};
use rustls_pki_types::InvalidDnsNameError;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tower::retry::{Policy, RetryLayer};
use tower::{BoxError, ServiceBuilder};

/// On every node; names api-int, so that host-network pods need no service address (which needs kube-proxy, which needs them).
const API_SERVER_URL_ENV: &str = "/etc/kubernetes/apiserver-url.env";

/// The API server on this machine; certificates name it so.
const HERE: &str = "https://localhost:6443";

/// TCP and TLS: a frozen server's kernel still accepts connections.
const CONNECT: Duration = Duration::from_secs(5);
/// A connection over which nothing comes is asked whether it lives, and given up when it does not say so.
const PING: Duration = Duration::from_secs(10);

/// `None`: the pod's service account.
pub async fn connect(kubeconfig: Option<&Path>) -> Result<Client> {
    match kubeconfig {
        Some(path) => {
            let fail = |source: KubeconfigError| error(&path.display().to_string(), source);
            from_kubeconfig(Kubeconfig::read_from(path).map_err(fail)?, &path.display().to_string()).await
        }
        None => in_cluster(None),
    }
}

/// The name of a kubeconfig's first cluster and the address of its API.
pub fn named_in(kubeconfig: &Path) -> Result<(String, Option<String>)> {
    let read = Kubeconfig::read_from(kubeconfig).map_err(|e| error(&kubeconfig.display().to_string(), e))?;
    let named = read.clusters.into_iter().next();
    let server = |cluster: kube::config::NamedCluster| (cluster.name, cluster.cluster.and_then(|c| c.server));
    Ok(named.map(server).unwrap_or_default())
}

/// How often a client sent a request again because the server had named it as not looked at.
pub type Resent = Arc<AtomicUsize>;

/// For those who want to see every failure: an answer of 429, 503 or 504 is an error at once, and what is sent again is counted.
pub async fn connect_without_retries(kubeconfig: &Path, resent: &Resent) -> Result<Client> {
    let name = kubeconfig.display().to_string();
    let read = Kubeconfig::read_from(kubeconfig).map_err(|e| error(&name, e))?;
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(read, &options).await.map_err(|e| error(&name, e))?;
    config.default_retry = false;
    client(config, &name, resent.clone())
}

pub async fn connect_yaml(kubeconfig: &str) -> Result<Client> {
    let parsed = Kubeconfig::from_yaml(kubeconfig).map_err(|e| error("given", e))?;
    from_kubeconfig(parsed, "given").await
}

/// To the API server on this machine, with an administrator's kubeconfig. `even_expired`: also if its certificate has
/// expired, as long as it was valid until then.
pub async fn connect_here(kubeconfig: &str, even_expired: bool) -> Result<Client> {
    const NAME: &str = "given";
    let parsed = Kubeconfig::from_yaml(kubeconfig).map_err(|e| error(NAME, e))?;
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(parsed, &options).await.map_err(|e| error(NAME, e))?;
    config.cluster_url = HERE.parse().map_err(|e: http::uri::InvalidUri| error(NAME, e))?;
    let mut tls = config.rustls_client_config().map_err(|e| error(NAME, e))?;
    if even_expired {
        let roots = config.root_cert.clone().unwrap_or_default();
        tls.dangerous().set_certificate_verifier(expired::verifier(roots).map_err(|e| error(NAME, e))?);
    }
    client_with(config, tls, NAME, Resent::default())
}

async fn from_kubeconfig(kubeconfig: Kubeconfig, name: &str) -> Result<Client> {
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|e| error(name, e))?;
    client(config, name, Resent::default())
}

/// From inside a pod, with a token for another service account than the pod's.
pub fn connect_in_cluster_with(token: String) -> Result<Client> {
    in_cluster(Some(token))
}

fn in_cluster(token: Option<String>) -> Result<Client> {
    const NAME: &str = "of the service account";
    let mut config = Config::incluster().map_err(|e| error(NAME, e))?;
    if let Some(token) = token {
        config.auth_info = AuthInfo { token: Some(token.into()), ..AuthInfo::default() };
    }
    if let Ok(env) = std::fs::read_to_string(API_SERVER_URL_ENV)
        && let Some(url) = server_url(&env)
    {
        config.cluster_url = url.parse().map_err(|e: http::uri::InvalidUri| error(NAME, e))?;
    }
    client(config, NAME, Resent::default())
}

/// HTTP/2, as kubectl and the components speak it: one connection for all requests and watches of a process, and a server that
/// leaves says so. Over HTTP/1.1 it closes idle connections, and a request at that moment gets an error instead of an answer.
fn client(config: Config, name: &str, resent: Resent) -> Result<Client> {
    let tls = config.rustls_client_config().map_err(|e| error(name, e))?;
    client_with(config, tls, name, resent)
}

fn client_with(config: Config, tls: rustls::ClientConfig, name: &str, resent: Resent) -> Result<Client> {
    let failed = |e: kube::Error| error(name, e);
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
    let retry = config.default_retry.then(|| RetryLayer::new(Overloaded::default()));
    let service = ServiceBuilder::new()
        .layer_fn(Watched)
        .layer_fn(Paced::new)
        .layer(config.base_uri_layer())
        .option_layer(retry)
        .layer(RetryLayer::new(Unprocessed { times: 0, resent }))
        .option_layer(config.auth_layer().map_err(failed)?)
        .layer(config.extra_headers_layer().map_err(failed)?)
        .map_err(BoxError::from)
        .service(http);
    Ok(Client::new(service, config.default_namespace))
}

/// A server that leaves names the last request it will answer; later ones, already on their way, it has not looked at. They
/// are sent again over a new connection, as the protocol says and Go's client does; and like there not for ever, since a server
/// may go on refusing.
#[derive(Clone)]
struct Unprocessed {
    /// This request; each has a policy of its own.
    times: u32,
    resent: Resent,
}

/// At once, since another server is there as a rule; then ever later, 1.5 s altogether.
fn pause(times: u32) -> Option<Duration> {
    match times {
        0 => Some(Duration::ZERO),
        1..=5 => Some(Duration::from_millis(25) * 2u32.pow(times)),
        _ => None,
    }
}

/// The server has said that it did not look at the request.
fn unprocessed(error: &BoxError) -> bool {
    let first: &(dyn std::error::Error + 'static) = error.as_ref();
    let mut causes = std::iter::successors(Some(first), |e| e.source());
    let Some(h2) = causes.find_map(|e| e.downcast_ref::<h2::Error>()) else { return false };
    let gone = h2.is_remote() && h2.is_go_away() && h2.reason() == Some(h2::Reason::NO_ERROR);
    gone || h2.reason() == Some(h2::Reason::REFUSED_STREAM)
}

impl<Response> Policy<Request<Body>, Response, BoxError> for Unprocessed {
    type Future = tokio::time::Sleep;

    fn retry(
        &mut self,
        _: &mut Request<Body>,
        result: &mut Result<Response, BoxError>,
    ) -> Option<Self::Future> {
        let pause = pause(self.times).filter(|_| result.as_ref().err().is_some_and(unprocessed))?;
        self.times += 1;
        self.resent.fetch_add(1, Ordering::Relaxed);
        Some(tokio::time::sleep(pause))
    }

    fn clone_request(&mut self, request: &Request<Body>) -> Option<Request<Body>> {
        again(request)
    }
}

/// The same, to be sent once more.
pub(crate) fn again(request: &Request<Body>) -> Option<Request<Body>> {
    let mut again = Request::new(request.body().try_clone()?);
    *again.method_mut() = request.method().clone();
    *again.uri_mut() = request.uri().clone();
    *again.headers_mut() = request.headers().clone();
    *again.extensions_mut() = request.extensions().clone();
    Some(again)
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
    use super::*;

    /// Whether a request that ends so each time is sent again, how often, and how often that was counted.
    fn sent_again(error: impl Fn() -> BoxError) -> (usize, usize) {
        let resent = Resent::default();
        let mut policy = Unprocessed { times: 0, resent: resent.clone() };
        let mut again = || {
            let (mut request, mut result) = (Request::new(Body::empty()), Err::<(), _>(error()));
            policy.retry(&mut request, &mut result).is_some()
        };
        let times = (0..1000).take_while(|_| again()).count();
        (times, resent.load(Ordering::Relaxed))
    }

    #[tokio::test]
    async fn a_server_that_goes_on_refusing_is_given_up() {
        assert_eq!(sent_again(|| h2::Error::from(h2::Reason::REFUSED_STREAM).into()), (6, 6));
        assert_eq!(sent_again(|| h2::Error::from(h2::Reason::INTERNAL_ERROR).into()), (0, 0));
        assert_eq!(sent_again(|| "no route".into()), (0, 0));
        let pauses: Vec<_> = (0..).map_while(pause).collect();
        assert!(pauses.is_sorted() && pauses.iter().sum::<Duration>() < Duration::from_secs(2), "{pauses:?}");
    }

    #[test]
    fn reads_the_environment_file() {
        let env = "KUBERNETES_SERVICE_HOST='api-int.ocp4.alchemy.com'\nKUBERNETES_SERVICE_PORT='6443'\n";
        assert_eq!(server_url(env).as_deref(), Some("https://api-int.ocp4.alchemy.com:6443"));
        assert_eq!(server_url(""), None);
    }
}
