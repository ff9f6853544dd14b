//! What all control-plane pods share: host network, host paths, the two places they run.

use seedling_types::paths;
use seedling_types::template::{TemplateError, map_strings, render, table};
use serde_json::{Value, json};

/// Where in its container every control-plane program finds its certificates and configs.
pub const RESOURCES: &str = "/etc/kubernetes/secrets";

/// The same component runs in two places, with other names and paths but the same flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the bootstrap node: files of `/etc/kubernetes/bootstrap-secrets`.
    Bootstrap,
    /// On a master: files an installer pod wrote under `/etc/kubernetes/static-pod-resources/<pod>-<revision>`. The pod is one for all
    /// masters, with [`NODE_NAME`], [`NODE_IP`] and [`REVISION`] in it, which [`on_master`] replaces.
    Master,
}

/// What only the installer on a master knows.
pub const NODE_NAME: &str = "${node-name}";
pub const NODE_IP: &str = "${node-ip}";
const REVISION: &str = "${revision}";

/// Completes a pod for one master.
pub fn on_master(
    pod: &mut Value,
    revision: i64,
    node_name: &str,
    node_ip: &str,
) -> Result<(), TemplateError> {
    let revision = revision.to_string();
    let values = [("node-name", node_name), ("node-ip", node_ip), ("revision", &revision)];
    map_strings(pod, &|text| render(text, table(&values)))
}

/// A file that a flag names: its name among the bootstrap secrets, and its path below a revision's directory.
pub type FileRow = (&'static str, &'static str, &'static str);

pub fn file_flags(rows: &[FileRow], place: Place) -> Vec<String> {
    let path = |row: &FileRow| match place {
        Place::Bootstrap => row.1,
        Place::Master => row.2,
    };
    rows.iter().map(|row| format!("--{}={RESOURCES}/{}", row.0, path(row))).collect()
}

/// `--key=value` flags from a table.
pub fn flags(table: &[(&str, String)]) -> Vec<String> {
    table.iter().map(|(key, value)| format!("--{key}={value}")).collect()
}

pub fn host_path(name: &str, path: &str, kind: &str) -> Value {
    json!({"name": name, "hostPath": {"path": path, "type": kind}})
}

pub fn mount(name: &str, path: &str, read_only: bool) -> Value {
    json!({"name": name, "mountPath": path, "readOnly": read_only})
}

/// The node's own seedling, for a container of another image. See [`paths::NODE_SEEDLING`].
pub fn seedling_volume() -> Value {
    host_path("seedling", paths::NODE_SEEDLING, "File")
}

pub fn seedling_mount() -> Value {
    mount("seedling", paths::NODE_SEEDLING, true)
}

/// For what works on the node from inside a container, and writes it down.
pub fn journal_volume() -> Value {
    host_path("journal", paths::SERVICE_RECORDS, "DirectoryOrCreate")
}

pub fn journal_mount() -> Value {
    mount("journal", paths::SERVICE_RECORDS, false)
}

/// Where the resources of a component lie on the host.
pub fn resources_volume(place: Place, pod_configmap: &str) -> Value {
    match place {
        Place::Bootstrap => host_path("resources", "/etc/kubernetes/bootstrap-secrets", "Directory"),
        Place::Master => {
            let path = format!("/etc/kubernetes/static-pod-resources/{pod_configmap}-{REVISION}");
            host_path("resources", &path, "Directory")
        }
    }
}

pub struct StaticPod {
    pub name: String,
    pub namespace: &'static str,
    pub app: &'static str,
    pub place: Place,
    pub containers: Vec<Value>,
    pub volumes: Vec<Value>,
    pub grace_seconds: u32,
}

impl StaticPod {
    /// Nothing evicts it, nothing keeps it from starting.
    pub fn manifest(mut self) -> Value {
        let mut labels = json!({"app": self.app});
        match self.place {
            Place::Master => labels["revision"] = json!(REVISION),
            Place::Bootstrap => self.containers.iter_mut().for_each(collect_seldom),
        }
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": self.name, "namespace": self.namespace, "labels": labels},
            "spec": {
                "hostNetwork": true,
                "priorityClassName": "system-node-critical",
                "terminationGracePeriodSeconds": self.grace_seconds,
                "tolerations": [{"operator": "Exists"}],
                "containers": self.containers,
                "volumes": self.volumes,
            }
        })
    }
}

