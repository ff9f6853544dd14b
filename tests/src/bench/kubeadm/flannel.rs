//! flannel on a kubeadm cluster: its upstream manifest, with the release's image and the backend that ours has. The image has
//! no `flannel` CNI plugin, whose whole work is to copy the node's range into a bridge's config: a container does that.

use super::files::{POD_NETWORK, documents};
use seedling_types::ports;
use serde_json::{Value, json};

pub(super) const PATH: &str = "/root/flannel.yaml";
const NAMESPACE: &str = "kube-flannel";
const NAME: &str = "flannel";

const WRITE_CNI_CONFIG: &str = r#"
until [ -s /run/flannel/subnet.env ]; do sleep 0.1; done
. /run/flannel/subnet.env
# 10.244.1.1/24, the bridge's address, means 10.244.1.0/24
subnet=${FLANNEL_SUBNET%.*}.0/${FLANNEL_SUBNET#*/}
cat >/etc/cni/net.d/.new <<END
{"cniVersion": "1.0.0", "name": "cbr0", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true, "mtu": $FLANNEL_MTU,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "$subnet"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
END
mv /etc/cni/net.d/.new /etc/cni/net.d/10-flannel.conflist
exec sleep 2147483647
"#;

/// `api`: the name to dial instead of the Service's address, which works only once kube-proxy does. Ours dials a name.
pub(super) fn manifests(image: &str, api: Option<&str>) -> String {
    let meta = |name: &str| json!({"namespace": NAMESPACE, "name": name});
    documents(&[
        json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "privileged"}},
        }),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta(NAME)}),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": NAME},
            "rules": [
                {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
                {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]},
                {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]},
            ],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": NAME},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME},
            "subjects": [{"kind": "ServiceAccount", "namespace": NAMESPACE, "name": NAME}],
        }),
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": meta("kube-flannel-cfg"),
            "data": {"net-conf.json": json!({"Network": POD_NETWORK, "Backend": {"Type": "host-gw"}}).to_string()},
        }),
        json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": meta("kube-flannel-ds"),
            "spec": {
                "selector": {"matchLabels": {"app": NAME}},
                "template": {"metadata": {"labels": {"app": NAME}}, "spec": pod(image, api)},
            },
        }),
    ])
}

fn pod(image: &str, api: Option<&str>) -> Value {
    let field =
        |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
    let mut env = vec![field("POD_NAME", "metadata.name"), field("POD_NAMESPACE", "metadata.namespace")];
    if let Some(api) = api {
        env.push(json!({"name": "KUBERNETES_SERVICE_HOST", "value": api}));
        env.push(json!({"name": "KUBERNETES_SERVICE_PORT", "value": ports::API.to_string()}));
    }
    let host =
        |name: &str, path: &str, kind: &str| json!({"name": name, "hostPath": {"path": path, "type": kind}});
    let mount = |name: &str, path: &str| json!({"name": name, "mountPath": path});
    json!({
        "serviceAccountName": NAME,
        "hostNetwork": true,
        "priorityClassName": "system-node-critical",
        "tolerations": [{"operator": "Exists", "effect": "NoSchedule"}],
        "initContainers": [{
            "name": "install-cni-plugin", "image": image,
            "command": ["/bin/busybox", "sh", "-c", "/bin/busybox cp -f /opt/cni/bin/* /host/opt/cni/bin/"],
            "volumeMounts": [mount("cni-plugin", "/host/opt/cni/bin")],
        }],
        "containers": [
            {
                "name": "kube-flannel", "image": image,
                "command": ["flanneld", "--ip-masq", "--kube-subnet-mgr"],
                "env": env,
                "securityContext": {"privileged": true},
                "volumeMounts": [
                    mount("run", "/run/flannel"), mount("xtables-lock", "/run/xtables.lock"),
                    mount("flannel-cfg", "/etc/kube-flannel"),
                ],
            },
            {
                "name": "install-cni", "image": image,
                "command": ["/bin/busybox", "sh", "-c", WRITE_CNI_CONFIG],
                "volumeMounts": [mount("run", "/run/flannel"), mount("cni", "/etc/cni/net.d")],
            },
        ],
        "volumes": [
            host("run", "/run/flannel", "DirectoryOrCreate"),
            host("cni-plugin", "/opt/cni/bin", "DirectoryOrCreate"),
            host("cni", "/etc/cni/net.d", "DirectoryOrCreate"),
            host("xtables-lock", "/run/xtables.lock", "FileOrCreate"),
            {"name": "flannel-cfg", "configMap": {"name": "kube-flannel-cfg"}},
        ],
    })
}
