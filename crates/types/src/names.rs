//! Names that clients and peers look for.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Name in pull specs. Nodes never resolve it: containerd's hosts.toml sends it to the helper's registry.
pub const REGISTRY: &str = "registry.seedling.internal";

pub const NS_ETCD: &str = "openshift-etcd";
pub const NS_ETCD_OPERATOR: &str = "openshift-etcd-operator";
pub const NS_KAS: &str = "openshift-kube-apiserver";
pub const NS_KAS_OPERATOR: &str = "openshift-kube-apiserver-operator";
pub const NS_KCM: &str = "openshift-kube-controller-manager";
pub const NS_KCM_OPERATOR: &str = "openshift-kube-controller-manager-operator";
pub const NS_SCHEDULER: &str = "openshift-kube-scheduler";
pub const NS_SCHEDULER_OPERATOR: &str = "openshift-kube-scheduler-operator";
pub const NS_MCO: &str = "openshift-machine-config-operator";
pub const NS_APPROVER: &str = "openshift-cluster-machine-approver";
pub const NS_NETWORK_OPERATOR: &str = "openshift-network-operator";
/// Flannel and kube-proxy run here.
pub const NS_NETWORK: &str = "openshift-network";
pub const NS_DNS_OPERATOR: &str = "openshift-dns-operator";
pub const NS_DNS: &str = "openshift-dns";
pub const NS_CVO: &str = "openshift-cluster-version";
pub const NS_CONFIG: &str = "openshift-config";
pub const NS_CONFIG_MANAGED: &str = "openshift-config-managed";

/// ConfigMap openshift-config/cluster-inventory, key `hosts.yaml`: the inventory inside the cluster.
pub const INVENTORY_CONFIGMAP: &str = "cluster-inventory";
/// ConfigMap openshift-config/certificates: how long certificates live; it need not be there.
pub const CERTIFICATES_CONFIGMAP: &str = "certificates";
/// Secret openshift-machine-config-operator/node-tokens: `Admission`, digests only.
pub const NODE_TOKENS_SECRET: &str = "node-tokens";

/// `<metadata.name>.<baseDomain>`, without a trailing dot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClusterDomain(pub String);

impl ClusterDomain {
    pub fn new(name: &str, base_domain: &str) -> Self {
        Self(format!("{name}.{}", base_domain.trim_end_matches('.')))
    }
    pub fn api(&self) -> String {
        format!("api.{}", self.0)
    }
    pub fn api_int(&self) -> String {
        format!("api-int.{}", self.0)
    }
    pub fn apps(&self) -> String {
        format!("apps.{}", self.0)
    }
    /// The helper node's own name; node software and images come from there.
    pub fn helper(&self) -> String {
        format!("helper.{}", self.0)
    }
    pub fn host(&self, name: &str) -> String {
        format!("{name}.{}", self.0)
    }
}

impl fmt::Display for ClusterDomain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
