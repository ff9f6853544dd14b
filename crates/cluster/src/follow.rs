//! Objects of a kind, kept current by a watch that survives restarts and hand-overs of the API server.

use crate::objects::{Kind, api, typed};
use crate::overload::chance;
use futures::StreamExt;
use kube::Client;
use kube::api::{Api, DynamicObject};
use kube::runtime::watcher::{Config, Error, Event, watcher};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};

/// After a failed list or watch; a kind may not be served yet, an API server may be on its way out.
const RETRY: Duration = Duration::from_millis(250);
/// The longest pause after answers that say that the server cannot, or that the past is gone: a list costs it more than it can do then.
const LONGEST: Duration = Duration::from_secs(8);
/// An error is over when no other followed for this long: a watch that works again does not say so, and one that does not is tried
/// again sooner, also by a client that waits for its connection.
const OVER: Duration = Duration::from_secs(30);
/// What a watch was to begin with is too long ago.
const GONE: u16 = 410;
/// A server that leaves breaks a watch once or twice.
const IN_A_ROW: u32 = 3;

/// What the watch knows.
#[derive(Clone, Debug)]
pub struct Snapshot<K> {
    /// False until the first list was complete.
    pub synced: bool,
    /// By `namespace/name`, or `name` for cluster-scoped objects.
    pub objects: BTreeMap<String, Arc<K>>,
    /// Why nothing new is heard at the moment.
    pub error: Option<String>,
    /// How often it failed in a row, and when last.
    failures: Option<(u32, Instant)>,
}

impl<K> Default for Snapshot<K> {
    fn default() -> Self {
        Self { synced: false, objects: BTreeMap::new(), error: None, failures: None }
    }
}

/// Which objects to follow.
#[derive(Clone, Debug)]
pub struct Selection<K> {
    pub namespace: Option<String>,
    /// E.g. `metadata.name=bootstrap`.
    pub fields: Option<String>,
    /// How many are listed at once, where others than ourselves make them.
    pub page: Option<u32>,
    /// What is not needed of an object is left out before it is kept.
    pub shorten: Option<fn(&mut K)>,
}

impl<K> Selection<K> {
    pub fn all() -> Self {
        Self { namespace: None, fields: None, page: None, shorten: None }
    }
    pub fn within(namespace: &str) -> Self {
        Self { namespace: Some(namespace.into()), ..Self::all() }
    }
    pub fn one(namespace: Option<&str>, name: &str) -> Self {
        let fields = Some(format!("metadata.name={name}"));
        Self { namespace: namespace.map(Into::into), fields, ..Self::all() }
    }
}

/// Ends its watch when dropped.
pub struct Followed<K> {
    pub state: watch::Receiver<Snapshot<K>>,
    sender: watch::Sender<Snapshot<K>>,
    task: tokio::task::JoinHandle<()>,
}

impl<K> Drop for Followed<K> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl<K: Kind> Followed<K> {
    /// The next state; at once if there is one not yet seen.
    pub async fn next(&mut self) -> Snapshot<K> {
        // The sender lives as long as self.
        let _ = self.state.changed().await;
        self.state.borrow_and_update().clone()
    }
    pub fn now(&self) -> Snapshot<K> {
        self.state.borrow().clone()
    }
    /// The only one there is, or may be.
    pub fn one(&self) -> Option<Arc<K>> {
        self.state.borrow().one()
    }
    /// Waits for an object in which `read` finds something.
    pub async fn until<T>(&mut self, what: &str, read: impl Fn(&K) -> Option<T>) -> T {
        let mut said = String::new();
        loop {
            let seen = self.now();
            if let Some(found) = seen.one().and_then(|object| read(&object)) {
                return found;
            }
            let why = seen.error.unwrap_or_else(|| "it is not there yet".into());
            if said != why {
                tracing::info!("waiting for {what}: {why}");
                said = why;
            }
            self.next().await;
        }
    }
    /// An object just written, visible before the watch delivers it.
    pub(crate) fn put(&self, object: K) {
        self.sender.send_if_modified(|s| s.insert(object));
    }
}

