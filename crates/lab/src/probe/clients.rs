//! The four clients. Each asks at its own pace, one request after the other, and writes down how it ended.

use super::rivals::Course;
use super::{Log, NAMESPACE, PATIENCE, Request, Verb};
use crate::history::Operation;
use futures::TryStreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, ListParams, PartialObjectMeta, PostParams, WatchEvent, WatchParams};
use kube::{Client, ResourceExt};
use seedling_cluster::{Resent, connect_without_retries};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior, interval, timeout};

/// A list grows with every write, and is asked for less often.
const LIST_EVERY: Duration = Duration::from_secs(1);
/// After a watch that could not be opened.
const OPEN_AGAIN_AFTER: Duration = Duration::from_millis(50);
const PREFIX: &str = "n-";

pub(super) struct Shared {
    pub(super) rate: u32,
    pub(super) course: Course,
    pub(super) resent: Resent,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    log: Log,
    acknowledged: BTreeSet<u32>,
}

impl Shared {
    pub(super) fn new(rate: u32) -> Self {
        let log = Log { from: now(), rate, ..Log::default() };
        let state = Mutex::new(State { log, ..State::default() });
        Self { rate, course: Course::begin(), resent: Resent::default(), state }
    }

    pub(super) fn take_log(&self) -> Log {
        let log = std::mem::take(&mut self.state().log);
        Log { resent: self.resent.load(Ordering::Relaxed), ..log }
    }

    /// How many acknowledged writes the watch has not delivered.
    pub(super) fn untold(&self) -> usize {
        let state = self.state();
        state.acknowledged.difference(&state.log.watched).count()
    }

    pub(super) fn operated(&self, operation: Operation) {
        self.state().log.operations.push(operation);
    }

