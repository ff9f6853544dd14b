//! kube-controller-manager, for the bootstrap node and for the masters.

use crate::ClusterConfig;
use crate::cluster_config::joined;
use crate::pod::{Controller, FileRow, Place, file_flags, flags};
use ipnet::IpNet;
use k8s_openapi::api::core::v1::Pod;
use seedling_types::names::NS_KCM;
use seedling_types::release::MissingComponent;
use seedling_types::{ReleaseInfo, ports};
use time::Duration;

pub const POD_CONFIGMAP: &str = "kube-controller-manager-pod";

#[rustfmt::skip] // A row is a line.
const FILES: &[FileRow] = &[
    ("kubeconfig", "kubeconfig", "secrets/controller-manager-kubeconfig/kubeconfig"),
    ("authentication-kubeconfig", "kubeconfig", "secrets/controller-manager-kubeconfig/kubeconfig"),
    ("authorization-kubeconfig", "kubeconfig", "secrets/controller-manager-kubeconfig/kubeconfig"),
    ("cluster-signing-cert-file", "csr-signer.crt", "secrets/csr-signer/tls.crt"),
    ("cluster-signing-key-file", "csr-signer.key", "secrets/csr-signer/tls.key"),
    ("root-ca-file", "kube-apiserver-complete-server-ca-bundle.crt", "configmaps/serviceaccount-ca/ca-bundle.crt"),
    ("service-account-private-key-file", "service-account.key", "secrets/service-account-private-key/service-account.key"),
];

/// `kubelet`: how long kubelets' certificates live; they renew them themselves after about four fifths of it.
pub fn args(config: &ClusterConfig, place: Place, kubelet: Duration) -> Vec<String> {
    let mut args = file_flags(FILES, place);
    let masks: Vec<_> = match config.pod_networks.as_slice() {
        [one] => vec![("node-cidr-mask-size", one.host_prefix.to_string())],
        both => {
            both.iter().map(|network| (mask_flag(network.cidr), network.host_prefix.to_string())).collect()
        }
    };
    args.extend(flags(&[
        ("allocate-node-cidrs", "true".into()),
        ("bind-address", "127.0.0.1".into()),
        ("cluster-cidr", joined(&config.pod_cidrs())),
        ("cluster-signing-duration", format!("{}s", kubelet.whole_seconds())),
        // Forty controllers each ask for their service account's token before any of them starts: at the default of 20 a second
        // that takes four seconds, in which no certificate is signed.
        ("kube-api-burst", "300".into()),
        ("kube-api-qps", "150".into()),
        ("leader-elect", "true".into()),
        ("leader-elect-retry-period", "1s".into()),
    ]));
    args.extend(flags(&masks));
    args.extend(flags(&[
        ("profiling", "false".into()),
        ("secure-port", ports::KUBE_CONTROLLER_MANAGER.to_string()),
        ("service-cluster-ip-range", joined(&config.service_networks)),
        ("use-service-account-credentials", "true".into()),
    ]));
    args
}

fn mask_flag(network: IpNet) -> &'static str {
    if network.addr().is_ipv4() { "node-cidr-mask-size-ipv4" } else { "node-cidr-mask-size-ipv6" }
}

const CONTROLLER: Controller = Controller {
    name: "kube-controller-manager",
    pod: "kube-controller-manager",
    namespace: NS_KCM,
    pod_configmap: POD_CONFIGMAP,
    port: ports::KUBE_CONTROLLER_MANAGER,
    cpu: "60m",
    memory: "80Mi",
};

pub fn pod(
    config: &ClusterConfig,
    release: &ReleaseInfo,
    place: Place,
    kubelet: Duration,
) -> Result<Pod, MissingComponent> {
    Ok(CONTROLLER.pod(release.image(CONTROLLER.name)?, args(config, place, kubelet), place))
}
