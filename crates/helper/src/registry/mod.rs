//! The registry on 5000: a read-only OCI distribution API over the release's OCI layout. Pulls are by digest, so the
//! repository's name carries no information: any name reaches any digest of the layout.

mod path;

pub use path::{Digest, Problem, Target, parse};

use crate::http::{serve, serve_file};
use crate::{Context, HelperError, net};
use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{CONTENT_TYPE, HeaderName};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use seedling_types::helper::HelperEventKind;
use seedling_types::ports;
use serde_json::{Value, json};
use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;

const CONTENT_DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");
const API_VERSION: HeaderName = HeaderName::from_static("docker-distribution-api-version");
const OCTETS: &str = "application/octet-stream";
const REF_NAME: &str = "org.opencontainers.image.ref.name";
/// The distribution spec's limit; a larger blob is no manifest.
const MAX_MANIFEST: u64 = 4 << 20;

pub async fn start(context: &Context) -> Result<impl Future<Output = ()> + use<>, HelperError> {
    let listener = net::tcp("the registry", &context.config(), ports::HELPER_REGISTRY).await?;
    let router = Router::new()
        .fallback(get(answer))
        .layer(from_fn_with_state(context.clone(), log))
        .with_state(context.clone());
    Ok(serve(listener, router, context.limits.registry.clone(), context.events.clone()))
}

async fn answer(State(context): State<Context>, request: Request) -> Response {
    let layout = context.config().release_dir.join("oci");
    let target = parse(request.uri().path());
    let mut response = match target {
        Ok(Target::Base) => axum::Json(json!({})).into_response(),
        Ok(Target::Manifest(digest)) => manifest(&layout, &digest).await,
        Ok(Target::Tag { name, tag }) => match tagged(&layout, &name, &tag).await {
            Some(digest) => manifest(&layout, &digest).await,
            None => error(&Problem::ManifestUnknown),
        },
        Ok(Target::Blob(digest)) => blob(&layout, &digest, request).await,
        Err(problem) => error(&problem),
    };
    response.headers_mut().insert(API_VERSION, HeaderValue::from_static("registry/2.0"));
    response
}

async fn blob(layout: &Path, digest: &Digest, request: Request) -> Response {
    let response = serve_file(&digest.file(layout), request).await;
    if response.status() == StatusCode::NOT_FOUND {
        return error(&Problem::BlobUnknown);
    }
    described(response, digest, OCTETS)
}

/// Read whole: its own `mediaType` says what it is.
async fn manifest(layout: &Path, digest: &Digest) -> Response {
    let path = digest.file(layout);
    let small = tokio::fs::metadata(&path).await.is_ok_and(|m| m.is_file() && m.len() <= MAX_MANIFEST);
    let bytes = if small { tokio::fs::read(&path).await.ok() } else { None };
    let Some((bytes, json)) =
        bytes.and_then(|b| serde_json::from_slice::<Value>(&b).ok().map(|json| (b, json)))
    else {
        return error(&Problem::ManifestUnknown);
    };
    described(bytes.into_response(), digest, media_type(&json))
}

fn media_type(manifest: &Value) -> &str {
    manifest["mediaType"].as_str().unwrap_or(if manifest.get("manifests").is_some() {
        "application/vnd.oci.image.index.v1+json"
    } else {
        "application/vnd.oci.image.manifest.v1+json"
    })
}

fn described(mut response: Response, digest: &Digest, media_type: &str) -> Response {
    for (name, value) in [(CONTENT_TYPE, media_type), (CONTENT_DIGEST, &digest.to_string())] {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

async fn tagged(layout: &Path, name: &str, tag: &str) -> Option<Digest> {
    let index = tokio::fs::read(layout.join("index.json")).await.ok()?;
    find_tag(&serde_json::from_slice(&index).ok()?, name, tag)
}

/// A release holds one image a component, named by it, so there is one tag. What was put beside it has its name with its tag.
fn find_tag(index: &Value, name: &str, tag: &str) -> Option<Digest> {
    let component = name.rsplit('/').next().filter(|_| tag == "latest");
    let full = format!("{name}:{tag}");
    let is = |m: &&Value| {
        m["annotations"][REF_NAME].as_str().is_some_and(|named| Some(named) == component || named == full)
    };
    Digest::parse(index["manifests"].as_array()?.iter().find(is)?["digest"].as_str()?)
}

fn error(problem: &Problem) -> Response {
    let body = json!({"errors": [{"code": problem.code(), "message": problem.to_string(), "detail": null}]});
    (problem.status(), axum::Json(body)).into_response()
}

async fn log(
    State(context): State<Context>,
    ConnectInfo(remote): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    let remote = net::ip(remote);
    let (method, path) = (request.method().to_string(), request.uri().path().to_string());
    let response = next.run(request).await;
    context.events.send(HelperEventKind::Registry {
        method,
        path,
        status: response.status().as_u16(),
        remote,
        host: context.config().inventory.by_address(remote).map(|h| h.name.clone()),
    });
    response
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
#[path = "tests.rs"]
mod tests;
