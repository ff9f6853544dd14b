//! Which answer a path gets, as upstream's HTTP multiplexer decides it (Go's: unclean paths are redirected).

use axum::http::Method;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Health,
    /// Whether a pool's config could be handed out: for the operator, which has no node's token. Not upstream's.
    Ready(String),
    /// The pool's name, the last element of the path.
    Config(String),
    Redirect(String),
    NotFound,
    MethodNotAllowed,
}

pub(crate) fn route(method: &Method, path: &str, query: Option<&str>) -> Route {
    let query = query.map(|q| format!("?{q}")).unwrap_or_default();
    let clean = clean(path);
    if clean != path {
        return Route::Redirect(clean + &query);
    }
    if path == "/config" {
        return Route::Redirect(format!("/config/{query}"));
    }
    if method != Method::GET && method != Method::HEAD {
        return Route::MethodNotAllowed;
    }
    match path {
        "/healthz" => Route::Health,
        _ if path.starts_with("/config/") => Route::Config(last_element(path)),
        _ if path.starts_with("/readyz/") => Route::Ready(last_element(path)),
        _ => Route::NotFound,
    }
}

fn last_element(path: &str) -> String {
    decode(path).split('/').rfind(|e| !e.is_empty()).unwrap_or_default().to_string()
}

/// Without empty, `.` and `..` elements; a slash at the end stays.
fn clean(path: &str) -> String {
    let mut elements: Vec<&str> = Vec::new();
    for element in path.split('/') {
        match element {
            "" | "." => {}
            ".." => drop(elements.pop()),
            other => elements.push(other),
        }
    }
    let slash = if path.ends_with('/') && !elements.is_empty() { "/" } else { "" };
    format!("/{}{slash}", elements.join("/"))
}

fn decode(path: &str) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [first, tail @ ..] = rest {
        let digits = tail.get(..2).filter(|two| two.iter().all(u8::is_ascii_hexdigit));
        let hex = digits.and_then(|h| u8::from_str_radix(std::str::from_utf8(h).ok()?, 16).ok());
        match hex {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_escaped_path_is_not_cleaned() {
        assert_eq!(route(&Method::GET, "/config/%2e%2e/healthz", None), Route::Config("healthz".into()));
        assert_eq!(
            route(&Method::GET, "/config/../healthz", Some("x")),
            Route::Redirect("/healthz?x".into())
        );
        assert_eq!(route(&Method::GET, "/config/%", None), Route::Config("%".into()));
        assert_eq!(
            route(&Method::GET, "/config/%+1", None),
            Route::Config("%+1".into()),
            "no number has a sign"
        );
        assert_eq!(route(&Method::GET, "/config/", None), Route::Config("config".into()));
        assert_eq!(route(&Method::HEAD, "/readyz/master", None), Route::Ready("master".into()));
        assert_eq!(route(&Method::GET, "/", None), Route::NotFound);
        assert_eq!(route(&Method::POST, "/", None), Route::MethodNotAllowed);
    }
}
