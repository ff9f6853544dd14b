//! The routes: the page, its style and script, the stream, the state at a moment, the end of a log. GET only, read-only.

use crate::gate::{COOKIE, Token, is_address};
use crate::history::News;
use crate::live::Live;
use crate::page;
use crate::read::log_tail;
use crate::story::state_at;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use axum::{Json, Router};
use futures::{Stream, StreamExt, stream};
use serde_json::json;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Pages that follow at once.
const MOST_STREAMS: usize = 32;

#[derive(Clone)]
struct Served {
    live: Live,
    token: Option<Token>,
    streams: Arc<Semaphore>,
}

pub async fn serve(listener: TcpListener, live: Live, token: Option<Token>) -> std::io::Result<()> {
    axum::serve(listener, router(live, token)).await
}

fn router(live: Live, token: Option<Token>) -> Router {
    let served = Served { live, token, streams: Arc::new(Semaphore::new(MOST_STREAMS)) };
    Router::new()
        .route("/", get(|| async { typed("text/html; charset=utf-8", page::HTML) }))
        .route("/style.css", get(|| async { typed("text/css; charset=utf-8", page::STYLE) }))
        .route("/app.js", get(|| async { typed("text/javascript; charset=utf-8", page::SCRIPT) }))
        .route("/stream", get(follow))
        .route("/state", get(state))
        .route("/log/{node}", get(log))
        .layer(from_fn_with_state(served.clone(), admit))
        .with_state(served)
}

fn typed(kind: &'static str, text: &'static str) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, kind)], text)
}

/// Before every route; and what every answer says of itself.
async fn admit(State(served): State<Served>, request: Request, next: Next) -> Response {
    let mut response = match refusal(&served, &request) {
        Some(refusal) => refusal,
        None => next.run(request).await,
    };
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, page::POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

fn refusal(served: &Served, request: &Request) -> Option<Response> {
    let text =
        |name: HeaderName| request.headers().get(name).and_then(|v| v.to_str().ok()).unwrap_or_default();
    if !is_address(text(header::HOST)) {
        let hint = "this page is reached by an address or as localhost, not by another name\n";
        return Some((StatusCode::MISDIRECTED_REQUEST, hint).into_response());
    }
    let token = served.token.as_ref()?;
    if token.is_in(text(header::COOKIE)) {
        return None;
    }
    let said = asked(request.uri(), "token");
    if request.uri().path() == "/" && said.is_some_and(|said| token.is(said)) {
        // The token leaves the address line, and with it the browser's history.
        let cookie = format!("{COOKIE}={}; Path=/; HttpOnly; SameSite=Strict", token.text());
        return Some(([(header::SET_COOKIE, cookie)], Redirect::to("/")).into_response());
    }
    let hint = "open the URL that `seedling dashboard` printed: it has the token\n";
    Some((StatusCode::UNAUTHORIZED, hint).into_response())
}

fn asked<'a>(uri: &'a Uri, name: &str) -> Option<&'a str> {
    uri.query()?.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

/// One stream: a snapshot, then changes. A page that comes back says what it has seen last.
async fn follow(State(served): State<Served>, headers: HeaderMap) -> Response {
    let Ok(place) = served.streams.clone().try_acquire_owned() else {
        let hint = format!("{MOST_STREAMS} pages follow already; close one\n");
        return (StatusCode::SERVICE_UNAVAILABLE, hint).into_response();
    };
    let last = headers.get("last-event-id").and_then(|v| v.to_str().ok()).map(str::to_string);
    let (news, live) = (served.live.news(), served.live);
    let events = stream::unfold((live, news, last), |(live, mut news, last)| async move {
        loop {
            // Nothing is missed between the look and the wait: what came since the subscription is marked as changed.
            let found = told(live.after(last.as_deref()));
            if let Some((id, _)) = found.last() {
                let last = Some(id.clone());
                return Some((found, (live, news, last)));
            }
            news.changed().await.ok()?;
        }
    });
    let events = events.flat_map(stream::iter).map(move |(_, event)| {
        let _ = &place;
        Ok::<_, Infallible>(event)
    });
    Sse::new(Box::pin(events) as std::pin::Pin<Box<dyn Stream<Item = _> + Send>>)
        .keep_alive(KeepAlive::default())
        .into_response()
}

fn told(news: News) -> Vec<(String, Event)> {
    let event = |id: &str, kind: &str, data: serde_json::Value| {
        Event::default().id(id).event(kind).data(data.to_string())
    };
    match news {
        News::Snapshot(id, story) => {
            vec![(id.clone(), event(&id, "snapshot", page::snapshot(&story, now())))]
        }
        News::Changes(changes) => changes
            .into_iter()
            .map(|(id, change)| (id.clone(), event(&id, "change", json!(change))))
            .collect(),
    }
}

