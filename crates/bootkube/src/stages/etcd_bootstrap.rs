//! Stage 6: etcd's certificates for the whole inventory, and the first member, which starts at once.

use super::{config_map, namespace, secret, tls_secret};
use crate::{Context, Outcome};
use anyhow::{Context as _, Result};
use seedling_components::{Place, etcd, pod::to_yaml};
use seedling_pki::{CaSpec, CertKey, KeyAlgorithm, LeafSpec, Usage, issue, new_ca};
use seedling_steps::Stage;
use seedling_types::names::NS_ETCD;
use seedling_types::{Role, ports};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use time::{Duration, OffsetDateTime};
use tokio::process::Command;

pub const STAGE: Stage = Stage {
    name: "etcd-bootstrap",
    done: Some("etcd-bootstrap"),
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
    check: "the kubelet starts etcd-bootstrap-member",
};

/// Signers and leaves alike, as upstream's operator makes them.
const VALIDITY: Duration = Duration::days(5 * 365);

pub async fn run(c: &Context) -> Result<Outcome> {
    println!("Rendering etcd manifests...");
    let certs = Certificates::load_or_make(c)?;
    let resources = c.path(etcd::BOOTSTRAP_RESOURCES);
    c.write(&resources.join("ca.crt"), &certs.signer.cert, 0o600)?;
    for (name, contents) in &certs.all {
        c.write(&resources.join("etcd-all-certs").join(name), contents, 0o600)?;
    }
    c.write(&c.dir("tls/etcd-ca-bundle.crt"), &certs.signer.cert, 0o600)?;
    c.write(&c.dir("tls/etcd-client.crt"), &certs.client.cert, 0o600)?;
    c.write(&c.dir("tls/etcd-client.key"), &certs.client.key, 0o600)?;
    manifests(c, &certs)?;

    write_config(c, &config(c)?)?;
    c.start_pod("etcd-member-pod.yaml", &etcd::bootstrap_pod(&c.release)?)?;
    Ok(Outcome::Done)
}

/// Of a cluster with this one member. Once it was founded, an etcd that finds no data finds nobody to join either, and does not
/// start: it cannot found a second one. The token makes members of another cluster strangers, whatever their addresses.
pub fn config(c: &Context) -> Result<Value> {
    let member = (etcd::BOOTSTRAP_MEMBER.to_string(), c.address);
    let new = !c.pins().is_founded()?;
    let mut config = etcd::config(&member.0, member.1, std::slice::from_ref(&member), new, Place::Bootstrap);
    config["initial-cluster-token"] = json!(c.identity.infra_id);
    Ok(config)
}

pub fn write_config(c: &Context, config: &Value) -> Result<()> {
    c.write(&c.path(etcd::BOOTSTRAP_RESOURCES).join("etcd.yaml"), to_yaml(config), 0o600)
}

/// Asked to end, and given the time that its pod has: what it knows to be agreed on is in its memory until it closes its log. The
/// kubelet starts it again.
pub async fn stop() -> std::io::Result<()> {
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
    client: CertKey,
    /// File name → contents: peer and serving pairs of every member there will be.
    all: BTreeMap<String, String>,
}

impl Certificates {
    /// A run that was killed half-way goes on with the signer it already gave away.
    fn load_or_make(c: &Context) -> Result<Self> {
        let now = OffsetDateTime::now_utc();
        let state = c.dir("tls/etcd-signer.json");
        let signer = match std::fs::read(&state) {
            Ok(bytes) => serde_json::from_slice(&bytes).context("tls/etcd-signer.json")?,
            Err(_) => {
                let cn = format!("openshift-etcd_etcd-signer@{}", now.unix_timestamp());
                let spec = CaSpec { cn: &cn, ou: None, validity: VALIDITY };
                let signer = new_ca(&spec, KeyAlgorithm::default(), now)?;
                c.write(&state, serde_json::to_vec(&signer)?, 0o600)?;
                signer
            }
        };
        let leaf = |spec: LeafSpec| issue(&signer, &spec, KeyAlgorithm::default(), now);
        let client = leaf(LeafSpec {
            cn: "etcd-client",
            organizations: vec!["etcd-client".into(), "system:etcd".into()],
            usages: &[Usage::Client],
            dns: vec![],
            ips: vec![],
            validity: VALIDITY,
            append_parent: false,
            key_usage: true,
        })?;
        let mut all = BTreeMap::new();
        let members = c.inventory.hosts.iter().filter(|h| h.role != Role::Worker);
        for host in members {
            let name = if host.role == Role::Bootstrap { "bootstrap" } else { &host.name };
            for kind in ["peer", "serving"] {
                let (dns, ips) = etcd::certificate_names(host.address);
                let pair = leaf(LeafSpec {
                    cn: &host.address.to_string(),
                    organizations: vec![],
                    usages: &[Usage::Server, Usage::Client],
                    dns,
                    ips,
                    validity: VALIDITY,
                    append_parent: true,
                    key_usage: true,
                })?;
                all.insert(format!("etcd-{kind}-{name}.crt"), pair.cert);
                all.insert(format!("etcd-{kind}-{name}.key"), pair.key);
            }
        }
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
    let ca = config_map(NS_ETCD, "etcd-ca-bundle", &[("ca-bundle.crt", &certs.signer.cert)]);
    c.manifest("openshift-etcd-etcd-ca-bundle.yaml", &ca)?;
    let signer = tls_secret(NS_ETCD, "etcd-signer", &certs.signer.cert, &certs.signer.key);
    c.manifest("openshift-etcd-etcd-signer.yaml", &signer)?;
    let client = tls_secret(NS_ETCD, "etcd-client", &certs.client.cert, &certs.client.key);
    c.manifest("openshift-etcd-etcd-client.yaml", &client)?;
    let all: Vec<_> = certs.all.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    c.manifest("openshift-etcd-etcd-all-certs.yaml", &secret(NS_ETCD, "etcd-all-certs", "Opaque", &all))
}
