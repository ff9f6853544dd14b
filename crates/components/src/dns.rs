//! Cluster DNS: CoreDNS on every node behind one Service address, as objects.
//!
//! In: the service network, the API server's internal name, the image. Out: what the DNS operator applies. CoreDNS dials
//! api-int through the node's own resolver: a Service address that is not there yet would cost it a 30 s connect time-out.

use crate::network::{api_env, cluster_role_binding, daemon_set, dns_service, namespace, service_account};
use ipnet::IpNet;
use seedling_types::names::NS_DNS;
use serde_json::{Value, json};

pub const NAME: &str = "dns-default";
/// In the pod; the Service maps 53 to it, so that CoreDNS needs no right to low ports.
const PORT: u16 = 5353;
const HEALTH: u16 = 8080;
const READY: u16 = 8181;

pub struct DnsParams<'a> {
    /// One of each family of the cluster.
    pub service_networks: &'a [IpNet],
    pub api_host: &'a str,
    pub api_port: u16,
    pub coredns_image: &'a str,
}

/// In the order in which they are applied.
pub fn objects(p: &DnsParams) -> Vec<Value> {
    vec![
        namespace(NS_DNS),
        service_account(NS_DNS, "dns"),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "openshift-dns"},
            "rules": [
                {"apiGroups": [""], "resources": ["services", "pods", "namespaces"], "verbs": ["list", "watch"]},
                {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
            ],
        }),
        cluster_role_binding("openshift-dns", "openshift-dns", NS_DNS, "dns"),
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": NS_DNS, "name": NAME},
            "data": {"Corefile": corefile()},
        }),
        service(p),
        daemon_set(NS_DNS, NAME, pod(p)),
    ]
}

fn corefile() -> String {
    format!(
        "\
.:{PORT} {{
    bufsize 1232
    errors
    health :{HEALTH} {{
        lameduck 3s
    }}
    ready :{READY}
    kubernetes cluster.local in-addr.arpa ip6.arpa {{
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
    }}
    forward . /etc/resolv.conf {{
        policy sequential
    }}
    cache 900 {{
        denial 9984 30
    }}
    reload
}}
"
    )
}

fn service(p: &DnsParams) -> Value {
    let addresses = dns_service(p.service_networks);
    let mut service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"namespace": NS_DNS, "name": NAME, "labels": {"app": NAME}},
        "spec": {
            "clusterIP": addresses.first(), "clusterIPs": addresses,
            "selector": {"app": NAME},
            // A dead node takes only its own resolver with it.
            "trafficDistribution": "PreferSameNode",
            "ports": [
                {"name": "dns", "port": 53, "protocol": "UDP", "targetPort": "dns"},
                {"name": "dns-tcp", "port": 53, "protocol": "TCP", "targetPort": "dns-tcp"},
            ],
        },
    });
    if addresses.len() > 1 {
        service["spec"]["ipFamilyPolicy"] = json!("RequireDualStack");
    }
    service
}

fn pod(p: &DnsParams) -> Value {
    json!({
        "serviceAccountName": "dns",
        // The node's resolver, which `forward` reads too; it knows api-int.
        "dnsPolicy": "Default",
        "terminationGracePeriodSeconds": 10,
        "containers": [{
            "name": "dns",
            "image": p.coredns_image,
            "command": ["coredns", "-conf", "/etc/coredns/Corefile"],
            "env": api_env(p.api_host, p.api_port),
            "ports": [
                {"name": "dns", "containerPort": PORT, "protocol": "UDP"},
                {"name": "dns-tcp", "containerPort": PORT, "protocol": "TCP"},
            ],
            // Quick until it is ready, then seldom.
            "startupProbe": {
                "httpGet": {"path": "/ready", "port": READY},
                "periodSeconds": 1, "timeoutSeconds": 3, "failureThreshold": 1800,
            },
            "readinessProbe": {"httpGet": {"path": "/ready", "port": READY}, "periodSeconds": 5, "timeoutSeconds": 3},
            "livenessProbe": {
                "httpGet": {"path": "/health", "port": HEALTH},
                "periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 6,
            },
            "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns", "readOnly": true}],
        }],
        "volumes": [{"name": "config", "configMap": {"name": NAME}}],
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn one_address_and_a_quick_readiness() {
        let p = DnsParams {
            service_networks: &["172.30.0.0/16".parse().unwrap()],
            api_host: "api-int.ocp4.example.com",
            api_port: 6443,
            coredns_image: "coredns@sha256:1",
        };
        let objects = objects(&p);
        let find = |kind: &str| objects.iter().find(|o| o["kind"] == kind).unwrap();
        assert_eq!(find("Service")["spec"]["clusterIP"], "172.30.0.10");
        let container = &find("DaemonSet")["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["startupProbe"]["periodSeconds"], 1);
        assert!(container["startupProbe"].get("initialDelaySeconds").is_none());
        let corefile = find("ConfigMap")["data"]["Corefile"].as_str().unwrap();
        for plugin in
            ["errors", "health", "ready", "kubernetes cluster.local", "forward .", "cache", "reload"]
        {
            assert!(corefile.contains(plugin), "{plugin}");
        }
    }
}