/// `/state?at=12.5`: what the page shows at that second, for programs.
async fn state(State(served): State<Served>, uri: Uri) -> Response {
    let at = match asked(&uri, "at").map(str::parse::<f64>) {
        None => f64::INFINITY,
        Some(Ok(at)) => at,
        Some(Err(_)) => return (StatusCode::BAD_REQUEST, "at: a number of seconds\n").into_response(),
    };
    Json(state_at(&served.live.story(), at)).into_response()
}

async fn log(State(served): State<Served>, Path(node): Path<String>) -> Response {
    let text = match served.live.lab() {
        Some(lab) => log_tail(&lab, &node).await,
        None => None,
    };
    match text {
        Some(text) => ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response(),
        None => (StatusCode::NOT_FOUND, "there is no such machine, or no log yet\n").into_response(),
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or_default()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use seedling_lab::Labs;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    /// The answer's head and body; a stream's only as far as its first part.
    async fn ask(token: Option<Token>, request: &str) -> String {
        let nowhere = std::path::PathBuf::from("/nonexistent");
        let live = Live::follow(Labs { state: nowhere.clone(), cache: nowhere }, "none", "e".into());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve(listener, live, token));
        let mut connection = TcpStream::connect(address).await.unwrap();
        connection.write_all(format!("{request}\r\nConnection: close\r\n\r\n").as_bytes()).await.unwrap();
        let mut answer = vec![0; 4096];
        let read = connection.read(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer[..read]).into_owned()
    }

    #[tokio::test]
    async fn only_get_only_by_address_and_nothing_from_elsewhere() {
        let here = "Host: 127.0.0.1";
        for (request, status) in [
            (format!("GET / HTTP/1.1\r\n{here}"), "200"),
            ("GET / HTTP/1.1\r\nHost: localhost:80".to_string(), "200"),
            (format!("GET /app.js HTTP/1.1\r\n{here}"), "200"),
            (format!("GET /state?at=1.5 HTTP/1.1\r\n{here}"), "200"),
            (format!("GET /state?at=x HTTP/1.1\r\n{here}"), "400"),
            (format!("GET /log/master-0 HTTP/1.1\r\n{here}"), "404"),
            (format!("GET /log/..%2f..%2fetc%2fpasswd HTTP/1.1\r\n{here}"), "404"),
            (format!("GET /nothing HTTP/1.1\r\n{here}"), "404"),
            (format!("POST / HTTP/1.1\r\n{here}"), "405"),
            (format!("DELETE /stream HTTP/1.1\r\n{here}"), "405"),
            ("GET / HTTP/1.1\r\nHost: evil.example".to_string(), "421"),
            ("GET /stream HTTP/1.1\r\nHost: evil.example:8090".to_string(), "421"),
        ] {
            let answer = ask(None, &request).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}\n{answer}");
            assert!(answer.contains("content-security-policy: default-src 'none'"), "{answer}");
        }
        let stream = ask(None, &format!("GET /stream HTTP/1.1\r\n{here}")).await;
        assert!(stream.contains("text/event-stream"), "{stream}");
    }

    #[tokio::test]
    async fn elsewhere_the_token_is_needed_once_and_then_the_cookie() {
        let token = Token::for_address("0.0.0.0:0".parse().unwrap()).unwrap().unwrap();
        let ask = async |line: &str, more: &str| {
            ask(Some(token.clone()), &format!("GET {line} HTTP/1.1\r\nHost: 192.168.1.5{more}")).await
        };
        for path in ["/", "/app.js", "/stream", "/state", "/?token=", "/?token=00", "/log/helper"] {
            let answer = ask(path, "").await;
            assert!(answer.starts_with("HTTP/1.1 401 "), "{path}: {answer}");
        }
        let answer = ask(&format!("/?token={}", token.text()), "").await;
        assert!(answer.starts_with("HTTP/1.1 303 ") && answer.contains("location: /\r\n"), "{answer}");
        assert!(answer.contains("; HttpOnly; SameSite=Strict"), "{answer}");
        let cookie = format!("\r\nCookie: {COOKIE}={}", token.text());
        assert!(ask("/", &cookie).await.starts_with("HTTP/1.1 200 "));
        assert!(ask("/", &format!("{cookie}0")).await.starts_with("HTTP/1.1 401 "));
    }
}
