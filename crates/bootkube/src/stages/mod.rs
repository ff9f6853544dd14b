//! One file a stage; each begins with its description.

pub mod api_bootstrap;
pub mod api_urls;
pub mod cb_bootstrap;
pub mod config_bootstrap;
pub mod cvo_bootstrap;
pub mod cvo_overrides;
pub mod etcd_bootstrap;
pub mod kube_apiserver_bootstrap;
pub mod kube_controller_manager_bootstrap;
pub mod kube_scheduler_bootstrap;
pub mod mco_bootstrap;
pub mod not_in_payload;
pub mod openshift_manifests;
pub mod stop_machine_config_server;
pub mod wait_for_ceo;
pub mod wait_for_etcd;

use serde_json::{Value, json};
use std::collections::BTreeMap;

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {
        "openshift.io/run-level": "0",
        "pod-security.kubernetes.io/enforce": "privileged",
    }}})
}

fn config_map(namespace: &str, name: &str, data: &[(&str, &str)]) -> Value {
    let data: BTreeMap<_, _> = data.iter().copied().collect();
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": name}, "data": data})
}

/// `stringData` is turned into base64 by the API server.
fn secret(namespace: &str, name: &str, kind: &str, data: &[(&str, &str)]) -> Value {
    let data: BTreeMap<_, _> = data.iter().copied().collect();
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": namespace, "name": name},
        "type": kind, "stringData": data})
}

fn tls_secret(namespace: &str, name: &str, cert: &str, key: &str) -> Value {
    secret(namespace, name, "kubernetes.io/tls", &[("tls.crt", cert), ("tls.key", key)])
}
