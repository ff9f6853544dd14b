//! What a kubeadm node boots with: the same containerd as ours, kubelet with kubeadm's unit, and the configs of `init` and
//! `join`. With its defaults, what is set beyond them is what nodes in containers need, and the same as ours; tuned, it has our settings.

use super::tuned::Tuned;
use super::{certificates, flannel};
use crate::bench::Field;
use anyhow::{Context, Result};
use rand::Rng;
use seedling_components::node::{NodeParams, container_runtime};
use seedling_ignition::{Config, Dropin, File, Storage, Systemd, Unit};
use seedling_lab::LabSpec;
use seedling_machines::Machine;
use seedling_steps::write_atomic;
use seedling_types::paths::{CONTAINERD_SOCKET, NODE_BIN};
use seedling_types::{ClusterDomain, Host, Inventory, Role, ports};
use serde_json::{Value, json};
use sha2::{Digest, Sha512};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

pub(super) const INIT_CONFIG: &str = "/root/init.yaml";
/// kubeadm's default service network, and what it puts where in it.
pub(super) const SERVICE: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 1);
pub(super) const DNS: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 10);
pub(super) const SERVICE_NETWORK: &str = "10.96.0.0/12";
pub(super) const POD_NETWORK: &str = "10.244.0.0/16";
const CERTIFICATES: &str = "/etc/kubernetes/pki";
const PATCHES: &str = "/etc/kubernetes/patches";

/// Given to both sides of a join.
pub(super) struct Secrets {
    token: String,
    certificate_key: String,
}

impl Secrets {
    pub(super) fn new() -> Self {
        let random: [u8; 43] = rand::rng().random();
        let (token, key) = random.split_at(11);
        let token = hex(token);
        Self { token: format!("{}.{}", &token[..6], &token[6..22]), certificate_key: hex(key) }
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// `nodes/<host>.ign` for every host; the helper serves a host its own.
pub(super) fn write(
    assets: &Path,
    inventory: &Inventory,
    domain: &ClusterDomain,
    field: &Field,
    secrets: &Secrets,
    tuned: Option<&Tuned>,
) -> Result<()> {
    std::fs::create_dir_all(assets)?;
    let common = common(domain, field, tuned)?;
    let version = &field.release.kubernetes_version;
    let inits: Vec<_> =
        inventory.hosts.iter().map(|host| init_config(host, domain, version, secrets, tuned)).collect();
    let mut certificates = match tuned {
        Some(_) => certificates::make(&field.release_dir.join("bin/kubeadm"), &inits)?,
        None => vec![Vec::new(); inits.len()],
    };
    for (index, host) in inventory.hosts.iter().enumerate() {
        let mut config = common.clone();
        config.storage.files.append(&mut certificates[index]);
        if index == 0 {
            let api = tuned.map(|_| domain.api());
            let flannel = flannel::manifests(field.release.image("flannel")?, api.as_deref());
            config.storage.files.push(File::inline(INIT_CONFIG, 0o600, &inits[0]));
            config.storage.files.push(File::inline(flannel::PATH, 0o644, flannel));
        }
        write_atomic(&assets.join(format!("nodes/{}.ign", host.name)), serde_json::to_vec(&config)?, 0o600)?;
    }
    // Asked for when a host has none of its own.
    write_atomic(
        &assets.join(format!("{}.ign", Role::Master.as_str())),
        serde_json::to_vec(&common)?,
        0o600,
    )?;
    Ok(())
}

fn common(domain: &ClusterDomain, field: &Field, tuned: Option<&Tuned>) -> Result<Config> {
    let params = NodeParams {
        domain,
        release: &field.release,
        service_networks: vec![SERVICE_NETWORK.parse()?],
        pod_networks: vec![],
    };
    let fetched = |name: &str, sha512: &str| {
        let url = format!("http://{}:{}/bin/{name}", domain.helper(), ports::HELPER_HTTP);
        File::fetched(format!("{NODE_BIN}/{name}"), 0o755, url, sha512)
    };
    let path = field.release_dir.join("bin/kubeadm");
    let kubeadm = std::fs::read(&path).with_context(|| path.display().to_string())?;
    let mut files = vec![
        fetched("kubeadm", &hex(&Sha512::digest(kubeadm))),
        fetched("kubelet", &field.release.binary("kubelet")?.sha512),
        fetched("kubectl", &field.release.binary("kubectl")?.sha512),
    ];
    let mut dropins = vec![Dropin { name: "10-kubeadm.conf".into(), contents: KUBELET_DROPIN.into() }];
    if let Some(tuned) = tuned {
        let patch = |(name, patch): &(String, Value)| {
            File::inline(format!("{PATCHES}/{name}"), 0o644, patch.to_string())
        };
        files.extend(tuned.patches.iter().map(patch));
        dropins.push(Dropin { name: "20-tuned.conf".into(), contents: "[Service]\nRestartSec=1\n".into() });
    }
    let kubelet = Unit { dropins, ..Unit::new("kubelet.service", false, KUBELET_UNIT) };
    let ours =
        Config { storage: Storage { files }, systemd: Systemd { units: vec![kubelet] }, ..Config::default() };
    Ok(container_runtime(&params)?.merge(ours))
}

/// As in kubeadm's packages, but for the path, and not enabled: without a config it would only fail until kubeadm starts it.
const KUBELET_UNIT: &str = "\
[Unit]
Description=kubelet: The Kubernetes Node Agent
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=/usr/local/bin/kubelet
Restart=always
StartLimitInterval=0
RestartSec=10

[Install]
WantedBy=multi-user.target
";
const KUBELET_DROPIN: &str = "\
[Service]
Environment=\"KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf\"
Environment=\"KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml\"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
ExecStart=
ExecStart=/usr/local/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS
";

fn init_config(
    host: &Host,
    domain: &ClusterDomain,
    version: &str,
    secrets: &Secrets,
    tuned: Option<&Tuned>,
) -> String {
    let mut init = json!({
        "apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "InitConfiguration",
        "nodeRegistration": registration(&host.name),
        "localAPIEndpoint": endpoint(host.address),
        "bootstrapTokens": [{
            "token": secrets.token, "groups": ["system:bootstrappers:kubeadm:default-node-token"],
            "usages": ["signing", "authentication"],
        }],
    });
    let mut cluster = json!({
        "apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration",
        "kubernetesVersion": version,
        "certificatesDir": CERTIFICATES,
        "controlPlaneEndpoint": format!("{}:{}", domain.api(), ports::API),
        "networking": {"podSubnet": POD_NETWORK, "serviceSubnet": SERVICE_NETWORK},
    });
    let mut kubelet = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "cgroupDriver": "cgroupfs", "failCgroupV1": false, "failSwapOn": false,
        "localStorageCapacityIsolation": false,
        "evictionHard": {
            "memory.available": "50Mi", "nodefs.available": "200Mi", "nodefs.inodesFree": "1%",
            "imagefs.available": "200Mi",
        },
        "imageGCHighThresholdPercent": 100,
    });
    let mut kube_proxy = json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
        "mode": "nftables", "conntrack": {"maxPerCore": 0, "min": 0},
    });
    match tuned {
        Some(tuned) => {
            init["patches"] = json!({"directory": PATCHES});
            merge(&mut cluster, &tuned.cluster);
            kubelet = tuned.kubelet.clone();
            kube_proxy = tuned.kube_proxy.clone();
        }
        None => init["certificateKey"] = json!(secrets.certificate_key),
    }
    documents(&[init, cluster, kubelet, kube_proxy])
}

