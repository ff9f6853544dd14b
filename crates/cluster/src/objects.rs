//! Objects of kinds that we know: read, applied, created and deleted as their types.

use crate::{ClusterError, Result};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::{ApiResource, DynamicObject};
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

/// A kind that says of itself what it is called.
pub trait Kind:
    Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
}
impl<K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static>
    Kind for K
{
}

/// One type of API for all kinds: requests and watches are compiled once, not once per kind.
pub(crate) fn api<K: Kind>(client: &Client, namespace: Option<&str>) -> Api<DynamicObject> {
    let resource = ApiResource::erase::<K>(&());
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

pub(crate) fn typed<K: Kind>(object: DynamicObject) -> Result<K> {
    let name = object.metadata.name.clone().unwrap_or_default();
    let value = serde_json::to_value(object).and_then(serde_json::from_value);
    value.map_err(|e| ClusterError::NotOfItsKind {
        what: format!("{} {name}", K::kind(&())),
        why: e.to_string(),
    })
}

/// `Kind namespace/name`, for messages.
pub fn describe<K: Kind>(object: &K) -> String {
    let meta = object.meta();
    let name = meta.name.as_deref().unwrap_or_default();
    match &meta.namespace {
        Some(namespace) => format!("{} {namespace}/{name}", K::kind(&())),
        None => format!("{} {name}", K::kind(&())),
    }
}

fn name_of<K: Kind>(object: &K) -> Result<&str> {
    object.meta().name.as_deref().ok_or_else(|| ClusterError::Malformed(describe(object)))
}

/// Server-side apply: creates or updates; we own what we set.
pub async fn apply<K: Kind>(client: &Client, manager: &str, object: &K) -> Result<K> {
    let api = api::<K>(client, object.meta().namespace.as_deref());
    let params = PatchParams::apply(manager).force();
    let applied = api.patch(name_of(object)?, &params, &Patch::Apply(object)).await;
    typed(applied.map_err(|e| failed(format!("applying {}", describe(object)), e))?)
}

/// Server-side apply of the status subresource.
pub async fn apply_status<K: Kind>(client: &Client, manager: &str, object: &K) -> Result<K> {
    let api = api::<K>(client, object.meta().namespace.as_deref());
    let params = PatchParams::apply(manager).force();
    let applied = api.patch_status(name_of(object)?, &params, &Patch::Apply(object)).await;
    typed(applied.map_err(|e| failed(format!("writing the status of {}", describe(object)), e))?)
}

/// What is there is left alone. True: it was created.
pub async fn create_if_missing<K: Kind>(client: &Client, object: &K) -> Result<bool> {
    let api = api::<K>(client, object.meta().namespace.as_deref());
    let new = serde_json::to_value(object).and_then(serde_json::from_value);
    let new = new.map_err(|_| ClusterError::Malformed(describe(object)))?;
    match api.create(&PostParams::default(), &new).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(e) => Err(failed(format!("creating {}", describe(object)), e)),
    }
}

pub async fn get<K: Kind>(client: &Client, namespace: Option<&str>, name: &str) -> Result<Option<K>> {
    let found = api::<K>(client, namespace).get_opt(name).await;
    let found = found.map_err(|e| failed(format!("reading {} {name}", K::kind(&())), e))?;
    found.map(typed).transpose()
}

pub async fn list<K: Kind>(client: &Client, namespace: Option<&str>, labels: &str) -> Result<Vec<K>> {
    let found = api::<K>(client, namespace).list(&ListParams::default().labels(labels)).await;
    let found = found.map_err(|e| failed(format!("listing {}", K::kind(&())), e))?;
    found.items.into_iter().map(typed).collect()
}

/// It is no error if it is already gone.
pub async fn delete<K: Kind>(client: &Client, namespace: Option<&str>, name: &str) -> Result<()> {
    match api::<K>(client, namespace).delete(name, &DeleteParams::background()).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(e) => Err(failed(format!("deleting {} {name}", K::kind(&())), e)),
    }
}

/// Deletes what was seen and nothing else: what changed since, or is another one of that name, stays. A watch may lag without knowing it.
/// True: it was as seen.
pub async fn delete_seen<K: Kind>(client: &Client, seen: &K) -> Result<bool> {
    let version = seen.meta().resource_version.clone();
    delete_if(client, seen, Some(version.ok_or_else(|| ClusterError::Malformed(describe(seen)))?)).await
}

/// Also if it changed since; another one of that name stays.
pub async fn delete_this<K: Kind>(client: &Client, seen: &K) -> Result<bool> {
    delete_if(client, seen, None).await
}

async fn delete_if<K: Kind>(client: &Client, seen: &K, resource_version: Option<String>) -> Result<bool> {
    let uid = seen.meta().uid.clone().ok_or_else(|| ClusterError::Malformed(describe(seen)))?;
    let preconditions = Preconditions { uid: Some(uid), resource_version };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
    match api::<K>(client, seen.meta().namespace.as_deref()).delete(name_of(seen)?, &params).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => Ok(false),
        Err(e) => Err(failed(format!("deleting {}", describe(seen)), e)),
    }
}

pub(crate) fn failed(what: String, source: kube::Error) -> ClusterError {
    ClusterError::Api { what, source: Box::new(source) }
}
