//! Minutes of an API server that cannot answer, before the real client's layers. Time is paused.

#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::follow::{Followed, Selection, follow};
use bytes::Bytes;
use http_body::Frame;
use kube::Client;
use seedling_api::{ConfigMap, Secret};
use seedling_steps::{Awaited, Condition, Probe, wait_for};
use serde_json::{Value, json};
use tower::ServiceBuilder;
use tower::retry::RetryLayer;

/// What a server says, and then nothing more, with or without an end.
struct Said {
    bytes: Option<Bytes>,
    ends: bool,
}

impl http_body::Body for Said {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match (self.bytes.take(), self.ends) {
            (Some(bytes), _) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            (None, true) => Poll::Ready(None),
            (None, false) => Poll::Pending,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mood {
    Well,
    /// To everything, and after how many seconds to ask again.
    Busy(u16, Option<u64>),
    /// A watch begins, and says at once that its past is gone.
    Forgetful,
    /// A watch does not even begin.
    ForgetfulAtOnce,
    /// A watch ends as soon as it began.
    Short,
}

struct State {
    mood: Mood,
    version: u64,
    /// What was asked for since it was looked at last.
    lists: usize,
    watches: usize,
    all: usize,
}

#[derive(Clone)]
struct Server(Arc<Mutex<State>>);

impl Server {
    fn new(mood: Mood) -> Self {
        Self(Arc::new(Mutex::new(State { mood, version: 5, lists: 0, watches: 0, all: 0 })))
    }

    fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            std::future::ready(Ok::<_, BoxError>(server.answer(request.uri())))
        });
        let layers = ServiceBuilder::new().layer_fn(Paced::new).layer(RetryLayer::new(Overloaded::default()));
        Client::new(layers.service(service), "default")
    }

    fn answer(&self, uri: &Uri) -> Response<Said> {
        let mut state = self.0.lock().unwrap();
        state.all += 1;
        if let Mood::Busy(code, after) = state.mood {
            let mut response = said(code, &status(code), true);
            if let Some(after) = after {
                response.headers_mut().insert(RETRY_AFTER, after.to_string().parse().unwrap());
            }
            return response;
        }
        if !uri.query().is_some_and(|query| query.contains("watch=true")) {
            state.lists += 1;
            let version = state.version.to_string();
            let item = json!({"metadata": {"name": "a", "namespace": "ns", "resourceVersion": version}});
            let list = json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": version}, "items": [item]});
            return said(200, &list, true);
        }
        state.watches += 1;
        let current = uri.query().is_some_and(|q| q.contains(&format!("resourceVersion={}", state.version)));
        match state.mood {
            Mood::Forgetful => said(200, &json!({"type": "ERROR", "object": status(410)}), false),
            Mood::ForgetfulAtOnce => said(410, &status(410), true),
            Mood::Short => said(200, &Value::Null, true),
            // As etcd does, whose past was compacted meanwhile.
            _ if !current => said(410, &status(410), true),
            _ => said(200, &Value::Null, false),
        }
    }

    fn becomes(&self, mood: Mood) {
        let mut state = self.0.lock().unwrap();
        state.version += 1;
        state.mood = mood;
    }

    /// Lists, watches and all requests since the last time.
    fn asked(&self) -> (usize, usize, usize) {
        let mut state = self.0.lock().unwrap();
        let State { lists, watches, all, .. } = &mut *state;
        (std::mem::take(lists), std::mem::take(watches), std::mem::take(all))
    }
}

fn said(code: u16, what: &Value, ends: bool) -> Response<Said> {
    let bytes = (!what.is_null()).then(|| Bytes::from(format!("{what}\n")));
    Response::builder().status(code).body(Said { bytes, ends }).unwrap()
}

fn status(code: u16) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Expired",
        "message": "not now", "code": code})
}

/// As an operator has them.
const WATCHERS: usize = 10;

fn followers(client: &Client) -> Vec<Followed<ConfigMap>> {
    let names = (0..WATCHERS).map(|i| format!("namespace-{i}"));
    names.map(|ns| follow(client, Selection::within(&ns))).collect()
}

async fn all_know(followers: &[Followed<ConfigMap>], version: u64, within: Duration) {
    let (begun, wanted) = (Instant::now(), version.to_string());
    for followed in followers {
        let known = |s: &crate::follow::Snapshot<ConfigMap>| {
            let object = s.objects.values().next();
            s.synced && object.is_some_and(|o| o.metadata.resource_version.as_ref() == Some(&wanted))
        };
        let mut state = followed.state.clone();
        let left = within.saturating_sub(begun.elapsed());
        assert!(tokio::time::timeout(left, state.wait_for(known)).await.is_ok(), "not within {within:?}");
    }
}

async fn minutes(minutes: u64) {
    tokio::time::sleep(Duration::from_secs(60 * minutes)).await;
}

