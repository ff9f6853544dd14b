//! etcd: the bootstrap member's pod, the masters' pod, and the config file a joining member starts with.

use crate::pod::{
    NODE_IP, NODE_NAME, Place, RESOURCES, StaticPod, container, env, env_of_pod, host_path, journal_mount,
    journal_volume, mount, probe, ready_when, requests, resources_volume, seedling_mount, seedling_volume,
    words,
};
use k8s_openapi::api::core::v1::{Container, Pod, Volume, VolumeMount};
use seedling_types::inventory::MOST_MASTERS;
use seedling_types::names::NS_ETCD;
use seedling_types::release::MissingComponent;
use seedling_types::{ReleaseInfo, paths, ports};
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

pub const BOOTSTRAP_MEMBER: &str = "etcd-bootstrap";
/// ConfigMap with the pod's template; its name is also the resource directory's.
pub const POD_CONFIGMAP: &str = "etcd-pod";
/// On the bootstrap node the files lie where upstream's render stage puts them.
pub const BOOTSTRAP_RESOURCES: &str = "/etc/kubernetes/static-pod-resources/etcd-member";
/// A database file of this size is full, as upstream has it. etcd's own 2 GiB are few for what a large cluster keeps.
const QUOTA: u64 = 8 << 30;
/// How long a member may take to end.
pub const GRACE_SECONDS: u32 = 30;
const JOIN_DIR: &str = "/run/etcd-join";
/// In a master's container: the runtime's logs of the pod itself, a directory for each container.
pub const OWN_LOGS: &str = "/var/log/etcd-pod";

/// `host` is the certificate's name: `bootstrap` or the master's.
struct Files {
    ca: String,
    certs: String,
    host: &'static str,
}

fn files(place: Place) -> Files {
    match place {
        Place::Bootstrap => Files {
            ca: format!("{RESOURCES}/ca.crt"),
            certs: format!("{RESOURCES}/etcd-all-certs"),
            host: "bootstrap",
        },
        Place::Master => Files {
            ca: format!("{RESOURCES}/configmaps/etcd-ca-bundle/ca-bundle.crt"),
            certs: format!("{RESOURCES}/secrets/etcd-all-certs"),
            host: NODE_NAME,
        },
    }
}

/// Where a member's peers reach it.
pub fn peer_url(address: IpAddr) -> String {
    format!("https://{}", SocketAddr::new(address, ports::ETCD_PEER))
}

