//! The machine-config server on every master.

use seedling_types::names::NS_MCO;
use seedling_types::{paths, ports};
use serde_json::{Value, json};

pub const SERVER: &str = "machine-config-server";
/// Of `paths::MCS_AUDIT_LOG`; on the node, where it outlives the pod.
pub const AUDIT_DIR: &str = "/var/log/machine-config-server";

/// `api_server` is `https://api-int.CD:6443`: the address given to joining kubelets.
pub fn server_daemon_set(image: &str, api_server: &str) -> Value {
    let labels = json!({"k8s-app": SERVER});
    let env_file = "/etc/kubernetes/apiserver-url.env";
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"namespace": NS_MCO, "name": SERVER, "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": SERVER,
                    "hostNetwork": true,
                    "dnsPolicy": "Default",
                    "priorityClassName": "system-cluster-critical",
                    "terminationGracePeriodSeconds": 10,
                    "nodeSelector": {"node-role.kubernetes.io/master": ""},
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [{
                        "name": SERVER,
                        "image": image,
                        "imagePullPolicy": "IfNotPresent",
                        "command": ["/usr/bin/seedling", "machine-config-server", "start", format!("--apiserver-url={api_server}")],
                        "terminationMessagePolicy": "FallbackToLogsOnError",
                        "resources": {"requests": {"cpu": "20m", "memory": "50Mi"}},
                        "readinessProbe": {
                            "httpGet": {"scheme": "HTTPS", "port": ports::MCS, "path": "/healthz"},
                            "periodSeconds": 5,
                        },
                        "securityContext": {
                            "allowPrivilegeEscalation": false,
                            "readOnlyRootFilesystem": true,
                            "capabilities": {"drop": ["ALL"]},
                        },
                        "volumeMounts": [
                            {"name": "certs", "mountPath": paths::MCS_TLS, "readOnly": true},
                            {"name": "apiserver-url", "mountPath": env_file, "readOnly": true},
                            {"name": "audit", "mountPath": AUDIT_DIR},
                        ],
                    }],
                    "volumes": [
                        {"name": "certs", "secret": {"secretName": "machine-config-server-tls"}},
                        {"name": "apiserver-url", "hostPath": {"path": env_file, "type": "File"}},
                        {"name": "audit", "hostPath": {"path": AUDIT_DIR, "type": "DirectoryOrCreate"}},
                    ],
                },
            },
        },
    })
}
