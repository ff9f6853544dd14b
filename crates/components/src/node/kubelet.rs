//! The kubelet's config file and unit. Field names are those of kubelet.config.k8s.io/v1beta1 at 1.36.

use crate::cluster_config::{any_address, nth};
use ipnet::IpNet;
use seedling_types::{Role, paths};
use serde_json::{Value, json};

pub fn config(service_networks: &[IpNet], role: Role) -> String {
    // The DNS Service: the tenth address of the main service network.
    let cluster_dns = service_networks.first().map(|network| nth(*network, 10).to_string());
    let mut config = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": paths::CONTAINERD_SOCKET,
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": false,
        "staticPodPath": paths::STATIC_PODS,
        // Static pods are found by inotify; these only bound how long a missed event can last.
        "fileCheckFrequency": "2s",
        "syncFrequency": "10s",
        "clusterDomain": "cluster.local",
        "clusterDNS": [cluster_dns],
        "resolvConf": "/etc/resolv.conf",
        "maxPods": 250,
        // Images come from the LAN by digest: no rate limit, no queue.
        "serializeImagePulls": false,
        "registryPullQPS": 0,
        "eventRecordQPS": 50,
        // During bring-up most crashes are a peer that is not up yet.
        "crashLoopBackOff": { "maxContainerRestartPeriod": "5s" },
        // Upstream's; a machine that shares memory and disk with others says so in a drop-in.
        "systemReserved": { "cpu": "500m", "memory": "1Gi", "ephemeral-storage": "1Gi" },
        // Absolute: of nodes that share one disk none evicts because the others have filled a part of it.
        "evictionHard": {
            "memory.available": "50Mi", "nodefs.available": "200Mi", "nodefs.inodesFree": "1%", "imagefs.available": "200Mi",
        },
        "imageGCHighThresholdPercent": 100,
        "failSwapOn": false,
        "readOnlyPort": 0,
        "shutdownGracePeriod": "0s",
    });
    let by_role = match role {
        Role::Bootstrap => standalone(),
        Role::Master => {
            let taint = json!({ "key": "node-role.kubernetes.io/master", "effect": "NoSchedule" });
            let mut config = joined();
            config["registerWithTaints"] = json!([taint]);
            config
        }
        Role::Worker => joined(),
    };
    merge(&mut config, by_role);
    // By default it listens for IPv4 only.
    let any = any_address(service_networks);
    if any.is_ipv6() && role != Role::Bootstrap {
        config["address"] = json!(any.to_string());
    }
    let mut text = serde_json::to_string_pretty(&config).unwrap_or_default();
    text.push('\n');
    text
}

/// Without an API server nobody could be authenticated by webhook, so the server is off; its pods are seen through the CRI.
fn standalone() -> Value {
    json!({
        "enableServer": false,
        "authentication": { "anonymous": { "enabled": false }, "webhook": { "enabled": false } },
        "authorization": { "mode": "AlwaysAllow" },
    })
}

fn joined() -> Value {
    json!({
        "authentication": {
            "anonymous": { "enabled": false },
            "webhook": { "enabled": true },
            "x509": { "clientCAFile": paths::KUBELET_CA },
        },
        "authorization": { "mode": "Webhook" },
        "rotateCertificates": true,
        "serverTLSBootstrap": true,
        "kubeAPIQPS": 50,
        "kubeAPIBurst": 100,
    })
}

fn merge(base: &mut Value, more: Value) {
    if let (Value::Object(base), Value::Object(more)) = (base, more) {
        base.extend(more);
    }
}