impl<K> Snapshot<K> {
    pub fn one(&self) -> Option<Arc<K>> {
        self.objects.values().next().cloned()
    }
    /// Why nothing has been heard for a while: it fails, and fails again.
    pub fn deaf(&self, now: Instant) -> Option<&str> {
        let (times, last) = self.failures?;
        let failing = times >= IN_A_ROW && now.duration_since(last) < OVER;
        failing.then(|| self.error.as_deref().unwrap_or("nothing is heard"))
    }
    /// Says whether it is another error than before.
    fn failed(&mut self, error: String, now: Instant) -> bool {
        let before = self.failures.filter(|(_, last)| now.duration_since(*last) < OVER);
        self.failures = Some((before.map_or(0, |(times, _)| times) + 1, now));
        self.error.replace(error.clone()) != Some(error)
    }
}

impl<K: Kind> Snapshot<K> {
    /// Events come late: an older state never replaces a newer one.
    fn insert(&mut self, object: K) -> bool {
        let key = key(&object);
        let newer = self.objects.get(&key).is_none_or(|known| version(&**known) < version(&object));
        if newer {
            self.objects.insert(key, Arc::new(object));
        }
        newer
    }
    fn remove(&mut self, object: &K) -> bool {
        let key = key(object);
        let newer = self.objects.get(&key).is_some_and(|known| version(&**known) <= version(object));
        newer && self.objects.remove(&key).is_some()
    }
}

fn key<K: Kind>(object: &K) -> String {
    let meta = object.meta();
    let name = meta.name.clone().unwrap_or_default();
    meta.namespace.as_ref().map(|ns| format!("{ns}/{name}")).unwrap_or(name)
}

fn version<K: Kind>(object: &K) -> u64 {
    object.meta().resource_version.as_ref().and_then(|v| v.parse().ok()).unwrap_or(0)
}

pub fn follow<K: Kind>(client: &Client, selection: Selection<K>) -> Followed<K> {
    follow_and_wake(client, selection, Arc::default())
}

/// Also wakes who waits for one of many.
pub(crate) fn follow_and_wake<K: Kind>(
    client: &Client,
    selection: Selection<K>,
    wake: Arc<Notify>,
) -> Followed<K> {
    let (sender, state) = watch::channel(Snapshot::default());
    let task = tokio::spawn(keep_current(client.clone(), selection, sender.clone(), wake));
    Followed { state, sender, task }
}

async fn keep_current<K: Kind>(
    client: Client,
    selection: Selection<K>,
    sender: watch::Sender<Snapshot<K>>,
    wake: Arc<Notify>,
) {
    let api = api::<K>(&client, selection.namespace.as_deref());
    let mut config = Config { field_selector: selection.fields.clone(), ..Config::default() };
    config.page_size = selection.page.or(config.page_size);
    // One that is not as its kind says hides no other.
    let kept = |object: DynamicObject| match typed::<K>(object) {
        Ok(mut object) => {
            if let Some(shorten) = selection.shorten {
                shorten(&mut object);
            }
            Some(object)
        }
        Err(e) => {
            tracing::warn!("{e}");
            None
        }
    };
    // A new list replaces what was known only once it is complete.
    let mut listing = BTreeMap::new();
    let tell = |event: Told| {
        match event {
            Ok(Event::Init) => listing.clear(),
            Ok(Event::InitApply(object)) => {
                if let Some(object) = kept(object) {
                    listing.insert(key(&object), Arc::new(object));
                }
            }
            Ok(Event::InitDone) => sender.send_modify(|s| {
                *s = Snapshot { synced: true, objects: std::mem::take(&mut listing), ..Snapshot::default() };
            }),
            Ok(Event::Apply(object)) => {
                let object = kept(object);
                sender.send_if_modified(|s| {
                    s.failures = None;
                    s.error.take().is_some() | object.is_some_and(|object| s.insert(object))
                });
            }
            Ok(Event::Delete(object)) => {
                if let Some(object) = kept(object) {
                    sender.send_if_modified(|s| s.remove(&object));
                }
            }
            Err(why) => {
                sender.send_if_modified(|s| s.failed(why, Instant::now()));
            }
        }
        wake.notify_one();
    };
    watch_for_ever(api, config, Box::new(tell)).await;
}

/// Or why nothing is heard.
type Told = Result<Event<DynamicObject>, String>;

