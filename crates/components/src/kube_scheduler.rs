//! kube-scheduler, for the bootstrap node and for the masters.

use crate::pod::{Controller, FileRow, Place, file_flags, flags};
use k8s_openapi::api::core::v1::Pod;
use seedling_types::names::NS_SCHEDULER;
use seedling_types::release::MissingComponent;
use seedling_types::{ReleaseInfo, ports};

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

const CONTROLLER: Controller = Controller {
    name: "kube-scheduler",
    pod: "openshift-kube-scheduler",
    namespace: NS_SCHEDULER,
    pod_configmap: POD_CONFIGMAP,
    port: ports::KUBE_SCHEDULER,
    cpu: "15m",
    memory: "50Mi",
};

pub fn pod(release: &ReleaseInfo, place: Place) -> Result<Pod, MissingComponent> {
    Ok(CONTROLLER.pod(release.image(CONTROLLER.name)?, args(place), place))
}
