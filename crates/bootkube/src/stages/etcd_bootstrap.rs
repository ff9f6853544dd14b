//! Stage 6: etcd's certificates for the whole inventory, and the first member, which starts at once.

use super::{config_map, namespace, parsed, secret, tls_secret, written};
use crate::error::{ensure, in_file};
use crate::{Context, Outcome, Result};
use seedling_components::{Place, etcd, pod::to_yaml};
use seedling_pki::trust::{Cluster, ETCD_CA, ETCD_CLIENT, ETCD_MEMBERS, ETCD_SIGNER};
use seedling_pki::{CertKey, KeyAlgorithm};
use seedling_steps::Stage;
use seedling_types::names::NS_ETCD;
use seedling_types::ports;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use time::OffsetDateTime;
use tokio::process::Command;

pub(crate) const STAGE: Stage = Stage {
    name: "etcd-bootstrap",
    done: Some("etcd-bootstrap"),
    what: "Makes etcd's certificates for the whole inventory, and writes the static pod of the first member, which the kubelet starts at once.",
    why: "one etcd member is the seed: every other member joins it, so that there is never a second cluster",
    reads: &[
        "hosts.yaml",
        "release.json",
        "manifests/cluster-infrastructure-02-config.yml",
        "/var/lib/etcd/cluster.json (or the journal: whether etcd was founded)",
    ],
    writes: &[
        "/etc/kubernetes/manifests/etcd-member-pod.yaml",
        "/etc/kubernetes/static-pod-resources/etcd-member/*",
        "tls/etcd-*",
        "manifests/00_openshift-etcd-ns.yaml",
        "manifests/00_etcd-endpoints-cm.yaml",
        "manifests/openshift-etcd-*",
    ],
    check: "what the kubelet starts etcd-bootstrap-member from is written, with this cluster's token",
    fails: &[
        "the pod does not start: crictl ps -a --name etcd, then journalctl -u kubelet",
        "hosts.yaml has wrong addresses: members' certificates name those addresses and no others",
    ],
    upstream: "podman run … cluster-etcd-operator render --asset-output-dir=/assets/etcd-bootstrap --etcd-ca-cert=…, then cp -r etcd-bootstrap/etc-kubernetes/* /etc/kubernetes/",
    see: &[
        "component.etcd",
        "cert.etcd-signer",
        "cert.etcd-all-certs",
        "port.2379",
        "port.2380",
        "stage.wait-for-etcd",
        "seed.003.7",
    ],
};

pub(crate) async fn run(c: &Context) -> Result<Outcome> {
    println!("Rendering etcd manifests...");
    let certs = Certificates::load_or_make(c)?;
    let resources = c.path(etcd::BOOTSTRAP_RESOURCES);
    c.write(&resources.join("ca.crt"), &certs.signer.cert, 0o600)?;
    for (name, contents) in &certs.all {
        c.write(&resources.join("etcd-all-certs").join(name), contents, 0o600)?;
    }
    c.write(&c.dir("tls/etcd-ca-bundle.crt"), &certs.signer.cert, 0o600)?;
    for (name, contents) in &certs.client {
        c.write(&c.dir("tls").join(name.replace("tls", ETCD_CLIENT.file)), contents, 0o600)?;
    }
    manifests(c, &certs)?;

    write_config(c, &config(c)?)?;
    c.start_pod("etcd-member-pod.yaml", &etcd::bootstrap_pod(&c.release)?)?;
    Ok(Outcome::Done)
}

pub(crate) async fn check(c: &Context) -> Result<()> {
    written(c, &STAGE)?;
    let config = parsed(&c.path(etcd::BOOTSTRAP_RESOURCES).join("etcd.yaml"))?;
    let token = &config["initial-cluster-token"];
    ensure!(*token == c.identity.infra_id.as_str(), "etcd.yaml has the token {token}");
    Ok(())
}

