//! The pod network (flannel, host-gw) and Services (kube-proxy, nftables), as objects.
//!
//! In: the cluster's networks, the API server's internal name, images. Out: what the network operator applies. Nothing here
//! needs a Service address to start: both agents dial api-int, so their order does not matter.

use crate::cluster_config::{any_address, joined, nth};
use crate::pod::host_path;
use ipnet::IpNet;
use seedling_types::names::NS_NETWORK;
use seedling_types::ports;
use serde_json::{Value, json};
use std::net::{IpAddr, SocketAddr};

pub const FLANNEL: &str = "flannel";
pub const KUBE_PROXY: &str = "kube-proxy";
/// flanneld writes it after its routes and masquerade rules are in place.
pub const SUBNET_FILE: &str = "/run/flannel/subnet.env";
pub const CNI_CONFIG: &str = "/etc/cni/net.d/10-seedling.conflist";
const CNI_BIN: &str = "/opt/cni/bin";

pub struct NetworkParams<'a> {
    /// One of each family of the cluster.
    pub cluster_networks: &'a [IpNet],
    pub service_networks: &'a [IpNet],
    /// Host and port of `infrastructure.status.apiServerInternalURI`.
    pub api_host: &'a str,
    pub api_port: u16,
    pub flannel_image: &'a str,
    pub kube_proxy_image: &'a str,
    pub seedling_image: &'a str,
}

/// The Service `kubernetes`: the first address of the main service network.
pub fn kubernetes_service(service_networks: &[IpNet]) -> Option<IpAddr> {
    service_networks.first().map(|network| nth(*network, 1))
}

/// The Service `dns-default`: the tenth of each.
pub fn dns_service(service_networks: &[IpNet]) -> Vec<String> {
    service_networks.iter().map(|network| nth(*network, 10).to_string()).collect()
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
    let mut config = json!({"Backend": {"Type": "host-gw"}});
    for network in p.cluster_networks {
        match network {
            IpNet::V4(network) => config["Network"] = json!(network.to_string()),
            IpNet::V6(network) => {
                config["IPv6Network"] = json!(network.to_string());
                config["EnableIPv6"] = json!(true);
            }
        }
    }
    if config["Network"].is_null() {
        config["EnableIPv4"] = json!(false);
    }
    config
}

fn kube_proxy_config(p: &NetworkParams) -> Value {
    let any = any_address(p.service_networks);
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clusterCIDR": joined(p.cluster_networks),
        "bindAddress": any.to_string(),
        "healthzBindAddress": SocketAddr::new(any, ports::KUBE_PROXY_HEALTHZ).to_string(),
        "metricsBindAddress": "127.0.0.1:10249",
        // The kernel's own limits: a node in a container may not raise them.
        "conntrack": {"maxPerCore": 0, "min": 0},
        // A Service works as soon as it is known; changes within this time are written together.
        "nftables": {"minSyncPeriod": "100ms", "syncPeriod": "30s"},
    })
}

