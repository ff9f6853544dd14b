//! Files of an asset ↔ the member that upstream writes for it: the fields of its Go type. What upstream has no type for (the
//! inventory, tokens, the release, what is stale) are members of ours, as path → contents, which its store carries along; earlier
//! versions of ours wrote all members so, and they are still read.

use crate::store::Files;
use crate::{
    bootstrap, certificates, identity, install_config, keys, kubeconfig, manifests, metadata, overrides,
    release, roles,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use seedling_pki::trust::installer::BUNDLES;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// release.json; upstream's own asset knows only the image.
const OUR_RELEASE: &str = "seedling.Release";
const SSH: &str = "tls/bootstrap-ssh";
/// Upstream's keys where nothing else was asked for; it writes no parameters then.
const DEFAULT_KEYS: &str = "rsa-2048";

type Members = BTreeMap<String, Map<String, Value>>;

pub(super) fn write(state: &BTreeMap<String, Files>) -> BTreeMap<String, Value> {
    let hash = state.get(&key(identity::PASSWORD_SECRET)).and_then(|files| files.get("hash"));
    let mut members = BTreeMap::new();
    for (name, files) in state {
        let id = name.trim_start_matches('*');
        match id {
            // Upstream keeps the hash with the password.
            identity::PASSWORD_SECRET => continue,
            release::ID => {
                members.insert(key(OUR_RELEASE), json!(files));
            }
            _ => {}
        }
        members.insert(name.clone(), member(id, files, hash));
    }
    members
}

pub(super) fn read(members: Members) -> BTreeMap<String, Files> {
    let mut state = BTreeMap::new();
    for (name, member) in members {
        match name.trim_start_matches('*') {
            OUR_RELEASE => drop(state.insert(key(release::ID), flat(&member))),
            release::ID if member.contains_key("PullSpec") => {}
            id => {
                if let Some(hash) =
                    member.get("PasswordHash").filter(|_| id == identity::PASSWORD).and_then(decode)
                {
                    state.insert(key(identity::PASSWORD_SECRET), [("hash".to_string(), hash)].into());
                }
                state.insert(name.clone(), files(id, &member));
            }
        }
    }
    state
}

fn key(id: &str) -> String {
    format!("*{id}")
}

fn member(id: &str, files: &Files, hash: Option<&String>) -> Value {
    let text = |path: &str| files.get(path).map_or("", String::as_str);
    // Of the one file, or of the one that ends so.
    let first = || files.values().next().map(String::as_str);
    let ending =
        |end: &str| files.iter().find(|(path, _)| path.ends_with(end)).map(|(_, contents)| encode(contents));
    let one = || files.iter().next().map(|(path, contents)| file(path, contents));
    let list = || list(files.iter());
    if let Some(of) =
        roles::ROLES.iter().find(|of| [of.pointer, of.machines, of.customizations].contains(&id))
    {
        return match id {
            _ if id == of.machines => machines(files, of.pool),
            _ if id == of.pointer => json!({"Config": first().and_then(json_of), "File": one()}),
            _ => json!({"File": one()}),
        };
    }
    if BUNDLES.iter().any(|bundle| bundle.asset == id) {
        return json!({"BundleRaw": ending(".crt"), "FileList": list()});
    }
    // What upstream has no type for is a member of ours, as all of these.
    if certificates::pairs().any(|(asset, _)| asset == id && !id.starts_with("seedling.")) {
        return json!({"CertRaw": ending(".crt"), "KeyRaw": ending(".key"), "FileList": list()});
    }
    match id {
        install_config::ID => json!({"config": first().and_then(yaml_of), "file": one()}),
        identity::CLUSTER_ID => json!({"UUID": text("clusterID"), "InfraID": text("infraID")}),
        certificates::KEY_PARAMETERS => json!({"PKIConfig": parameters(text("algorithm"))}),
        keys::SERVICE_ACCOUNT => json!({"Pvt": ending(".key"), "Pub": ending(".pub"), "FileList": list()}),
        keys::BOOTSTRAP_SSH => json!({"Priv": ending(".key"), "Pub": ending(".pub")}),
        identity::PASSWORD => {
            json!({"Password": first(), "PasswordHash": hash.map(|h| encode(h)), "File": one()})
        }
        manifests::MANIFESTS => {
            json!({"KubeSysConfig": yaml_of(text(manifests::WHOLE_SET)), "FileList": list()})
        }
        manifests::OPENSHIFT | manifests::CLUSTER_API | overrides::ID | keys::BOUND_SERVICE_ACCOUNT => {
            json!({"FileList": list()})
        }
        _ if kubeconfig::ROWS.iter().any(|row| row.id == id) => {
            json!({"Config": first().and_then(yaml_of), "File": one()})
        }
        bootstrap::BOOTSTRAP | bootstrap::IN_PLACE => {
            json!({"Config": first().and_then(json_of), "File": one()})
        }
        metadata::ID | manifests::OPENSHIFT_INSTALL => json!({"File": one()}),
        release::ID => {
            let image =
                release::parse(text(release::FILE)).map(|release| release.release_image).unwrap_or_default();
            json!({"PullSpec": image, "Repository": image.split('@').next()})
        }
        _ => json!(files),
    }
}

fn files(id: &str, member: &Map<String, Value>) -> Files {
    let text = |name: &str| member.get(name).and_then(Value::as_str).unwrap_or_default().to_string();
    let named =
        |names: [&str; 2], fields: [String; 2]| names.map(str::to_string).into_iter().zip(fields).collect();
    match id {
        identity::CLUSTER_ID if member.contains_key("UUID") => {
            named(["clusterID", "infraID"], [text("UUID"), text("InfraID")])
        }
        certificates::KEY_PARAMETERS if member.contains_key("PKIConfig") => {
            [("algorithm".to_string(), algorithm(&member["PKIConfig"]))].into()
        }
        keys::BOOTSTRAP_SSH if member.contains_key("Priv") => {
            let part = |name| member.get(name).and_then(decode).unwrap_or_default();
            named([&format!("{SSH}.key"), &format!("{SSH}.pub")], [part("Priv"), part("Pub")])
        }
        identity::PASSWORD if member.contains_key("Password") => {
            [(identity::PASSWORD_FILE.to_string(), text("Password"))].into()
        }
        _ if member.values().all(Value::is_string) => flat(member),
        _ => member.values().flat_map(all_files).collect(),
    }
}

/// Ours, and all members of earlier versions.
fn flat(member: &Map<String, Value>) -> Files {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    member.iter().map(|(path, contents)| (path.clone(), text(contents))).collect()
}

fn file(path: &str, contents: &str) -> Value {
    json!({"Filename": path, "Data": encode(contents)})
}

fn list<'a>(files: impl Iterator<Item = (&'a String, &'a String)>) -> Value {
    let files: Vec<_> = files.map(|(path, contents)| file(path, contents)).collect();
    if files.is_empty() { Value::Null } else { files.into() }
}

