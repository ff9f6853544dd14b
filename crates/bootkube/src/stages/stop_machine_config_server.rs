//! Stage 19: the masters serve machine configs now.

use crate::error::ensure;
use crate::{Context, Outcome, Result};
use seedling_steps::Stage;
use seedling_types::paths;

pub(crate) const STAGE: Stage = Stage {
    name: "stop-machine-config-server",
    done: Some("stop-machine-config-server"),
    what: "Removes the static pod of this node's machine-config server.",
    why: "two servers with different ideas of a pool would hand out different nodes",
    reads: &[],
    writes: &["/etc/kubernetes/manifests/machineconfigoperator-bootstrap-pod.yaml (removed)"],
    check: "the manifest is gone",
    fails: &["machines that ask later are answered by the masters, through the load balancer"],
    upstream: "rm --force /etc/kubernetes/manifests/machineconfigoperator-bootstrap-pod.yaml",
    see: &["component.machine-config-server", "port.22623", "stage.mco-bootstrap"],
};

const POD: &str = "machineconfigoperator-bootstrap-pod.yaml";

pub(crate) async fn run(c: &Context) -> Result<Outcome> {
    c.remove_pod(POD).map(|()| Outcome::Done)
}

pub(crate) async fn check(c: &Context) -> Result<()> {
    let manifest = c.path(paths::STATIC_PODS).join(POD);
    ensure!(!manifest.exists(), "{} is still there", manifest.display());
    Ok(())
}
