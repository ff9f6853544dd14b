//! Stage 7: the temporary API server, and the signers from which the masters' certificates will be made.

use super::{config_map, namespace, parsed, secret, signer_secrets, written};
use crate::error::{ensure, in_file};
use crate::{Context, Outcome, Result};
use base64::{Engine, engine::general_purpose::STANDARD};
use seedling_components::kube_apiserver::encryption::{self, Keys};
use seedling_components::{Place, kube_apiserver, pod::to_yaml};
use seedling_pki::random_key;
use seedling_pki::trust;
use seedling_steps::Stage;
use seedling_types::names::{NS_CONFIG_MANAGED, NS_KAS, NS_KAS_OPERATOR};
use serde_json::{Value, json};
use time::OffsetDateTime;

pub(crate) const STAGE: Stage = Stage {
    name: "kube-apiserver-bootstrap",
    done: Some("kube-apiserver-bootstrap"),
    what: "Renders the temporary API server, its encryption keys, and the signers from which the masters' certificates will be made.",
    why: "masters need an API to join before they can run one",
    reads: &[
        "tls/*-signer.*",
        "tls/service-account.pub",
        "manifests/cluster-config.yaml",
        "release.json",
        "hosts.yaml",
    ],
    writes: &[
        "bootstrap-manifests/kube-apiserver-pod.yaml",
        "tls/bound-service-account-signing-key.*",
        "tls/kube-apiserver-*.yaml",
        "tls/kube-apiserver-encryption-keys.json",
        "manifests/00_openshift-kube-apiserver*",
        "manifests/openshift-kube-apiserver-*",
    ],
    check: "its files are written, the Secrets of six signers among them",
    fails: &["a key that cannot be read is not made anew: what was encrypted with it must stay readable"],
    upstream: "podman run … cluster-kube-apiserver-operator render --asset-input-dir=/assets/tls --asset-output-dir=/assets/kube-apiserver-bootstrap --manifest-etcd-server-urls=https://localhost:2379 …",
    see: &[
        "component.kube-apiserver",
        "port.6443",
        "cert.kube-apiserver-localhost-server",
        "seed.003.3",
        "seed.003.8",
    ],
};

pub(crate) async fn run(c: &Context) -> Result<Outcome> {
    println!("Rendering kube-apiserver manifests...");
    let bound = bound_key(c)?;
    for (name, order) in [(NS_KAS_OPERATOR, "00"), (NS_KAS, "00")] {
        c.manifest(&format!("{order}_{name}-ns.yaml"), &namespace(name))?;
    }
    signer_secrets(c, NS_KAS_OPERATOR, NS_KAS)?;
    let keys = [("service-account.key", bound.0.as_str()), ("service-account.pub", bound.1.as_str())];
    let object = secret(NS_KAS_OPERATOR, "next-bound-service-account-signing-key", "Opaque", &keys);
    c.manifest("openshift-kube-apiserver-bound-key.yaml", &object)?;
    let public = c.read("tls/service-account.pub")?;
    let object =
        config_map(NS_CONFIG_MANAGED, "sa-token-signing-certs", &[("service-account-001.pub", &public)]);
    c.manifest("openshift-kube-apiserver-sa-token-signing-certs.yaml", &object)?;

    c.manifest("openshift-kube-apiserver-kubelet-access.yaml", &kubelet_access())?;

    let keys = encryption_keys(c)?;
    c.write(&c.dir("tls").join(encryption::ON_BOOTSTRAP), to_yaml(&keys.config()), 0o600)?;
    let text = serde_json::to_string(&keys)?;
    let object = secret(NS_KAS_OPERATOR, encryption::KEYS_SECRET, "Opaque", &[(encryption::KEYS, &text)]);
    c.manifest("openshift-kube-apiserver-encryption-keys.yaml", &object)?;
    for config in kube_apiserver::CONFIGS {
        c.write(&c.dir("tls").join(config.file), to_yaml(&(config.contents)()), 0o600)?;
    }
    let pod = kube_apiserver::pod(&c.config, &c.release, Place::Bootstrap, &c.address.to_string(), &[])?;
    c.bootstrap_pod("kube-apiserver-pod.yaml", &pod)?;
    Ok(Outcome::Done)
}

pub(crate) async fn check(c: &Context) -> Result<()> {
    written(c, &STAGE)?;
    for signer in trust::signers().filter(|signer| signer.owned.namespace == NS_KAS_OPERATOR) {
        let name = signer.owned.secret;
        let object = parsed(&c.dir(&format!("manifests/openshift-kube-apiserver-{name}.yaml")))?;
        ensure!(object["kind"] == "Secret", "the manifest of {name} is a {}", object["kind"]);
    }
    Ok(())
}

/// With which Secrets are encrypted in etcd; made once: what was written with it must stay readable.
fn encryption_keys(c: &Context) -> Result<Keys> {
    const NAME: &str = "tls/kube-apiserver-encryption-keys.json";
    if let Some(text) = c.read_if_there(NAME)? {
        return serde_json::from_str(&text).map_err(in_file(NAME));
    }
    let keys = Keys::first(STANDARD.encode(random_key()), OffsetDateTime::now_utc().unix_timestamp());
    c.write(&c.dir(NAME), serde_json::to_string(&keys)?, 0o600)?;
    Ok(keys)
}

/// `kubectl logs`, `exec` and `port-forward` go through the API server to the kubelet.
fn kubelet_access() -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "system:openshift:kube-apiserver:kubelet-access"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:kubelet-api-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:kube-apiserver"}],
    })
}

/// The key that signs tokens of pods: the user's if one came with the assets, else made here, once.
fn bound_key(c: &Context) -> Result<(String, String)> {
    const NAME: &str = "tls/bound-service-account-signing-key";
    let [key_file, public_file] = ["key", "pub"].map(|end| format!("{NAME}.{end}"));
    if let (Some(key), Some(public)) = (c.read_if_there(&key_file)?, c.read_if_there(&public_file)?) {
        return Ok((key, public));
    }
    let pair = seedling_pki::rsa_keypair()?;
    c.write(&c.dir(&key_file), &pair.key, 0o600)?;
    c.write(&c.dir(&public_file), &pair.public, 0o600)?;
    Ok((pair.key, pair.public))
}
