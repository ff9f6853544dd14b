//! Certificates made before the clock runs, as ours are: by kubeadm itself, for each master the set that `init` or `join` would make
//! there. With them on its disk a master needs nothing from the first one: no upload, no download.

use anyhow::{Context, Result};
use seedling_e2e::run;
use seedling_ignition::File;
use std::fs;
use std::path::Path;
use std::process::Command;

const FOLDER: &str = "/etc/kubernetes/pki";
/// What all masters share.
const SHARED: &[&str] = &["ca", "front-proxy-ca", "etcd/ca", "sa"];

/// `configs`: of `init`, one a master.
pub(super) fn make(kubeadm: &Path, configs: &[String]) -> Result<Vec<Vec<File>>> {
    let scratch = tempfile::tempdir()?;
    let first = scratch.path().join("0");
    let mut made = Vec::new();
    for (index, config) in configs.iter().enumerate() {
        let own = scratch.path().join(index.to_string());
        fs::create_dir_all(own.join("etcd"))?;
        if index > 0 {
            for (name, kind) in SHARED.iter().flat_map(|name| ["crt", "key", "pub"].map(|kind| (name, kind)))
            {
                let file = format!("{name}.{kind}");
                if first.join(&file).exists() {
                    fs::copy(first.join(&file), own.join(&file))?;
                }
            }
        }
        let path = scratch.path().join(format!("{index}.yaml"));
        fs::write(&path, config.replace(FOLDER, &own.display().to_string()))?;
        run(Command::new(kubeadm).args(["init", "phase", "certs", "all", "--config"]).arg(&path))?;
        made.push(files(&own, FOLDER)?);
    }
    Ok(made)
}

fn files(dir: &Path, at: &str) -> Result<Vec<File>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let at = format!("{at}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            found.extend(files(&entry.path(), &at)?);
        } else {
            let content = fs::read(entry.path()).with_context(|| entry.path().display().to_string())?;
            found.push(File::inline(at, 0o600, content));
        }
    }
    Ok(found)
}
