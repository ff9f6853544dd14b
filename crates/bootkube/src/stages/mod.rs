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

use crate::Context;
use anyhow::Result;
use seedling_pki::{CertKey, trust};
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

fn tls_secret(owned: &trust::Owned, pair: &CertKey) -> Value {
    let data = [("tls.crt", pair.cert.as_str()), ("tls.key", pair.key.as_str())];
    secret(owned.namespace, owned.secret, "kubernetes.io/tls", &data)
}

/// The signers that an operator goes on with, as Secrets of its namespace.
fn signer_secrets(c: &Context, namespace: &str, prefix: &str) -> Result<()> {
    for signer in trust::signers().filter(|signer| signer.owned.namespace == namespace) {
        let cert = c.read(&format!("tls/{}.crt", signer.file))?;
        let key = c.read(&format!("tls/{}.key", signer.key_file))?;
        let object = tls_secret(&signer.owned, &CertKey { cert, key });
        c.manifest(&format!("{prefix}-{}.yaml", signer.owned.secret), &object)?;
    }
    Ok(())
}
