//! Which spec version a client gets, and a config in that version.
//!
//! Spec 3.1 to 3.5 differ only in members that older versions do not know: those are refused. Spec 2.2, which a client without
//! any Accept header gets, is another layout.

use serde_json::{Map, Value, json};
use thiserror::Error;

/// The spec version that configs are merged in and translated from.
pub const NEWEST: Version = Version::V3(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    V2_2,
    /// 3.minor.0
    V3(u64),
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Version::V2_2 => f.write_str("2.2.0"),
            Version::V3(minor) => write!(f, "3.{minor}.0"),
        }
    }
}

#[derive(Debug, Error, PartialEq, Eq)]
#[error("Ignition spec {0} is not supported")]
pub struct Unsupported(pub String);

/// The version an Accept header asks for. As upstream: the main type is not looked at, q=0 refuses nothing, a version that is
/// not x.y.z counts as none, and who asks for nothing gets 2.2.0.
pub fn negotiate(accept: Option<&str>) -> Result<Version, Unsupported> {
    let mut entries: Vec<(f32, &str)> =
        accept.unwrap_or_default().split(',').map(|e| (quality(e), e)).collect();
    entries.sort_by(|a, b| b.0.total_cmp(&a.0));
    let asked =
        entries.iter().filter(|(_, e)| is_ignition(e)).find_map(|(_, e)| parse(parameter(e, "version")?));
    match asked {
        None => Ok(Version::V2_2),
        Some((2, minor, _)) if minor >= 2 => Ok(Version::V2_2),
        Some((3, minor, _)) => Ok(Version::V3(minor.min(5))),
        Some((major, minor, patch)) => Err(Unsupported(format!("{major}.{minor}.{patch}"))),
    }
}

fn is_ignition(entry: &str) -> bool {
    let kind = entry.split(';').next().unwrap_or_default().trim();
    kind.split_once('/').is_some_and(|(_, subtype)| subtype == "vnd.coreos.ignition+json")
}

fn parameter<'a>(entry: &'a str, name: &str) -> Option<&'a str> {
    entry.split(';').skip(1).find_map(|p| p.trim().strip_prefix(name)?.strip_prefix('='))
}

fn quality(entry: &str) -> f32 {
    parameter(entry, "q").and_then(|q| q.parse().ok()).unwrap_or(1.0)
}

fn parse(version: &str) -> Option<(u64, u64, u64)> {
    let (numbers, _prerelease) = version.split_once('-').unwrap_or((version, ""));
    let parts: Vec<u64> = numbers.split('.').map(|n| n.parse().ok()).collect::<Option<_>>()?;
    <[u64; 3]>::try_from(parts).ok().map(Into::into)
}

#[derive(Debug, Error, PartialEq, Eq)]
#[error("the config cannot be written in Ignition spec {version}: {what}")]
pub struct Untranslatable {
    pub version: String,
    pub what: String,
}

/// `config` in another version; it must be one of spec 3.
pub fn translate(config: &Value, version: Version) -> Result<Value, Untranslatable> {
    let fail = |what: String| Untranslatable { version: version.to_string(), what };
    match version {
        Version::V2_2 => to_v2(config).map_err(fail),
        // Upstream has no way down to 3.0 either.
        Version::V3(0) => Err(fail("there is no translation".into())),
        Version::V3(minor) => {
            if let Some((_, path)) = NEWER.iter().find(|(since, path)| *since > minor && has(config, path)) {
                return Err(fail(format!("{path} is newer")));
            }
            let mut config = config.clone();
            config["ignition"]["version"] = json!(version.to_string());
            Ok(config)
        }
    }
}

/// Since which minor version a member exists; `*` is any list entry.
const NEWER: [(u64, &str); 9] = [
    (2, "storage/luks"),
    (2, "storage/disks/*/partitions/*/resize"),
    (2, "passwd/users/*/shouldExist"),
    (2, "passwd/groups/*/shouldExist"),
    (3, "kernelArguments"),
    (4, "storage/luks/*/clevis/tang/*/advertisement"),
    (4, "storage/luks/*/discard"),
    (4, "storage/luks/*/openOptions"),
    (5, "storage/luks/*/cex"),
];

fn has(value: &Value, path: &str) -> bool {
    let (head, rest) = path.split_once('/').map_or((path, None), |(head, rest)| (head, Some(rest)));
    let next = |v: &Value| rest.map_or(!v.is_null(), |rest| has(v, rest));
    match head {
        "*" => value.as_array().is_some_and(|list| list.iter().any(next)),
        _ => value.get(head).is_some_and(next),
    }
}