/// The node's pod network: a bridge with this node's range. Masquerading is flannel's.
pub fn cni_config(subnets: &[IpNet], mtu: u32) -> Value {
    let ranges: Vec<_> =
        subnets.iter().map(|subnet| json!([{"subnet": subnet.trunc().to_string()}])).collect();
    let everywhere = |subnet: &IpNet| if subnet.addr().is_ipv4() { "0.0.0.0/0" } else { "::/0" };
    let routes: Vec<_> = subnets.iter().map(|subnet| json!({"dst": everywhere(subnet)})).collect();
    json!({
        "cniVersion": "1.0.0",
        "name": "seedling",
        "plugins": [
            {
                "type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true, "mtu": mtu,
                "ipam": {
                    "type": "host-local",
                    "ranges": ranges,
                    "routes": routes,
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
    let service = kubernetes_service(p.service_networks);
    let mut check_env = env.clone();
    check_env.extend([
        json!({"name": "SERVICE_ADDRESS", "value": service.map(|address| address.to_string())}),
        json!({"name": "DNS_ADDRESS", "value": dns_service(p.service_networks).join(",")}),
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

    const PODS: [IpNet; 2] = [net([10, 128, 0, 0], 14), net6([0xfd01, 0, 0, 0, 0, 0, 0, 0], 48)];
    const SERVICES: [IpNet; 2] = [net([172, 30, 0, 0], 16), net6([0xfd02, 0, 0, 0, 0, 0, 0, 0], 112)];

    const fn net([a, b, c, d]: [u8; 4], prefix: u8) -> IpNet {
        IpNet::V4(ipnet::Ipv4Net::new_assert(std::net::Ipv4Addr::new(a, b, c, d), prefix))
    }

    const fn net6([a, b, c, d, e, f, g, h]: [u16; 8], prefix: u8) -> IpNet {
        IpNet::V6(ipnet::Ipv6Net::new_assert(std::net::Ipv6Addr::new(a, b, c, d, e, f, g, h), prefix))
    }

    fn params() -> NetworkParams<'static> {
        params_of([&PODS[..1], &SERVICES[..1]])
    }

    fn params_of(networks: [&'static [IpNet]; 2]) -> NetworkParams<'static> {
        NetworkParams {
            cluster_networks: networks[0],
            service_networks: networks[1],
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

    fn config(params: &NetworkParams, map: &str, key: &str) -> Value {
        let objects = objects(params);
        let config = objects.iter().find(|o| o["metadata"]["name"] == map).unwrap();
        serde_json::from_str(config["data"][key].as_str().unwrap()).unwrap()
    }

    #[test]
    fn agents_know_every_family() {
        let flannel = |params: &NetworkParams| config(params, "flannel-config", "net-conf.json");
        let proxy = |params: &NetworkParams| config(params, "kube-proxy-config", "config.yaml");
        let host_gw = json!({"Type": "host-gw"});
        assert_eq!(flannel(&params()), json!({"Network": "10.128.0.0/14", "Backend": host_gw}));
        assert_eq!(proxy(&params())["bindAddress"], "0.0.0.0");
        let both = params_of([&PODS, &SERVICES]);
        let expected = json!({"Network": "10.128.0.0/14", "IPv6Network": "fd01::/48", "EnableIPv6": true, "Backend": host_gw});
        assert_eq!(flannel(&both), expected);
        assert_eq!(proxy(&both)["clusterCIDR"], "10.128.0.0/14,fd01::/48");
        let six = params_of([&PODS[1..], &SERVICES[1..]]);
        let expected =
            json!({"IPv6Network": "fd01::/48", "EnableIPv6": true, "EnableIPv4": false, "Backend": host_gw});
        assert_eq!(flannel(&six), expected);
        assert_eq!(proxy(&six)["healthzBindAddress"], "[::]:10256");
    }

    #[test]
    fn kube_proxy_leaves_conntrack_limits_alone() {
        let config = config(&params(), "kube-proxy-config", "config.yaml");
        assert_eq!(config["mode"], "nftables");
        assert_eq!(config["conntrack"], json!({"maxPerCore": 0, "min": 0}));
        assert_eq!(config["clusterCIDR"], "10.128.0.0/14");
    }

    #[test]
    fn the_cni_config_has_the_nodes_range() {
        let config = cni_config(&["10.128.2.1/23".parse().unwrap()], 1500);
        assert_eq!(config["plugins"][0]["ipam"]["ranges"][0][0]["subnet"], "10.128.2.0/23");
        assert_eq!(config["plugins"][0]["mtu"], 1500);
        assert_eq!(config["plugins"][1]["type"], "portmap");
        let both = cni_config(&["10.128.2.1/23".parse().unwrap(), "fd01:0:0:2::1/64".parse().unwrap()], 1500);
        let ipam = &both["plugins"][0]["ipam"];
        assert_eq!(ipam["ranges"][1], json!([{"subnet": "fd01:0:0:2::/64"}]));
        assert_eq!(ipam["routes"], json!([{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]));
    }

    #[test]
    fn well_known_service_addresses() {
        assert_eq!(kubernetes_service(&SERVICES).unwrap().to_string(), "172.30.0.1");
        assert_eq!(kubernetes_service(&SERVICES[1..]).unwrap().to_string(), "fd02::1");
        assert_eq!(dns_service(&SERVICES), ["172.30.0.10", "fd02::a"]);
    }
}