/// The Node's name is the short host name, whatever the DHCP client made of it; `localhost` means it has not answered yet.
///
/// Of a cluster with IPv6 each node says which addresses are its own, as upstream's nodeip-configuration does: those it leaves its
/// network with, one of each family. Without, a kubelet takes one of them, and rather an IPv4 one.
pub(super) fn unit(role: Role, service_networks: &[IpNet]) -> String {
    let everywhere = service_networks
        .iter()
        .map(|network| if network.addr().is_ipv4() { "192.0.2.1" } else { "2001:db8::1" });
    let ways: Vec<_> = everywhere.collect();
    let (own_addresses, node_ip) = match any_address(service_networks).is_ipv6() {
        true => (
            format!(
                "ips=$$(for to in {}; do ip route get $$to | grep -o \"src [^ ]*\" | cut -c5-; done | paste -sd,); \\\n  \
                 [ $$(echo \"$$ips\" | tr , \" \" | wc -w) = {} ] && ",
                ways.join(" "),
                ways.len()
            ),
            " --node-ip=$$ips",
        ),
        false => (String::new(), ""),
    };
    let (wait, joins) = match role {
        // From a drop-in: which of several addresses is the node's.
        Role::Bootstrap => (String::new(), " $$NODE_ARGS".into()),
        _ => (
            format!("{own_addresses}{} kubelet-join \"$$name\" && ", paths::NODE_SEEDLING),
            // No --bootstrap-kubeconfig: kubelet-join has asked. With one, a kubelet whose certificate has expired, and that has nothing
            // to ask with, would not start, and with it not the static pods that could give it another.
            format!(
                " \\\n  --kubeconfig={} --cert-dir={}{node_ip}",
                paths::KUBELET_KUBECONFIG,
                paths::KUBELET_PKI
            ),
        ),
    };
    format!(
        r#"[Unit]
Description=Kubernetes Kubelet
Wants=containerd.service network-online.target
After=containerd.service network-online.target
# However often it was killed, it comes back.
StartLimitIntervalSec=0

[Service]
# Not notify: a kubelet waits for its certificate as long as it takes, and holds nothing else up.
Type=exec
ExecStartPre=/bin/mkdir -p {manifests} {drop_ins} /var/lib/kubelet /opt/cni/bin /etc/cni/net.d
ExecStart=/bin/sh -c 'read -r name </proc/sys/kernel/hostname; name="$${{name%%%%.*}}"; \
  [ "$$name" != localhost ] && {wait}exec /usr/local/bin/kubelet --config={config} --config-dir={drop_ins} \
  --hostname-override="$$name"{joins}'
# Pods outlive a restart of the kubelet.
KillMode=process
Delegate=yes
Restart=always
RestartSec=1

[Install]
WantedBy=multi-user.target
"#,
        manifests = paths::STATIC_PODS,
        config = paths::KUBELET_CONFIG,
        drop_ins = paths::KUBELET_DROP_INS,
    )
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn v4() -> [IpNet; 1] {
        ["172.30.0.0/16".parse().unwrap()]
    }

    #[test]
    fn a_node_with_ipv6_names_an_address_of_each_family() {
        assert!(!unit(Role::Master, &v4()).contains("node-ip"));
        assert!(parsed(Role::Master).get("address").is_none());
        let both = [v4()[0], "fd02::/112".parse().unwrap()];
        let unit_of = unit(Role::Worker, &both);
        assert!(
            unit_of.contains("for to in 192.0.2.1 2001:db8::1; do") && unit_of.contains(" = 2 ] && /usr"),
            "{unit_of}"
        );
        assert!(unit_of.contains(" --node-ip=$$ips'"), "{unit_of}");
        let six: Value = serde_json::from_str(&config(&both[1..], Role::Master)).unwrap();
        assert_eq!((&six["address"], &six["clusterDNS"]), (&json!("::"), &json!(["fd02::a"])));
        assert!(unit(Role::Master, &both[1..]).contains("for to in 2001:db8::1; do"));
    }

    fn parsed(role: Role) -> Value {
        serde_json::from_str(&config(&v4(), role)).unwrap()
    }

    #[test]
    fn roles_differ_only_where_they_must() {
        assert_eq!(parsed(Role::Bootstrap)["authentication"]["webhook"]["enabled"], false);
        assert_eq!(parsed(Role::Master)["registerWithTaints"][0]["key"], "node-role.kubernetes.io/master");
        assert!(parsed(Role::Worker).get("registerWithTaints").is_none());
        assert_eq!(parsed(Role::Worker)["authentication"]["x509"]["clientCAFile"], paths::KUBELET_CA);
    }

    /// Without it there are no figures of file systems: `/stats/summary` answers 500, and nothing is ever evicted.
    #[test]
    fn disks_are_watched_and_something_is_kept_back() {
        for role in [Role::Bootstrap, Role::Master, Role::Worker] {
            let config = parsed(role);
            assert_ne!(config["localStorageCapacityIsolation"], false);
            for (what, least) in [("cpu", "500m"), ("memory", "1Gi"), ("ephemeral-storage", "1Gi")] {
                assert_eq!(config["systemReserved"][what], least, "{what}");
            }
            assert!(unit(role, &v4()).contains(" --config-dir=/etc/kubernetes/kubelet.conf.d "));
        }
    }

    #[test]
    fn only_a_joining_kubelet_has_kubeconfigs() {
        assert!(
            !unit(Role::Bootstrap, &v4()).contains("kubeconfig")
                && unit(Role::Bootstrap, &v4()).contains(" $$NODE_ARGS'")
        );
        let master = unit(Role::Master, &v4());
        assert!(master.contains("--kubeconfig=/var/lib/kubelet/kubeconfig") && !master.contains("bootstrap"));
    }
}
