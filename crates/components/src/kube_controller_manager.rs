//! kube-controller-manager, for the bootstrap node and for the masters.

use crate::ClusterConfig;
use crate::pod::{FileRow, Place, RESOURCES, StaticPod, file_flags, flags, mount, probe, resources_volume};
use seedling_types::names::NS_KCM;
use seedling_types::release::MissingComponent;
use seedling_types::{ReleaseInfo, ports};
use serde_json::{Value, json};

pub const POD_CONFIGMAP: &str = "kube-controller-manager-pod";

const FILES: &[FileRow] = &[
    ("kubeconfig", "kubeconfig", "secrets/controller-manager-kubeconfig/kubeconfig"),
    ("authentication-kubeconfig", "kubeconfig", "secrets/controller-manager-kubeconfig/kubeconfig"),
    ("authorization-kubeconfig", "kubeconfig", "secrets/controller-manager-kubeconfig/kubeconfig"),
    ("cluster-signing-cert-file", "csr-signer.crt", "secrets/csr-signer/tls.crt"),
    ("cluster-signing-key-file", "csr-signer.key", "secrets/csr-signer/tls.key"),
    (
        "root-ca-file",
        "kube-apiserver-complete-server-ca-bundle.crt",
        "configmaps/serviceaccount-ca/ca-bundle.crt",
    ),
    (
        "service-account-private-key-file",
        "service-account.key",
        "secrets/service-account-private-key/service-account.key",
    ),
];

/// Kubelets' certificates: renewed by the kubelets themselves at about four fifths of this.
pub const SIGNING_DURATION: &str = "8760h";

pub fn args(config: &ClusterConfig, place: Place) -> Vec<String> {
    let mut args = file_flags(FILES, place);
    args.extend(flags(&[
        ("allocate-node-cidrs", "true".into()),
        ("bind-address", "127.0.0.1".into()),
        ("cluster-cidr", config.cluster_network.to_string()),
        ("cluster-signing-duration", SIGNING_DURATION.into()),
        // Forty controllers each ask for their service account's token before any of them starts: at the default of 20 a second
        // that takes four seconds, in which no certificate is signed.
        ("kube-api-burst", "300".into()),
        ("kube-api-qps", "150".into()),
        ("leader-elect", "true".into()),
        ("leader-elect-retry-period", "1s".into()),
        ("node-cidr-mask-size", config.host_prefix.to_string()),
        ("profiling", "false".into()),
        ("secure-port", ports::KUBE_CONTROLLER_MANAGER.to_string()),
        ("service-cluster-ip-range", config.service_network.to_string()),
        ("use-service-account-credentials", "true".into()),
    ]));
    args
}

pub fn pod(config: &ClusterConfig, release: &ReleaseInfo, place: Place) -> Result<Value, MissingComponent> {
    let mut container = json!({
        "name": "kube-controller-manager",
        "image": release.image("kube-controller-manager")?,
        "imagePullPolicy": "IfNotPresent",
        "command": ["kube-controller-manager"],
        "args": args(config, place),
        "resources": {"requests": {"cpu": "60m", "memory": "80Mi"}},
        "volumeMounts": [mount("resources", RESOURCES, true)],
    });
    if place == Place::Master {
        let port = ports::KUBE_CONTROLLER_MANAGER;
        container["readinessProbe"] = probe("HTTPS", "127.0.0.1", port, "/healthz", 1, 3);
        container["livenessProbe"] = probe("HTTPS", "127.0.0.1", port, "/healthz", 10, 6);
    }
    let pod = StaticPod {
        name: if place == Place::Bootstrap {
            "bootstrap-kube-controller-manager"
        } else {
            "kube-controller-manager"
        }
        .into(),
        namespace: if place == Place::Bootstrap { "kube-system" } else { NS_KCM },
        app: "kube-controller-manager",
        place,
        containers: vec![container],
        volumes: vec![resources_volume(place, POD_CONFIGMAP)],
        grace_seconds: 30,
    };
    Ok(pod.manifest())
}

/// (ConfigMaps, Secrets) of a revision.
pub fn master_resources() -> (Vec<&'static str>, Vec<&'static str>) {
    (
        vec!["serviceaccount-ca"],
        vec!["controller-manager-kubeconfig", "csr-signer", "service-account-private-key"],
    )
}
