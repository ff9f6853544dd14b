//! kubeadm with all that ours is tuned by: every flag, etcd setting, kubelet setting and probe is read from the functions that make our
//! own pods and configs, so that a change there is a change here. What is left out are names, addresses and files: whoever grows a
//! cluster has its own. docs/benchmark.md says what is equal and what remains different.

use super::files::{POD_NETWORK, SERVICE_NETWORK};
use crate::bench::Field;
use anyhow::{Context, Result};
use seedling_components::pod::RESOURCES;
use seedling_components::{
    ClusterConfig, Place, cluster_config::PodNetwork, etcd, kube_apiserver, kube_controller_manager,
    kube_scheduler, network, node,
};
use seedling_types::{ClusterDomain, Role};
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr};
use time::Duration;

/// Flags that say who and where, not how. The issuer is kubeadm's own, and so is the name in its aggregator's certificate.
const OWN_FLAGS: &[&str] = &[
    "advertise-address",
    "cluster-cidr",
    "etcd-servers",
    "node-cidr-mask-size",
    "requestheader-allowed-names",
    "secure-port",
    "service-account-issuer",
    "service-account-jwks-uri",
    "service-cluster-ip-range",
];
/// `max-learners`: with more than one, masters that join at the same time find each other's member, which has no name before it starts,
/// and `kubeadm join` ends with "the etcd member is not started". One after the other they never need it.
const OWN_ETCD: &[&str] = &[
    "advertise-client-urls",
    "client-transport-security",
    "data-dir",
    "initial-advertise-peer-urls",
    "initial-cluster",
    "initial-cluster-state",
    "initial-cluster-token",
    "listen-client-urls",
    "listen-metrics-urls",
    "listen-peer-urls",
    "max-learners",
    "name",
    "peer-transport-security",
];
/// `serverTLSBootstrap` needs somebody who approves serving certificates; kubeadm has nobody.
const OWN_KUBELET: &[&str] = &[
    "authentication",
    "authorization",
    "clusterDNS",
    "clusterDomain",
    "containerRuntimeEndpoint",
    "registerWithTaints",
    "rotateCertificates",
    "serverTLSBootstrap",
    "staticPodPath",
];
const OWN_KUBE_PROXY: &[&str] = &["bindAddress", "clusterCIDR", "healthzBindAddress", "metricsBindAddress"];

pub(super) struct Tuned {
    /// Parts of a ClusterConfiguration.
    pub cluster: Value,
    pub kubelet: Value,
    pub kube_proxy: Value,
    /// kubeadm's patches: (file name, content).
    pub patches: Vec<(String, Value)>,
}

impl Tuned {
    pub(super) fn new(domain: &ClusterDomain, field: &Field) -> Result<Self> {
        let config = ClusterConfig {
            domain: domain.clone(),
            pod_networks: vec![PodNetwork { cidr: POD_NETWORK.parse()?, host_prefix: 24 }],
            service_networks: vec![SERVICE_NETWORK.parse()?],
            control_plane_replicas: 3,
            compute_replicas: 0,
        };
        let (release, address) = (&field.release, IpAddr::from(Ipv4Addr::LOCALHOST));
        let pods = [
            ("kube-apiserver", kube_apiserver::pod(&config, release, Place::Master, "", &[])?),
            (
                "kube-controller-manager",
                kube_controller_manager::pod(&config, release, Place::Master, Duration::days(365))?,
            ),
            ("kube-scheduler", kube_scheduler::pod(release, Place::Master)?),
            ("etcd", etcd::master_pod(release, &[])?),
        ]
        .map(|(name, pod)| (name, json!(pod)));
        let part = |index: usize| {
            let container = &pods[index].1["spec"]["containers"][0];
            json!({"extraArgs": extra_args(container), "extraEnvs": extra_envs(container)})
        };
        let mut local = part(3);
        local["extraArgs"] = etcd_args(etcd::config("", address, &[], false, Place::Master));
        let kubelet = serde_json::from_str(&node::kubelet_config(&config.service_networks, Role::Master))?;
        Ok(Self {
            cluster: json!({
                "encryptionAlgorithm": "ECDSA-P256",
                "apiServer": part(0), "controllerManager": part(1), "scheduler": part(2),
                "etcd": {"local": local},
            }),
            kubelet: without(kubelet, OWN_KUBELET),
            kube_proxy: without(kube_proxy(&config, domain)?, OWN_KUBE_PROXY),
            patches: pods
                .iter()
                .map(|(name, pod)| (format!("{name}+strategic.json"), patch(name, pod)))
                .collect(),
        })
    }
}

