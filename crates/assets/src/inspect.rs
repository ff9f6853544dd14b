//! Every certificate of an asset directory, for people who want to know how long they have.

use crate::store::{Folder, Store};
use crate::{CreateError, Result, expiry, pointer, state};
use base64::{Engine, engine::general_purpose::STANDARD};
use seedling_pki::Certificate;
use serde_json::Value;
use std::path::Path;

/// A certificate and where it is.
#[derive(Clone, Debug)]
pub struct Listed {
    pub place: String,
    pub certificate: Certificate,
}

/// From the state file (all that `create` made), the Ignition configs and the admin kubeconfig.
pub fn certificates(dir: &Path) -> Result<Vec<Listed>> {
    let disk = Folder::new(dir);
    let store = Store::open(dir, &disk)?;
    let mut found = Vec::new();
    for files in state::read(&store)?.values() {
        for (path, pem) in files.iter().filter(|(path, _)| path.ends_with(".crt")) {
            found.extend(listed(path, pem)?);
        }
    }
    for file in ["bootstrap.ign", "bootstrap-in-place-for-live-iso.ign"] {
        if let Some(text) = store.read(file)? {
            for (path, pem) in expiry::carried(&pointer::parse(file, &text)?) {
                found.extend(listed(&format!("{file}:{path}"), &pem)?);
            }
        }
    }
    if let Some(text) = store.read("auth/kubeconfig")? {
        found.extend(in_kubeconfig("auth/kubeconfig", &text)?);
    }
    Ok(found)
}

/// Those of a kubeconfig: the server's authorities and the user's own.
pub fn in_kubeconfig(name: &str, yaml: &str) -> Result<Vec<Listed>> {
    let failed = |e: serde_saphyr::Error| CreateError::Unmarshal { file: name.into(), why: e.to_string() };
    let config: Value = serde_saphyr::from_str(yaml).map_err(failed)?;
    let mut found = Vec::new();
    for (list, part, data) in
        [("clusters", "cluster", "certificate-authority-data"), ("users", "user", "client-certificate-data")]
    {
        for entry in config[list].as_array().into_iter().flatten() {
            let Some(encoded) = entry[part][data].as_str() else { continue };
            let pem = STANDARD.decode(encoded).unwrap_or_default();
            let place = format!("{name}:{}/{data}", entry["name"].as_str().unwrap_or_default());
            found.extend(listed(&place, &String::from_utf8_lossy(&pem))?);
        }
    }
    Ok(found)
}

fn listed(place: &str, pem: &str) -> Result<Vec<Listed>> {
    let all = seedling_pki::certificates(pem)?.into_iter();
    Ok(all.map(|certificate| Listed { place: place.into(), certificate }).collect())
}
