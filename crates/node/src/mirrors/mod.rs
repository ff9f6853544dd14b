//! `seedling registry-mirrors`, on every node of a cluster with mirrors: containerd asks it for images of registries that have mirrors.
//!
//! containerd's own hosts.toml knows mirrors of whole registries only, keeps the repository's path, and has no credentials for a mirror.
//! Mirror sets are of repositories, and the mirror's repository may have any name. So this maps the names, takes the mirror's
//! credentials from the node's pull secret, asks one after the other, and passes on what the first one says that has it. Proxy and
//! trusted certificates are those of the service's environment and of the machine.
//!
//! In: /etc/containerd/registry-mirrors.json, /var/lib/kubelet/config.json (read at each request: a new pull secret counts at once).
//! Out: HTTP on 127.0.0.1, for those who have the key.

mod auth;
mod plan;

use crate::Result;
use crate::error::{cannot, in_file, read, read_if_there};
use auth::{Challenge, Credentials};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, RANGE, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use plan::{Place, Wanted, places};
use seedling_cluster::innermost;
use seedling_components::node::{MIRRORS_HEADER, MirrorsFile};
use seedling_types::{paths, ports};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A registry that says nothing for so long is given up, and the next one asked.
const SILENCE: Duration = Duration::from_secs(15);
/// What of an answer is containerd's business.
const PASSED_ON: [&str; 7] = [
    "content-type",
    "content-length",
    "content-range",
    "accept-ranges",
    "docker-content-digest",
    "etag",
    "www-authenticate",
];

struct Mirrors {
    file: MirrorsFile,
    http: reqwest::Client,
    /// By repository and credentials: what the registry accepted last.
    accepted: Mutex<HashMap<String, String>>,
}

pub async fn serve() -> Result<()> {
    let file = Path::new(paths::REGISTRY_MIRRORS);
    let file: MirrorsFile = serde_json::from_str(&read(file)?).map_err(in_file(paths::REGISTRY_MIRRORS))?;
    let http = reqwest::Client::builder().connect_timeout(SILENCE).read_timeout(SILENCE).build()?;
    let address = (Ipv4Addr::LOCALHOST, ports::REGISTRY_MIRRORS);
    let listener = tokio::net::TcpListener::bind(address).await;
    let listener = listener.map_err(cannot("listen on port", ports::REGISTRY_MIRRORS.to_string()))?;
    tracing::info!("{} sources have mirrors", file.sources.len());
    let mirrors = Arc::new(Mirrors { file, http, accepted: Mutex::default() });
    let router = Router::new().fallback(answer).with_state(mirrors);
    axum::serve(listener, router).await.map_err(cannot("serve", "the mirrors"))
}

async fn answer(State(mirrors): State<Arc<Mirrors>>, request: Request) -> Response {
    let uri = request.uri().clone();
    let (method, headers) = (request.method().clone(), request.headers());
    let shown = headers.get(MIRRORS_HEADER).and_then(|key| key.to_str().ok());
    if shown != Some(mirrors.file.key.as_str()) {
        return refuse("this is for the node's own containerd: hosts.toml has the key");
    }
    if method != Method::GET && method != Method::HEAD {
        return refuse("images can only be pulled");
    }
    if uri.path() == "/v2/" {
        return respond(StatusCode::OK, json!({}));
    }
    let Some(wanted) = Wanted::parse(uri.path(), uri.query().unwrap_or_default()) else {
        return refuse(&format!("{uri} is neither a manifest nor a blob of a registry"));
    };
    match places(&mirrors.file, &wanted) {
        Ok(places) => mirrors.first(&method, headers, &wanted, &places).await,
        Err(why) => {
            tracing::warn!("{why}");
            refuse(&why)
        }
    }
}

/// 403: containerd shows what the answer to it says, and of no other failure.
fn refuse(why: &str) -> Response {
    respond(StatusCode::FORBIDDEN, json!({"errors": [{"code": "DENIED", "message": why}]}))
}

fn respond(status: StatusCode, body: Value) -> Response {
    let response = Response::builder().status(status).header(CONTENT_TYPE, "application/json");
    response.body(Body::from(body.to_string())).unwrap_or_default()
}

impl Mirrors {
    /// What the first place says that has it; else why none did.
    async fn first(
        &self,
        method: &Method,
        headers: &HeaderMap,
        wanted: &Wanted,
        places: &[Place],
    ) -> Response {
        let mut failures = Vec::new();
        let mut missing = 0;
        for place in places {
            let url = place.url(wanted);
            match self.ask(method, headers, place, &url).await {
                Ok(found) if found.status().is_success() => {
                    tracing::info!("{} {method} {url}", found.status().as_u16());
                    return passed_on(found);
                }
                // Who pulls may have credentials of their own, and has not been asked for them yet.
                Ok(asks) if place.is_source && asks.status() == StatusCode::UNAUTHORIZED => {
                    return passed_on(asks);
                }
                Ok(other) => {
                    missing += usize::from(other.status() == StatusCode::NOT_FOUND);
                    failures.push(format!("{}/{}: {}", place.host, place.repository, said(other.status())));
                }
                Err(why) => failures.push(format!("{}/{}: {why}", place.host, place.repository)),
            }
        }
        let why = failures.join("; ");
        let name = format!("{}/{}", wanted.registry, wanted.repository);
        if failures.is_empty() {
            return refuse(&format!("{name} has no mirrors, and its policy is NeverContactSource"));
        }
        tracing::warn!("{name} {}: {why}", wanted.reference);
        match missing == failures.len() {
            true => respond(
                StatusCode::NOT_FOUND,
                json!({"errors": [{"code": "MANIFEST_UNKNOWN", "message": why}]}),
            ),
            false => refuse(&format!("nobody gives {name}: {why}")),
        }
    }

