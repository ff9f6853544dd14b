//! The operators and the approver against a real API server; what their roles allow.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod control_plane;
#[path = "payload/machine_config.rs"]
mod machine_config;
#[path = "payload/roles.rs"]
mod roles;

use control_plane::{ControlPlane, payload};
use seedling_api::{ConfigMap, config_map};
use seedling_cluster::operator_status::{Cond, Report, report};
use seedling_operators::{cluster_version, daemon_set};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

const CONFIG: &str = "config.openshift.io/v1";

fn condition(object: &Value, kind: &str) -> String {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.into_iter().find(|c| c["type"] == kind).unwrap_or_default();
    format!("{} {}", found["status"].as_str().unwrap_or("-"), found["message"].as_str().unwrap_or("-"))
}

/// What bootkube does before: the version operator's own CRDs, the ClusterVersion, the cluster's config.
async fn bootkube(plane: &ControlPlane, manifests: &Path, overrides: Value) {
    let mut files: Vec<_> = std::fs::read_dir(manifests).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    for file in files.iter().filter(|f| f.to_str().unwrap().ends_with(".crd.yaml")) {
        let object: Value = serde_saphyr::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        seedling_cluster::manifest::create_if_missing(&plane.client, &object).await.unwrap();
    }
    let version = json!({"apiVersion": CONFIG, "kind": "ClusterVersion", "metadata": {"name": "version"}, "spec": {
        "channel": "stable-0.1", "clusterID": "fcfc7a3c-9e1e-4e4b-9b0a-111111111111", "overrides": overrides,
    }});
    let network = json!({"apiVersion": CONFIG, "kind": "Network", "metadata": {"name": "cluster"}, "spec": {
        "clusterNetwork": [{"cidr": "10.128.0.0/14", "hostPrefix": 23}], "serviceNetwork": ["172.30.0.0/16"],
        "networkType": "OVNKubernetes", "externalIP": {"policy": {}},
    }});
    let infrastructure = json!({
        "apiVersion": CONFIG, "kind": "Infrastructure", "metadata": {"name": "cluster"},
        "spec": {"cloudConfig": {"name": ""}, "platformSpec": {"type": "None"}},
        "status": {"apiServerInternalURI": "https://api-int.ocp4.example.com:6443", "apiServerURL": "",
            "controlPlaneTopology": "HighlyAvailable", "infrastructureTopology": "HighlyAvailable",
            "etcdDiscoveryDomain": "", "infrastructureName": "x", "platform": "None"},
    });
    let namespace = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let namespaces = ["openshift-config", "openshift-config-managed"].map(namespace);
    for object in namespaces.into_iter().chain([version, network, infrastructure]) {
        plane
            .until("creating the cluster's config", async || {
                let made = seedling_cluster::manifest::create_if_missing(&plane.client, &object).await;
                made.map(drop).map_err(|e| e.to_string())
            })
            .await;
    }
}

