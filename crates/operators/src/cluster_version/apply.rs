//! One manifest into the cluster.

use super::MANAGER;
use super::board::Trouble;
use super::graph::Mode;
use super::payload::Manifest;
use kube::Client;
use seedling_cluster::ClusterError;
use seedling_cluster::manifest::{self, create_if_missing, delete, get};
use serde_json::Value;
use std::time::Duration;

/// What is live after a manifest was worked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Applied {
    /// Changes by others show as a higher one; `None` for kinds without.
    pub generation: Option<i64>,
    /// Updates wait for workloads; an installation does not: its nodes may not even be there yet.
    pub rolled_out: bool,
}

pub(super) async fn apply(client: &Client, manifest: &Manifest, mode: Mode) -> Result<Applied, ClusterError> {
    let done = |generation| Applied { generation, rolled_out: true };
    if manifest.annotation("release.openshift.io/delete") == Some("true") {
        let namespace = Some(manifest.namespace()).filter(|n| !n.is_empty());
        delete(client, manifest.api_version(), manifest.kind(), namespace, manifest.name()).await?;
        return Ok(done(None));
    }
    let mut object = manifest.object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if manifest.annotation("release.openshift.io/create-only") == Some("true") {
        create_if_missing(client, &object).await?;
        return Ok(done(None));
    }
    let live = match already_there(client, manifest, &object, mode).await? {
        Some(live) => live,
        None => manifest::apply(client, MANAGER, &object).await?,
    };
    let generation = live["metadata"]["generation"].as_i64();
    Ok(Applied { generation, rolled_out: mode != Mode::Updating || rolled_out(&live) })
}

/// To apply what is there already costs the API server many times what reading it does. bootkube has just created the same CRDs, and to
/// write one again costs more than all other manifests together, since the server compiles every rule in it and publishes its
/// schema anew. When everything is looked at again from time to time, nearly always nothing has changed.
async fn already_there(
    client: &Client,
    manifest: &Manifest,
    wanted: &Value,
    mode: Mode,
) -> Result<Option<Value>, ClusterError> {
    let look = match mode {
        Mode::Initializing => manifest.kind() == "CustomResourceDefinition",
        Mode::Updating => false,
        Mode::Reconciling => true,
    };
    if !look {
        return Ok(None);
    }
    let namespace = Some(manifest.namespace()).filter(|n| !n.is_empty());
    let live = get(client, manifest.api_version(), manifest.kind(), namespace, manifest.name()).await?;
    Ok(live.filter(|live| covers(live, wanted)))
}

/// Everything wanted is live; defaults and status may have been added.
fn covers(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => {
            wanted.iter().all(|(key, value)| live.get(key).is_some_and(|live| covers(live, value)))
        }
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len() && live.iter().zip(wanted).all(|(live, wanted)| covers(live, wanted))
        }
        _ => live == wanted,
    }
}

/// Whether a Deployment or DaemonSet runs as its spec says; anything else does by being there.
fn rolled_out(live: &Value) -> bool {
    let number = |path: &str| live.pointer(path).and_then(Value::as_i64);
    let observed = number("/status/observedGeneration") >= number("/metadata/generation");
    let status = |field: &str| number(&format!("/status/{field}")).unwrap_or(0);
    match live["kind"].as_str() {
        Some("Deployment") => {
            let wanted = number("/spec/replicas").unwrap_or(1);
            observed && status("updatedReplicas") >= wanted && status("availableReplicas") >= wanted
        }
        Some("DaemonSet") => {
            let wanted = status("desiredNumberScheduled");
            observed && status("updatedNumberScheduled") >= wanted && status("numberAvailable") >= wanted
        }
        _ => true,
    }
}

/// Tries after which a failure is reported; before that, a namespace or a kind may just be on its way.
pub(super) const PATIENCE: u32 = 6;

/// Until the next try: quick while everything appears at once, then slower.
pub(super) fn backoff(mode: Mode, attempt: u32) -> Duration {
    let (first, cap) = match mode {
        Mode::Initializing => (Duration::from_millis(100), Duration::from_secs(2)),
        Mode::Updating | Mode::Reconciling => (Duration::from_millis(500), Duration::from_secs(15)),
    };
    cap.min(first * 2u32.saturating_pow(attempt.min(10)))
}

