//! Objects of a kind, kept current by a watch that survives restarts and hand-overs of the API server.

use crate::{ClusterError, api};
use futures::StreamExt;
use kube::runtime::watcher::{Config, Event, watcher};
use kube::{Client, ResourceExt};
use serde_json::Value;
use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;
use tokio::sync::watch;

/// After a failed list or watch; a kind may not be served yet, an API server may be on its way out.
const RETRY: Duration = Duration::from_millis(250);

/// What the watch knows.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// False until the first list was complete.
    pub synced: bool,
    /// By `namespace/name`, or `name` for cluster-scoped objects.
    pub objects: BTreeMap<String, Value>,
    /// Why nothing new is heard at the moment.
    pub error: Option<String>,
}

/// Which objects to follow.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    pub api_version: &'static str,
    pub kind: &'static str,
    pub namespace: Option<String>,
    /// E.g. `metadata.name=bootstrap`.
    pub fields: Option<String>,
}

impl Selection {
    pub fn all(api_version: &'static str, kind: &'static str) -> Self {
        Self { api_version, kind, ..Self::default() }
    }
    pub fn one(api_version: &'static str, kind: &'static str, namespace: Option<&str>, name: &str) -> Self {
        let fields = Some(format!("metadata.name={name}"));
        Self { api_version, kind, namespace: namespace.map(Into::into), fields }
    }
}

/// Ends its watch when dropped.
pub struct Followed {
    pub state: watch::Receiver<Snapshot>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Followed {
    /// The next state; at once if there is one not yet seen.
    pub async fn next(&mut self) -> Snapshot {
        // The sender lives as long as the task, which only ends with self.
        let _ = self.state.changed().await;
        self.state.borrow_and_update().clone()
    }
    pub fn now(&self) -> Snapshot {
        self.state.borrow().clone()
    }
}

pub fn follow(client: &Client, selection: Selection) -> Followed {
    let (sender, state) = watch::channel(Snapshot::default());
    Followed { state, task: tokio::spawn(run(client.clone(), selection, sender)) }
}

async fn run(client: Client, selection: Selection, sender: watch::Sender<Snapshot>) {
    let failed = |error: String| sender.send_if_modified(|s| s.error.replace(error.clone()) != Some(error));
    let api = loop {
        match api(&client, selection.api_version, selection.kind, selection.namespace.as_deref()).await {
            Ok(api) => break api,
            Err(e) => drop(failed(e.to_string())),
        }
        tokio::time::sleep(RETRY).await;
    };
    let config = Config { field_selector: selection.fields.clone(), ..Config::default() };
    let mut events = pin!(watcher(api, config));
    // A new list replaces what was known only once it is complete.
    let mut listing = BTreeMap::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => listing.clear(),
            Ok(Event::InitApply(object)) => {
                drop(entry(object).map(|(key, value)| listing.insert(key, value)))
            }
            Ok(Event::InitDone) => sender.send_modify(|s| {
                *s = Snapshot { synced: true, objects: std::mem::take(&mut listing), error: None };
            }),
            Ok(Event::Apply(object)) => {
                let Ok((key, value)) = entry(object) else { continue };
                sender.send_modify(|s| {
                    s.objects.insert(key, value);
                    s.error = None;
                })
            }
            Ok(Event::Delete(object)) => {
                let Ok((key, _)) = entry(object) else { continue };
                sender.send_modify(|s| drop(s.objects.remove(&key)))
            }
            Err(e) => {
                failed(e.to_string());
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

fn entry(object: kube::api::DynamicObject) -> Result<(String, Value), ClusterError> {
    let name = object.name_any();
    let key = object.namespace().map(|ns| format!("{ns}/{name}")).unwrap_or_else(|| name.clone());
    Ok((key, serde_json::to_value(object).map_err(|_| ClusterError::Malformed(name))?))
}
