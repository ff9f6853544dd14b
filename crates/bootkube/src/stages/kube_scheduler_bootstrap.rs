//! Stage 9: the temporary scheduler, which places the first operators on the masters.

use super::{namespace, written};
use crate::{Context, Outcome, Result};
use seedling_components::{Place, kube_scheduler};
use seedling_steps::Stage;
use seedling_types::names::{NS_SCHEDULER, NS_SCHEDULER_OPERATOR};

pub(crate) const STAGE: Stage = Stage {
    name: "kube-scheduler-bootstrap",
    done: Some("kube-scheduler-bootstrap"),
    what: "Renders the temporary kube-scheduler.",
    why: "operators are pods, and pods need a node",
    reads: &["release.json"],
    writes: &["bootstrap-manifests/kube-scheduler-pod.yaml", "manifests/00_openshift-kube-scheduler*"],
    check: "the pod's manifest and the namespaces are written",
    fails: &["pods stay Pending without an event: no scheduler leads; crictl logs of kube-scheduler"],
    upstream: "podman run … cluster-kube-scheduler-operator render --asset-input-dir=/assets/tls --asset-output-dir=/assets/kube-scheduler-bootstrap …",
    see: &["component.kube-scheduler", "port.10259", "seed.003.10"],
};

pub(crate) async fn run(c: &Context) -> Result<Outcome> {
    println!("Rendering kube-scheduler manifests...");
    for name in [NS_SCHEDULER_OPERATOR, NS_SCHEDULER] {
        c.manifest(&format!("00_{name}-ns.yaml"), &namespace(name))?;
    }
    c.bootstrap_pod("kube-scheduler-pod.yaml", &kube_scheduler::pod(&c.release, Place::Bootstrap)?)?;
    Ok(Outcome::Done)
}

pub(crate) async fn check(c: &Context) -> Result<()> {
    written(c, &STAGE)
}
