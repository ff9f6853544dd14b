//! What all control-plane pods share: host network, host paths, the two places they run.

pub use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::api::core::v1::{
    EnvVar, EnvVarSource, HTTPGetAction, HostPathVolumeSource, ObjectFieldSelector, PodSpec, Probe,
    ResourceRequirements, Toleration, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use seedling_types::paths;
use seedling_types::template::{TemplateError, map_strings, render, table};
use serde::Serialize;
use serde_json::Value;

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

pub fn host_path(name: &str, path: &str, kind: &str) -> Volume {
    let host_path = HostPathVolumeSource { path: path.into(), type_: Some(kind.into()) };
    Volume { name: name.into(), host_path: Some(host_path), ..Volume::default() }
}

pub fn mount(name: &str, path: &str, read_only: bool) -> VolumeMount {
    let (name, mount_path, read_only) = (name.into(), path.into(), Some(read_only));
    VolumeMount { name, mount_path, read_only, ..VolumeMount::default() }
}

pub fn env(name: &str, value: impl Into<String>) -> EnvVar {
    EnvVar { name: name.into(), value: Some(value.into()), value_from: None }
}

/// From a field of the pod itself.
pub fn env_of_pod(name: &str, field: &str) -> EnvVar {
    let field = ObjectFieldSelector { field_path: field.into(), api_version: None };
    let source = EnvVarSource { field_ref: Some(field), ..EnvVarSource::default() };
    EnvVar { name: name.into(), value: None, value_from: Some(source) }
}

pub fn words(command: &[&str]) -> Vec<String> {
    command.iter().map(ToString::to_string).collect()
}

/// A container of an image that is named by its digest, so one that is there is the right one.
pub fn container(name: &str, image: &str, command: Vec<String>, mounts: Vec<VolumeMount>) -> Container {
    Container {
        name: name.into(),
        image: Some(image.into()),
        image_pull_policy: Some("IfNotPresent".into()),
        command: Some(command),
        volume_mounts: Some(mounts),
        ..Container::default()
    }
}

/// What a container asks the scheduler for.
pub fn requests(cpu: &str, memory: &str) -> Option<ResourceRequirements> {
    let requests =
        [("cpu", cpu), ("memory", memory)].map(|(what, much)| (what.into(), Quantity(much.into())));
    Some(ResourceRequirements { requests: Some(requests.into()), ..ResourceRequirements::default() })
}

/// On the network of its host.
pub fn on_host(
    metadata: ObjectMeta,
    grace_seconds: u32,
    containers: Vec<Container>,
    volumes: Vec<Volume>,
) -> Pod {
    let spec = PodSpec {
        host_network: Some(true),
        termination_grace_period_seconds: Some(grace_seconds.into()),
        containers,
        volumes: Some(volumes),
        ..PodSpec::default()
    };
    Pod { metadata, spec: Some(spec), status: None }
}

/// The node's own seedling, for a container of another image. See [`paths::NODE_SEEDLING`].
pub fn seedling_volume() -> Volume {
    host_path("seedling", paths::NODE_SEEDLING, "File")
}

pub fn seedling_mount() -> VolumeMount {
    mount("seedling", paths::NODE_SEEDLING, true)
}

/// For what works on the node from inside a container, and writes it down.
pub fn journal_volume() -> Volume {
    host_path("journal", paths::SERVICE_RECORDS, "DirectoryOrCreate")
}

pub fn journal_mount() -> VolumeMount {
    mount("journal", paths::SERVICE_RECORDS, false)
}

/// Where the resources of a component lie on the host.
pub fn resources_volume(place: Place, pod_configmap: &str) -> Volume {
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
    pub containers: Vec<Container>,
    pub volumes: Vec<Volume>,
    pub grace_seconds: u32,
}

impl StaticPod {
    /// Nothing evicts it, nothing keeps it from starting.
    pub fn manifest(mut self) -> Pod {
        let mut labels = vec![("app", self.app)];
        match self.place {
            Place::Master => labels.push(("revision", REVISION)),
            Place::Bootstrap => self.containers.iter_mut().for_each(collect_seldom),
        }
        let metadata = metadata(self.namespace, &self.name, &labels);
        critical(on_host(metadata, self.grace_seconds, self.containers, self.volumes))
    }
}

pub fn metadata(namespace: &str, name: &str, labels: &[(&str, &str)]) -> ObjectMeta {
    let labels = labels.iter().map(|(key, value)| (key.to_string(), value.to_string()));
    ObjectMeta {
        namespace: Some(namespace.into()),
        name: Some(name.into()),
        labels: Some(labels.collect()),
        ..ObjectMeta::default()
    }
}

/// Nothing evicts it, and no taint keeps it away.
pub fn critical(mut pod: Pod) -> Pod {
    let everything = Toleration { operator: Some("Exists".into()), ..Toleration::default() };
    if let Some(spec) = &mut pod.spec {
        spec.priority_class_name = Some("system-node-critical".into());
        spec.tolerations = Some(vec![everything]);
    }
    pod
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
    pub fn pod(&self, image: &str, args: Vec<String>, place: Place) -> Pod {
        let mounts = vec![mount("resources", RESOURCES, true)];
        let mut container = Container {
            args: Some(args),
            resources: requests(self.cpu, self.memory),
            ..container(self.name, image, vec![self.name.into()], mounts)
        };
        if place == Place::Master {
            ready_when(&mut container, "HTTPS", self.port, "/healthz", 3);
            container.liveness_probe = probe("HTTPS", "127.0.0.1", self.port, "/healthz", 10, 6);
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
fn collect_seldom(container: &mut Container) {
    container.env.get_or_insert_default().push(env("GOGC", "400"));
}

/// Manifests are written as YAML, for the people who look into the directory.
pub fn to_yaml(value: &impl Serialize) -> String {
    // Strings, numbers, lists and maps always have a YAML form.
    serde_saphyr::to_string(value).unwrap_or_default()
}

/// Ready when this loopback port says so: asked every second until it first does, then every five, as upstream does.
///
/// Each question is a new connection, for TLS a handshake; a program that ends is known without one.
pub fn ready_when(container: &mut Container, scheme: &str, port: u16, path: &str, failures: i32) {
    // The first good answer lets the kubelet ask for readiness at once, not only a period later.
    container.startup_probe = probe(scheme, "127.0.0.1", port, path, 1, 1800);
    container.readiness_probe = probe(scheme, "127.0.0.1", port, path, 5, failures);
}

/// An HTTPS or HTTP probe of a loopback or host-network port.
pub fn probe(scheme: &str, host: &str, port: u16, path: &str, period: i32, failures: i32) -> Option<Probe> {
    let get = HTTPGetAction {
        scheme: Some(scheme.into()),
        host: Some(host.into()),
        port: IntOrString::Int(port.into()),
        path: Some(path.into()),
        http_headers: None,
    };
    Some(Probe {
        http_get: Some(get),
        period_seconds: Some(period),
        timeout_seconds: Some(5),
        failure_threshold: Some(failures),
        ..Probe::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