    /// With the pull secret's credentials, if the registry asks for them.
    async fn ask(
        &self,
        method: &Method,
        headers: &HeaderMap,
        place: &Place,
        url: &str,
    ) -> Result<reqwest::Response, String> {
        let credentials = credentials()?;
        let basic = credentials.of(&place.host, &place.repository);
        // With other credentials it is another matter: a new pull secret counts at once.
        let key = format!("{}/{} {}", place.host, place.repository, basic.unwrap_or_default());
        let accepted = || self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        let known = accepted().get(&key).cloned();
        let theirs = headers.get(AUTHORIZATION).filter(|_| place.is_source);
        let theirs = theirs.and_then(|header| header.to_str().ok()).map(String::from);
        let first = self.send(method, headers, url, theirs.clone().or(known)).await?;
        if first.status() != StatusCode::UNAUTHORIZED || theirs.is_some() {
            return Ok(first);
        }
        let challenge = first.headers().get(WWW_AUTHENTICATE).and_then(|header| header.to_str().ok());
        let Some(challenge) = challenge.and_then(Challenge::parse) else { return Ok(first) };
        let Some(shown) = self.authorize(&challenge, place, basic).await? else { return Ok(first) };
        let second = self.send(method, headers, url, Some(shown.clone())).await?;
        if second.status() != StatusCode::UNAUTHORIZED {
            accepted().insert(key, shown);
        }
        Ok(second)
    }

    async fn send(
        &self,
        method: &Method,
        headers: &HeaderMap,
        url: &str,
        authorization: Option<String>,
    ) -> Result<reqwest::Response, String> {
        let mut request = self.http.request(method.clone(), url);
        for name in [ACCEPT, RANGE] {
            for value in headers.get_all(&name) {
                request = request.header(&name, value);
            }
        }
        if let Some(authorization) = authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        request.send().await.map_err(|e| innermost(&e))
    }

    /// What to show; `None` if there is nothing that could be.
    async fn authorize(
        &self,
        challenge: &Challenge,
        place: &Place,
        basic: Option<&str>,
    ) -> Result<Option<String>, String> {
        let basic = basic.map(|auth| format!("Basic {auth}"));
        let (realm, service) = match challenge {
            Challenge::Basic => return Ok(basic),
            Challenge::Bearer { realm, service } => (realm, service),
        };
        let mut url = reqwest::Url::parse(realm).map_err(|e| format!("{realm}: {e}"))?;
        url.query_pairs_mut().append_pair("scope", &format!("repository:{}:pull", place.repository));
        if let Some(service) = service {
            url.query_pairs_mut().append_pair("service", service);
        }
        let mut request = self.http.get(url);
        if let Some(basic) = basic {
            request = request.header(AUTHORIZATION, basic);
        }
        let answer = request.send().await.map_err(|e| format!("{realm}: {}", innermost(&e)))?;
        if !answer.status().is_success() {
            return Err(format!("{realm}: {}", said(answer.status())));
        }
        let answer: Value = answer.json().await.map_err(|e| format!("{realm}: {}", innermost(&e)))?;
        let token = ["token", "access_token"].iter().find_map(|key| answer[key].as_str());
        Ok(token.map(|token| format!("Bearer {token}")))
    }
}

/// A node without a pull secret has none.
fn credentials() -> Result<Credentials, String> {
    let text = read_if_there(Path::new(paths::KUBELET_PULL_SECRET)).map_err(|e| e.to_string())?;
    let parsed = text.as_deref().map(Credentials::parse).transpose();
    Ok(parsed.map_err(|e| format!("{}: {e}", paths::KUBELET_PULL_SECRET))?.unwrap_or_default())
}

fn said(status: StatusCode) -> String {
    match status {
        StatusCode::UNAUTHORIZED => {
            format!("{status}: the pull secret has no credentials for it, or wrong ones")
        }
        _ => status.to_string(),
    }
}

fn passed_on(found: reqwest::Response) -> Response {
    let mut response = Response::builder().status(found.status());
    for name in PASSED_ON {
        for value in found.headers().get_all(name) {
            response = response.header(name, value);
        }
    }
    response.body(Body::from_stream(found.bytes_stream())).unwrap_or_default()
}
