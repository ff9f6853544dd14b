//! Stage 4: namespaces for configuration, the inventory, and the trust that outlives the installer's 24-hour signers.

use super::{config_map, namespace, written};
use crate::error::ensure;
use crate::{Context, Outcome, Result};
use seedling_pki::trust::{self, CLIENT_CA, CSR_SIGNER, KUBELET_SERVING_CA, TO_KUBELET_SIGNER};
use seedling_pki::{CertKey, KeyAlgorithm, bundle, holds, not_after};
use seedling_steps::Stage;
use seedling_types::names::{INVENTORY_CONFIGMAP, NS_CONFIG, NS_CONFIG_MANAGED};
use time::{Duration, OffsetDateTime};

pub(crate) const STAGE: Stage = Stage {
    name: "config-bootstrap",
    done: Some("config-bootstrap"),
    what: "Makes the signer of kubelets' certificates, the bundles that trust it, and the cluster's configuration objects.",
    why: "kubelets' certificates live no longer than their signer, so the signer must outlive the first day",
    reads: &["hosts.yaml", "release.json", "tls/*-ca-bundle.crt", "tls/kube-apiserver-to-kubelet-signer.*"],
    writes: &[
        "tls/csr-signer.*",
        "tls/kubelet-client-signer.crt",
        "tls/client-ca-bundle.crt",
        "tls/kubelet-serving-ca-all.crt",
        "manifests/config-*.yaml",
        "manifests/00_config-namespace-*",
    ],
    check: "its files are written, tls/csr-signer.crt is valid for four more years and is in both bundles",
    fails: &[
        "an unreadable tls/csr-signer.key is not replaced: put back what was there, or kubelets would trust nobody",
    ],
    upstream: "podman run … cluster-config-operator render --config-output-file=/assets/config-bootstrap/config --asset-input-dir=/assets/tls --asset-output-dir=/assets/config-bootstrap",
    see: &["cert.csr-signer", "cert.client-ca-bundle", "component.kubelet", "seed.003.5"],
};

pub(crate) async fn run(c: &Context) -> Result<Outcome> {
    let signer = csr_signer(c)?;
    to_kubelet_signer(c)?;
    let client_ca = c.read("tls/kube-apiserver-complete-client-ca-bundle.crt")? + &signer.cert;
    let kubelet_ca = bundle(&[&c.read("tls/kubelet-serving-ca-bundle.crt")?, &signer.cert]);
    for (row, contents) in [(&CLIENT_CA, client_ca), (&KUBELET_SERVING_CA, kubelet_ca)] {
        c.write(&c.dir(&format!("tls/{}.crt", row.file)), contents, 0o600)?;
    }

    for name in [NS_CONFIG, NS_CONFIG_MANAGED] {
        c.manifest(&format!("00_config-namespace-{name}.yaml"), &namespace(name))?;
    }
    let inventory = config_map(NS_CONFIG, INVENTORY_CONFIGMAP, &[("hosts.yaml", &c.inventory.to_yaml())]);
    c.manifest("config-inventory.yaml", &inventory)?;
    let release = serde_json::to_string(&c.release)?;
    c.manifest("config-release.yaml", &config_map(NS_CONFIG, "release", &[("release.json", &release)]))?;
    let shared = [NS_CONFIG, NS_CONFIG_MANAGED];
    for row in trust::bundles().filter(|row| shared.contains(&row.namespace) && !row.file.is_empty()) {
        let ca = c.read(&format!("tls/{}.crt", row.file))?;
        let object = config_map(row.namespace, row.configmap, &[("ca-bundle.crt", &ca)]);
        c.manifest(&format!("config-{}.yaml", row.configmap), &object)?;
    }
    Ok(Outcome::Done)
}

pub(crate) async fn check(c: &Context) -> Result<()> {
    written(c, &STAGE)?;
    let signer = c.read("tls/csr-signer.crt")?;
    let end = not_after(&signer)?;
    ensure!(end - OffsetDateTime::now_utc() > Duration::days(4 * 365), "tls/csr-signer.crt ends on {end}");
    for bundle in ["tls/client-ca-bundle.crt", "tls/kubelet-serving-ca-all.crt"] {
        ensure!(holds(&c.read(bundle)?, &signer), "tls/csr-signer.crt is not in {bundle}");
    }
    Ok(())
}

/// The user may have brought one that lives long enough.
fn to_kubelet_signer(c: &Context) -> Result<()> {
    const ROW: trust::Signer = TO_KUBELET_SIGNER;
    let file = format!("tls/{}.crt", ROW.file);
    if c.read_if_there(&file)?.is_some() {
        return Ok(());
    }
    let given = c.read(&format!("tls/{}.crt", ROW.key_file))?;
    let now = OffsetDateTime::now_utc();
    let long = match not_after(&given)? - now < ROW.validity {
        true => ROW.renew(&c.read(&format!("tls/{}.key", ROW.key_file))?, now)?.cert,
        false => given,
    };
    c.write(&c.dir(&file), long, 0o600)
}

/// Made once; a run that was killed after writing the key keeps it.
fn csr_signer(c: &Context) -> Result<CertKey> {
    let [cert_file, key_file] = ["crt", "key"].map(|end| format!("tls/{}.{end}", CSR_SIGNER.file));
    if let (Some(cert), Some(key)) = (c.read_if_there(&cert_file)?, c.read_if_there(&key_file)?) {
        return Ok(CertKey { cert, key });
    }
    let signer = CSR_SIGNER.make(KeyAlgorithm::default(), OffsetDateTime::now_utc())?;
    c.write(&c.dir(&key_file), &signer.key, 0o600)?;
    c.write(&c.dir(&cert_file), &signer.cert, 0o600)?;
    Ok(signer)
}
