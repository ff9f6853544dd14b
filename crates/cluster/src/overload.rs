//! An API server that has too much to do, or is on its way out: asked again ever later, and not by everybody at once. Whoever asks in a
//! loop with a short pause is slowed down here, one request after the other.

use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, header::RETRY_AFTER};
use kube::client::Body;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Instant;
use tower::retry::Policy;
use tower::{BoxError, Service};

const FIRST: Duration = Duration::from_millis(5);
/// No longer: who waits does not know that it is over.
const LONGEST: Duration = Duration::from_secs(8);
/// A server may ask for more patience than that, but not for any.
const ASKED_FOR: Duration = Duration::from_secs(30);
/// Then it is an error: a minute, if nobody asks for more.
const TIMES: u32 = 15;

/// Sends a request again that the server had no time for. Each has a policy of its own.
#[derive(Clone, Default)]
pub(crate) struct Overloaded {
    times: u32,
}

/// Before it is sent for the next time; never, if it was often enough. `share` of the wait, between a half and all of it, is chance.
fn pause(times: u32, asked: Option<Duration>, share: f64) -> Option<Duration> {
    if times >= TIMES {
        return None;
    }
    let own = FIRST.saturating_mul(2u32.saturating_pow(times)).min(LONGEST).mul_f64(share);
    Some(own.max(asked.unwrap_or_default().min(ASKED_FOR)))
}

/// In seconds; as a date it is of no use to clocks that differ.
fn asked_for(headers: &HeaderMap) -> Option<Duration> {
    Some(Duration::from_secs(headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?))
}

fn has_no_time(status: StatusCode) -> bool {
    use StatusCode as S;
    [S::TOO_MANY_REQUESTS, S::SERVICE_UNAVAILABLE, S::GATEWAY_TIMEOUT].contains(&status)
}

/// Between a half and one: of a pause, so that not everybody comes back at the same moment.
pub fn chance() -> f64 {
    let random = RandomState::new().hash_one(()) % 1024;
    0.5 + f64::from(u16::try_from(random).unwrap_or_default()) / 2048.0
}

impl<B> Policy<Request<Body>, Response<B>, BoxError> for Overloaded {
    type Future = tokio::time::Sleep;

    fn retry(
        &mut self,
        _: &mut Request<Body>,
        result: &mut Result<Response<B>, BoxError>,
    ) -> Option<Self::Future> {
        let answer = result.as_ref().ok().filter(|answer| has_no_time(answer.status()))?;
        let pause = pause(self.times, asked_for(answer.headers()), chance())?;
        self.times += 1;
        Some(tokio::time::sleep(pause))
    }

    fn clone_request(&mut self, request: &Request<Body>) -> Option<Request<Body>> {
        crate::connect::again(request)
    }
}

/// So many at once: a process that starts, or a server that leaves.
const AT_ONCE: u32 = 20;
/// Then one of a kind in this time. Some clients restart a watch at once whenever it ends, also one that ends at once.
const EVERY: Duration = Duration::from_secs(1);

/// When the next watch of the same objects may begin.
#[derive(Default)]
struct Pace(HashMap<String, Instant>);

impl Pace {
    /// Each puts the moment off at which all that was used up is there again.
    fn wait(&mut self, what: String, now: Instant) -> Duration {
        self.0.retain(|_, whole| *whole > now);
        let whole = self.0.entry(what).or_insert(now);
        *whole += EVERY;
        whole.saturating_duration_since(now).saturating_sub(EVERY * AT_ONCE)
    }
}

/// Which objects a watch is of; from when on does not matter.
fn watched(method: &Method, uri: &Uri) -> Option<String> {
    let mut parts: Vec<_> = uri.query().unwrap_or_default().split('&').collect();
    let watches = parts.iter().any(|part| ["watch=true", "watch=1"].contains(part));
    parts.retain(|part| !part.starts_with("resourceVersion"));
    (watches && method == Method::GET).then(|| format!("{}?{}", uri.path(), parts.join("&")))
}

/// Lets watches wait that are begun too often.
#[derive(Clone)]
pub(crate) struct Paced<S> {
    inner: S,
    pace: Arc<Mutex<Pace>>,
}

impl<S> Paced<S> {
    pub(crate) fn new(inner: S) -> Self {
        Self { inner, pace: Arc::default() }
    }
}

impl<S, B> Service<Request<B>> for Paced<S>
where
    S: Service<Request<B>> + Clone + Send + 'static,
    S::Future: Send,
    B: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let wait = watched(request.method(), request.uri()).map_or(Duration::ZERO, |what| {
            self.pace.lock().unwrap_or_else(|e| e.into_inner()).wait(what, Instant::now())
        });
        // The one that is ready goes; its copy is asked again.
        let next = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, next);
        Box::pin(async move {
            tokio::time::sleep(wait).await;
            inner.call(request).await
        })
    }
}

#[cfg(test)]
#[path = "overload_tests.rs"]
mod tests;
