//! Stage 8: the temporary controllers; they sign kubelets' certificates and give nodes their pod networks.

use super::{namespace, secret, signer_secrets, written};
use crate::{Context, Outcome, Result, settings};
use seedling_components::{Place, kube_controller_manager};
use seedling_steps::Stage;
use seedling_types::names::{NS_CONFIG, NS_KCM, NS_KCM_OPERATOR};

pub(crate) const STAGE: Stage = Stage {
    name: "kube-controller-manager-bootstrap",
    done: Some("kube-controller-manager-bootstrap"),
    what: "Renders the temporary kube-controller-manager, and hands the signers of kubelets' certificates and tokens to its operator.",
    why: "somebody must sign certificates, make service accounts and turn deployments into pods",
    reads: &[
        "tls/csr-signer.*",
        "tls/kubelet-signer.*",
        "tls/service-account.key",
        "manifests/cluster-config.yaml",
        "manifests/* (ConfigMap openshift-config/certificates)",
        "release.json",
    ],
    writes: &[
        "bootstrap-manifests/kube-controller-manager-pod.yaml",
        "manifests/00_openshift-kube-controller-manager*",
        "manifests/openshift-kube-controller-manager-*",
    ],
    check: "the pod's manifest and the signers' Secrets are written",
    fails: &[
        "masters' certificate requests stay Approved and without a certificate: this pod does not run; crictl logs of it",
    ],
    upstream: "podman run … cluster-kube-controller-manager-operator render --asset-input-dir=/assets/tls --asset-output-dir=/assets/kube-controller-manager-bootstrap …",
    see: &["component.kube-controller-manager", "cert.csr-signer", "port.10257", "seed.003.9"],
};

pub(crate) async fn run(c: &Context) -> Result<Outcome> {
    println!("Rendering kube-controller-manager manifests...");
    for name in [NS_KCM_OPERATOR, NS_KCM] {
        c.manifest(&format!("00_{name}-ns.yaml"), &namespace(name))?;
    }
    signer_secrets(c, NS_KCM_OPERATOR, NS_KCM)?;
    let key = c.read("tls/service-account.key")?;
    let object =
        secret(NS_CONFIG, "initial-service-account-private-key", "Opaque", &[("service-account.key", &key)]);
    c.manifest("openshift-kube-controller-manager-initial-sa-key.yaml", &object)?;
    let pod = kube_controller_manager::pod(
        &c.config,
        &c.release,
        Place::Bootstrap,
        settings::certificate_policy(&c.dir("")).kubelet,
    )?;
    c.bootstrap_pod("kube-controller-manager-pod.yaml", &pod)?;
    Ok(Outcome::Done)
}

pub(crate) async fn check(c: &Context) -> Result<()> {
    written(c, &STAGE)
}