/// etcd's own config file, for every member. `members`: (name, address) of every member there is, this one included.
pub fn config(
    name: &str,
    address: IpAddr,
    members: &[(String, IpAddr)],
    new: bool,
    files_of: Place,
) -> Value {
    let f = files(files_of);
    let host = if files_of == Place::Bootstrap { f.host } else { name };
    let client_url = |ip: IpAddr| format!("https://{}", SocketAddr::new(ip, ports::ETCD_CLIENT));
    let any = match address {
        IpAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let initial: Vec<_> = members.iter().map(|(name, ip)| format!("{name}={}", peer_url(*ip))).collect();
    let tls = |kind: &str| {
        json!({
            "cert-file": format!("{}/etcd-{kind}-{host}.crt", f.certs),
            "key-file": format!("{}/etcd-{kind}-{host}.key", f.certs),
            "client-cert-auth": true,
            "trusted-ca-file": f.ca,
        })
    };
    json!({
        "name": name,
        "data-dir": paths::ETCD_DATA,
        "initial-cluster": initial.join(","),
        "initial-cluster-state": if new { "new" } else { "existing" },
        "initial-cluster-token": "seedling",
        "listen-client-urls": client_url(any),
        "advertise-client-urls": client_url(address),
        "listen-peer-urls": peer_url(any),
        "initial-advertise-peer-urls": peer_url(address),
        "listen-metrics-urls": format!("http://127.0.0.1:{}", ports::ETCD_METRICS),
        "heartbeat-interval": 100,
        "election-timeout": 1000,
        // All masters may join as learners at once.
        "max-learners": MOST_MASTERS,
        "quota-backend-bytes": QUOTA,
        "client-transport-security": tls("serving"),
        "peer-transport-security": tls("peer"),
    })
}

/// `etcdctl` in the container works as it is: the seeds' own commands name no certificate.
fn etcd(
    release: &ReleaseInfo,
    place: Place,
    command: Vec<String>,
    more: Vec<VolumeMount>,
) -> Result<Container, MissingComponent> {
    let f = files(place);
    let mounts = [mount("resources", RESOURCES, true), mount("data", paths::ETCD_DATA, false)];
    let mounts = mounts.into_iter().chain(more).collect();
    let mut etcd = Container {
        env: Some(vec![
            env("ETCDCTL_CACERT", f.ca),
            env("ETCDCTL_CERT", format!("{}/etcd-peer-{}.crt", f.certs, f.host)),
            env("ETCDCTL_KEY", format!("{}/etcd-peer-{}.key", f.certs, f.host)),
            env("ETCDCTL_ENDPOINTS", format!("https://localhost:{}", ports::ETCD_CLIENT)),
        ]),
        resources: requests("100m", "100Mi"),
        liveness_probe: probe("HTTP", "127.0.0.1", ports::ETCD_METRICS, "/livez", 10, 6),
        ..container("etcd", release.image("etcd")?, command, mounts)
    };
    // It may wait for its turn before it becomes etcd, and as a learner: no reason to kill it.
    ready_when(&mut etcd, "HTTP", ports::ETCD_METRICS, "/readyz", 3);
    Ok(etcd)
}

/// The one-member cluster that everything grows from. Its config file lies beside its certificates. `seedling etcd-start` becomes
/// etcd at once; it can be ordered to continue alone, once.
pub fn bootstrap_pod(release: &ReleaseInfo) -> Result<Pod, MissingComponent> {
    let command = words(&[paths::NODE_SEEDLING, "etcd-start", "--", "etcd", &config_flag(RESOURCES)]);
    let etcd = etcd(release, Place::Bootstrap, command, vec![seedling_mount(), journal_mount()])?;
    let pod = StaticPod {
        name: "etcd-bootstrap-member".into(),
        namespace: NS_ETCD,
        app: "etcd",
        place: Place::Bootstrap,
        containers: vec![etcd],
        volumes: vec![
            host_path("resources", BOOTSTRAP_RESOURCES, "Directory"),
            host_path("data", paths::ETCD_DATA, "DirectoryOrCreate"),
            seedling_volume(),
            journal_volume(),
        ],
        grace_seconds: GRACE_SECONDS,
    };
    Ok(pod.manifest())
}

fn config_flag(dir: &str) -> String {
    format!("--config-file={dir}/etcd.yaml")
}

/// A master's member: it waits until it is on the member list, then starts with the list as it is (never as a new cluster).
///
/// `peers`: `name=address` of bootstrap and all masters of the inventory.
pub fn master_pod(release: &ReleaseInfo, peers: &[(String, IpAddr)]) -> Result<Pod, MissingComponent> {
    let peers: Vec<_> = peers.iter().map(|(name, ip)| format!("{name}={ip}")).collect();
    let command = words(&[
        paths::NODE_SEEDLING,
        "etcd-join",
        &format!("--name={NODE_NAME}"),
        &format!("--address={NODE_IP}"),
        &format!("--peers={}", peers.join(",")),
        &format!("--resources={RESOURCES}"),
        &format!("--out={JOIN_DIR}/etcd.yaml"),
        "--",
        "etcd",
        &config_flag(JOIN_DIR),
    ]);
    let mounts = vec![mount("join", JOIN_DIR, false), seedling_mount(), journal_mount(), own_logs()];
    let mut etcd = etcd(release, Place::Master, command, mounts)?;
    let own = [env_of_pod("POD_NAME", "metadata.name"), env_of_pod("POD_UID", "metadata.uid")];
    etcd.env.get_or_insert_default().extend(own);
    let pod = StaticPod {
        name: "etcd".into(),
        namespace: NS_ETCD,
        app: "etcd",
        place: Place::Master,
        containers: vec![etcd],
        volumes: vec![
            resources_volume(Place::Master, POD_CONFIGMAP),
            host_path("data", paths::ETCD_DATA, "DirectoryOrCreate"),
            Volume { name: "join".into(), empty_dir: Some(Default::default()), ..Volume::default() },
            host_path("logs", "/var/log/pods", "Directory"),
            seedling_volume(),
            journal_volume(),
        ],
        grace_seconds: GRACE_SECONDS,
    };
    Ok(pod.manifest())
}

/// What etcd said before it was started again: only this pod's part of the node's logs.
fn own_logs() -> VolumeMount {
    let own = format!("{NS_ETCD}_$(POD_NAME)_$(POD_UID)");
    VolumeMount { sub_path_expr: Some(own), ..mount("logs", OWN_LOGS, true) }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_master_never_founds_a_cluster() {
        let ip = IpAddr::from([192, 168, 100, 11]);
        let members =
            [("etcd-bootstrap".to_string(), IpAddr::from([192, 168, 100, 10])), ("master-0".to_string(), ip)];
        let config = config("master-0", ip, &members, false, Place::Master);
        assert_eq!(config["initial-cluster-state"], "existing");
        assert_eq!(
            config["initial-cluster"],
            "etcd-bootstrap=https://192.168.100.10:2380,master-0=https://192.168.100.11:2380"
        );
        assert_eq!(config["listen-peer-urls"], "https://0.0.0.0:2380");
        let serving = &config["client-transport-security"]["cert-file"];
        assert_eq!(serving, "/etc/kubernetes/secrets/secrets/etcd-all-certs/etcd-serving-master-0.crt");
    }

    #[test]
    fn urls_of_ipv6_have_brackets() {
        let ip = IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 0xb]);
        let config = config("master-0", ip, &[("master-0".to_string(), ip)], false, Place::Master);
        assert_eq!(config["initial-cluster"], "master-0=https://[fd00::b]:2380");
        assert_eq!(config["advertise-client-urls"], "https://[fd00::b]:2379");
        assert_eq!(config["listen-client-urls"], "https://[::]:2379");
    }

    #[test]
    fn pods_have_upstream_names() {
        let release = crate::testing::release();
        let pod = json!(bootstrap_pod(&release).unwrap());
        assert_eq!(pod["metadata"]["name"], "etcd-bootstrap-member");
        assert_eq!(
            pod["spec"]["containers"][0]["command"],
            json!([
                "/usr/local/bin/seedling",
                "etcd-start",
                "--",
                "etcd",
                "--config-file=/etc/kubernetes/secrets/etcd.yaml"
            ])
        );
        let pod = json!(master_pod(&release, &[]).unwrap());
        assert_eq!(pod["metadata"]["name"], "etcd");
        assert_eq!(pod["metadata"]["labels"]["revision"], "${revision}");
    }
}
