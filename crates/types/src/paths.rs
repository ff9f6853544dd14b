//! The one table of paths on a node.

/// bootkube's working directory; bootstrap.ign fills it.
pub const OPT_OPENSHIFT: &str = "/opt/openshift";
pub const ETC_KUBERNETES: &str = "/etc/kubernetes";
/// Where the kubelet looks for static pods.
pub const STATIC_PODS: &str = "/etc/kubernetes/manifests";
pub const STATIC_POD_RESOURCES: &str = "/etc/kubernetes/static-pod-resources";
pub const BOOTSTRAP_SECRETS: &str = "/etc/kubernetes/bootstrap-secrets";
/// Kubeconfig of the API server on the same node, for people and for the seeds' commands.
pub const LOCALHOST_KUBECONFIG: &str = "/etc/kubernetes/kubeconfigs/localhost.kubeconfig";
/// The bootstrap kubeconfig that the machine-config server hands to a kubelet.
pub const KUBELET_BOOTSTRAP_KUBECONFIG: &str = "/etc/kubernetes/kubeconfig";
pub const KUBELET_KUBECONFIG: &str = "/var/lib/kubelet/kubeconfig";
pub const KUBELET_PKI: &str = "/var/lib/kubelet/pki";
pub const KUBELET_CONFIG: &str = "/etc/kubernetes/kubelet.conf";
/// What a machine has to add to that, in files named `*.conf`.
pub const KUBELET_DROP_INS: &str = "/etc/kubernetes/kubelet.conf.d";
pub const KUBELET_CA: &str = "/etc/kubernetes/kubelet-ca.crt";
pub const ETCD_DATA: &str = "/var/lib/etcd";
/// What was done on this node, step by step; the service records are made of it.
pub const JOURNAL: &str = "/var/log/openshift/journal.jsonl";
/// Service records, one JSON array a service.
pub const SERVICE_RECORDS: &str = "/var/log/openshift";
/// Of API servers: who changed what.
pub const API_LOGS: &str = "/var/log/kube-apiserver";
/// Node software that Ignition fetches: kubelet, crictl, kubectl, containerd, seedling.
pub const NODE_BIN: &str = "/usr/local/bin";
/// The node's own seedling; in a static pod's container it waits for what the program there needs, and becomes that program.
pub const NODE_SEEDLING: &str = "/usr/local/bin/seedling";
pub const MCS_BOOTSTRAP: &str = "/etc/mcs/bootstrap";
/// The machines that the bootstrap machine-config server answers (`Admission`); what the cluster knows is copied here as it changes.
pub const MCS_NODE_TOKENS: &str = "/etc/mcs/node-tokens.json";
/// JSON lines: who asked for a config, from where, and whether it was given.
pub const MCS_AUDIT_LOG: &str = "/var/log/machine-config-server/audit.log";
pub const MCS_TLS: &str = "/etc/ssl/mcs";
pub const CONTAINERD_SOCKET: &str = "unix:///run/containerd/containerd.sock";