/// A failure in upstream's words; `index` counts from one.
pub(super) fn failed(manifest: &Manifest, index: usize, total: usize, error: &ClusterError) -> Trouble {
    let kind = manifest.kind().to_lowercase();
    let name = match manifest.namespace() {
        "" => manifest.name().to_string(),
        namespace => format!("{namespace}/{}", manifest.name()),
    };
    let (reason, cause) = match error {
        ClusterError::NoMapping { .. } => (
            "UpdatePayloadResourceTypeMissing",
            "the server does not recognize this resource, check extension API servers".to_string(),
        ),
        ClusterError::Api { source, .. } => match source.as_ref() {
            kube::Error::Api(status) => (
                match status.code {
                    404 => "UpdatePayloadResourceNotFound",
                    409 => "UpdatePayloadResourceConflict",
                    401 => "UpdatePayloadClusterUnauthorized",
                    403 => "UpdatePayloadResourceForbidden",
                    422 => "UpdatePayloadResourceInvalid",
                    500..600 => "UpdatePayloadClusterError",
                    _ => "UpdatePayloadFailed",
                },
                status.message.clone(),
            ),
            other => ("UpdatePayloadClusterDown", other.to_string()),
        },
        ClusterError::NoAnswer { .. } => ("UpdatePayloadClusterDown", error.to_string()),
        other => ("UpdatePayloadFailed", other.to_string()),
    };
    let message = format!("Could not update {kind} \"{name}\" ({index} of {total}): {cause}");
    Trouble::Failed { reason: reason.into(), message }
}

#[cfg(test)]
mod tests {
    use super::super::payload::tests::manifest;
    use super::*;
    use serde_json::json;

    #[test]
    fn rolled_out_means_updated_and_available() {
        let deployment = |observed: i64, updated: i64, available: i64| {
            json!({"kind": "Deployment", "metadata": {"generation": 2}, "spec": {"replicas": 1},
                   "status": {"observedGeneration": observed, "updatedReplicas": updated, "availableReplicas": available}})
        };
        assert!(rolled_out(&deployment(2, 1, 1)));
        assert!(!rolled_out(&deployment(1, 1, 1)));
        assert!(!rolled_out(&deployment(2, 1, 0)));
        assert!(!rolled_out(&json!({"kind": "Deployment", "metadata": {"generation": 1}})));
        assert!(rolled_out(&json!({"kind": "ConfigMap", "metadata": {}})));
    }

    #[test]
    fn defaults_do_not_count_but_changes_do() {
        let live = json!({"spec": {"names": {"kind": "A", "listKind": "AList"}, "versions": [{"name": "v1", "served": true}]}, "status": {}});
        assert!(covers(&live, &json!({"spec": {"names": {"kind": "A"}, "versions": [{"name": "v1"}]}})));
        assert!(!covers(&live, &json!({"spec": {"names": {"kind": "B"}}})));
        assert!(!covers(&live, &json!({"spec": {"versions": []}})));
        assert!(!covers(&live, &json!({"spec": {"scope": "Cluster"}})));
    }

    #[test]
    fn failures_name_the_object() {
        let m = manifest(
            "0000_50_a_1.yaml",
            "apiVersion: x/v1\nkind: Thing\nmetadata: {namespace: ns, name: a}\n",
        );
        let error = ClusterError::NoMapping { api_version: "x/v1".into(), kind: "Thing".into() };
        let expected = Trouble::Failed {
            reason: "UpdatePayloadResourceTypeMissing".into(),
            message: "Could not update thing \"ns/a\" (3 of 40): the server does not recognize this resource, check extension API servers".into(),
        };
        assert_eq!(failed(&m, 3, 40, &error), expected);
    }

    #[test]
    fn retries_are_quick_at_first_and_bounded() {
        assert_eq!(backoff(Mode::Initializing, 0), Duration::from_millis(100));
        assert_eq!(backoff(Mode::Initializing, 30), Duration::from_secs(2));
        assert_eq!(backoff(Mode::Updating, 30), Duration::from_secs(15));
    }
}
