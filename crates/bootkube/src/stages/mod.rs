//! One file a stage; each begins with its description.

pub(crate) mod api_bootstrap;
pub(crate) mod api_urls;
pub(crate) mod cb_bootstrap;
pub(crate) mod config_bootstrap;
pub(crate) mod cvo_bootstrap;
pub(crate) mod cvo_overrides;
pub(crate) mod etcd_bootstrap;
pub(crate) mod kube_apiserver_bootstrap;
pub(crate) mod kube_controller_manager_bootstrap;
pub(crate) mod kube_scheduler_bootstrap;
pub(crate) mod mco_bootstrap;
pub(crate) mod not_in_payload;
pub(crate) mod openshift_manifests;
pub(crate) mod stop_machine_config_server;
pub(crate) mod wait_for_ceo;
pub(crate) mod wait_for_etcd;

use crate::error::{cannot, ensure, in_file};
use crate::{Context, Error, Result};
use seedling_pki::{CertKey, trust};
use seedling_steps::{Stage, matches_pattern};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::DirEntry;
use std::path::Path;

/// The check of a stage that renders: what it declares is there. A file that is named can be parsed, a pattern has a file.
fn written(c: &Context, stage: &Stage) -> Result<()> {
    for declared in stage.writes {
        let path = if declared.starts_with('/') { c.path(declared) } else { c.dir(declared) };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !name.contains('*') {
            parsed(&path)?;
            continue;
        }
        let mut names = names(path.parent().unwrap_or(&path))?.into_iter();
        ensure!(names.any(|found| matches_pattern(&name, &found)), "there is no {declared}");
    }
    Ok(())
}

/// A file that is not empty and, by its name, YAML or JSON.
fn parsed(path: &Path) -> Result<Value> {
    let text = std::fs::read_to_string(path).map_err(cannot("read", path))?;
    ensure!(!text.is_empty(), "{} is empty", path.display());
    match path.extension().and_then(|end| end.to_str()) {
        Some("yaml" | "yml") => serde_saphyr::from_str(&text).map_err(in_file(path.display())),
        Some("json") => serde_json::from_str(&text).map_err(in_file(path.display())),
        _ => Ok(Value::String(text)),
    }
}

fn names(folder: &Path) -> Result<Vec<String>> {
    let entries = std::fs::read_dir(folder).map_err(cannot("list", folder))?;
    let name = |entry: DirEntry| entry.file_name().to_string_lossy().into_owned();
    entries.map(|entry| entry.map(name).map_err(cannot("list", folder))).collect()
}

/// Names of what release-image.service unpacks before bootkube starts.
fn release_manifests(c: &Context) -> Result<Vec<String>> {
    names(&c.dir("release-manifests")).map_err(|error| Error::NotUnpacked(Box::new(error)))
}

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

/// The signers that an operator takes over, as Secrets of its namespace.
fn signer_secrets(c: &Context, namespace: &str, prefix: &str) -> Result<()> {
    for signer in trust::signers().filter(|signer| signer.owned.namespace == namespace) {
        let cert = c.read(&format!("tls/{}.crt", signer.file))?;
        let key = c.read(&format!("tls/{}.key", signer.key_file))?;
        let object = tls_secret(&signer.owned, &CertKey { cert, key });
        c.manifest(&format!("{prefix}-{}.yaml", signer.owned.secret), &object)?;
    }
    Ok(())
}
