//! The version operator must leave alone what the installer made until bootkube is done: every object of the manifests is
//! listed as unmanaged in cvo-overrides.yaml, and a patch puts the user's own list back afterwards.

use crate::CreateError;
use crate::manifests::Manifests;
use crate::yaml::to_yaml;
use serde_json::{Value, json};

const FILE: &str = "manifests/cvo-overrides.yaml";

/// The manifests with the longer cvo-overrides.yaml, and the patch that restores it.
pub fn ignore(manifests: &Manifests) -> Result<(Manifests, String), CreateError> {
    let objects = identify(manifests)?;
    let mut entries: Vec<Value> = Vec::new();
    for (path, object) in &objects {
        let of_machines = ["openshift/99_openshift-cluster-api_", "openshift/99_openshift-machineconfig_"];
        if object.kind != "ClusterVersion" && !of_machines.iter().any(|start| path.starts_with(start)) {
            entries.push(json!({
                "group": object.group, "kind": object.kind, "name": object.name, "namespace": object.namespace, "unmanaged": true,
            }));
        }
    }
    let mut manifests = manifests.clone();
    let mut patch = json!({ "spec": { "overrides": null } });
    if let Some(text) = manifests.get(FILE) {
        let mut version = parse(FILE, text)?;
        if let Some(own) = version["spec"]["overrides"].as_array().filter(|own| !own.is_empty()) {
            let field = |entry: &Value, key: &str| entry.get(key).cloned().unwrap_or("".into());
            let complete = |entry: &Value| {
                json!({
                    "kind": field(entry, "kind"), "group": field(entry, "group"), "namespace": field(entry, "namespace"),
                    "name": field(entry, "name"), "unmanaged": entry["unmanaged"] == json!(true),
                })
            };
            patch["spec"]["overrides"] = own.iter().map(complete).collect();
            entries.extend(own.clone());
        }
        version["spec"]["overrides"] = entries.into();
        manifests.insert(FILE.into(), to_yaml(&version)?);
    }
    Ok((manifests, patch.to_string()))
}

#[derive(PartialEq, Eq)]
struct Object {
    group: String,
    kind: String,
    namespace: String,
    name: String,
}

/// Which object each file holds; two files for one object are an error.
fn identify(manifests: &Manifests) -> Result<Vec<(&String, Object)>, CreateError> {
    let mut found: Vec<(&String, Object)> = Vec::new();
    for (path, text) in manifests {
        let value = parse(path, text)?;
        let field = |at: &str| value.pointer(at).and_then(Value::as_str).unwrap_or_default().to_string();
        let object = Object {
            group: field("/apiVersion")
                .rsplit_once('/')
                .map(|(group, _)| group.to_string())
                .unwrap_or_default(),
            kind: field("/kind"),
            namespace: field("/metadata/namespace"),
            name: field("/metadata/name"),
        };
        if object.kind.is_empty() {
            let why = "error unmarshaling JSON: while decoding JSON: Object 'Kind' is missing";
            return Err(CreateError::Manifest(format!("could not unmarshal {path:?}: {why}")));
        }
        if let Some((first, _)) = found.iter().find(|(_, other)| *other == object) {
            let Object { group, kind, namespace, name } = object;
            let what = format!("group {group} kind {kind} namespace {namespace} name {name}");
            return Err(CreateError::Manifest(format!("multiple manifests for {what}: {first}, {path}")));
        }
        found.push((path, object));
    }
    Ok(found)
}

/// The first document only, as bootkube applies it.
fn parse(path: &str, text: &str) -> Result<Value, CreateError> {
    let failed = |e: serde_saphyr::Error| {
        let line = e.location().map(|l| l.line()).unwrap_or_default();
        let what = e.without_snippet().to_string();
        CreateError::Manifest(format!(
            "could not unmarshal {path:?}: error converting YAML to JSON: yaml: line {line}: {what}"
        ))
    };
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(failed)?;
    Ok(documents.into_iter().next().unwrap_or_default())
}
