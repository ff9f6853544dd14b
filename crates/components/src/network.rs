//! The pod network (flannel, host-gw) and Services (kube-proxy, nftables), as objects.
//!
//! In: the cluster's networks, the API server's internal name, images. Out: what the network operator applies. Nothing here
//! needs a Service address to start: both agents dial api-int, so their order does not matter.

use crate::pod::host_path;
use ipnet::Ipv4Net;
use seedling_types::names::NS_NETWORK;
use seedling_types::ports;
use serde_json::{Value, json};
use std::net::Ipv4Addr;

pub const FLANNEL: &str = "flannel";
pub const KUBE_PROXY: &str = "kube-proxy";
/// flanneld writes it after its routes and masquerade rules are in place.
pub const SUBNET_FILE: &str = "/run/flannel/subnet.env";
pub const CNI_CONFIG: &str = "/etc/cni/net.d/10-seedling.conflist";
const CNI_BIN: &str = "/opt/cni/bin";

pub struct NetworkParams<'a> {
    pub cluster_network: Ipv4Net,
    pub service_network: Ipv4Net,
    /// Host and port of `infrastructure.status.apiServerInternalURI`.
    pub api_host: &'a str,
    pub api_port: u16,
    pub flannel_image: &'a str,
    pub kube_proxy_image: &'a str,
    pub seedling_image: &'a str,
}

/// The Service `kubernetes`: the first address of the service network.
pub fn kubernetes_service(service_network: Ipv4Net) -> Ipv4Addr {
    nth(service_network, 1)
}

/// The Service `dns-default`: the tenth.
pub fn dns_service(service_network: Ipv4Net) -> Ipv4Addr {
    nth(service_network, 10)
}

fn nth(network: Ipv4Net, n: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(network.network().to_bits() + n)
}

/// In the order in which they are applied.
pub fn objects(p: &NetworkParams) -> Vec<Value> {
    vec![
        namespace(NS_NETWORK),
        service_account(NS_NETWORK, FLANNEL),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "openshift-network-flannel"},
            "rules": [
                {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
                {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]},
                {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]},
            ],
        }),
        cluster_role_binding("openshift-network-flannel", "openshift-network-flannel", NS_NETWORK, FLANNEL),
        service_account(NS_NETWORK, KUBE_PROXY),
        cluster_role_binding("openshift-network-kube-proxy", "system:node-proxier", NS_NETWORK, KUBE_PROXY),
        config_map("flannel-config", "net-conf.json", &flannel_config(p)),
        config_map("kube-proxy-config", "config.yaml", &kube_proxy_config(p)),
        flannel(p),
        kube_proxy(p),
    ]
}

fn flannel_config(p: &NetworkParams) -> Value {
    // All nodes share one layer-2 network, so routes are enough; no encapsulation.
    json!({"Network": p.cluster_network.to_string(), "Backend": {"Type": "host-gw"}})
}

fn kube_proxy_config(p: &NetworkParams) -> Value {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clusterCIDR": p.cluster_network.to_string(),
        "bindAddress": "0.0.0.0",
        "healthzBindAddress": format!("0.0.0.0:{}", ports::KUBE_PROXY_HEALTHZ),
        "metricsBindAddress": "127.0.0.1:10249",
        // The kernel's own limits: a node in a container may not raise them.
        "conntrack": {"maxPerCore": 0, "min": 0},
        // A Service works as soon as it is known; changes within this time are written together.
        "nftables": {"minSyncPeriod": "100ms", "syncPeriod": "30s"},
    })
}

/// The node's pod network: a bridge with this node's range. Masquerading is flannel's.
pub fn cni_config(subnet: Ipv4Net, mtu: u32) -> Value {
    json!({
        "cniVersion": "1.0.0",
        "name": "seedling",
        "plugins": [
            {
                "type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true, "mtu": mtu,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{"subnet": subnet.trunc().to_string()}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": true}},
        ],
    })
}