/// A controller: certificates and a kubeconfig from its resources, `/healthz` on a loopback port, nothing on disk.
pub struct Controller {
    pub name: &'static str,
    /// Name and namespace on a master; on the bootstrap node they are `bootstrap-<name>` and kube-system.
    pub pod: &'static str,
    pub namespace: &'static str,
    pub pod_configmap: &'static str,
    pub port: u16,
    pub cpu: &'static str,
    pub memory: &'static str,
}

impl Controller {
    pub fn pod(&self, image: &str, args: Vec<String>, place: Place) -> Value {
        let mut container = json!({
            "name": self.name,
            "image": image,
            "imagePullPolicy": "IfNotPresent",
            "command": [self.name],
            "args": args,
            "resources": {"requests": {"cpu": self.cpu, "memory": self.memory}},
            "volumeMounts": [mount("resources", RESOURCES, true)],
        });
        if place == Place::Master {
            ready_when(&mut container, "HTTPS", self.port, "/healthz", 3);
            container["livenessProbe"] = probe("HTTPS", "127.0.0.1", self.port, "/healthz", 10, 6);
        }
        let (name, namespace) = match place {
            Place::Bootstrap => (format!("bootstrap-{}", self.name), "kube-system"),
            Place::Master => (self.pod.into(), self.namespace),
        };
        let volumes = vec![resources_volume(place, self.pod_configmap)];
        StaticPod {
            name,
            namespace,
            app: self.pod,
            place,
            containers: vec![container],
            volumes,
            grace_seconds: 30,
        }
        .manifest()
    }
}

/// The temporary control plane lives for a minute, on a node that has nothing else to do: memory is cheaper there than time.
fn collect_seldom(container: &mut Value) {
    let more = json!({"name": "GOGC", "value": "400"});
    match container["env"].as_array_mut() {
        Some(env) => env.push(more),
        None => container["env"] = json!([more]),
    }
}

/// Manifests are written as YAML, for the people who look into the directory.
pub fn to_yaml(value: &Value) -> String {
    serde_saphyr::to_string(value).unwrap_or_else(|_| value.to_string())
}

/// Ready when this loopback port says so: asked every second until it first does, then every five, as upstream does.
///
/// Each question is a new connection, for TLS a handshake; a program that ends is known without one.
pub fn ready_when(container: &mut Value, scheme: &str, port: u16, path: &str, failures: u32) {
    // The first good answer lets the kubelet ask for readiness at once, not only a period later.
    container["startupProbe"] = probe(scheme, "127.0.0.1", port, path, 1, 1800);
    container["readinessProbe"] = probe(scheme, "127.0.0.1", port, path, 5, failures);
}

/// An HTTPS or HTTP probe of a loopback or host-network port.
pub fn probe(scheme: &str, host: &str, port: u16, path: &str, period: u32, failures: u32) -> Value {
    json!({
        "httpGet": {"scheme": scheme, "host": host, "port": port, "path": path},
        "periodSeconds": period,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installer_fills_in_its_node() {
        let mut pod = json!({
            "labels": {"revision": REVISION},
            "args": [format!("etcd-pod-{REVISION} {NODE_NAME} {NODE_IP}"), "$(NODE_NAME)"],
        });
        assert_eq!(on_master(&mut pod, 7, "master-0", "192.168.100.11"), Ok(()));
        let args = ["etcd-pod-7 master-0 192.168.100.11", "$(NODE_NAME)"];
        assert_eq!(pod, json!({"labels": {"revision": "7"}, "args": args}));
        let yaml = to_yaml(&pod);
        assert!(yaml.contains("revision: \"7\"") || yaml.contains("revision: '7'"), "{yaml}");
        assert!(on_master(&mut json!("${node}"), 7, "master-0", "192.168.100.11").is_err());
    }
}
