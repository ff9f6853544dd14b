//! The version operator must leave alone what the installer made until bootkube is done: every object of the manifests is
//! listed as unmanaged in cvo-overrides.yaml, and a patch puts the user's own list back afterwards.

use crate::graph::{Asset, Id};
use crate::store::Files;
use crate::yaml::to_yaml;
use crate::{CreateError, Result, config, manifests};
use serde_json::{Value, json};

pub(crate) const ID: Id = "bootstrap.CVOIgnore";
const FILE: &str = "manifests/cvo-overrides.yaml";
pub(crate) const PATCH: &str = "original_cvo_overrides.patch";

pub(crate) fn asset() -> Asset {
    Asset::new(ID, "CVO Ignore", &[manifests::MANIFESTS, manifests::OPENSHIFT], |p, _| {
        ignore(p.files(manifests::MANIFESTS)?, p.files(manifests::OPENSHIFT)?)
    })
}

/// The longer cvo-overrides.yaml, and the patch that restores it.
pub fn ignore(manifests: &Files, openshift: &Files) -> Result<Files> {
    let mut entries: Vec<Value> = Vec::new();
    for (_, object) in identify(manifests.iter().chain(openshift))? {
        if object.kind != "ClusterVersion" {
            entries.push(json!({
                "group": object.group, "kind": object.kind, "name": object.name, "namespace": object.namespace, "unmanaged": true,
            }));
        }
    }
    let mut made = Files::new();
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
        // A ClusterVersion whose spec is no map cannot take them; the API server will say so.
        if let Some(spec) = version.get_mut("spec").and_then(Value::as_object_mut) {
            spec.insert("overrides".into(), entries.into());
        }
        made.insert(FILE.into(), to_yaml(&version)?);
    }
    made.insert(PATCH.into(), patch.to_string());
    Ok(made)
}

#[derive(PartialEq, Eq)]
struct Object {
    group: String,
    kind: String,
    namespace: String,
    name: String,
}

/// Which object each file holds; two files for one object are an error.
fn identify<'a>(
    manifests: impl Iterator<Item = (&'a String, &'a String)>,
) -> Result<Vec<(&'a String, Object)>> {
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
            let why = "error unmarshaling JSON: while decoding JSON: Object 'Kind' is missing in";
            return Err(unreadable(path, &format!("{why} '{}'", sorted(&value))));
        }
        if let Some((first, _)) = found.iter().find(|(_, other)| *other == object) {
            let Object { group, kind, namespace, name } = object;
            let what = format!("group {group} kind {kind} namespace {namespace} name {name}");
            let why = format!("multiple manifests for {what}: {first}, {path}");
            return Err(CreateError::Manifest { warning: None, why });
        }
        found.push((path, object));
    }
    Ok(found)
}

/// The first document only, as bootkube applies it.
fn parse(path: &str, text: &str) -> Result<Value> {
    let failed = |e: serde_saphyr::Error| {
        let line = e.location().map(|l| l.line()).unwrap_or_default();
        let what = e.without_snippet().to_string();
        let own = || format!("error converting YAML to JSON: yaml: line {line}: {what}");
        unreadable(path, &config::yaml_error(text).unwrap_or_else(own))
    };
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(failed)?;
    Ok(documents.into_iter().next().unwrap_or_default())
}

fn unreadable(path: &str, why: &str) -> CreateError {
    let warning = Some(format!("failed to unmarshal file {path}: {why}"));
    CreateError::Manifest { warning, why: format!("could not unmarshal {path:?}: {why}") }
}

/// As Go writes it: compact, members in the order of their names.
fn sorted(value: &Value) -> String {
    fn sort(value: &Value) -> Value {
        match value {
            Value::Object(members) => {
                let sorted: std::collections::BTreeMap<_, _> =
                    members.iter().map(|(k, v)| (k, sort(v))).collect();
                sorted.into_iter().map(|(k, v)| (k.clone(), v)).collect::<serde_json::Map<_, _>>().into()
            }
            Value::Array(items) => items.iter().map(sort).collect(),
            other => other.clone(),
        }
    }
    sort(value).to_string()
}
