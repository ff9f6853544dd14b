//! Manifests of people and of the payload: they pass through as they are, whatever their kind.

use crate::objects::failed;
use crate::{ClusterError, Result};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::discovery::{Scope, oneshot};
use kube::{Client, ResourceExt};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

type Mapping = (ApiResource, Scope);
static MAPPINGS: LazyLock<Mutex<HashMap<(String, String), Mapping>>> = LazyLock::new(Mutex::default);

/// `Kind namespace/name`, for messages.
pub fn describe(object: &Value) -> String {
    let field = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    match field("/metadata/namespace") {
        "" => format!("{} {}", field("/kind"), field("/metadata/name")),
        namespace => format!("{} {namespace}/{}", field("/kind"), field("/metadata/name")),
    }
}

/// An untyped API; the REST mapping is asked for once.
pub async fn api(
    client: &Client,
    api_version: &str,
    kind: &str,
    namespace: Option<&str>,
) -> Result<Api<DynamicObject>> {
    let (resource, scope) = mapping(client, api_version, kind).await?;
    Ok(match (scope, namespace) {
        (Scope::Namespaced, Some(namespace)) => Api::namespaced_with(client.clone(), namespace, &resource),
        (Scope::Namespaced, None) => Api::all_with(client.clone(), &resource),
        (Scope::Cluster, _) => Api::all_with(client.clone(), &resource),
    })
}

async fn mapping(client: &Client, api_version: &str, kind: &str) -> Result<Mapping> {
    let key = (api_version.to_string(), kind.to_string());
    if let Some(found) = MAPPINGS.lock().unwrap_or_else(|e| e.into_inner()).get(&key) {
        return Ok(found.clone());
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let gvk = GroupVersionKind::gvk(group, version, kind);
    let missing = || ClusterError::NoMapping { api_version: api_version.into(), kind: kind.into() };
    let (resource, capabilities) = match oneshot::pinned_kind(client, &gvk).await {
        Ok(found) => found,
        Err(kube::Error::Api(status)) if status.code == 404 => return Err(missing()),
        Err(kube::Error::Discovery(_)) => return Err(missing()),
        Err(e) => return Err(failed(format!("asking for the kinds of {api_version}"), e)),
    };
    let found = (resource, capabilities.scope);
    MAPPINGS.lock().unwrap_or_else(|e| e.into_inner()).insert(key, found.clone());
    Ok(found)
}

struct Parts<'a> {
    api_version: &'a str,
    kind: &'a str,
    namespace: Option<&'a str>,
    name: &'a str,
}

fn parts(object: &Value) -> Result<Parts<'_>> {
    let field = |path: &str| object.pointer(path).and_then(Value::as_str).filter(|s| !s.is_empty());
    let malformed = || ClusterError::Malformed(describe(object));
    Ok(Parts {
        api_version: field("/apiVersion").ok_or_else(malformed)?,
        kind: field("/kind").ok_or_else(malformed)?,
        namespace: field("/metadata/namespace"),
        name: field("/metadata/name").ok_or_else(malformed)?,
    })
}

/// Server-side apply: creates or updates; we own what we set.
pub async fn apply(client: &Client, manager: &str, object: &Value) -> Result<Value> {
    let p = parts(object)?;
    let api = api(client, p.api_version, p.kind, p.namespace).await?;
    let params = PatchParams::apply(manager).force();
    let applied = api.patch(p.name, &params, &Patch::Apply(object)).await;
    value(applied.map_err(|e| failed(format!("applying {}", describe(object)), e))?)
}

/// Creates what is not there; what is there is left alone, but for a status the live object lacks. True: it was created.
pub async fn create_if_missing(client: &Client, object: &Value) -> Result<bool> {
    let p = parts(object)?;
    let api = api(client, p.api_version, p.kind, p.namespace).await?;
    let what = || format!("creating {}", describe(object));
    let wanted: DynamicObject =
        serde_json::from_value(object.clone()).map_err(|_| ClusterError::Malformed(describe(object)))?;
    let (created, live) = match api.create(&PostParams::default(), &wanted).await {
        Ok(live) => (true, live),
        Err(kube::Error::Api(status)) if status.code == 409 => {
            (false, api.get(p.name).await.map_err(|e| failed(what(), e))?)
        }
        Err(e) => return Err(failed(what(), e)),
    };
    let status = object.get("status").filter(|s| s.as_object().is_some_and(|o| !o.is_empty()));
    let has_status = live.data.get("status").and_then(Value::as_object).is_some_and(|o| !o.is_empty());
    if let Some(status) = status
        && !has_status
    {
        let mut with_status = live.clone();
        with_status.data["status"] = status.clone();
        match api.replace_status(&live.name_any(), &PostParams::default(), &with_status).await {
            Ok(_) => {}
            // No status subresource: the status came with the object.
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(e) => return Err(failed(format!("writing the status of {}", describe(object)), e)),
        }
    }
    Ok(created)
}

pub async fn get(
    client: &Client,
    api_version: &str,
    kind: &str,
    namespace: Option<&str>,
    name: &str,
) -> Result<Option<Value>> {
    let api = api(client, api_version, kind, namespace).await?;
    let found = api.get_opt(name).await;
    found.map_err(|e| failed(format!("reading {kind} {name}"), e))?.map(value).transpose()
}

/// It is no error if it is already gone.
pub async fn delete(
    client: &Client,
    api_version: &str,
    kind: &str,
    namespace: Option<&str>,
    name: &str,
) -> Result<()> {
    let api = api(client, api_version, kind, namespace).await?;
    match api.delete(name, &DeleteParams::background()).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(e) => Err(failed(format!("deleting {kind} {name}"), e)),
    }
}

fn value(object: DynamicObject) -> Result<Value> {
    let name = object.name_any();
    serde_json::to_value(object).map_err(|_| ClusterError::Malformed(name))
}
