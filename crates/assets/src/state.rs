//! `.openshift_install_state.json`: every asset as last made or read, by upstream's name for it. Holds every key of the cluster.

use crate::CreateError;
use crate::store::{Files, Store};
use serde::Serialize;
use std::collections::BTreeMap;

pub const FILE: &str = ".openshift_install_state.json";

pub fn read(store: &Store) -> Result<BTreeMap<String, Files>, CreateError> {
    let Some(json) = store.read(FILE)? else { return Ok(BTreeMap::new()) };
    let path = store.path(FILE);
    serde_json::from_str(&json).map_err(|error| CreateError::State { path, why: words(&error) })
}

pub fn to_json(state: &BTreeMap<String, Files>) -> Result<String, CreateError> {
    let mut json = Vec::new();
    let indent = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    state.serialize(&mut serde_json::Serializer::with_formatter(&mut json, indent))?;
    Ok(String::from_utf8_lossy(&json).into_owned())
}

/// In Go's words where there are any.
fn words(error: &serde_json::Error) -> String {
    if error.is_eof() { "unexpected end of JSON input".into() } else { error.to_string() }
}