fn merge(base: &mut Value, more: &Value) {
    if let (Value::Object(base), Value::Object(more)) = (base, more) {
        base.extend(more.clone());
    }
}

pub(super) fn join_config(
    machine: &Machine,
    spec: &LabSpec,
    secrets: &Secrets,
    ca_hash: &str,
    tuned: bool,
) -> Result<String> {
    let host = spec.inventory.by_name(&machine.name).context("a machine without a host")?;
    let mut join = json!({
        "apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "JoinConfiguration",
        "nodeRegistration": registration(&host.name),
        "discovery": {"bootstrapToken": {
            "apiServerEndpoint": format!("{}:{}", spec.cluster_domain.api(), ports::API),
            "token": secrets.token, "caCertHashes": [ca_hash],
        }},
        "controlPlane": {"localAPIEndpoint": endpoint(host.address)},
    });
    match tuned {
        true => join["patches"] = json!({"directory": PATCHES}),
        false => join["controlPlane"]["certificateKey"] = json!(secrets.certificate_key),
    }
    Ok(documents(&[join]))
}

fn registration(name: &str) -> Value {
    json!({"name": name, "criSocket": CONTAINERD_SOCKET, "imagePullPolicy": "IfNotPresent"})
}

fn endpoint(address: IpAddr) -> Value {
    json!({"advertiseAddress": address, "bindPort": ports::API})
}

/// JSON is YAML.
pub(super) fn documents(objects: &[Value]) -> String {
    objects.iter().map(|o| format!("{o:#}\n")).collect::<Vec<_>>().join("---\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_that_kubeadm_takes() {
        let secrets = Secrets::new();
        let (id, secret) = secrets.token.split_once('.').unwrap_or_default();
        assert_eq!((id.len(), secret.len(), secrets.certificate_key.len()), (6, 16, 64));
    }
}
