//! `.openshift_install_state.json`: every asset as last made or read, by upstream's name for it and in upstream's form, so that
//! openshift-install reads it back. Holds every key of the cluster.

mod form;

use crate::store::{Files, Folder, Store};
use crate::{CreateError, Result};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

pub(crate) const FILE: &str = ".openshift_install_state.json";

/// What the state file of an asset directory knows: files by asset.
pub fn state_files(dir: &Path) -> Result<BTreeMap<String, Files>> {
    read(&Store::open(dir, &Folder::new(dir))?)
}

pub(crate) fn read(store: &Store) -> Result<BTreeMap<String, Files>> {
    let Some(json) = store.read(FILE)? else { return Ok(BTreeMap::new()) };
    let path = store.path(FILE);
    let members: BTreeMap<String, Map<String, Value>> =
        serde_json::from_str(&json).map_err(|error| CreateError::State { path, why: words(&error) })?;
    Ok(form::read(members))
}

pub(crate) fn to_json(state: &BTreeMap<String, Files>) -> Result<String> {
    let mut json = Vec::new();
    let indent = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    form::write(state).serialize(&mut serde_json::Serializer::with_formatter(&mut json, indent))?;
    Ok(String::from_utf8_lossy(&json).into_owned())
}

/// In Go's words where there are any.
fn words(error: &serde_json::Error) -> String {
    if error.is_eof() { "unexpected end of JSON input".into() } else { error.to_string() }
}
