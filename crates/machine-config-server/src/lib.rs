//! The machine-config server: hands a machine the config of its role, in the Ignition version it asks for.
//!
//! In: a pool's rendered MachineConfig; the inventory and the digests of the nodes' tokens. Out: HTTP on 22623 (TLS) and 22624
//! (plain, loopback only), and a line in the audit log for every config that was asked for. Paths, statuses and version
//! negotiation are upstream's; a client that may not have a config gets 403 (unless the server is open, as upstream's is).

mod admit;
mod audit;
pub mod bootstrapper;
mod document;
mod kept;
mod proxy;
mod ready;
mod route;
mod source;

use admit::{Asked, admit};
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use axum_server::{Handle, tls_rustls::RustlsConfig};
use kept::Kept;
pub use proxy::{Caller, KnowCaller};
use route::{Route, route};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use seedling_cluster::inventory::{self, InventoryError};
use seedling_ignition::translate::negotiate;
use seedling_types::{Inventory, paths, ports};
pub use source::Source;
use source::SourceError;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::watch;

/// Requests in flight when the pod is told to stop may take this long.
const GRACE: Duration = Duration::from_secs(3);

#[derive(Debug, Error)]
pub enum ServeError {
    #[error("the serving certificate in {dir}: {message}")]
    Certificate { dir: String, message: String },
    #[error("cannot listen on {address}: {source}")]
    Listen { address: SocketAddr, source: std::io::Error },
    #[error(transparent)]
    Inventory(#[from] InventoryError),
}

#[derive(Clone)]
pub struct Listen {
    pub tls: SocketAddr,
    pub plain: SocketAddr,
}

impl Listen {
    /// For all machines of the inventory, and without TLS for the node itself.
    pub fn to(inventory: &Inventory) -> Self {
        Self {
            tls: SocketAddr::new(inventory.any_address(), ports::MCS),
            plain: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), ports::MCS_LOOPBACK),
        }
    }
}

/// On the bootstrap node, from files.
pub async fn serve_bootstrap() -> Result<(), ServeError> {
    let inventory = inventory::read(&Path::new(paths::OPT_OPENSHIFT).join("hosts.yaml"))?;
    let source = Source::bootstrap(
        paths::MCS_BOOTSTRAP.into(),
        "/etc/mcs/kubeconfig".into(),
        paths::MCS_NODE_TOKENS.into(),
    );
    // Nobody changes it there; the sender stays, so that the receiver does.
    let inventory = watch::Sender::new(inventory);
    serve_here(source, inventory.subscribe()).await
}

/// On a master, from the API.
pub async fn serve_cluster(client: kube::Client, api_server: &str) -> Result<(), ServeError> {
    let inventory = inventory::keep(&client).await;
    serve_here(Source::cluster(client, api_server), inventory).await
}

/// With the node's own certificate and audit log, on the ports that machines ask.
async fn serve_here(source: Source, inventory: watch::Receiver<Inventory>) -> Result<(), ServeError> {
    let (listen, audit) = (Listen::to(&inventory.borrow()), Some(paths::MCS_AUDIT_LOG.into()));
    serve(source, Path::new(paths::MCS_TLS), inventory, audit, listen, Handle::new(), Handle::new()).await
}

struct Server {
    source: Source,
    inventory: watch::Receiver<Inventory>,
    audit: Arc<audit::Log>,
    ready: ready::Readiness,
    /// By pool and Ignition version, of a pool's parts.
    documents: Kept<Arc<document::Parts>, Bytes>,
}

/// Serves until told to stop by SIGTERM; the handles say where it listens.
pub async fn serve(
    source: Source,
    tls_dir: &Path,
    inventory: watch::Receiver<Inventory>,
    audit: Option<PathBuf>,
    listen: Listen,
    tls: Handle<SocketAddr>,
    plain: Handle<SocketAddr>,
) -> Result<(), ServeError> {
    let config = RustlsConfig::from_config(Arc::new(tls_config(tls_dir)?));
    let audit = Arc::new(audit::Log::to(audit));
    let know_caller = KnowCaller { inventory: inventory.clone(), audit: audit.clone() };
    let (ready, documents) = Default::default();
    let server = Arc::new(Server { source, inventory, audit, ready, documents });
    let app = Router::new().fallback(answer).with_state(server).into_make_service();
    tokio::spawn(stop_on_signal([tls.clone(), plain.clone()]));
    let failed = |address| move |source| ServeError::Listen { address, source };
    let secure = axum_server::bind_rustls(listen.tls, config).map(|tls| tls.acceptor(know_caller.clone()));
    let secure = secure.handle(tls).serve(app.clone());
    let loopback = axum_server::bind(listen.plain).acceptor(know_caller).handle(plain).serve(app);
    tracing::info!("serving configs on {} (TLS) and {} (plain)", listen.tls, listen.plain);
    tokio::try_join!(async { secure.await.map_err(failed(listen.tls)) }, async {
        loopback.await.map_err(failed(listen.plain))
    },)?;
    Ok(())
}