fn to_v2(config: &Value) -> Result<Value, String> {
    only(config, "the config", &["ignition", "passwd", "storage", "systemd"])?;
    let (ignition, storage) = (&config["ignition"], &config["storage"]);
    only(ignition, "ignition", &["config", "security", "timeouts", "version"])?;
    only(storage, "storage", &["files", "directories", "links"])?;
    let mut out = json!({
        "ignition": {"config": {}, "security": {"tls": {}}, "timeouts": {}, "version": "2.2.0"},
        "networkd": {}, "passwd": {}, "storage": {}, "systemd": {},
    });
    let redirect = &ignition["config"];
    for (old, new) in [("merge", "append"), ("replace", "replace")] {
        if !redirect[old].is_null() {
            out["ignition"]["config"][new] = redirect[old].clone();
        }
    }
    copy(&ignition["security"], &mut out["ignition"]["security"]);
    copy(&ignition["timeouts"], &mut out["ignition"]["timeouts"]);
    copy(&config["passwd"], &mut out["passwd"]);
    copy(&config["systemd"], &mut out["systemd"]);
    for user in list(&config["passwd"], "users").chain(list(&config["passwd"], "groups")) {
        if user.get("shouldExist").is_some() {
            return Err("passwd has shouldExist".into());
        }
    }
    let files: Vec<Value> =
        list(storage, "files").map(v2_file).collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
    set(&mut out["storage"], "files", files);
    for kind in ["directories", "links"] {
        set(&mut out["storage"], kind, list(storage, kind).map(on_root).collect());
    }
    Ok(out)
}

/// What is appended to a file is an entry of its own there.
fn v2_file(file: &Value) -> Result<Vec<Value>, String> {
    let path = file["path"].as_str().unwrap_or_default();
    only(file, path, &["path", "mode", "overwrite", "user", "group", "contents", "append"])?;
    let entry = |contents: &Value, append: bool| {
        only(contents, path, &["source", "compression", "verification"])?;
        let hash = contents["verification"]["hash"].as_str().unwrap_or("sha512-");
        if !hash.starts_with("sha512-") {
            return Err(format!("{path} is not verified by sha512"));
        }
        let mut entry = on_root(file);
        let map = entry.as_object_mut().ok_or("storage.files holds something else")?;
        map.remove("append");
        map.insert("contents".into(), if contents.is_null() { json!({}) } else { contents.clone() });
        if append {
            // 2.2 refuses both on one entry.
            map.remove("overwrite");
            map.insert("append".into(), json!(true));
        }
        Ok(entry)
    };
    let whole = file.get("contents").map(|c| entry(c, false));
    whole.into_iter().chain(list(file, "append").map(|c| entry(c, true))).collect()
}

fn on_root(node: &Value) -> Value {
    let mut map = Map::from_iter([("filesystem".to_string(), json!("root"))]);
    map.extend(node.as_object().cloned().unwrap_or_default());
    Value::Object(map)
}

fn list<'a>(value: &'a Value, member: &str) -> impl Iterator<Item = &'a Value> {
    value[member].as_array().into_iter().flatten()
}

fn copy(from: &Value, to: &mut Value) {
    if from.is_object() {
        *to = from.clone();
    }
}

fn set(to: &mut Value, member: &str, items: Vec<Value>) {
    if !items.is_empty() {
        to[member] = Value::Array(items);
    }
}

fn only(value: &Value, what: &str, known: &[&str]) -> Result<(), String> {
    let unknown = value.as_object().into_iter().flat_map(Map::keys).find(|k| !known.contains(&k.as_str()));
    unknown.map_or(Ok(()), |k| Err(format!("{what} has {k}")))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn sample() -> Value {
        json!({
            "ignition": {"version": "3.5.0"},
            "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["k"]}]},
            "storage": {"files": [
                {"path": "/a", "mode": 420, "overwrite": true, "user": {"name": "root"},
                 "contents": {"source": "http://h/a", "verification": {"hash": "sha512-00"}}},
                {"path": "/etc/motd", "append": [{"source": "data:,x"}]},
            ]},
            "systemd": {"units": [{"name": "k.service", "enabled": true, "contents": "[Unit]"}]},
        })
    }

    #[test]
    fn down_to_2_2() {
        let wanted = json!({
            "ignition": {"config": {}, "security": {"tls": {}}, "timeouts": {}, "version": "2.2.0"},
            "networkd": {},
            "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["k"]}]},
            "storage": {"files": [
                {"filesystem": "root", "path": "/a", "mode": 420, "overwrite": true, "user": {"name": "root"},
                 "contents": {"source": "http://h/a", "verification": {"hash": "sha512-00"}}},
                {"filesystem": "root", "path": "/etc/motd", "contents": {"source": "data:,x"}, "append": true},
            ]},
            "systemd": {"units": [{"name": "k.service", "enabled": true, "contents": "[Unit]"}]},
        });
        assert_eq!(translate(&sample(), Version::V2_2).unwrap(), wanted);
    }

    #[test]
    fn what_an_old_version_cannot_say_is_an_error() {
        let with = |pointer: &str, value: Value| {
            let mut config = sample();
            config[pointer] = value;
            config
        };
        let kargs = with("kernelArguments", json!({"shouldExist": ["a"]}));
        assert!(translate(&kargs, Version::V3(3)).is_ok());
        assert!(translate(&kargs, Version::V3(2)).is_err());
        assert!(translate(&kargs, Version::V2_2).is_err());
        let luks = with("storage", json!({"luks": [{"name": "root"}]}));
        assert!(translate(&luks, Version::V3(1)).is_err());
        assert!(translate(&luks, Version::V2_2).is_err());
        assert!(translate(&sample(), Version::V3(0)).is_err());
        assert_eq!(translate(&sample(), Version::V3(2)).unwrap()["ignition"]["version"], "3.2.0");
    }
}