fn flannel(p: &NetworkParams) -> Value {
    let copy = format!("/bin/busybox cp -f {CNI_BIN}/* /host{CNI_BIN}/");
    let mut env = api_env(p.api_host, p.api_port);
    env.push(field_env("NODE_NAME", "spec.nodeName"));
    let mut check_env = env.clone();
    check_env.extend([
        json!({"name": "SERVICE_ADDRESS", "value": kubernetes_service(p.service_network).to_string()}),
        json!({"name": "DNS_ADDRESS", "value": dns_service(p.service_network).to_string()}),
    ]);
    let pod = json!({
        "serviceAccountName": FLANNEL,
        "initContainers": [{
            "name": "cni-plugins",
            "image": p.flannel_image,
            "command": ["/bin/busybox", "sh", "-c", copy],
            "volumeMounts": [{"name": "cni-bin", "mountPath": format!("/host{CNI_BIN}")}],
        }],
        "containers": [
            {
                "name": "flannel",
                "image": p.flannel_image,
                "command": ["flanneld", "--ip-masq", "--kube-subnet-mgr", format!("--subnet-file={SUBNET_FILE}")],
                "env": env,
                "securityContext": {"privileged": true},
                "volumeMounts": [
                    {"name": "run", "mountPath": "/run/flannel"},
                    {"name": "xtables-lock", "mountPath": "/run/xtables.lock"},
                    {"name": "config", "mountPath": "/etc/kube-flannel", "readOnly": true},
                ],
            },
            {
                "name": "network-check",
                "image": p.seedling_image,
                "command": ["/usr/bin/seedling", "operator", "network-check"],
                "env": check_env,
                "ports": [{"name": "report", "containerPort": ports::NETWORK_CHECK, "hostPort": ports::NETWORK_CHECK}],
                // Quick until the node's network first works, then seldom.
                "startupProbe": {
                    "httpGet": {"path": "/readyz", "port": ports::NETWORK_CHECK}, "periodSeconds": 1, "failureThreshold": 1800,
                },
                "readinessProbe": {
                    "httpGet": {"path": "/readyz", "port": ports::NETWORK_CHECK}, "periodSeconds": 5, "failureThreshold": 2,
                },
                "volumeMounts": [
                    {"name": "run", "mountPath": "/run/flannel", "readOnly": true},
                    {"name": "cni-config", "mountPath": "/etc/cni/net.d"},
                ],
            },
        ],
        "volumes": [
            host_path("cni-bin", CNI_BIN, "DirectoryOrCreate"),
            host_path("cni-config", "/etc/cni/net.d", "DirectoryOrCreate"),
            host_path("run", "/run/flannel", "DirectoryOrCreate"),
            host_path("xtables-lock", "/run/xtables.lock", "FileOrCreate"),
            {"name": "config", "configMap": {"name": "flannel-config"}},
        ],
    });
    daemon_set(NS_NETWORK, FLANNEL, host_network(pod))
}

/// From empty tables: a kube-proxy 1.36.4 that finds its own tables of an earlier start (seen with nft 1.0.6) leaves the map
/// of Service addresses empty, and every Service of the node is gone.
const START_KUBE_PROXY: &str = "for family in ip ip6; do \
     nft \"add table $family kube-proxy; delete table $family kube-proxy\" || exit 1; \
     done; \
     exec kube-proxy --config=/etc/kube-proxy/config.yaml --hostname-override=\"$NODE_NAME\"";

fn kube_proxy(p: &NetworkParams) -> Value {
    let mut env = api_env(p.api_host, p.api_port);
    env.push(field_env("NODE_NAME", "spec.nodeName"));
    let pod = json!({
        "serviceAccountName": KUBE_PROXY,
        "containers": [{
            "name": KUBE_PROXY,
            "image": p.kube_proxy_image,
            "command": ["/bin/busybox", "sh", "-c", START_KUBE_PROXY],
            "env": env,
            "securityContext": {"privileged": true},
            "volumeMounts": [
                {"name": "xtables-lock", "mountPath": "/run/xtables.lock"},
                {"name": "config", "mountPath": "/etc/kube-proxy", "readOnly": true},
            ],
        }],
        "volumes": [
            host_path("xtables-lock", "/run/xtables.lock", "FileOrCreate"),
            {"name": "config", "configMap": {"name": "kube-proxy-config"}},
        ],
    });
    daemon_set(NS_NETWORK, KUBE_PROXY, host_network(pod))
}