async fn stop_on_signal(handles: [Handle<SocketAddr>; 2]) {
    use tokio::signal::unix::{SignalKind, signal};
    if let Ok(mut term) = signal(SignalKind::terminate()) {
        term.recv().await;
        tracing::info!("stopping: SIGTERM received");
        handles.iter().for_each(|h| h.graceful_shutdown(Some(GRACE)));
    }
}

fn tls_config(dir: &Path) -> Result<rustls::ServerConfig, ServeError> {
    let failed = |e: &dyn std::fmt::Display| ServeError::Certificate {
        dir: dir.display().to_string(),
        message: e.to_string(),
    };
    let chain = CertificateDer::pem_file_iter(dir.join("tls.crt")).map_err(|e| failed(&e))?;
    let chain = chain.collect::<Result<Vec<_>, _>>().map_err(|e| failed(&e))?;
    let key = PrivateKeyDer::from_pem_file(dir.join("tls.key")).map_err(|e| failed(&e))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let versions =
        rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut config = (versions.map_err(|e| failed(&e))?.with_no_client_auth())
        .with_single_cert(chain, key)
        .map_err(|e| failed(&e))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

async fn answer(
    State(server): State<Arc<Server>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Response {
    let (request, _) = request.into_parts();
    let (method, uri) = (&request.method, &request.uri);
    match route(method, uri.path(), uri.query()) {
        Route::Health => StatusCode::OK.into_response(),
        Route::NotFound => StatusCode::NOT_FOUND.into_response(),
        Route::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED.into_response(),
        Route::Redirect(to) => redirect(method, &to),
        Route::Ready(pool) => {
            let look = async || match server.source.parts(&pool).await {
                Ok(_) => StatusCode::OK,
                Err(e) => failed(&pool, &e),
            };
            server.ready.of(&pool, look).await.into_response()
        }
        Route::Config(pool) => guarded(&server, &caller, &pool, &request).await,
    }
}

/// Judged, answered, and written down.
async fn guarded(server: &Server, caller: &Caller, pool: &str, request: &Parts) -> Response {
    let text = |name| request.headers.get(name).and_then(|v| v.to_str().ok());
    let token = text(header::AUTHORIZATION).and_then(|v| v.strip_prefix("Bearer "));
    let admission = server.source.admission().await;
    // Who is known is asked once it is known whom to admit, and not held while the config is made.
    let (node, verdict) = {
        let inventory = server.inventory.borrow();
        let node = admit::machine(caller, &inventory).map(|host| host.name.clone());
        let asked = Asked { caller, pool, token };
        (node, admission.map(|admission| admit(&asked, &inventory, &admission)))
    };
    let (verdict, response) = match verdict {
        // Whether it may have it is not known: it is to ask again, as Ignition does after a 5xx.
        Err(e) => (Err(e.to_string()), StatusCode::INTERNAL_SERVER_ERROR.into_response()),
        Ok(Ok(why)) => (Ok(why), config(server, pool, &request.headers).await),
        Ok(Err(why)) => (Err(why), forbidden()),
    };
    let asked = audit::Request {
        method: request.method.as_str(),
        pool,
        user_agent: text(header::USER_AGENT).unwrap_or_default(),
        status: response.status().as_u16(),
    };
    server.audit.config(caller, node.as_deref(), &asked, &verdict);
    response
}

async fn config(server: &Server, pool: &str, headers: &HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|v| v.to_str().ok());
    let version = match negotiate(accept) {
        Ok(version) => version,
        Err(unsupported) => {
            tracing::warn!("{unsupported}");
            return StatusCode::BAD_REQUEST.into_response();
        }
    };
    let parts = match server.source.parts(pool).await {
        Ok(parts) => parts,
        Err(e) => return failed(pool, &e).into_response(),
    };
    let make = |parts: &Arc<_>| document::document(parts, version).map(|config| config.to_string().into());
    match server.documents.of(&format!("{pool} {version}"), parts, make) {
        Ok(config) => ([(header::CONTENT_TYPE, "application/json")], Body::from(config)).into_response(),
        Err(e) => {
            tracing::warn!("pool {pool:?}: {e}");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

fn failed(pool: &str, error: &SourceError) -> StatusCode {
    tracing::warn!("pool {pool:?}: {error}");
    match error {
        SourceError::NotThere(_) => StatusCode::NOT_FOUND,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Ignition stops at a 4xx: asking again with the same pointer would not help. Why it is refused is for the log only.
fn forbidden() -> Response {
    let mut response = Response::new(Body::from("refused; the machine-config server's log says why\n"));
    *response.status_mut() = StatusCode::FORBIDDEN;
    response
}

fn redirect(method: &Method, to: &str) -> Response {
    let page = format!("<a href=\"{to}\">Temporary Redirect</a>.\n\n");
    let with_page = *method == Method::GET || *method == Method::HEAD;
    let mut response = Response::new(if with_page { Body::from(page) } else { Body::empty() });
    *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
    if with_page {
        let html = header::HeaderValue::from_static("text/html; charset=utf-8");
        response.headers_mut().insert(header::CONTENT_TYPE, html);
    }
    if let Ok(to) = header::HeaderValue::from_str(to) {
        response.headers_mut().insert(header::LOCATION, to);
    }
    response
}