    /// The objects of all operations so far.
    pub(super) fn operated_on(&self) -> BTreeSet<u32> {
        self.state().log.operations.iter().map(|o| o.key).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn tick(&self) -> Interval {
        every(Duration::from_secs(1) / self.rate.max(1))
    }

    fn ended(&self, verb: Verb, at: i64, number: Option<u32>, error: Option<String>) {
        self.note(Request { verb, at, took: now() - at, number, error, missing: vec![] });
    }

    /// An answer; `missing` ought to have been in it.
    fn answered(&self, verb: Verb, at: i64, number: Option<u32>, missing: Vec<u32>) {
        self.note(Request { verb, at, took: now() - at, number, error: None, missing });
    }

    fn note(&self, request: Request) {
        self.state().log.requests.push(request);
    }
}

/// Milliseconds since 1970.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

pub(super) fn numbers(items: &[PartialObjectMeta<ConfigMap>]) -> BTreeSet<u32> {
    items.iter().filter_map(|item| number(item.metadata.name.as_deref()?)).collect()
}

fn number(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.parse().ok()
}

pub(super) fn every(period: Duration) -> Interval {
    let mut interval = interval(period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

/// The next tick, or the end.
pub(super) async fn next(tick: &mut Interval, stop: &mut watch::Receiver<bool>) -> bool {
    tokio::select! {
        _ = stop.wait_for(|stop| *stop) => false,
        _ = tick.tick() => true,
    }
}

async fn ask<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, String> {
    match timeout(PATIENCE, request).await {
        Ok(answer) => answer.map_err(|e| describe(&e)),
        Err(_) => Err(format!("no answer for {} s", PATIENCE.as_secs())),
    }
}

/// With what is behind it: "client error" alone says nothing.
fn describe(error: &kube::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

pub(super) async fn writer(client: Client, shared: Arc<Shared>, mut stop: watch::Receiver<bool>) {
    let maps: Api<ConfigMap> = Api::namespaced(client, NAMESPACE);
    let mut tick = shared.tick();
    let mut number = 0;
    while next(&mut tick, &mut stop).await {
        number += 1;
        let mut map = ConfigMap::default();
        map.metadata.name = Some(format!("{PREFIX}{number}"));
        let at = now();
        let error = ask(maps.create(&PostParams::default(), &map)).await.err();
        if error.is_none() {
            shared.state().acknowledged.insert(number);
        }
        shared.ended(Verb::Create, at, Some(number), error);
    }
}

/// Of what was acknowledged, the newest and the others in turn: it must be there, whichever API server answers.
pub(super) async fn getter(client: Client, shared: Arc<Shared>, mut stop: watch::Receiver<bool>) {
    let maps: Api<ConfigMap> = Api::namespaced(client, NAMESPACE);
    let mut tick = shared.tick();
    let mut turn = 0usize;
    while next(&mut tick, &mut stop).await {
        turn += 1;
        let wanted = {
            let state = shared.state();
            let all = &state.acknowledged;
            if turn.is_multiple_of(2) { all.last() } else { all.iter().nth(turn / 2 % all.len().max(1)) }
                .copied()
        };
        let Some(wanted) = wanted else { continue };
        let at = now();
        match ask(maps.get_metadata_opt(&format!("{PREFIX}{wanted}"))).await {
            Ok(Some(_)) => shared.answered(Verb::Get, at, Some(wanted), vec![]),
            Ok(None) => shared.answered(Verb::Get, at, Some(wanted), vec![wanted]),
            Err(e) => shared.ended(Verb::Get, at, Some(wanted), Some(e)),
        }
    }
}

/// A list holds what was acknowledged before it was asked for. Beside it, which cluster this is.
pub(super) async fn lister(client: Client, shared: Arc<Shared>, mut stop: watch::Receiver<bool>) {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let maps: Api<ConfigMap> = Api::namespaced(client, NAMESPACE);
    let mut tick = every(LIST_EVERY);
    while next(&mut tick, &mut stop).await {
        let before = shared.state().acknowledged.clone();
        let at = now();
        match ask(maps.list_metadata(&ListParams::default())).await {
            Ok(list) => {
                let missing = before.difference(&numbers(&list.items)).copied().collect();
                shared.answered(Verb::List, at, None, missing);
            }
            Err(e) => shared.ended(Verb::List, at, None, Some(e)),
        }
        let at = now();
        match ask(namespaces.get_metadata("kube-system")).await {
            Ok(namespace) => shared.state().log.clusters.extend(namespace.uid()),
            Err(e) => shared.ended(Verb::Get, at, None, Some(e)),
        }
    }
}

/// One watch after the other, each from where the last one ended: nothing that was written may be missed.
///
/// Each on a connection of its own. A server that leaves ends the watch and then closes the connection; in HTTP/1.1 nothing
/// tells a client that asks again at once that the second is about to come.
pub(super) async fn watcher(kubeconfig: PathBuf, shared: Arc<Shared>, mut stop: watch::Receiver<bool>) {
    let mut version = String::new();
    let mut tick = every(OPEN_AGAIN_AFTER);
    while next(&mut tick, &mut stop).await {
        let at = now();
        let ended = tokio::select! {
            ended = follow(&kubeconfig, &mut version, &shared) => ended,
            _ = stop.wait_for(|stop| *stop) => return,
        };
        shared.ended(Verb::Watch, at, None, ended.err());
    }
}

async fn follow(kubeconfig: &Path, version: &mut String, shared: &Shared) -> Result<(), String> {
    let client = connect_without_retries(kubeconfig, &shared.resent).await.map_err(|e| e.to_string())?;
    let maps: Api<ConfigMap> = Api::namespaced(client, NAMESPACE);
    if version.is_empty() {
        let list = ask(maps.list_metadata(&ListParams::default())).await?;
        shared.state().log.watched.extend(numbers(&list.items));
        *version = list.metadata.resource_version.unwrap_or_default();
    }
    let stream = ask(maps.watch_metadata(&WatchParams::default(), version)).await?;
    let mut stream = std::pin::pin!(stream);
    while let Some(event) = stream.try_next().await.map_err(|e| describe(&e))? {
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
                shared.state().log.watched.extend(number(&object.name_any()));
                *version = object.resource_version().unwrap_or_default();
            }
            WatchEvent::Bookmark(mark) => version.clone_from(&mark.metadata.resource_version),
            WatchEvent::Error(status) => {
                version.clear();
                return Err(format!("{} ({})", status.message, status.code));
            }
        }
    }
    Ok(())
}
