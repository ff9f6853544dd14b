//! What the API server refuses this process (403): said in words, in the log and, when it stays so, in the operator's status. A role
//! that lacks something would else only be seen as something that never comes.

use http::{Method, Request, Response, StatusCode, Uri};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{LazyLock, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tower::Service;

/// Roles come with their objects, a moment before or after those who need them.
const STANDS: Duration = Duration::from_secs(30);
/// Not tried again for this long: it was granted, or is no longer needed.
const OVER: Duration = Duration::from_secs(90);

static BOARD: LazyLock<Mutex<Board>> = LazyLock::new(Mutex::default);

/// What has been refused again and again up to now.
pub fn standing() -> Vec<String> {
    BOARD.lock().unwrap_or_else(|e| e.into_inner()).standing(Instant::now())
}

/// Since when, and when last.
#[derive(Default)]
struct Board(BTreeMap<String, (Instant, Instant)>);

impl Board {
    /// True: it is news.
    fn note(&mut self, what: &str, now: Instant) -> bool {
        self.0.retain(|_, (_, last)| now.duration_since(*last) < OVER);
        match self.0.get_mut(what) {
            Some((_, last)) => *last = now,
            None => drop(self.0.insert(what.into(), (now, now))),
        }
        self.0.get(what).is_some_and(|(since, _)| *since == now)
    }

    fn standing(&self, now: Instant) -> Vec<String> {
        let stands = |(since, last): &(Instant, Instant)| {
            last.duration_since(*since) >= STANDS && now.duration_since(*last) < OVER
        };
        self.0.iter().filter(|(_, times)| stands(times)).map(|(what, _)| what.clone()).collect()
    }
}

/// `list secrets in openshift-etcd`, `patch etcds.operator.openshift.io/status cluster`: as a role would have to say it.
fn words(method: &Method, uri: &Uri) -> String {
    let mut parts = uri.path().trim_matches('/').split('/');
    let group = match parts.next() {
        Some("api") => parts.next().map(|_| String::new()),
        Some("apis") => parts.next().zip(parts.next()).map(|(group, _)| format!(".{group}")),
        _ => None,
    };
    let rest: Vec<_> = parts.collect();
    let (namespace, rest) = match rest.as_slice() {
        ["namespaces", namespace, resource, rest @ ..] if !["status", "finalize"].contains(resource) => {
            (Some(*namespace), [&[*resource], rest].concat())
        }
        _ => (None, rest),
    };
    let (Some(group), Some((resource, rest))) = (group, rest.split_first()) else {
        return format!("{method} {}", uri.path());
    };
    let watches = uri.query().is_some_and(|q| q.split('&').any(|p| p == "watch=true" || p == "watch=1"));
    let verb = match (method.as_str(), rest.is_empty()) {
        ("GET", true) if watches => "watch",
        ("GET", true) => "list",
        ("GET", false) => "get",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", _) => "delete",
        (other, _) => other,
    };
    let sub = rest.get(1).map(|sub| format!("/{sub}")).unwrap_or_default();
    let name = rest.first().map(|name| format!(" {name}")).unwrap_or_default();
    let place = namespace.map(|ns| format!(" in {ns}")).unwrap_or_default();
    format!("{verb} {resource}{group}{sub}{name}{place}")
}

/// Looks at every answer.
#[derive(Clone)]
pub(crate) struct Watched<S>(pub S);

impl<S, B, R> Service<Request<B>> for Watched<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let answer = self.0.call(request);
        Box::pin(async move {
            let answer = answer.await;
            if answer.as_ref().is_ok_and(|a| a.status() == StatusCode::FORBIDDEN) {
                let what = words(&method, &uri);
                if BOARD.lock().unwrap_or_else(|e| e.into_inner()).note(&what, Instant::now()) {
                    tracing::warn!("the API server refuses (403): {what}");
                }
            }
            answer
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_in_the_words_of_a_role() {
        for (method, uri, want) in [
            ("GET", "/api/v1/namespaces/ns/secrets?limit=500", "list secrets in ns"),
            ("GET", "/api/v1/namespaces/ns/secrets?watch=true&resourceVersion=1", "watch secrets in ns"),
            ("GET", "/api/v1/namespaces/ns/secrets/a?x=y", "get secrets a in ns"),
            ("GET", "/api/v1/secrets", "list secrets"),
            ("GET", "/api/v1/namespaces", "list namespaces"),
            ("PATCH", "/api/v1/namespaces/ns?force=true", "patch namespaces ns"),
            ("POST", "/api/v1/namespaces/ns/pods", "create pods in ns"),
            ("POST", "/api/v1/namespaces/ns/serviceaccounts/a/token", "create serviceaccounts/token a in ns"),
            (
                "PUT",
                "/apis/coordination.k8s.io/v1/namespaces/ns/leases/l",
                "update leases.coordination.k8s.io l in ns",
            ),
            (
                "PATCH",
                "/apis/operator.openshift.io/v1/etcds/cluster/status?force=true",
                "patch etcds.operator.openshift.io/status cluster",
            ),
            ("DELETE", "https://api-int:6443/api/v1/nodes/n", "delete nodes n"),
            ("GET", "/metrics", "GET /metrics"),
        ] {
            let said = words(&method.parse().unwrap_or_default(), &uri.parse().unwrap_or_default());
            assert_eq!(said, want);
        }
    }

    #[test]
    fn what_is_refused_for_a_moment_is_no_trouble() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut board = Board::default();
        assert!(board.note("a", at(0)), "the first is told");
        assert!(!board.note("a", at(1)), "the same again is not");
        assert!(board.note("b", at(1)));
        assert!(board.standing(at(20)).is_empty());
        board.note("a", at(40));
        assert_eq!(board.standing(at(41)), ["a"]);
        assert!(board.standing(at(140)).is_empty(), "nobody was refused for a while");
        assert!(board.note("a", at(200)), "that is news again");
    }
}
