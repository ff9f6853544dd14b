//! Objects read again and again, from watches instead of requests.

use crate::follow::{Followed, Selection, follow_and_wake};
use crate::objects::Kind;
use crate::{ClusterError, Result, apply};
use kube::Client;
use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;

/// A kind that is not served, or an API that does not answer, is an error after this long.
const PATIENCE: Duration = Duration::from_secs(10);

/// What was asked for once is watched from then on: namespaced kinds by namespace, others by object. Where a role allows no more, it
/// is one object too.
#[derive(Clone)]
pub struct Cache {
    pub client: Client,
    /// Namespaces whose Secrets are all the process's own.
    own: Arc<[&'static str]>,
    followed: Arc<Mutex<BTreeMap<Key, Arc<dyn Any + Send + Sync>>>>,
    changed: Arc<Notify>,
}

/// Kind, namespace, and the name of an object that is watched alone. What is kept under it is a `Followed` of that kind.
type Key = (TypeId, String, String);

impl Cache {
    pub fn new(client: &Client) -> Self {
        Self::owning(client, &[])
    }

    /// Secrets of these namespaces are watched together, others one by one.
    pub fn owning(client: &Client, own: &[&'static str]) -> Self {
        Self { client: client.clone(), own: own.into(), followed: Arc::default(), changed: Arc::default() }
    }

    pub async fn get<K: Kind>(&self, namespace: Option<&str>, name: &str) -> Result<Option<Arc<K>>> {
        let followed = self.synced::<K>(namespace, name).await?;
        let key = namespace.map(|ns| format!("{ns}/{name}")).unwrap_or_else(|| name.into());
        let found = followed.state.borrow().objects.get(&key).cloned();
        Ok(found)
    }

    /// All of a kind in a namespace.
    pub async fn list<K: Kind>(&self, namespace: &str) -> Result<Vec<Arc<K>>> {
        let followed = self.synced::<K>(Some(namespace), "").await?;
        let found = followed.state.borrow().objects.values().cloned().collect();
        Ok(found)
    }

    /// Server-side apply; what was written is visible here at once, before the watch delivers it.
    pub async fn apply<K: Kind>(&self, manager: &str, object: &K) -> Result<K> {
        let live = apply(&self.client, manager, object).await?;
        self.put(&live);
        Ok(live)
    }

    pub fn put<K: Kind>(&self, live: &K) {
        let of = |field: &Option<String>| field.clone().unwrap_or_default();
        let (namespace, name) = (of(&live.meta().namespace), of(&live.meta().name));
        let followed = self.followed.lock().unwrap_or_else(|e| e.into_inner());
        let mine = followed.iter().filter(|((kind, ns, one), _)| {
            *kind == TypeId::of::<K>() && *ns == namespace && (one.is_empty() || *one == name)
        });
        for (_, followed) in mine {
            if let Some(followed) = followed.downcast_ref::<Followed<K>>() {
                followed.put(live.clone());
            }
        }
    }

    /// Returns when something that is watched here changed since the last time.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    async fn synced<K: Kind>(&self, namespace: Option<&str>, name: &str) -> Result<Arc<Followed<K>>> {
        let followed = self.follow::<K>(namespace, name);
        let mut state = followed.state.clone();
        let synced = tokio::time::timeout(PATIENCE, state.wait_for(|s| s.synced)).await;
        if !matches!(synced, Ok(Ok(_))) {
            let error = followed.now().error.unwrap_or_else(|| "no answer".into());
            return Err(ClusterError::NotHeard { kind: K::kind(&()).into(), error });
        }
        Ok(followed)
    }

    fn follow<K: Kind>(&self, namespace: Option<&str>, name: &str) -> Arc<Followed<K>> {
        let one = if alone(&self.own, &K::kind(&()), namespace) { name } else { "" };
        let key = (TypeId::of::<K>(), namespace.unwrap_or_default().to_string(), one.to_string());
        let mut followed = self.followed.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(known) = followed.get(&key).and_then(|known| known.clone().downcast().ok()) {
            return known;
        }
        let selection = match (one, namespace) {
            ("", Some(ns)) => Selection::within(ns),
            _ => Selection::one(namespace, name),
        };
        let new = Arc::new(follow_and_wake(&self.client, selection, self.changed.clone()));
        followed.insert(key, new.clone());
        new
    }
}

/// Somebody else's Secrets, and what everybody keeps in kube-system, are nothing to look through.
fn alone(own: &[&str], kind: &str, namespace: Option<&str>) -> bool {
    match namespace {
        None | Some("kube-system") => true,
        Some(namespace) => kind == "Secret" && !own.contains(&namespace),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_secret_is_watched_alone() {
        let own = ["mine"];
        for (kind, namespace, want) in [
            ("Secret", Some("mine"), false),
            ("Secret", Some("other"), true),
            ("ConfigMap", Some("other"), false),
            ("ConfigMap", Some("kube-system"), true),
            ("Secret", Some("kube-system"), true),
            ("Node", None, true),
        ] {
            assert_eq!(alone(&own, kind, namespace), want, "{kind} {namespace:?}");
        }
    }
}
