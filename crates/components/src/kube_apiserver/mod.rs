//! kube-apiserver: one table of files and one of flags, for the bootstrap node and for the masters.

mod doors;
pub mod encryption;

use crate::ClusterConfig;
use crate::cluster_config::joined;
use crate::pod::{
    FileRow, Place, RESOURCES, StaticPod, container, file_flags, flags, host_path, journal_mount,
    journal_volume, mount, probe, ready_when, requests, resources_volume, seedling_mount, seedling_volume,
    words,
};
use k8s_openapi::api::core::v1::{Container, ContainerPort, Pod};
use seedling_types::api::SHUTDOWN_DELAY;
use seedling_types::names::NS_KAS;
use seedling_types::release::MissingComponent;
use seedling_types::{ReleaseInfo, paths, ports};
use serde_json::Value;
use std::net::{IpAddr, SocketAddr};

pub const POD_CONFIGMAP: &str = "kube-apiserver-pod";

/// A config that no person writes.
pub struct Config {
    /// Its name on the bootstrap node.
    pub file: &'static str,
    /// ConfigMap of a revision, and the key in it.
    pub map: &'static str,
    pub key: &'static str,
    pub contents: fn() -> Value,
}

#[rustfmt::skip] // A row is a line.
pub const CONFIGS: [Config; 2] = [
    Config { file: AUDIT_POLICY, map: "kube-apiserver-audit-policies", key: "policy.yaml", contents: doors::audit_policy },
    Config { file: AUTHENTICATION, map: "kube-apiserver-authentication", key: "authentication.yaml", contents: doors::authentication },
];
const AUDIT_POLICY: &str = "kube-apiserver-audit-policy.yaml";
const AUTHENTICATION: &str = "kube-apiserver-authentication.yaml";

#[rustfmt::skip] // A row is a line.
const FILES: &[FileRow] = &[
    ("audit-policy-file", AUDIT_POLICY, "configmaps/kube-apiserver-audit-policies/policy.yaml"),
    ("authentication-config", AUTHENTICATION, "configmaps/kube-apiserver-authentication/authentication.yaml"),
    ("client-ca-file", "client-ca-bundle.crt", "configmaps/client-ca/ca-bundle.crt"),
    ("encryption-provider-config", encryption::ON_BOOTSTRAP, "secrets/encryption-config/encryption-config.yaml"),
    ("etcd-cafile", "etcd-ca-bundle.crt", "configmaps/etcd-serving-ca/ca-bundle.crt"),
    ("etcd-certfile", "etcd-client.crt", "secrets/etcd-client/tls.crt"),
    ("etcd-keyfile", "etcd-client.key", "secrets/etcd-client/tls.key"),
    ("kubelet-certificate-authority", "kubelet-serving-ca-all.crt", "configmaps/kubelet-serving-ca/ca-bundle.crt"),
    ("kubelet-client-certificate", "kube-apiserver-to-kubelet-client.crt", "secrets/kubelet-client/tls.crt"),
    ("kubelet-client-key", "kube-apiserver-to-kubelet-client.key", "secrets/kubelet-client/tls.key"),
    ("proxy-client-cert-file", "aggregator-client.crt", "secrets/aggregator-client/tls.crt"),
    ("proxy-client-key-file", "aggregator-client.key", "secrets/aggregator-client/tls.key"),
    ("requestheader-client-ca-file", "aggregator-ca-bundle.crt", "configmaps/aggregator-client-ca/ca-bundle.crt"),
    ("service-account-key-file", "service-account.pub", "configmaps/sa-token-signing-certs/service-account-001.pub"),
    ("service-account-key-file", "bound-service-account-signing-key.pub", "secrets/bound-service-account-signing-key/service-account.pub"),
    ("service-account-signing-key-file", "bound-service-account-signing-key.key", "secrets/bound-service-account-signing-key/service-account.key"),
    ("tls-cert-file", "kube-apiserver-service-network-server.crt", "secrets/service-network-serving-certkey/tls.crt"),
    ("tls-private-key-file", "kube-apiserver-service-network-server.key", "secrets/service-network-serving-certkey/tls.key"),
];

