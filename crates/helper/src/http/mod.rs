//! HTTP on 8080: Ignition files to the machine they are for, node software to everybody on the network, and network boot.

mod connection;
mod documents;
mod file;

pub(crate) use connection::serve;
pub use file::serve_file;

use crate::doors::ignition_file;
use crate::{Context, HelperError, boot, net};
use axum::body::Body;
use axum::extract::{ConnectInfo, DefaultBodyLimit, Path, Request, State};
use axum::http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, USER_AGENT};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use connection::Delivery;
use documents::Documents;
use seedling_types::helper::HelperEventKind;
use seedling_types::{Host, Inventory, Role, ports};
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::path::{Component, Path as FsPath};

const IGNITION_JSON: HeaderValue = HeaderValue::from_static("application/vnd.coreos.ignition+json");

pub async fn start(context: &Context) -> Result<impl Future<Output = ()> + use<>, HelperError> {
    let listener = net::tcp("HTTP", &context.config(), ports::HELPER_HTTP).await?;
    let router = Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/metrics", get(|State(context): State<Context>| async move { context.stats.metrics() }))
        .route("/stats", get(|State(context): State<Context>| async move { Html(context.stats.page()) }))
        .route("/ign/{mac}", get(ignition))
        .route("/bin/{name}", get(binary))
        .route("/boot/{name}", get(boot::http::file))
        .route("/boot/ipxe/{mac}", get(boot::http::script))
        .route("/boot/report/{mac}", post(boot::http::report))
        .layer(Extension(Documents::default()))
        .layer(DefaultBodyLimit::max(boot::http::LONGEST_REPORT))
        .layer(from_fn_with_state(context.clone(), log))
        .with_state(context.clone());
    Ok(serve(listener, router, context.limits.http.clone(), context.events.clone()))
}

/// Whole and without ranges: a fetch counts once, when it is complete.
async fn ignition(
    State(context): State<Context>,
    ConnectInfo(remote): ConnectInfo<SocketAddr>,
    Extension(delivery): Extension<Delivery>,
    Extension(documents): Extension<Documents>,
    Path(mac): Path<String>,
    method: Method,
) -> Response {
    let refuse = |status, host: Option<&Host>, reason: String| {
        context.events.send(HelperEventKind::Refused {
            path: format!("/ign/{mac}"),
            remote: net::ip(remote),
            host: host.map(|h| h.name.clone()),
            reason: reason.clone(),
        });
        (status, reason + "\n").into_response()
    };
    let config = context.config();
    let host = match entitled(&config.inventory, &mac, net::ip(remote)) {
        Ok(host) => host,
        Err((status, why)) => return refuse(status, None, why.into()),
    };
    let Some(document) = documents.read(ignition_file(&config, host)).await else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let fetched = method == Method::GET;
    if let Err(refusal) = context.doors.fetch(host, &document.digest, fetched) {
        let status = StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::FORBIDDEN);
        return refuse(status, Some(host), refusal.sentence(&host.name));
    }
    if fetched {
        let (context, host) = (context.clone(), host.clone());
        delivery.then(move || {
            if host.role == Role::Bootstrap {
                context.doors.complete(&host);
            }
            context.boots.has_config(&host);
        });
    }
    let mut response = Response::new(Body::from(document.bytes));
    response.headers_mut().insert(CONTENT_TYPE, IGNITION_JSON);
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Ignition files hold secrets: only the machine itself, at the address it got by DHCP, may have its own.
pub(crate) fn entitled<'a>(
    inventory: &'a Inventory,
    mac: &str,
    remote: IpAddr,
) -> Result<&'a Host, (StatusCode, &'static str)> {
    let host = inventory.by_mac(&mac.replace('-', ":")).ok_or((StatusCode::NOT_FOUND, "no such machine"))?;
    if !host.is_at(remote) {
        return Err((StatusCode::FORBIDDEN, "this is not your configuration"));
    }
    Ok(host)
}

async fn binary(
    State(context): State<Context>,
    ConnectInfo(remote): ConnectInfo<SocketAddr>,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    if !is_file_name(&name) {
        return StatusCode::NOT_FOUND.into_response();
    }
    let config = context.config();
    let response = serve_file(&config.release_dir.join("bin").join(name), request).await;
    // What a config asks for: the machine has it.
    if response.status().is_success()
        && let Some(host) = config.inventory.by_address(net::ip(remote))
    {
        context.doors.software(host);
    }
    response
}

/// Exactly one plain component: the path was percent-decoded, so it may hold slashes and dots.
pub fn is_file_name(name: &str) -> bool {
    let mut components = FsPath::new(name).components();
    matches!((components.next(), components.next()), (Some(Component::Normal(c)), None) if c == name)
}

async fn log(
    State(context): State<Context>,
    ConnectInfo(remote): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    let remote = net::ip(remote);
    let header = |headers: &axum::http::HeaderMap, name| {
        headers.get(name).and_then(|v: &HeaderValue| v.to_str().ok()).unwrap_or_default().to_string()
    };
    let (method, path) = (request.method().to_string(), request.uri().path().to_string());
    let user_agent = header(request.headers(), USER_AGENT);
    let response = next.run(request).await;
    context.stats.add("seedling_helper_http_requests_total", "status", response.status().as_u16());
    context.events.send(HelperEventKind::Http {
        method,
        path,
        status: response.status().as_u16(),
        remote,
        host: context.config().inventory.by_address(remote).map(|h| h.name.clone()),
        user_agent,
        bytes: length(&response),
    });
    response
}

/// Of a file as its header says, of what is in memory as the body knows.
fn length(response: &Response) -> u64 {
    let said = response.headers().get(CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse().ok());
    said.or_else(|| hyper::body::Body::size_hint(response.body()).exact()).unwrap_or(0)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