#[tokio::test]
#[ignore = "needs a built release"]
async fn the_payload_is_worked_completed_and_kept() {
    let plane = ControlPlane::start().await;
    let manifests = tempfile::tempdir().unwrap();
    payload(manifests.path());
    let unmanaged = json!([{"kind": "ServiceAccount", "group": "", "namespace": "openshift-dns-operator",
                            "name": "dns-operator", "unmanaged": true}]);
    bootkube(&plane, manifests.path(), unmanaged).await;
    let options = cluster_version::Options {
        manifests: manifests.path().into(),
        release_image: "registry.seedling.internal/seedling/release@sha256:1".into(),
    };
    let client = plane.client.clone();
    let operator = tokio::spawn(async move { cluster_version::work_payload(client, &options).await });

    let version = async || plane.get(CONFIG, "ClusterVersion", None, "version").await;
    let deployment = async || {
        plane
            .get("apps/v1", "Deployment", Some("openshift-cluster-version"), "cluster-version-operator")
            .await
    };
    plane
        .until("everything applied, operators awaited", async || {
            let progressing = condition(&version().await, "Progressing");
            let awaited =
                progressing.starts_with("True Working towards") && progressing.contains("waiting on dns");
            if awaited && !deployment().await.is_null() { Ok(()) } else { Err(progressing) }
        })
        .await;
    let container = deployment().await["spec"]["template"]["spec"]["containers"][0].clone();
    assert_eq!(container["image"], "registry.seedling.internal/seedling/release@sha256:1");
    assert_eq!(version().await["status"]["history"][0]["state"], "Partial");
    let account =
        async || plane.get("v1", "ServiceAccount", Some("openshift-dns-operator"), "dns-operator").await;
    assert!(account().await.is_null(), "an unmanaged object was applied");

    // The overrides of the installation end: what was left out comes.
    let api = seedling_cluster::manifest::api(&plane.client, CONFIG, "ClusterVersion", None).await.unwrap();
    let patch = kube::api::Patch::Merge(json!({"spec": {"overrides": null}}));
    api.patch("version", &Default::default(), &patch).await.unwrap();
    plane
        .until(
            "the override to end",
            async || if account().await.is_null() { Err("missing".into()) } else { Ok(()) },
        )
        .await;

    // Every operator says that it is available.
    let names: BTreeSet<String> = plane
        .list(CONFIG, "ClusterOperator", "")
        .await
        .iter()
        .map(|o| o["metadata"]["name"].as_str().unwrap().to_string())
        .collect();
    assert!(names.contains("dns") && names.contains("network"), "{names:?}");
    let release = version().await["status"]["desired"]["version"].as_str().unwrap().to_string();
    for name in names {
        let cond = |status| Cond::new(status, "AsExpected", "");
        let said = Report {
            name,
            available: cond(true),
            progressing: cond(false),
            degraded: cond(false),
            version: release.clone(),
            related: vec![],
        };
        report(&seedling_cluster::Cache::new(&plane.client), &said).await.unwrap();
    }
    plane
        .until("the version to be complete", async || {
            let seen = version().await;
            let done = seen["status"]["history"][0]["state"] == "Completed";
            if done { Ok(()) } else { Err(condition(&seen, "Progressing") + &condition(&seen, "Failing")) }
        })
        .await;
    let seen = version().await;
    assert_eq!(condition(&seen, "Available"), format!("True Done applying {release}"));
    assert_eq!(condition(&seen, "Progressing"), format!("False Cluster version is {release}"));
    assert_eq!(seen["status"]["history"].as_array().unwrap().len(), 1);

    // What is deleted comes back, what is changed is put right.
    let uid = deployment().await["metadata"]["uid"].clone();
    seedling_cluster::manifest::delete(
        &plane.client,
        "apps/v1",
        "Deployment",
        Some("openshift-cluster-version"),
        "cluster-version-operator",
    )
    .await
    .unwrap();
    plane
        .until("the Deployment to come back", async || {
            let live = deployment().await;
            if live.is_null() || live["metadata"]["uid"] == uid { Err("not there".into()) } else { Ok(()) }
        })
        .await;
    let api = seedling_cluster::manifest::api(
        &plane.client,
        "apps/v1",
        "Deployment",
        Some("openshift-cluster-version"),
    )
    .await
    .unwrap();
    let patch = kube::api::Patch::Merge(json!({"spec": {"replicas": 0}}));
    api.patch("cluster-version-operator", &Default::default(), &patch).await.unwrap();
    plane
        .until("the Deployment to be put right", async || {
            let live = deployment().await;
            if live["spec"]["replicas"] == 1 { Ok(()) } else { Err(live["spec"]["replicas"].to_string()) }
        })
        .await;

    // An operator that fails later is told, and the version stays available.
    let lost = Report {
        name: "dns".into(),
        available: Cond::new(false, "X", "gone"),
        progressing: Cond::new(false, "X", ""),
        degraded: Cond::new(false, "X", ""),
        version: release.clone(),
        related: vec![],
    };
    report(&seedling_cluster::Cache::new(&plane.client), &lost).await.unwrap();
    plane
        .until("the failure to be told", async || {
            let seen = version().await;
            let expected = "True Cluster operator dns is not available";
            if condition(&seen, "Failing") == expected && condition(&seen, "Available").starts_with("True") {
                Ok(())
            } else {
                Err(condition(&seen, "Failing"))
            }
        })
        .await;
    assert!(!operator.is_finished());
    operator.abort();
}

