//! Network boot over HTTP: the boot image's files, each machine's script, and its reports.

use super::image_file;
use crate::http::{entitled, serve_file};
use crate::{Context, net};
use axum::body::Bytes;
use axum::extract::{ConnectInfo, Path, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use seedling_types::boot::Report;
use seedling_types::helper::HelperEventKind;
use std::net::SocketAddr;

/// A machine that fails says why in a line or two.
pub(crate) const LONGEST_REPORT: usize = 8 * 1024;
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// Machines of the inventory only: whoever else is on the network is listed, and served nothing.
pub(crate) async fn file(
    State(context): State<Context>,
    ConnectInfo(remote): ConnectInfo<SocketAddr>,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    let config = context.config();
    let Some(boot) = &config.boot else { return StatusCode::NOT_FOUND.into_response() };
    let remote = net::ip(remote);
    if config.inventory.by_address(remote).is_none() && remote != config.address {
        let reason = "this address is no machine's of the inventory".to_string();
        let path = format!("/boot/{name}");
        context.events.send(HelperEventKind::Refused { path, remote, host: None, reason: reason.clone() });
        return (StatusCode::FORBIDDEN, reason + "\n").into_response();
    }
    match image_file(boot, &name) {
        Some(path) => serve_file(&path, request).await,
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

pub(crate) async fn script(
    State(context): State<Context>,
    ConnectInfo(remote): ConnectInfo<SocketAddr>,
    Path(mac): Path<String>,
) -> Response {
    let config = context.config();
    let host = match entitled(&config.inventory, &mac, net::ip(remote)) {
        Ok(host) => host,
        Err((status, why)) => return (status, format!("{why}\n")).into_response(),
    };
    match context.boots.give(&config, host, |boot, next| boot.script(next)) {
        Some(script) => ([(CONTENT_TYPE, TEXT)], script).into_response(),
        None => (StatusCode::NOT_FOUND, "this machine does not boot over the network\n").into_response(),
    }
}

pub(crate) async fn report(
    State(context): State<Context>,
    ConnectInfo(remote): ConnectInfo<SocketAddr>,
    Path(mac): Path<String>,
    body: Bytes,
) -> Response {
    let config = context.config();
    let host = match entitled(&config.inventory, &mac, net::ip(remote)) {
        Ok(host) => host,
        Err((status, why)) => return (status, format!("{why}\n")).into_response(),
    };
    if config.boot_of(&host.name).is_none() {
        return StatusCode::NOT_FOUND.into_response();
    }
    let report: Report = match serde_json::from_slice(&body) {
        Ok(report) => report,
        Err(error) => {
            let text =
                format!("{error}; say {{\"state\": \"installing|installed|failed\", \"message\": \"…\"}}\n");
            return (StatusCode::BAD_REQUEST, text).into_response();
        }
    };
    match context.boots.report(host, &report) {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(error) => {
            tracing::error!(host = host.name, %error, "cannot keep a machine's report");
            (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response()
        }
    }
}
