//! Creates what lies in `manifests/`, in passes, until nothing is left: a kind that is not served yet is tried again.

use crate::error::{cannot, in_file};
use crate::{Result, conditions};
use futures::{StreamExt, stream};
use kube::Client;
use seedling_cluster::manifest::{create_if_missing, describe};
use seedling_steps::{Condition, Probe, wait_for};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Between two passes, as upstream.
const PASS: Duration = Duration::from_millis(200);
/// Objects under way at once; their kind, then the order of files decides who goes first.
const PARALLEL: usize = 8;
/// Machines wait for the right to ask for a certificate; most objects wait for their namespace or kind.
const FIRST: &[&str] = &["ClusterRoleBinding", "Namespace", "CustomResourceDefinition"];

pub(crate) fn read_manifests(dir: &Path) -> Result<BTreeMap<String, Value>> {
    let mut objects = BTreeMap::new();
    for entry in std::fs::read_dir(dir).map_err(cannot("list", dir))? {
        let path = entry.map_err(cannot("list", dir))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(cannot("read", &path))?;
        let mut documents: Vec<Value> = serde_saphyr::from_multiple(&text)
            .map_err(in_file(format_args!("cannot parse {}", path.display())))?;
        if documents.is_empty() {
            continue;
        }
        let first = documents.swap_remove(0);
        // Upstream writes one file without kind or apiVersion, and skips it here.
        if first.get("kind").is_some() {
            objects.insert(name, first);
        }
    }
    Ok(objects)
}

fn rank(object: &Value) -> usize {
    FIRST.iter().position(|kind| object["kind"] == *kind).unwrap_or(FIRST.len())
}

pub(crate) async fn create_all(client: &Client, dir: &Path) -> Result<()> {
    let mut left = read_manifests(dir)?;
    let condition = Condition::new(
        &conditions::MANIFESTS_CREATED,
        Duration::from_secs(1200),
        "journalctl -n 50 -u bootkube.service",
    );
    wait_for(&condition, PASS, async || {
        let mut order: Vec<_> = left.iter().collect();
        order.sort_by_key(|(_, object)| rank(object));
        let results: Vec<_> = stream::iter(order)
            .map(|(name, object)| async move {
                (name.clone(), describe(object), create_if_missing(client, object).await)
            })
            .buffered(PARALLEL)
            .collect()
            .await;
        let mut failures = Vec::new();
        for (name, what, result) in results {
            match result {
                Ok(created) => {
                    left.remove(&name);
                    match created {
                        true => eprintln!("Created {name:?} {what}"),
                        false => eprintln!("Skipped {name:?} {what} as it already exists"),
                    }
                }
                Err(e) => failures.push(format!("{name:?} {e}")),
            }
        }
        match failures.first() {
            None => Probe::Met(()),
            Some(first) => Probe::Unmet(format!("{} left, first: {first}", failures.len())),
        }
    })
    .await?;
    Ok(())
}
