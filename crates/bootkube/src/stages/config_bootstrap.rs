//! Stage 4: namespaces for configuration, the inventory, and the trust that outlives the installer's 24-hour signers.

use super::{config_map, namespace};
use crate::{Context, Outcome};
use anyhow::Result;
use seedling_pki::table::TEN_YEARS;
use seedling_pki::{CaSpec, CertKey, KeyAlgorithm, LAG, bundle, new_backdated_ca, not_after, renew_ca};
use seedling_steps::Stage;
use seedling_types::names::{INVENTORY_CONFIGMAP, NS_CONFIG, NS_CONFIG_MANAGED};
use time::{Duration, OffsetDateTime};

pub const STAGE: Stage = Stage {
    name: "config-bootstrap",
    done: Some("config-bootstrap"),
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
    check: "tls/csr-signer.crt is valid for five years and is in both bundles",
};

pub async fn run(c: &Context) -> Result<Outcome> {
    let signer = csr_signer(c)?;
    to_kubelet_signer(c)?;
    let client_ca = c.read("tls/kube-apiserver-complete-client-ca-bundle.crt")? + &signer.cert;
    let kubelet_ca = bundle(&[&c.read("tls/kubelet-serving-ca-bundle.crt")?, &signer.cert]);
    let server_ca = c.read("tls/kube-apiserver-complete-server-ca-bundle.crt")?;
    c.write(&c.dir("tls/client-ca-bundle.crt"), &client_ca, 0o600)?;
    c.write(&c.dir("tls/kubelet-serving-ca-all.crt"), &kubelet_ca, 0o600)?;

    for name in [NS_CONFIG, NS_CONFIG_MANAGED] {
        c.manifest(&format!("00_config-namespace-{name}.yaml"), &namespace(name))?;
    }
    let inventory = config_map(NS_CONFIG, INVENTORY_CONFIGMAP, &[("hosts.yaml", &c.inventory.to_yaml())]);
    c.manifest("config-inventory.yaml", &inventory)?;
    let release = serde_json::to_string(&c.release)?;
    c.manifest("config-release.yaml", &config_map(NS_CONFIG, "release", &[("release.json", &release)]))?;
    let admin_ca = c.read("tls/admin-kubeconfig-ca-bundle.crt")?;
    let maps = [
        (NS_CONFIG, "admin-kubeconfig-client-ca", &admin_ca),
        (NS_CONFIG_MANAGED, "kube-apiserver-client-ca", &client_ca),
        (NS_CONFIG_MANAGED, "kubelet-serving-ca", &kubelet_ca),
        (NS_CONFIG_MANAGED, "kube-apiserver-server-ca", &server_ca),
        (NS_CONFIG_MANAGED, "csr-controller-ca", &kubelet_ca),
    ];
    for (namespace, name, ca) in maps {
        c.manifest(&format!("config-{name}.yaml"), &config_map(namespace, name, &[("ca-bundle.crt", ca)]))?;
    }
    Ok(Outcome::Done)
}

/// Every node is given a file of whom its kubelet trusts as its client, and the installer's signer in it lives a year. The same
/// signer, with the same key, for as long as the other signers of a cluster: the file need not change.
fn to_kubelet_signer(c: &Context) -> Result<()> {
    const FILE: &str = "tls/kubelet-client-signer.crt";
    if c.read(FILE).is_ok() {
        return Ok(());
    }
    let given = c.read("tls/kube-apiserver-to-kubelet-signer.crt")?;
    let now = OffsetDateTime::now_utc();
    let long = match not_after(&given)? - now < TEN_YEARS {
        true => {
            let spec = CaSpec {
                cn: "kube-apiserver-to-kubelet-signer",
                ou: Some("openshift"),
                validity: TEN_YEARS + LAG,
            };
            renew_ca(&spec, &c.read("tls/kube-apiserver-to-kubelet-signer.key")?, now - LAG)?.cert
        }
        false => given,
    };
    c.write(&c.dir(FILE), long, 0o600)
}

/// Made once; a run that was killed after writing the key keeps it.
fn csr_signer(c: &Context) -> Result<CertKey> {
    if let (Ok(cert), Ok(key)) = (c.read("tls/csr-signer.crt"), c.read("tls/csr-signer.key")) {
        return Ok(CertKey { cert, key });
    }
    let spec = CaSpec { cn: "kube-csr-signer", ou: Some("openshift"), validity: Duration::days(5 * 365) };
    let signer = new_backdated_ca(&spec, KeyAlgorithm::default(), OffsetDateTime::now_utc())?;
    c.write(&c.dir("tls/csr-signer.key"), &signer.key, 0o600)?;
    c.write(&c.dir("tls/csr-signer.crt"), &signer.cert, 0o600)?;
    Ok(signer)
}