#[tokio::test(start_paused = true)]
async fn minutes_without_time_are_waited_out_and_work_goes_on() {
    for (code, after) in [(429, Some(1)), (429, None), (503, Some(2)), (504, None)] {
        let server = Server::new(Mood::Busy(code, after));
        let followers = followers(&server.client());
        minutes(1).await;
        server.asked();
        minutes(5).await;
        let a_minute = server.asked().2 / 5 / WATCHERS;
        assert!(a_minute <= 40, "{code}: each asks {a_minute} times a minute");
        server.becomes(Mood::Well);
        all_know(&followers, 6, LONGEST + Duration::from_secs(2)).await;
        let (lists, watches, _) = server.asked();
        assert!(lists == WATCHERS && watches <= WATCHERS, "{code}: {lists} lists, {watches} watches");
        minutes(4).await;
        assert!(server.asked().2 <= WATCHERS, "{code}: and then it is quiet");
    }
}

#[tokio::test(start_paused = true)]
async fn a_past_that_is_gone_is_read_anew_and_not_in_a_storm() {
    for mood in [Mood::Forgetful, Mood::ForgetfulAtOnce] {
        let server = Server::new(Mood::Well);
        let followers = followers(&server.client());
        all_know(&followers, 5, Duration::from_secs(1)).await;
        server.becomes(mood);
        // Those who watch hear of it when the server ends their watches.
        minutes(5).await;
        server.asked();
        minutes(3).await;
        let lists = server.asked().0;
        assert!(lists <= 50 * WATCHERS, "{} lists a minute and watcher", lists / 3 / WATCHERS);
        server.becomes(Mood::Well);
        all_know(&followers, 7, Duration::from_secs(10)).await;
        minutes(1).await;
        let (lists, watches, _) = server.asked();
        assert!(
            lists <= 2 * WATCHERS && watches <= 3 * WATCHERS,
            "{lists} lists, {watches} watches at the end"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_at_once_is_no_hot_loop() {
    let server = Server::new(Mood::Short);
    let followers = followers(&server.client());
    minutes(1).await;
    server.asked();
    minutes(1).await;
    let (lists, watches, _) = server.asked();
    assert!(lists == 0 && watches <= 60 * WATCHERS, "{lists} lists, {watches} watches a minute");
    server.0.lock().unwrap().mood = Mood::Well;
    minutes(1).await;
    assert!(server.asked().1 <= 2 * WATCHERS);
    drop(followers);
}

/// As bootkube and `wait-for` ask, four times a second.
#[tokio::test(start_paused = true)]
async fn a_wait_with_a_short_pause_asks_no_more_often() {
    let server = Server::new(Mood::Busy(504, None));
    let client = server.client();
    let asked = server.clone();
    let busy = tokio::spawn(async move {
        minutes(5).await;
        let all = asked.asked().2;
        asked.becomes(Mood::Well);
        (all, Instant::now())
    });
    static OBJECT: Awaited = Awaited::in_test("the object");
    let condition = Condition::within(&OBJECT, Duration::from_secs(1800), "wait");
    let met = wait_for(&condition, Duration::from_millis(250), async || {
        match crate::list::<Secret>(&client, Some("ns"), "").await {
            Ok(_) => Probe::Met(()),
            Err(e) => Probe::Unmet(e.to_string()),
        }
    });
    met.await.unwrap();
    let (all, over) = busy.await.unwrap();
    assert!(all <= 5 * 40, "{all} in five minutes");
    assert!(over.elapsed() <= LONGEST, "{:?} after it was over", over.elapsed());
}

#[test]
fn pauses_grow_to_a_limit_and_what_the_server_asks_for_counts() {
    let seconds = Duration::from_secs;
    let alone: Vec<_> = (0..).map_while(|times| pause(times, None, 1.0)).collect();
    assert!(alone.is_sorted() && alone.len() == 15 && alone.last() == Some(&LONGEST), "{alone:?}");
    assert!(alone.iter().sum::<Duration>() < seconds(60));
    for (times, asked, want) in [
        (0, Some(1), Some(seconds(1))),
        (14, Some(1), Some(LONGEST)),
        (0, Some(86_400), Some(ASKED_FOR)),
        (15, Some(1), None),
    ] {
        assert_eq!(pause(times, asked.map(seconds), 1.0), want, "{times} {asked:?}");
    }
    assert_eq!(pause(14, None, 0.5), Some(LONGEST / 2));
    assert!((0..100).map(|_| chance()).all(|share| (0.5..1.0).contains(&share)));
}

#[tokio::test(start_paused = true)]
async fn watches_of_the_same_objects_are_paced() {
    let name = |uri: &str| watched(&Method::GET, &uri.parse().unwrap());
    assert_eq!(name("/api/v1/pods?limit=500"), None);
    assert_eq!(
        name("/api/v1/pods?watch=true&resourceVersion=5"),
        name("/api/v1/pods?watch=true&resourceVersion=6")
    );
    assert_ne!(
        name("/api/v1/pods?watch=true&fieldSelector=a"),
        name("/api/v1/pods?watch=true&fieldSelector=b")
    );
    let (mut pace, now) = (Pace::default(), Instant::now());
    let mut wait = |what: &str, at: u64| pace.wait(what.into(), now + Duration::from_secs(at)).as_secs();
    let at_once: Vec<_> = (0..22).map(|_| wait("a", 0)).collect();
    assert!(at_once[..20].iter().all(|seconds| *seconds == 0) && at_once[20..] == [1, 2], "{at_once:?}");
    assert_eq!(wait("b", 0), 0);
    assert_eq!((wait("a", 10), wait("a", 100)), (0, 0));
    assert_eq!(pace.0.len(), 1, "what is over is forgotten");
}