/// The same for every kind.
async fn watch_for_ever(api: Api<DynamicObject>, config: Config, mut tell: Box<dyn FnMut(Told) + Send + '_>) {
    let mut errors = Errors::default();
    let watch = || watcher(api.clone(), config.clone()).boxed();
    let mut events = watch();
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => tell(Ok(event)),
            Err(e) => {
                tell(Err(e.to_string()));
                tokio::time::sleep(errors.pause(status(&e), chance())).await;
                // It would keep asking for the same old version.
                if matches!(&e, Error::WatchStartFailed(_)) && status(&e) == Some(GONE) {
                    events = watch();
                }
            }
        }
    }
}

/// What the server said; nothing, if it did not get as far.
fn status(error: &Error) -> Option<u16> {
    match error {
        Error::InitialListFailed(kube::Error::Api(status))
        | Error::WatchStartFailed(kube::Error::Api(status))
        | Error::WatchFailed(kube::Error::Api(status))
        | Error::WatchError(status) => Some(status.code),
        _ => None,
    }
}

/// How many errors came one after the other. A list that succeeds in between ends no row: where watches fail, it is asked for again and again.
#[derive(Default)]
struct Errors(Option<(u32, tokio::time::Instant)>);

impl Errors {
    /// A connection that is refused, a role or a kind that is not there yet: these come any moment, and cost little.
    fn pause(&mut self, status: Option<u16>, share: f64) -> Duration {
        let now = tokio::time::Instant::now();
        let before =
            self.0.filter(|(_, last)| now.duration_since(*last) < OVER).map_or(0, |(times, _)| times);
        self.0 = Some((before + 1, now));
        match status {
            None | Some(401 | 403 | 404) => RETRY,
            Some(_) => {
                RETRY.saturating_mul(2u32.saturating_pow(before)).min(LONGEST).mul_f64(share).max(RETRY)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use seedling_api::{ConfigMap, ObjectMeta, named_in};

    #[test]
    fn a_watch_that_fails_again_and_again_is_deaf() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut snapshot = Snapshot::<ConfigMap> { synced: true, ..Snapshot::default() };
        assert_eq!(snapshot.deaf(at(0)), None);
        assert!(snapshot.failed("forbidden".into(), at(0)));
        assert!(!snapshot.failed("forbidden".into(), at(5)), "the same error is no news");
        assert_eq!(snapshot.deaf(at(5)), None, "a server that leaves does that much");
        snapshot.failed("forbidden".into(), at(10));
        assert_eq!(snapshot.deaf(at(15)), Some("forbidden"));
        assert_eq!(snapshot.deaf(at(60)), None, "no more errors: it works again");
        snapshot.failed("reset".into(), at(3600));
        assert_eq!(snapshot.deaf(at(3600)), None, "an hour later it is another one");
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_server_cannot_do_is_asked_for_ever_later() {
        let mut errors = Errors::default();
        let pauses: Vec<_> = (0..8).map(|_| errors.pause(Some(410), 1.0).as_millis()).collect();
        assert_eq!(pauses, [250, 500, 1000, 2000, 4000, 8000, 8000, 8000]);
        assert_eq!(errors.pause(Some(403), 1.0), RETRY, "a role may come any moment");
        assert_eq!(errors.pause(None, 1.0), RETRY, "and so may the next server");
        tokio::time::advance(OVER).await;
        assert_eq!(errors.pause(Some(500), 0.5), RETRY, "an hour later it is another row");
    }

    #[test]
    fn late_news_do_not_undo_newer_ones() {
        let object = |version: &str| ConfigMap {
            metadata: ObjectMeta { resource_version: Some(version.into()), ..named_in("ns", "a") },
            ..ConfigMap::default()
        };
        let mut snapshot = Snapshot::default();
        assert!(snapshot.insert(object("9")));
        assert!(!snapshot.insert(object("8")));
        assert!(!snapshot.remove(&object("8")));
        assert!(snapshot.insert(object("10")));
        assert_eq!(snapshot.objects["ns/a"].metadata.resource_version.as_deref(), Some("10"));
        assert!(snapshot.remove(&object("11")));
        assert!(snapshot.objects.is_empty());
    }
}