/// Chosen by the name a client asks for.
const SNI: &[(&str, &str)] = &[
    ("kube-apiserver-localhost-server", "localhost-serving-cert-certkey"),
    ("kube-apiserver-lb-server", "external-loadbalancer-serving-certkey"),
    ("kube-apiserver-internal-lb-server", "internal-loadbalancer-serving-certkey"),
];

/// `members`: addresses of etcd members beside the one on this node.
pub fn args(config: &ClusterConfig, place: Place, advertise: &str, members: &[IpAddr]) -> Vec<String> {
    let others = members.iter().map(|ip| etcd_url(*ip));
    let own = format!("https://localhost:{}", ports::ETCD_CLIENT);
    let etcd: Vec<_> = std::iter::once(own).chain(others).collect();
    let mut args = file_flags(FILES, place);
    args.extend(SNI.iter().map(|(bootstrap, master)| match place {
        Place::Bootstrap => {
            format!("--tls-sni-cert-key={RESOURCES}/{bootstrap}.crt,{RESOURCES}/{bootstrap}.key")
        }
        Place::Master => {
            format!(
                "--tls-sni-cert-key={RESOURCES}/secrets/{master}/tls.crt,{RESOURCES}/secrets/{master}/tls.key"
            )
        }
    }));
    // By default it listens for IPv4 only.
    if config.any_address().is_ipv6() {
        args.extend(flags(&[("bind-address", config.any_address().to_string())]));
    }
    args.extend(flags(&[
        ("advertise-address", advertise.into()),
        ("allow-privileged", "true".into()),
        ("audit-log-maxbackup", "5".into()),
        ("audit-log-maxsize", "100".into()), // MB
        ("audit-log-path", format!("{}/audit.log", paths::API_LOGS)),
        ("authorization-mode", "Node,RBAC".into()),
        ("enable-admission-plugins", "NodeRestriction".into()),
        ("etcd-servers", etcd.join(",")),
        ("kubelet-preferred-address-types", "InternalIP,Hostname".into()),
        ("profiling", "false".into()),
        (
            "requestheader-allowed-names",
            "kube-apiserver-proxy,system:kube-apiserver-proxy,system:openshift-aggregator".into(),
        ),
        ("requestheader-extra-headers-prefix", "X-Remote-Extra-".into()),
        ("requestheader-group-headers", "X-Remote-Group".into()),
        ("requestheader-username-headers", "X-Remote-User".into()),
        ("secure-port", ports::API.to_string()),
        ("service-account-issuer", "https://kubernetes.default.svc".into()),
        // Without it the issuer's document names the advertised address, which no certificate carries.
        ("service-account-jwks-uri", format!("{}/openid/v1/jwks", config.api_internal_url())),
        ("service-cluster-ip-range", joined(&config.service_networks)),
        ("shutdown-delay-duration", format!("{}s", SHUTDOWN_DELAY.as_secs())),
        // With it, an open connection gets one 429 at the end of the delay, an error for clients that do not retry. Without it,
        // idle connections are closed, requests end, and the load balancer has long sent new connections elsewhere.
        ("shutdown-send-retry-after", "false".into()),
        ("shutdown-watch-termination-grace-period", "1s".into()),
        ("tls-min-version", "VersionTLS12".into()),
    ]));
    args
}

fn etcd_url(address: IpAddr) -> String {
    format!("https://{}", SocketAddr::new(address, ports::ETCD_CLIENT))
}

/// Whether this pod asks the etcd members at all of these addresses.
pub fn knows_members(pod: &Value, addresses: &[IpAddr]) -> bool {
    let args = pod["spec"]["containers"][0]["args"].as_array().into_iter().flatten();
    let servers = args.filter_map(|arg| arg.as_str()?.strip_prefix("--etcd-servers=")).next_back();
    let known: Vec<_> = servers.unwrap_or_default().split(',').collect();
    addresses.iter().all(|address| known.contains(&etcd_url(*address).as_str()))
}