/// Of a cluster with this one member. Once it was founded, an etcd that finds no data finds nobody to join either, and does not
/// start: it cannot found a second one. The token makes members of another cluster strangers, whatever their addresses.
pub(crate) fn config(c: &Context) -> Result<Value> {
    let member = (etcd::BOOTSTRAP_MEMBER.to_string(), c.address);
    let new = !c.pins().is_founded()?;
    let mut config = etcd::config(&member.0, member.1, std::slice::from_ref(&member), new, Place::Bootstrap);
    config["initial-cluster-token"] = json!(c.identity.infra_id);
    Ok(config)
}

pub(crate) fn write_config(c: &Context, config: &Value) -> Result<()> {
    c.write(&c.path(etcd::BOOTSTRAP_RESOURCES).join("etcd.yaml"), to_yaml(config), 0o600)
}

/// Asked to end, and given the time that its pod has: what it knows to be agreed on is in its memory until it closes its log. The
/// kubelet starts it again.
pub(crate) async fn stop() -> std::io::Result<()> {
    let listed = Command::new("crictl").args(["ps", "-q", "--name", "^etcd$"]).output().await?;
    let ids = String::from_utf8_lossy(&listed.stdout).into_owned();
    Command::new("crictl")
        .args(["stop", "--timeout", &etcd::GRACE_SECONDS.to_string()])
        .args(ids.split_whitespace())
        .output()
        .await
        .map(drop)
}

struct Certificates {
    signer: CertKey,
    /// File name → contents.
    client: BTreeMap<String, String>,
    /// Of every member that there will be.
    all: BTreeMap<String, String>,
}

impl Certificates {
    /// After a killed run, the signer that may already be in use is kept.
    fn load_or_make(c: &Context) -> Result<Self> {
        let now = OffsetDateTime::now_utc();
        const STATE: &str = "tls/etcd-signer.json";
        let signer = match c.read_if_there(STATE)? {
            Some(text) => serde_json::from_str(&text).map_err(in_file(STATE))?,
            None => {
                let signer = ETCD_SIGNER.make(KeyAlgorithm::default(), now)?;
                c.write(&c.dir(STATE), serde_json::to_vec(&signer)?, 0o600)?;
                signer
            }
        };
        let cluster = Cluster {
            domain: &c.config.domain,
            service_addresses: c.config.service_addresses(1),
            api_vips: &[],
            hosts: &c.inventory.hosts,
        };
        let [client, all] =
            [&ETCD_CLIENT, &ETCD_MEMBERS].map(|row| row.make_files(&signer, &cluster, row.validity, now));
        let (client, all) = (client?, all?);
        Ok(Self { signer, client, all })
    }
}

fn manifests(c: &Context, certs: &Certificates) -> Result<()> {
    c.manifest("00_openshift-etcd-ns.yaml", &namespace(NS_ETCD))?;
    let mut endpoints = config_map(NS_ETCD, "etcd-endpoints", &[]);
    endpoints["metadata"]["annotations"] =
        json!({"alpha.installer.openshift.io/etcd-bootstrap": c.address.to_string()});
    c.manifest("00_etcd-endpoints-cm.yaml", &endpoints)?;
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": NS_ETCD, "name": "etcd"},
        "spec": {"selector": {"app": "etcd"}, "ports": [{"name": "etcd", "port": ports::ETCD_CLIENT}]}});
    c.manifest("openshift-etcd-svc.yaml", &service)?;
    let ca = config_map(NS_ETCD, ETCD_CA.configmap, &[("ca-bundle.crt", &certs.signer.cert)]);
    c.manifest("openshift-etcd-etcd-ca-bundle.yaml", &ca)?;
    c.manifest("openshift-etcd-etcd-signer.yaml", &tls_secret(&ETCD_SIGNER.owned, &certs.signer))?;
    for (row, files) in [(&ETCD_CLIENT, &certs.client), (&ETCD_MEMBERS, &certs.all)] {
        let files: Vec<_> = files.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let object = secret(NS_ETCD, row.owned.secret, row.secret_type(), &files);
        c.manifest(&format!("openshift-etcd-{}.yaml", row.owned.secret), &object)?;
    }
    Ok(())
}
