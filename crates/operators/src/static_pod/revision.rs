//! A revision: copies of all files under numbered names, complete before anyone may use it.

use super::{Desired, Names, name};
use anyhow::Result;
use futures::future::try_join_all;
use seedling_cluster::{Cache, delete, list};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

const STATUS: &str = "revision-status-";
const READY: &str = "operator.openshift.io/revision-ready";
const CONTENT: &str = "seedling.dev/revision-content";
const MANAGER: &str = "seedling-revision";

/// The newest complete revision; a new one is made when the files differ from it.
pub async fn ensure(cache: &Cache, names: &Names, desired: &Desired, reason: &str) -> Result<i64> {
    let content = digest(desired, reason);
    let maps = cache.list("v1", "ConfigMap", names.namespace).await?;
    let (newest, newest_content) = newest(&maps);
    if newest_content.as_deref() == Some(&content) {
        return Ok(newest);
    }
    // A watch that lags behind must not give a number twice.
    let maps = list(&cache.client, "v1", "ConfigMap", Some(names.namespace), "").await?;
    let (newest, newest_content) = self::newest(&maps);
    if newest_content.as_deref() == Some(&content) {
        return Ok(newest);
    }
    let next = newest + 1;
    tracing::info!("{}: making revision {next}", names.operator);
    let owner = cache.apply(MANAGER, &status(names, next, "false", &content)).await?;
    let pod = BTreeMap::from([("pod.yaml", seedling_components::pod::to_yaml(&desired.pod))]);
    let pod = object(names, "ConfigMap", &format!("{}-{next}", names.pod_configmap), "data", json!(pod));
    let maps = desired.configmaps.iter().map(|(base, data)| (base, "ConfigMap", "data", json!(data)));
    let secrets = desired.secrets.iter().map(|(base, data)| (base, "Secret", "stringData", json!(data)));
    let copies = maps
        .chain(secrets)
        .map(|(base, kind, field, data)| object(names, kind, &format!("{base}-{next}"), field, data))
        .chain([pod])
        .map(|copy| owned(copy, &owner));
    try_join_all(copies.map(|copy| async move { cache.apply(MANAGER, &copy).await })).await?;
    // Complete only now: whoever sees it ready finds every file.
    cache.apply(MANAGER, &status(names, next, "true", &content)).await?;
    Ok(next)
}

fn object(names: &Names, kind: &str, name: &str, field: &str, data: Value) -> Value {
    let metadata = json!({"namespace": names.namespace, "name": name});
    let mut object = json!({"apiVersion": "v1", "kind": kind, "metadata": metadata});
    object[field] = data;
    object
}

/// A revision's copies go with its status, by Kubernetes' own garbage collection.
fn owned(mut copy: Value, owner: &Value) -> Value {
    if let Some(uid) = owner["metadata"]["uid"].as_str() {
        let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name(owner), "uid": uid});
        copy["metadata"]["ownerReferences"] = json!([owner]);
    }
    copy
}

/// All that are there, also half-made ones.
pub async fn made(cache: &Cache, names: &Names) -> Result<BTreeSet<i64>> {
    let maps = cache.list("v1", "ConfigMap", names.namespace).await?;
    Ok(maps.iter().filter_map(number).collect())
}

/// And everything that belongs to it.
pub async fn remove(cache: &Cache, names: &Names, revision: i64) -> Result<()> {
    let status = format!("{STATUS}{revision}");
    Ok(delete(&cache.client, "v1", "ConfigMap", Some(names.namespace), &status).await?)
}

fn number(map: &Value) -> Option<i64> {
    name(map).strip_prefix(STATUS)?.parse().ok()
}

fn status(names: &Names, revision: i64, ready: &str, content: &str) -> Value {
    let data = json!({"revision": revision.to_string()});
    let mut object = object(names, "ConfigMap", &format!("{STATUS}{revision}"), "data", data);
    object["metadata"]["annotations"] = json!({READY: ready, CONTENT: content});
    object
}

/// Number and content of the newest revision that is complete; a half-made one is made again under the same number.
fn newest(maps: &[Value]) -> (i64, Option<String>) {
    let annotation = |m: &Value, key: &str| m["metadata"]["annotations"][key].as_str().map(str::to_string);
    let revisions = maps.iter().filter_map(|m| {
        let number = number(m)?;
        (annotation(m, READY)? == "true").then(|| (number, annotation(m, CONTENT)))
    });
    revisions.max_by_key(|(number, _)| *number).unwrap_or((0, None))
}

fn digest(desired: &Desired, reason: &str) -> String {
    let all = json!([desired.configmaps, desired.secrets, desired.pod, reason]);
    Sha256::digest(all.to_string()).iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_half_made_revision_does_not_count() {
        let map = |n: i64, ready: &str| json!({"metadata": {"name": format!("revision-status-{n}"), "annotations": {READY: ready, CONTENT: format!("c{n}")}}});
        assert_eq!(newest(&[map(1, "true"), map(2, "false")]), (1, Some("c1".into())));
        assert_eq!(newest(&[map(9, "true"), map(10, "true")]), (10, Some("c10".into())));
        assert_eq!(newest(&[json!({"metadata": {"name": "other"}})]), (0, None));
    }

    #[test]
    fn copies_go_with_their_status() {
        let live = json!({"metadata": {"name": "revision-status-3", "uid": "u"}});
        let copy = owned(json!({"metadata": {"name": "config-3"}}), &live);
        let owner =
            json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "revision-status-3", "uid": "u"}]);
        assert_eq!(copy["metadata"]["ownerReferences"], owner);
        assert_eq!((number(&live), number(&copy)), (Some(3), None));
    }

    #[test]
    fn content_decides() {
        let desired = Desired::default();
        assert_eq!(digest(&desired, ""), digest(&desired, ""));
        assert_ne!(digest(&desired, ""), digest(&desired, "again"));
    }
}
