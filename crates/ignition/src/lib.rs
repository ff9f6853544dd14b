//! Ignition configs: the types we write (spec 3.2), their merge, and the translation the machine-config server owes its clients.
//!
//! Only the parts of the spec that Seedling emits have fields; nothing empty is serialised, as in upstream's output.

mod merge;
pub mod translate;

pub use merge::merge_json;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};

/// The spec version in everything we write: every Ignition from 2.6 on reads it.
pub const VERSION: &str = "3.2.0";

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    pub ignition: Ignition,
    #[serde(default, skip_serializing_if = "empty")]
    pub passwd: Passwd,
    #[serde(default, skip_serializing_if = "empty")]
    pub storage: Storage,
    #[serde(default, skip_serializing_if = "empty")]
    pub systemd: Systemd,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ignition {
    #[serde(default, skip_serializing_if = "empty")]
    pub config: Option<Redirect>,
    #[serde(default, skip_serializing_if = "empty")]
    pub security: Option<Security>,
    pub version: String,
}

impl Default for Ignition {
    fn default() -> Self {
        Self { config: None, security: None, version: VERSION.into() }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redirect {
    #[serde(default, skip_serializing_if = "empty")]
    pub merge: Vec<Resource>,
    #[serde(default, skip_serializing_if = "empty")]
    pub replace: Option<Resource>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    #[serde(default, skip_serializing_if = "empty")]
    pub source: Option<String>,
    #[serde(default, skip_serializing_if = "empty")]
    pub http_headers: Vec<HttpHeader>,
    #[serde(default, skip_serializing_if = "empty")]
    pub verification: Option<Verification>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpHeader {
    pub name: String,
    pub value: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verification {
    pub hash: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Security {
    pub tls: Tls,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tls {
    #[serde(default, skip_serializing_if = "empty")]
    pub certificate_authorities: Vec<Resource>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passwd {
    #[serde(default, skip_serializing_if = "empty")]
    pub users: Vec<User>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct User {
    pub name: String,
    #[serde(default, skip_serializing_if = "empty")]
    pub ssh_authorized_keys: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Storage {
    #[serde(default, skip_serializing_if = "empty")]
    pub files: Vec<File>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    #[serde(default, skip_serializing_if = "empty")]
    pub overwrite: Option<bool>,
    pub path: String,
    #[serde(default, skip_serializing_if = "empty")]
    pub user: Option<Owner>,
    #[serde(default, skip_serializing_if = "empty")]
    pub append: Vec<Resource>,
    #[serde(default, skip_serializing_if = "empty")]
    pub contents: Option<Resource>,
    #[serde(default, skip_serializing_if = "empty")]
    pub mode: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Systemd {
    #[serde(default, skip_serializing_if = "empty")]
    pub units: Vec<Unit>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    #[serde(default, skip_serializing_if = "empty")]
    pub contents: Option<String>,
    #[serde(default, skip_serializing_if = "empty")]
    pub dropins: Vec<Dropin>,
    #[serde(default, skip_serializing_if = "empty")]
    pub enabled: Option<bool>,
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropin {
    pub contents: String,
    pub name: String,
}

fn empty<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// `data:text/plain;charset=utf-8;base64,…`, the only form upstream writes into bootstrap.ign.
pub fn data_url(contents: &[u8]) -> String {
    format!("data:text/plain;charset=utf-8;base64,{}", STANDARD.encode(contents))
}

/// What a URL of `data_url`'s form holds.
pub fn decode(url: &str) -> Option<Vec<u8>> {
    STANDARD.decode(url.strip_prefix("data:")?.split_once(";base64,")?.1).ok()
}

impl File {
    /// A file carried in the config itself: owned by root, replacing what is there.
    pub fn inline(path: impl Into<String>, mode: u32, contents: impl AsRef<[u8]>) -> Self {
        let source = Some(data_url(contents.as_ref()));
        Self::new(path, mode, Resource { source, ..Resource::default() })
    }
    /// A file that Ignition fetches and verifies.
    pub fn fetched(path: impl Into<String>, mode: u32, url: impl Into<String>, sha512: &str) -> Self {
        let verification = Some(Verification { hash: format!("sha512-{sha512}") });
        Self::new(path, mode, Resource { source: Some(url.into()), verification, ..Resource::default() })
    }
    fn new(path: impl Into<String>, mode: u32, contents: Resource) -> Self {
        let user = Some(Owner { name: "root".into() });
        Self {
            overwrite: Some(true),
            path: path.into(),
            user,
            append: vec![],
            contents: Some(contents),
            mode: Some(mode),
        }
    }
}

impl Unit {
    pub fn new(name: &str, enabled: bool, contents: impl Into<String>) -> Self {
        Self {
            contents: Some(contents.into()),
            dropins: vec![],
            enabled: enabled.then_some(true),
            name: name.into(),
        }
    }
}

impl Config {
    /// Later wins: same-path files, same-name units and users are replaced in place, others appended. A unit that has only drop-ins adds
    /// them to the one of its name.
    pub fn merge(mut self, other: Config) -> Config {
        for file in other.storage.files {
            put(&mut self.storage.files, file, |f| f.path.clone());
        }
        for unit in other.systemd.units {
            put_unit(&mut self.systemd.units, unit);
        }
        for user in other.passwd.users {
            put(&mut self.passwd.users, user, |u| u.name.clone());
        }
        self
    }
}

fn put_unit(units: &mut Vec<Unit>, unit: Unit) {
    match units.iter_mut().find(|have| have.name == unit.name) {
        Some(have) if unit.contents.is_none() && unit.enabled.is_none() => {
            unit.dropins.into_iter().for_each(|dropin| put(&mut have.dropins, dropin, |d| d.name.clone()));
        }
        _ => put(units, unit, |u| u.name.clone()),
    }
}

fn put<T>(list: &mut Vec<T>, item: T, key: impl Fn(&T) -> String) {
    let wanted = key(&item);
    match list.iter_mut().find(|have| key(have) == wanted) {
        Some(have) => *have = item,
        None => list.push(item),
    }
}