/// `--name=value` of our pod, but for files and [`OWN_FLAGS`].
fn extra_args(container: &Value) -> Value {
    let args = container["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let pairs = args.filter_map(|a| a.strip_prefix("--")?.split_once('='));
    let settings = pairs.filter(|(name, value)| !value.starts_with(RESOURCES) && !OWN_FLAGS.contains(name));
    settings.map(|(name, value)| json!({"name": name, "value": value})).collect()
}

fn etcd_args(config: Value) -> Value {
    let settings = without(config, OWN_ETCD);
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), String::from);
    let rows = settings.as_object().into_iter().flatten();
    rows.map(|(name, value)| json!({"name": name, "value": text(value)})).collect()
}

/// Go's own settings; `etcdctl`'s are for people.
fn extra_envs(container: &Value) -> Value {
    let envs = container["env"].as_array().into_iter().flatten();
    envs.filter(|e| e["name"].as_str().is_some_and(|n| n.starts_with("GO"))).cloned().collect()
}

/// How our pod is probed, at the same loopback ports, and what is set aside for it.
fn patch(name: &str, pod: &Value) -> Value {
    let ours = &pod["spec"]["containers"][0];
    let mut container = json!({"name": name, "resources": ours["resources"]});
    for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
        if ours[probe].is_object() {
            container[probe] = ours[probe].clone();
            // Ours begin at once.
            container[probe]["initialDelaySeconds"] = json!(0);
        }
    }
    json!({"spec": {"containers": [container]}})
}

fn kube_proxy(config: &ClusterConfig, domain: &ClusterDomain) -> Result<Value> {
    let params = network::NetworkParams {
        cluster_networks: &config.pod_cidrs(),
        service_networks: &config.service_networks,
        api_host: &domain.api(),
        api_port: seedling_types::ports::API,
        flannel_image: "",
        kube_proxy_image: "",
        seedling_image: "",
    };
    let objects = network::objects(&params)?;
    let map = objects.iter().find(|o| o["metadata"]["name"] == "kube-proxy-config");
    let text = map.and_then(|m| m["data"]["config.yaml"].as_str()).context("no config of kube-proxy")?;
    Ok(serde_saphyr::from_str(text)?)
}

fn without(mut object: Value, names: &[&str]) -> Value {
    if let Value::Object(map) = &mut object {
        map.retain(|name, _| !names.contains(&name.as_str()));
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_taken_and_places_are_not() {
        let container = json!({
            "args": ["--profiling=false", "--client-ca-file=/etc/kubernetes/secrets/ca.crt", "--secure-port=6443"],
            "env": [{"name": "GOGC", "value": "200"}, {"name": "ETCDCTL_KEY", "value": "x"}],
        });
        assert_eq!(extra_args(&container), json!([{"name": "profiling", "value": "false"}]));
        assert_eq!(extra_envs(&container), json!([{"name": "GOGC", "value": "200"}]));
        let config = etcd::config("m", Ipv4Addr::LOCALHOST.into(), &[], false, Place::Master);
        let args = etcd_args(config).to_string();
        assert!(args.contains(r#"{"name":"heartbeat-interval""#), "{args}");
        assert!(!args.contains("url") && !args.contains("max-learners"), "{args}");
    }

    #[test]
    fn a_patch_has_our_probes() {
        let pod = json!({"spec": {"containers": [{
            "resources": {"requests": {"cpu": "1m"}},
            "readinessProbe": {"httpGet": {"port": 1}, "periodSeconds": 7},
        }]}});
        let want = json!({"spec": {"containers": [{
            "name": "etcd", "resources": {"requests": {"cpu": "1m"}},
            "readinessProbe": {"httpGet": {"port": 1}, "periodSeconds": 7, "initialDelaySeconds": 0},
        }]}});
        assert_eq!(patch("etcd", &pod), want);
    }
}
