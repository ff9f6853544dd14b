//! What was applied is watched: what somebody deletes or changes is put back at once.

use super::payload::Manifest;
use futures::StreamExt;
use kube::api::{Api, DynamicObject};
use kube::core::{GroupVersionKind, PartialObjectMeta};
use kube::discovery::oneshot::pinned_kind;
use kube::runtime::watcher::{Config, Event, watcher};
use kube::{Client, ResourceExt};
use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

const RETRY: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub api_version: String,
    pub kind: String,
    pub namespace: String,
    pub name: String,
    /// `None`: deleted.
    pub generation: Option<i64>,
}

impl Change {
    pub(super) fn is_of(&self, m: &Manifest) -> bool {
        (self.api_version.as_str(), self.kind.as_str(), self.namespace.as_str(), self.name.as_str())
            == (m.api_version(), m.kind(), m.namespace(), m.name())
    }
}

/// Watches every kind among the manifests, metadata only; ends when the set is dropped.
pub(super) fn watch(client: &Client, manifests: &[Manifest]) -> (mpsc::Receiver<Change>, JoinSet<()>) {
    let (sender, receiver) = mpsc::channel(64);
    let kinds: BTreeSet<_> = (manifests.iter())
        .filter(|m| !m.is_cluster_operator() && m.annotation("release.openshift.io/delete") != Some("true"))
        .map(|m| (m.api_version().to_string(), m.kind().to_string()))
        .collect();
    let mut watches = JoinSet::new();
    for (api_version, kind) in kinds {
        watches.spawn(watch_kind(client.clone(), api_version, kind, sender.clone()));
    }
    (receiver, watches)
}

async fn watch_kind(client: Client, api_version: String, kind: String, sender: mpsc::Sender<Change>) {
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let gvk = GroupVersionKind::gvk(group, version, &kind);
    let api: Api<PartialObjectMeta<DynamicObject>> = loop {
        match pinned_kind(&client, &gvk).await {
            Ok((resource, _)) => break Api::all_with(client.clone(), &resource),
            Err(e) => tracing::warn!("watching {kind}: {e}"),
        }
        tokio::time::sleep(RETRY).await;
    };
    let mut events = pin!(watcher(api, Config::default().any_semantic()));
    while let Some(event) = events.next().await {
        let (object, generation) = match event {
            Ok(Event::Apply(object)) => {
                let Some(generation) = object.metadata.generation else { continue };
                (object, Some(generation))
            }
            Ok(Event::Delete(object)) => (object, None),
            Ok(_) => continue,
            Err(e) => {
                tracing::debug!("watching {kind}: {e}");
                tokio::time::sleep(RETRY).await;
                continue;
            }
        };
        let change = Change {
            api_version: api_version.clone(),
            kind: kind.clone(),
            namespace: object.namespace().unwrap_or_default(),
            name: object.name_any(),
            generation,
        };
        if sender.send(change).await.is_err() {
            return;
        }
    }
}
