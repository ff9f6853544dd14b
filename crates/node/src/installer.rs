//! The installer: writes one revision's files on this master, the manifest last. The operator makes the pod that runs it.

use crate::error::{cannot, in_file, write};
use crate::{Error, Result, conditions};
use futures::future::try_join_all;
use kube::Client;
use seedling_api::{ConfigMap, Files, Secret};
use seedling_cluster::{Kind, get};
use seedling_components::pod::on_master;
use seedling_steps::{Condition, Journal, Probe, wait_for, write_atomic_if_changed};
use seedling_types::paths;
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

const ALLOWED_WITHIN: Duration = Duration::from_secs(20);

pub struct InstallerArgs {
    pub namespace: String,
    /// ConfigMap with the manifest.
    pub pod: String,
    pub revision: i64,
    pub configmaps: Vec<String>,
    pub secrets: Vec<String>,
    /// Revisions whose files stay on this master; none: all of them.
    pub keep: Vec<i64>,
    pub node_name: String,
    pub node_ip: String,
}

/// Runs in the installer pod. Killed anywhere, it can run again: the manifest appears only when all it needs is there.
pub async fn install(client: &Client, args: &InstallerArgs) -> Result<()> {
    let journal = Journal::of(Path::new("/"), format!("installer/{}", args.pod));
    let revision = format!("revision-{}", args.revision);
    let install = async {
        journal.step(&format!("{revision}/files"), write_files(client, args)).await?;
        journal.step(&format!("{revision}/manifest"), write_manifest(client, args)).await?;
        // Nothing depends on it, and the next installer tries again.
        if let Err(e) = prune(Path::new(paths::STATIC_POD_RESOURCES), args) {
            tracing::warn!("cannot remove the files of old revisions: {e}");
        }
        Ok(())
    };
    journal.service(journal.step(&revision, install)).await
}

fn directory(args: &InstallerArgs) -> PathBuf {
    Path::new(paths::STATIC_POD_RESOURCES).join(format!("{}-{}", args.pod, args.revision))
}

/// Files of older revisions of this pod that nobody asked to keep.
fn prune(resources: &Path, args: &InstallerArgs) -> io::Result<()> {
    for entry in std::fs::read_dir(resources)?.flatten() {
        if superfluous(&entry.file_name().to_string_lossy(), args) {
            tracing::info!("removing {}, which no kept revision needs", entry.path().display());
            std::fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

fn superfluous(directory: &str, args: &InstallerArgs) -> bool {
    let number =
        directory.strip_prefix(&args.pod).and_then(|rest| rest.strip_prefix('-')?.parse::<i64>().ok());
    number.is_some_and(|n| !args.keep.is_empty() && n < args.revision && !args.keep.contains(&n))
}

/// All at once: one after the other they would wait for twenty answers and for the disk twice as often.
async fn write_files(client: &Client, args: &InstallerArgs) -> Result<()> {
    let maps = args.configmaps.iter().map(|name| async move {
        let files = fetch::<ConfigMap>(client, args, name).await?.data.unwrap_or_default();
        let files = files.into_iter().map(|(key, text)| (key, text.into_bytes())).collect();
        write_directory(directory(args).join("configmaps").join(name), files).await
    });
    let secrets = args.secrets.iter().map(|name| async move {
        let files = fetch::<Secret>(client, args, name).await?.data.unwrap_or_default();
        let files = files.into_iter().map(|(key, bytes)| (key, bytes.0)).collect();
        write_directory(directory(args).join("secrets").join(name), files).await
    });
    futures::try_join!(try_join_all(maps), try_join_all(secrets))?;
    Ok(())
}

async fn write_directory(dir: PathBuf, files: Vec<(String, Vec<u8>)>) -> Result<()> {
    let folder = dir.clone();
    let written = tokio::task::spawn_blocking(move || {
        files.into_iter().try_for_each(|(key, contents)| write(&folder.join(key), contents))
    });
    written.await.map_err(cannot("write", dir))?
}

async fn write_manifest(client: &Client, args: &InstallerArgs) -> Result<()> {
    let map = fetch::<ConfigMap>(client, args, &args.pod).await?;
    let pod = map.file("pod.yaml").ok_or_else(|| Error::Seen("the ConfigMap has no pod.yaml".into()))?;
    let mut pod: Value = serde_saphyr::from_str(pod).map_err(in_file("pod.yaml"))?;
    on_master(&mut pod, args.revision, &args.node_name, &args.node_ip)?;
    let pod = seedling_components::pod::to_yaml(&pod);
    let file = format!("{}.yaml", args.pod);
    write(&directory(args).join(&file), &pod)?;
    let manifest = Path::new(paths::STATIC_PODS).join(&file);
    let written = write_atomic_if_changed(&manifest, &pod, 0o600).map_err(cannot("write", &manifest))?;
    tracing::info!("{file} of revision {} {}", args.revision, if written { "written" } else { "unchanged" });
    Ok(())
}

/// The role names this revision since before the pod was made, but an API server may hear of that later than the kubelet of the pod.
async fn fetch<K: Kind>(client: &Client, args: &InstallerArgs, name: &str) -> Result<K> {
    let kind = K::kind(&());
    let name = format!("{name}-{}", args.revision);
    let hint = format!("kubectl -n {} get role installer -o yaml", args.namespace);
    let allowed = Condition::within(&conditions::LEAVE_TO_READ, ALLOWED_WITHIN, hint);
    let allowed = allowed.with("KIND", &kind).with("NAME", &name);
    let read = async || match get::<K>(client, Some(&args.namespace), &name).await {
        Err(e) if e.is_forbidden() => Probe::Unmet(e.to_string()),
        read => Probe::Met(read),
    };
    let found = wait_for(&allowed, Duration::from_millis(100), read).await??;
    found.ok_or_else(|| Error::NoObject { kind: kind.into(), namespace: args.namespace.clone(), name })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn args() -> InstallerArgs {
        InstallerArgs {
            namespace: "n".into(),
            pod: "etcd-pod".into(),
            revision: 7,
            configmaps: vec![],
            secrets: vec![],
            keep: vec![3, 7],
            node_name: "master-0".into(),
            node_ip: "192.168.100.11".into(),
        }
    }

    #[test]
    #[expect(clippy::unwrap_used, reason = "tests")]
    fn only_this_pods_old_files_go() {
        let dir = tempfile::tempdir().unwrap();
        let stays = ["etcd-pod-3", "etcd-pod-7", "etcd-pod-8", "etcd-pod-x", "etcd-certs", "kube-etcd-pod-1"];
        for name in stays.iter().chain(&["etcd-pod-1", "etcd-pod-6"]) {
            std::fs::create_dir_all(dir.path().join(name).join("secrets")).unwrap();
        }
        let left = || {
            let names = std::fs::read_dir(dir.path()).unwrap().flatten();
            names.map(|e| e.file_name().into_string().unwrap()).collect::<BTreeSet<_>>()
        };
        prune(dir.path(), &InstallerArgs { keep: vec![], ..args() }).unwrap();
        assert_eq!(left().len(), 8, "an operator that names none removes none");
        prune(dir.path(), &args()).unwrap();
        assert_eq!(left(), stays.map(String::from).into());
    }
}
