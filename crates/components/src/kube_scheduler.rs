//! kube-scheduler, for the bootstrap node and for the masters.

use crate::pod::{FileRow, Place, RESOURCES, StaticPod, file_flags, flags, mount, probe, resources_volume};
use seedling_types::names::NS_SCHEDULER;
use seedling_types::release::MissingComponent;
use seedling_types::{ReleaseInfo, ports};
use serde_json::{Value, json};

pub const POD_CONFIGMAP: &str = "kube-scheduler-pod";

const FILES: &[FileRow] = &[
    ("kubeconfig", "kubeconfig", "secrets/scheduler-kubeconfig/kubeconfig"),
    ("authentication-kubeconfig", "kubeconfig", "secrets/scheduler-kubeconfig/kubeconfig"),
    ("authorization-kubeconfig", "kubeconfig", "secrets/scheduler-kubeconfig/kubeconfig"),
];

pub fn args(place: Place) -> Vec<String> {
    let mut args = file_flags(FILES, place);
    args.extend(flags(&[
        ("bind-address", "127.0.0.1".into()),
        ("leader-elect", "true".into()),
        ("leader-elect-retry-period", "1s".into()),
        ("profiling", "false".into()),
        ("secure-port", ports::KUBE_SCHEDULER.to_string()),
    ]));
    args
}

pub fn pod(release: &ReleaseInfo, place: Place) -> Result<Value, MissingComponent> {
    let mut container = json!({
        "name": "kube-scheduler",
        "image": release.image("kube-scheduler")?,
        "imagePullPolicy": "IfNotPresent",
        "command": ["kube-scheduler"],
        "args": args(place),
        "resources": {"requests": {"cpu": "15m", "memory": "50Mi"}},
        "volumeMounts": [mount("resources", RESOURCES, true)],
    });
    if place == Place::Master {
        container["readinessProbe"] = probe("HTTPS", "127.0.0.1", ports::KUBE_SCHEDULER, "/healthz", 1, 3);
        container["livenessProbe"] = probe("HTTPS", "127.0.0.1", ports::KUBE_SCHEDULER, "/healthz", 10, 6);
    }
    let pod = StaticPod {
        name: if place == Place::Bootstrap { "bootstrap-kube-scheduler" } else { "openshift-kube-scheduler" }
            .into(),
        namespace: if place == Place::Bootstrap { "kube-system" } else { NS_SCHEDULER },
        app: "openshift-kube-scheduler",
        place,
        containers: vec![container],
        volumes: vec![resources_volume(place, POD_CONFIGMAP)],
        grace_seconds: 30,
    };
    Ok(pod.manifest())
}

/// (ConfigMaps, Secrets) of a revision.
pub fn master_resources() -> (Vec<&'static str>, Vec<&'static str>) {
    (vec![], vec!["scheduler-kubeconfig"])
}