/// The in-cluster client reads these two; api-int answers before any Service address does.
pub(crate) fn api_env(host: &str, port: u16) -> Vec<Value> {
    let port = port.to_string();
    let values = [("KUBERNETES_SERVICE_HOST", host), ("KUBERNETES_SERVICE_PORT", &port)];
    values.map(|(name, value)| json!({"name": name, "value": value})).into()
}

fn host_network(mut pod: Value) -> Value {
    pod["hostNetwork"] = json!(true);
    pod["dnsPolicy"] = json!("Default");
    pod
}

fn config_map(name: &str, key: &str, content: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": NS_NETWORK, "name": name},
        "data": {key: format!("{content:#}\n")},
    })
}

pub(crate) fn service_account(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": namespace, "name": name}})
}

fn field_env(name: &str, path: &str) -> Value {
    json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}})
}

pub(crate) fn namespace(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {
            "name": name,
            "labels": {"openshift.io/run-level": "0", "pod-security.kubernetes.io/enforce": "privileged"},
            "annotations": {"openshift.io/node-selector": ""},
        },
    })
}

pub(crate) fn cluster_role_binding(name: &str, role: &str, namespace: &str, account: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": account}],
    })
}

/// One pod on every node, whatever its taints.
pub(crate) fn daemon_set(namespace: &str, name: &str, mut pod: Value) -> Value {
    pod["tolerations"] = json!([{"operator": "Exists"}]);
    pod["priorityClassName"] = json!("system-node-critical");
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"namespace": namespace, "name": name, "labels": {"app": name}},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod},
        },
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn params() -> NetworkParams<'static> {
        NetworkParams {
            cluster_network: "10.128.0.0/14".parse().unwrap(),
            service_network: "172.30.0.0/16".parse().unwrap(),
            api_host: "api-int.ocp4.example.com",
            api_port: 6443,
            flannel_image: "flannel@sha256:1",
            kube_proxy_image: "kube-proxy@sha256:2",
            seedling_image: "seedling@sha256:3",
        }
    }

    #[test]
    fn no_agent_needs_a_service_address_to_start() {
        let agents: Vec<_> = objects(&params()).into_iter().filter(|o| o["kind"] == "DaemonSet").collect();
        assert_eq!(agents.len(), 2);
        for agent in agents {
            let pod = &agent["spec"]["template"]["spec"];
            assert_eq!(
                (pod["hostNetwork"].as_bool(), pod["dnsPolicy"].as_str()),
                (Some(true), Some("Default"))
            );
            assert_eq!(pod["tolerations"], json!([{"operator": "Exists"}]));
            for container in pod["containers"].as_array().unwrap() {
                let env = container["env"].as_array().unwrap();
                let host = env.iter().find(|e| e["name"] == "KUBERNETES_SERVICE_HOST").unwrap();
                assert_eq!(host["value"], "api-int.ocp4.example.com");
            }
        }
    }

    #[test]
    fn kube_proxy_leaves_conntrack_limits_alone() {
        let objects = objects(&params());
        let config = objects.iter().find(|o| o["metadata"]["name"] == "kube-proxy-config").unwrap();
        let config: Value = serde_json::from_str(config["data"]["config.yaml"].as_str().unwrap()).unwrap();
        assert_eq!(config["mode"], "nftables");
        assert_eq!(config["conntrack"], json!({"maxPerCore": 0, "min": 0}));
        assert_eq!(config["clusterCIDR"], "10.128.0.0/14");
    }

    #[test]
    fn the_cni_config_has_the_nodes_range() {
        let config = cni_config("10.128.2.1/23".parse().unwrap(), 1500);
        assert_eq!(config["plugins"][0]["ipam"]["ranges"][0][0]["subnet"], "10.128.2.0/23");
        assert_eq!(config["plugins"][0]["mtu"], 1500);
        assert_eq!(config["plugins"][1]["type"], "portmap");
    }

    #[test]
    fn well_known_service_addresses() {
        let network = "172.30.0.0/16".parse().unwrap();
        assert_eq!(kubernetes_service(network).to_string(), "172.30.0.1");
        assert_eq!(dns_service(network).to_string(), "172.30.0.10");
    }
}
