//! This master, as described by its static pods' manifests: no API is needed.

use super::super::join;
use crate::error::{in_file, read, write};
use crate::{Error, Result};
use seedling_cluster::etcd::{Etcd, EtcdTls};
use seedling_components::pod::to_yaml;
use seedling_components::{etcd, kube_apiserver, kube_controller_manager, kube_scheduler};
use seedling_types::{paths, ports};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The control plane's pods, by the names of their files.
pub(super) const PODS: [&str; 4] = [
    etcd::POD_CONFIGMAP,
    kube_apiserver::POD_CONFIGMAP,
    kube_controller_manager::POD_CONFIGMAP,
    kube_scheduler::POD_CONFIGMAP,
];

const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Here {
    pub name: String,
    pub address: IpAddr,
    /// All masters, and bootstrap.
    pub peers: Vec<(String, IpAddr)>,
    /// Files of etcd's revision.
    resources: PathBuf,
}

impl Here {
    pub fn read() -> Result<Self> {
        let pod = manifest(etcd::POD_CONFIGMAP).map_err(|error| Error::NoMaster(Box::new(error)))?;
        of_pod(&pod).ok_or_else(|| Error::Seen("etcd's manifest is none of ours".into()))
    }

    pub fn tls(&self) -> Result<EtcdTls> {
        join::peer_tls(&self.resources, &self.name)
    }

    /// Other masters; bootstrap's member is gone since the handoff.
    pub fn others(&self) -> impl Iterator<Item = &(String, IpAddr)> {
        self.peers.iter().filter(|(name, address)| *address != self.address && name != etcd::BOOTSTRAP_MEMBER)
    }

    pub async fn own(&self) -> Result<Etcd> {
        Ok(Etcd::connect_here(&self.tls()?).await?)
    }

    pub fn runs(&self) -> Result<BTreeMap<String, i64>> {
        let revision = |name: &str| {
            let pod = manifest(name)?;
            let label = pod.pointer("/metadata/labels/revision").and_then(Value::as_str);
            let number = label.and_then(|text| text.parse().ok());
            Ok((name.to_string(), number.ok_or_else(|| Error::Seen(format!("{name} has no revision")))?))
        };
        PODS.into_iter().map(revision).collect()
    }
}

/// Whose etcd runs. One that waits for a majority answers no client, but its peers' port is open.
pub async fn who_answers<'a>(peers: impl Iterator<Item = &'a (String, IpAddr)>) -> Vec<String> {
    let asked = peers.map(|(name, address)| async move {
        let connected = tokio::net::TcpStream::connect((*address, ports::ETCD_PEER));
        let answers = matches!(tokio::time::timeout(ANSWERS_WITHIN, connected).await, Ok(Ok(_)));
        answers.then(|| name.clone())
    });
    futures::future::join_all(asked).await.into_iter().flatten().collect()
}

fn manifest_file(pod: &str) -> PathBuf {
    Path::new(paths::STATIC_PODS).join(format!("{pod}.yaml"))
}

fn manifest(pod: &str) -> Result<Value> {
    let path = manifest_file(pod);
    serde_saphyr::from_str(&read(&path)?).map_err(in_file(path.display()))
}

fn of_pod(pod: &Value) -> Option<Here> {
    let words = pod.pointer("/spec/containers/0/command")?.as_array()?;
    let flag =
        |name: &str| words.iter().find_map(|word| word.as_str()?.strip_prefix(name)?.strip_prefix('='));
    let peer = |text: &str| {
        let (name, address) = text.split_once('=')?;
        Some((name.to_string(), address.parse().ok()?))
    };
    let volumes = pod.pointer("/spec/volumes")?.as_array()?;
    let resources = volumes.iter().find(|v| v["name"] == "resources")?.pointer("/hostPath/path")?.as_str()?;
    Some(Here {
        name: flag("--name")?.into(),
        address: flag("--address")?.parse().ok()?,
        peers: flag("--peers")?.split(',').map(peer).collect::<Option<_>>()?,
        resources: resources.into(),
    })
}

/// The API server on this master asks the member beside it, and nobody else: the next revision may name others again.
pub(super) fn ask_only_this_member() -> Result<()> {
    let mut pod = manifest(kube_apiserver::POD_CONFIGMAP)?;
    only_localhost(&mut pod);
    write(&manifest_file(kube_apiserver::POD_CONFIGMAP), to_yaml(&pod))
}

fn only_localhost(pod: &mut Value) {
    const SERVERS: &str = "--etcd-servers=";
    for words in ["/spec/containers/0/args", "/spec/containers/0/command"] {
        for word in pod.pointer_mut(words).and_then(Value::as_array_mut).into_iter().flatten() {
            if word.as_str().is_some_and(|word| word.starts_with(SERVERS)) {
                *word = format!("{SERVERS}https://localhost:{}", ports::ETCD_CLIENT).into();
            }
        }
    }
}

/// The manifests of these revisions, whose files are there.
pub(super) fn put_manifests(runs: &BTreeMap<String, i64>) -> Result<()> {
    for (pod, revision) in runs {
        let from = Path::new(paths::STATIC_POD_RESOURCES).join(format!("{pod}-{revision}/{pod}.yaml"));
        write(&manifest_file(pod), read(&from)?)?;
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_master_is_read_from_its_manifest() {
        let ip = |n| IpAddr::from([192, 168, 100, n]);
        let peers = vec![
            ("etcd-bootstrap".to_string(), ip(10)),
            ("master-0".into(), ip(11)),
            ("master-1".into(), ip(12)),
        ];
        let pod = json!({"spec": {
            "containers": [{"command": ["seedling", "etcd-join", "--name=master-0", "--address=192.168.100.11",
                "--peers=etcd-bootstrap=192.168.100.10,master-0=192.168.100.11,master-1=192.168.100.12", "--", "etcd"]}],
            "volumes": [{"name": "data"}, {"name": "resources", "hostPath": {"path": "/r/etcd-pod-4"}}]}});
        let here = of_pod(&pod).unwrap();
        assert_eq!(
            here,
            Here { name: "master-0".into(), address: ip(11), peers, resources: "/r/etcd-pod-4".into() }
        );
        assert_eq!(here.others().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["master-1"]);
        assert_eq!(of_pod(&json!({})), None);
    }

    #[test]
    fn an_api_server_asks_the_member_beside_it() {
        let mut pod = json!({"spec": {"containers": [{"args": ["--a=b", "--etcd-servers=https://localhost:2379,https://192.168.100.12:2379"]}]}});
        only_localhost(&mut pod);
        assert_eq!(
            pod["spec"]["containers"][0]["args"],
            json!(["--a=b", "--etcd-servers=https://localhost:2379"])
        );
    }
}