pub fn pod(
    config: &ClusterConfig,
    release: &ReleaseInfo,
    place: Place,
    advertise: &str,
    members: &[IpAddr],
) -> Result<Pod, MissingComponent> {
    let mut mounts = vec![mount("resources", RESOURCES, true), mount("logs", paths::API_LOGS, false)];
    let mut volumes =
        vec![resources_volume(place, POD_CONFIGMAP), host_path("logs", paths::API_LOGS, "DirectoryOrCreate")];
    let mut command = vec!["kube-apiserver"];
    let resources = format!("--resources={RESOURCES}");
    if place == Place::Master {
        // Beside a learner the server would exit after 20 s and fall into crash back-off.
        command.splice(..0, [paths::NODE_SEEDLING, "etcd-wait", &resources, "--"]);
        mounts.extend([seedling_mount(), journal_mount()]);
        volumes.extend([seedling_volume(), journal_volume()]);
    }
    let port = ContainerPort {
        container_port: ports::API.into(),
        host_port: Some(ports::API.into()),
        ..ContainerPort::default()
    };
    let mut container = Container {
        args: Some(args(config, place, advertise, members)),
        ports: Some(vec![port]),
        resources: requests("200m", "256Mi"),
        ..container("kube-apiserver", release.image("kube-apiserver")?, words(&command), mounts)
    };
    if place == Place::Master {
        ready_when(&mut container, "HTTPS", ports::API, "/readyz", 2);
        container.liveness_probe = probe("HTTPS", "127.0.0.1", ports::API, "/livez?exclude=etcd", 10, 3);
    }
    let pod = StaticPod {
        name: if place == Place::Bootstrap { "bootstrap-kube-apiserver" } else { "kube-apiserver" }.into(),
        namespace: NS_KAS,
        app: "openshift-kube-apiserver",
        place,
        containers: vec![container],
        volumes,
        grace_seconds: 60,
    };
    Ok(pod.manifest())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn configs_are_where_flags_look_for_them() {
        for config in CONFIGS {
            let path = format!("configmaps/{}/{}", config.map, config.key);
            assert!(FILES.iter().any(|(_, b, m)| *b == config.file && *m == path), "{path}");
            assert!((config.contents)()["apiVersion"].is_string());
        }
        let keys = format!("secrets/{}/{}", encryption::SECRET, encryption::SECRET_KEY);
        assert!(FILES.iter().any(|(_, _, m)| *m == keys), "{keys}");
    }

    #[test]
    fn the_issuers_keys_are_at_an_address_with_a_certificate() {
        let config = crate::testing::cluster_config();
        for place in [Place::Bootstrap, Place::Master] {
            let args = args(&config, place, "192.168.100.10", &[]);
            let uri = "--service-account-jwks-uri=https://api-int.ocp4.alchemy.com:6443/openid/v1/jwks";
            assert!(args.iter().any(|a| a == uri), "{args:?}");
        }
    }

    #[test]
    fn a_pod_knows_the_members_it_was_made_with() {
        let [a, b, c] = [[192, 168, 100, 1], [192, 168, 100, 2], [192, 168, 100, 11]].map(IpAddr::from);
        let pod = |members: &[IpAddr]| json!({"spec": {"containers": [{"args": args(&crate::testing::cluster_config(), Place::Master, "x", members)}]}});
        assert!(knows_members(&pod(&[a, b]), &[a, b]) && knows_members(&pod(&[b]), &[]));
        assert!(!knows_members(&pod(&[c]), &[a]), "192.168.100.1 is only a part of 192.168.100.11");
        assert!(!knows_members(&json!({}), &[a]));
    }

    #[test]
    fn both_places_have_the_same_flags() {
        let config = crate::testing::cluster_config();
        let names = |place| {
            let args = args(&config, place, "192.168.100.10", &[]);
            args.iter().map(|a| a.split('=').next().unwrap_or_default().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names(Place::Bootstrap), names(Place::Master));
    }
}
