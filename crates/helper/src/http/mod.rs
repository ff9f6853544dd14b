//! HTTP on 8080: Ignition files to the machine they are for, and node software to everybody on the network.

mod file;

pub(crate) use file::serve_file;

use crate::{Context, HelperError, net};
use axum::Router;
use axum::extract::{ConnectInfo, Path, Request, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, USER_AGENT};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use seedling_types::helper::HelperEventKind;
use seedling_types::{Host, Inventory, ports};
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Component, Path as FsPath};

const IGNITION_JSON: HeaderValue = HeaderValue::from_static("application/vnd.coreos.ignition+json");

pub async fn start(context: &Context) -> Result<impl Future<Output = ()> + use<>, HelperError> {
    let listener = net::tcp("HTTP", context.config.address, ports::HELPER_HTTP).await?;
    let router = Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/ign/{mac}", get(ignition))
        .route("/bin/{name}", get(binary))
        .layer(from_fn_with_state(context.clone(), log))
        .with_state(context.clone());
    Ok(serve(listener, router))
}

/// axum's own accept loop never returns; an error would be one of the type system only.
pub(crate) async fn serve(listener: tokio::net::TcpListener, router: Router) {
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    if let Err(error) = axum::serve(listener, service).await {
        tracing::error!(%error, "HTTP server ended");
    }
}

async fn ignition(
    State(context): State<Context>,
    ConnectInfo(remote): ConnectInfo<SocketAddr>,
    Path(mac): Path<String>,
    request: Request,
) -> Response {
    let host = match entitled(&context.config.inventory, &mac, net::v4(remote)) {
        Ok(host) => host,
        Err((status, why)) => {
            tracing::warn!(%remote, mac, "Ignition config refused: {why}");
            return (status, why).into_response();
        }
    };
    let folder = &context.config.ignition_dir;
    let own = folder.join("nodes").join(format!("{}.ign", host.name));
    let path = if own.is_file() { own } else { folder.join(format!("{}.ign", host.role.as_str())) };
    let mut response = serve_file(&path, request).await;
    if response.status().is_success() {
        response.headers_mut().insert(CONTENT_TYPE, IGNITION_JSON);
    }
    response
}

/// Ignition files hold secrets: only the machine itself, at the address it got by DHCP, may have its own.
fn entitled<'a>(
    inventory: &'a Inventory,
    mac: &str,
    remote: Ipv4Addr,
) -> Result<&'a Host, (StatusCode, &'static str)> {
    let host =
        inventory.by_mac(&mac.replace('-', ":")).ok_or((StatusCode::NOT_FOUND, "no such machine\n"))?;
    if host.address != remote {
        return Err((StatusCode::FORBIDDEN, "this is not your configuration\n"));
    }
    Ok(host)
}

async fn binary(State(context): State<Context>, Path(name): Path<String>, request: Request) -> Response {
    if !is_file_name(&name) {
        return StatusCode::NOT_FOUND.into_response();
    }
    serve_file(&context.config.release_dir.join("bin").join(name), request).await
}

/// Exactly one plain component: the path was percent-decoded, so it may hold slashes and dots.
fn is_file_name(name: &str) -> bool {
    let mut components = FsPath::new(name).components();
    matches!((components.next(), components.next()), (Some(Component::Normal(c)), None) if c == name)
}

async fn log(
    State(context): State<Context>,
    ConnectInfo(remote): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    let remote = net::v4(remote);
    let header = |headers: &axum::http::HeaderMap, name| {
        headers.get(name).and_then(|v: &HeaderValue| v.to_str().ok()).unwrap_or_default().to_string()
    };
    let (method, path) = (request.method().to_string(), request.uri().path().to_string());
    let user_agent = header(request.headers(), USER_AGENT);
    let response = next.run(request).await;
    context.events.send(HelperEventKind::Http {
        method,
        path,
        status: response.status().as_u16(),
        remote,
        host: context.config.inventory.by_address(remote).map(|h| h.name.clone()),
        user_agent,
        bytes: header(response.headers(), CONTENT_LENGTH).parse().unwrap_or(0),
    });
    response
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
