//! What a loop looks at, behind one "something changed"; and whether anything is heard of it.

use futures::FutureExt;
use futures::future::{BoxFuture, pending, select_all};
use seedling_cluster::follow::{Followed, Snapshot};
use seedling_cluster::{Cache, Kind};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::time::timeout;

/// What is known of all inputs together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// Every needed input was listed once.
    pub synced: bool,
    /// Why a needed one receives nothing at the moment. What it received before still counts.
    pub deaf: Option<String>,
}

#[derive(Default)]
pub struct Inputs {
    all: Vec<Input>,
    pub(super) unlisted: bool,
}

struct Input {
    name: String,
    source: Box<dyn Source>,
    changed: tokio::time::Instant,
}

trait Source: Send {
    /// Returns when there is something that was not seen.
    fn changed(&mut self) -> BoxFuture<'_, ()>;
    /// What is there now counts as seen. True: it was not yet.
    fn mark_seen(&mut self) -> bool;
    fn heard(&self, now: Instant) -> Heard;
}

impl Inputs {
    /// Objects that are needed: nothing is reconciled before they were listed.
    pub fn needs<K: Kind>(self, followed: &Followed<K>) -> Self {
        self.with(&K::kind(&()), &followed.state, listed)
    }

    /// Objects whose change is a reason to look. Whether they were listed is for the reader to ask.
    pub fn watches<K: Kind>(self, followed: &Followed<K>) -> Self {
        self.hears(&K::kind(&()), &followed.state)
    }

    /// What another task finds out.
    pub fn hears<T: Send + Sync + 'static>(self, name: &str, state: &watch::Receiver<T>) -> Self {
        self.with(name, state, |_, _| NO_NEWS)
    }

    /// Everything that is read through the cache.
    pub fn caches(self, cache: &Cache) -> Self {
        self.push("cache", cache.clone())
    }

    /// Reconciles also while needed inputs are not listed, for loops that report on that.
    pub fn even_unlisted(self) -> Self {
        Self { unlisted: true, ..self }
    }

    pub(super) fn with<T: Send + Sync + 'static>(
        self,
        name: &str,
        state: &watch::Receiver<T>,
        heard: fn(&T, Instant) -> Heard,
    ) -> Self {
        self.push(name, Watched { state: state.clone(), heard })
    }

    fn push(mut self, name: &str, source: impl Source + 'static) -> Self {
        let changed = tokio::time::Instant::now();
        self.all.push(Input { name: name.into(), source: Box::new(source), changed });
        self
    }

    /// The name of an input that changed, unless the time is over before.
    pub(super) async fn changed(&mut self, at_most: Duration) -> Option<String> {
        let mut changes: Vec<_> = self.all.iter_mut().map(|input| input.source.changed()).collect();
        // Of nothing, nothing could be the first.
        changes.push(pending().boxed());
        let (_, index, _) = timeout(at_most, select_all(changes)).await.ok()?;
        let input = self.all.get_mut(index)?;
        input.changed = tokio::time::Instant::now();
        Some(input.name.clone())
    }

    pub(super) fn mark_seen(&mut self) {
        for input in &mut self.all {
            if input.source.mark_seen() {
                input.changed = tokio::time::Instant::now();
            }
        }
    }

    pub(super) fn heard(&self, now: Instant) -> Heard {
        let all: Vec<_> = self.all.iter().map(|input| input.source.heard(now)).collect();
        Heard {
            synced: all.iter().all(|heard| heard.synced),
            deaf: all.into_iter().find_map(|heard| heard.deaf),
        }
    }

    /// Since when each has not changed.
    pub(super) fn ages(&self) -> impl Iterator<Item = (&str, tokio::time::Instant)> {
        self.all.iter().map(|input| (input.name.as_str(), input.changed))
    }
}

const NO_NEWS: Heard = Heard { synced: true, deaf: None };

pub(super) fn listed<K>(seen: &Snapshot<K>, now: Instant) -> Heard {
    Heard { synced: seen.synced, deaf: seen.deaf(now).map(String::from) }
}

struct Watched<T> {
    state: watch::Receiver<T>,
    heard: fn(&T, Instant) -> Heard,
}

impl<T: Send + Sync> Source for Watched<T> {
    fn changed(&mut self) -> BoxFuture<'_, ()> {
        let changed = async move {
            // The sender is gone, and its last value stays.
            if self.state.changed().await.is_err() {
                pending().await
            }
        };
        changed.boxed()
    }
    fn mark_seen(&mut self) -> bool {
        let changed = self.state.has_changed().unwrap_or(false);
        self.state.mark_unchanged();
        changed
    }
    fn heard(&self, now: Instant) -> Heard {
        (self.heard)(&self.state.borrow(), now)
    }
}

impl Source for Cache {
    fn changed(&mut self) -> BoxFuture<'_, ()> {
        Cache::changed(self).boxed()
    }
    fn mark_seen(&mut self) -> bool {
        Cache::changed(self).now_or_never().is_some()
    }
    fn heard(&self, _: Instant) -> Heard {
        NO_NEWS
    }
}