/// A field that is a file, or a list of them.
fn all_files(field: &Value) -> Vec<(String, String)> {
    let one =
        |value: &Value| Some((value.get("Filename")?.as_str()?.to_string(), decode(value.get("Data")?)?));
    match field {
        Value::Array(list) => list.iter().filter_map(one).collect(),
        value => one(value).into_iter().collect(),
    }
}

/// A pool's manifests, each in the field of its kind.
fn machines(files: &Files, pool: &str) -> Value {
    const KINDS: [(&str, &str); 7] = [
        ("99_openshift-machineconfig_", "MachineConfigFiles"),
        ("99_openshift-cluster-api_hosts-", "HostFiles"),
        ("99_openshift-cluster-api_host-bmc-secrets-", "SecretFiles"),
        ("99_openshift-cluster-api_host-network-config-secrets-", "NetworkConfigSecretFiles"),
        ("99_openshift-cluster-api_worker-machineset-", "MachineSetFiles"),
        ("99_openshift-etcd_fencing-", "FencingCredentialsSecretFiles"),
        ("99_openshift-cluster-api_", "MachineFiles"),
    ];
    let user_data = crate::machine_config::user_data(pool);
    let kind = |path: &str| -> &str {
        let name = path.trim_start_matches("openshift/");
        let found = KINDS.iter().find(|(start, _)| name.starts_with(start)).map(|(_, kind)| *kind);
        if path == user_data { "UserDataFile" } else { found.unwrap_or("MachineFiles") }
    };
    let mut fields: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for (path, contents) in files {
        fields.entry(kind(path)).or_default().push(file(path, contents));
    }
    let value = |kind: &str, mut files: Vec<Value>| match kind {
        "UserDataFile" => files.swap_remove(0),
        _ => files.into(),
    };
    fields
        .into_iter()
        .map(|(kind, files)| (kind.to_string(), value(kind, files)))
        .collect::<Map<_, _>>()
        .into()
}

/// `ecdsa-p256` → what upstream's install-config would say.
fn parameters(algorithm: &str) -> Value {
    let key = match algorithm.split_once('-') {
        Some(("rsa", bits)) if algorithm != DEFAULT_KEYS => {
            json!({"algorithm": "RSA", "rsa": {"keySize": bits.parse::<u32>().unwrap_or_default()}})
        }
        Some(("ecdsa", curve)) => json!({"algorithm": "ECDSA", "ecdsa": {"curve": curve.to_uppercase()}}),
        _ => return Value::Null,
    };
    json!({"signerCertificates": {"key": key}})
}

fn algorithm(parameters: &Value) -> String {
    let key = &parameters["signerCertificates"]["key"];
    match key["algorithm"].as_str() {
        Some("RSA") => format!("rsa-{}", key["rsa"]["keySize"]),
        Some(_) => format!("ecdsa-{}", key["ecdsa"]["curve"].as_str().unwrap_or_default().to_lowercase()),
        None => DEFAULT_KEYS.into(),
    }
}

fn encode(contents: &str) -> String {
    STANDARD.encode(contents)
}

fn decode(data: &Value) -> Option<String> {
    let bytes = STANDARD.decode(data.as_str()?).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// A user's file may be anything: then there is the file, and nothing that was read from it.
fn yaml_of(text: &str) -> Option<Value> {
    serde_saphyr::from_str(text).ok().filter(Value::is_object)
}

fn json_of(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().filter(Value::is_object)
}