/// Instead of a Deployment's environment.
fn given(variable: &str) -> seedling_operators::Result<String> {
    let image = "registry.seedling.internal/seedling/x@sha256:1";
    Ok(if variable == "RELEASE_VERSION" { "0.1.0" } else { image }.into())
}

#[tokio::test]
#[ignore = "needs a built release"]
async fn network_and_dns_objects_are_accepted_and_kept() {
    tokio::task::LocalSet::new().run_until(network_and_dns()).await
}

async fn network_and_dns() {
    let plane = ControlPlane::start().await;
    let manifests = tempfile::tempdir().unwrap();
    payload(manifests.path());
    bootkube(&plane, manifests.path(), json!([])).await;
    let operators = [&daemon_set::NETWORK, &daemon_set::DNS]
        .map(|row| tokio::task::spawn_local(daemon_set::operate(plane.client.clone().into(), row, given)));
    let daemon_set =
        async |namespace: &str, name: &str| plane.get("apps/v1", "DaemonSet", Some(namespace), name).await;
    for (namespace, name) in [
        ("openshift-network", "flannel"),
        ("openshift-network", "kube-proxy"),
        ("openshift-dns", "dns-default"),
    ] {
        plane
            .until(name, async || {
                if daemon_set(namespace, name).await.is_null() { Err("missing".into()) } else { Ok(()) }
            })
            .await;
    }
    let service = plane.get("v1", "Service", Some("openshift-dns"), "dns-default").await;
    assert_eq!(service["spec"]["clusterIP"], "172.30.0.10");
    for name in ["network", "dns"] {
        plane
            .until("the ClusterOperator", async || {
                let seen = condition(&plane.get(CONFIG, "ClusterOperator", None, name).await, "Available");
                if seen == "False No node can be asked" { Ok(()) } else { Err(seen) }
            })
            .await;
    }
    let uid = daemon_set("openshift-network", "kube-proxy").await["metadata"]["uid"].clone();
    seedling_cluster::manifest::delete(
        &plane.client,
        "apps/v1",
        "DaemonSet",
        Some("openshift-network"),
        "kube-proxy",
    )
    .await
    .unwrap();
    plane
        .until("kube-proxy to come back", async || {
            let live = daemon_set("openshift-network", "kube-proxy").await;
            if live.is_null() || live["metadata"]["uid"] == uid { Err("not there".into()) } else { Ok(()) }
        })
        .await;
    assert!(operators.iter().all(|o| !o.is_finished()));
    operators.iter().for_each(|o| o.abort());
}

#[tokio::test]
#[ignore = "needs a built release"]
async fn what_is_not_as_it_was_seen_is_not_deleted() {
    let plane = ControlPlane::start().await;
    let map = |text: &str| config_map("default", "a", [("k".to_string(), text.to_string())].into());
    let seen = seedling_cluster::apply(&plane.client, "test", &map("1")).await.unwrap();
    let changed = seedling_cluster::apply(&plane.client, "test", &map("2")).await.unwrap();
    let delete = async |seen: &ConfigMap| seedling_cluster::delete_seen(&plane.client, seen).await;
    assert!(!delete(&seen).await.unwrap());
    assert_eq!(plane.get("v1", "ConfigMap", Some("default"), "a").await["data"]["k"], "2");
    assert!(delete(&changed).await.unwrap());
    // Another one of that name.
    let again = seedling_cluster::apply(&plane.client, "test", &map("2")).await.unwrap();
    assert_ne!(again.metadata.uid, changed.metadata.uid);
    assert!(!delete(&changed).await.unwrap());
    assert!(!plane.get("v1", "ConfigMap", Some("default"), "a").await.is_null());
}
