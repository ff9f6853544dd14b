//! A revision: copies of all files under numbered names, complete before anyone may use it.

use super::{Desired, Names};
use crate::Result;
use futures::future::try_join_all;
use seedling_api::{ConfigMap, Meta, ObjectMeta, OwnerReference, Secret, config_map, named_in};
use seedling_cluster::{Cache, delete, list};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

const STATUS: &str = "revision-status-";
const READY: &str = "operator.openshift.io/revision-ready";
const CONTENT: &str = "seedling.dev/revision-content";
const MANAGER: &str = "seedling-revision";

/// The newest complete revision; a new one is made when the files differ from it.
pub(crate) async fn ensure(cache: &Cache, names: &Names, desired: &Desired, reason: &str) -> Result<i64> {
    let content = digest(desired, reason);
    let maps = cache.list::<ConfigMap>(names.namespace).await?;
    let (newest, newest_content) = newest(maps.iter().map(|map| &**map));
    if newest_content.as_deref() == Some(&content) {
        return Ok(newest);
    }
    // A watch that lags behind must not give a number twice.
    let maps = list::<ConfigMap>(&cache.client, Some(names.namespace), "").await?;
    let (newest, newest_content) = self::newest(&maps);
    if newest_content.as_deref() == Some(&content) {
        return Ok(newest);
    }
    let next = newest + 1;
    tracing::info!("{}: making revision {next}", names.operator);
    let status_map = cache.apply(MANAGER, &status(names, next, "false", &content)).await?;
    let copy = |base: &str| owned(named_in(names.namespace, &format!("{base}-{next}")), &status_map);
    let pod = BTreeMap::from([("pod.yaml".to_string(), seedling_components::pod::to_yaml(&desired.pod))]);
    let maps = desired.configmaps.iter().map(|(base, data)| (base.as_str(), data));
    let maps = maps.chain([(names.pod_configmap, &pod)]).map(|(base, data)| ConfigMap {
        metadata: copy(base),
        data: Some(data.clone()),
        ..ConfigMap::default()
    });
    let secrets = desired.secrets.iter().map(|(base, data)| Secret {
        metadata: copy(base),
        string_data: Some(data.clone()),
        ..Secret::default()
    });
    futures::try_join!(
        try_join_all(maps.map(|map| async move { cache.apply(MANAGER, &map).await })),
        try_join_all(secrets.map(|secret| async move { cache.apply(MANAGER, &secret).await })),
    )?;
    // Complete only now: once it is ready, every file is there.
    cache.apply(MANAGER, &status(names, next, "true", &content)).await?;
    Ok(next)
}

/// A revision's copies go with its status, by Kubernetes' own garbage collection.
fn owned(copy: ObjectMeta, owner: &ConfigMap) -> ObjectMeta {
    let owner = owner.metadata.uid.as_ref().map(|uid| OwnerReference {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        name: owner.name().into(),
        uid: uid.clone(),
        ..OwnerReference::default()
    });
    ObjectMeta { owner_references: owner.map(|owner| vec![owner]), ..copy }
}

/// All that are there, also half-made ones.
pub(crate) async fn made(cache: &Cache, names: &Names) -> Result<BTreeSet<i64>> {
    let maps = cache.list::<ConfigMap>(names.namespace).await?;
    Ok(maps.iter().filter_map(|map| number(map)).collect())
}

/// And everything that belongs to it.
pub(crate) async fn remove(cache: &Cache, names: &Names, revision: i64) -> Result<()> {
    let status = format!("{STATUS}{revision}");
    Ok(delete::<ConfigMap>(&cache.client, Some(names.namespace), &status).await?)
}

fn number(map: &ConfigMap) -> Option<i64> {
    map.name().strip_prefix(STATUS)?.parse().ok()
}

fn status(names: &Names, revision: i64, ready: &str, content: &str) -> ConfigMap {
    let data = BTreeMap::from([("revision".to_string(), revision.to_string())]);
    let mut map = config_map(names.namespace, &format!("{STATUS}{revision}"), data);
    map.metadata.annotations =
        Some([(READY, ready), (CONTENT, content)].map(|(k, v)| (k.into(), v.into())).into());
    map
}

/// Number and content of the newest revision that is complete; a half-made one is made again under the same number.
fn newest<'a>(maps: impl IntoIterator<Item = &'a ConfigMap>) -> (i64, Option<String>) {
    let revisions = maps.into_iter().filter_map(|map| {
        let number = number(map)?;
        (map.annotation(READY)? == "true").then(|| (number, map.annotation(CONTENT).map(str::to_string)))
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
        let map = |n: i64, ready: &str| status(&crate::kube_scheduler::NAMES, n, ready, &format!("c{n}"));
        assert_eq!(newest(&[map(1, "true"), map(2, "false")]), (1, Some("c1".into())));
        assert_eq!(newest(&[map(9, "true"), map(10, "true")]), (10, Some("c10".into())));
        assert_eq!(newest(&[config_map("ns", "other", BTreeMap::new())]), (0, None));
    }

    #[test]
    fn copies_go_with_their_status() {
        let mut live = config_map("ns", "revision-status-3", BTreeMap::new());
        live.metadata.uid = Some("u".into());
        let copy = ConfigMap { metadata: owned(named_in("ns", "config-3"), &live), ..ConfigMap::default() };
        let owner =
            json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "revision-status-3", "uid": "u"}]);
        assert_eq!(json!(copy.metadata.owner_references), owner);
        assert_eq!((number(&live), number(&copy)), (Some(3), None));
    }

    #[test]
    fn content_decides() {
        let desired = Desired::default();
        assert_eq!(digest(&desired, ""), digest(&desired, ""));
        assert_ne!(digest(&desired, ""), digest(&desired, "again"));
    }
}
