//! Kubeconfigs: one cluster, one user, one context named like the user, everything inline.

use crate::CreateError;
use crate::graph::{self, Id};
use crate::yaml::to_yaml;
use base64::{Engine, engine::general_purpose::STANDARD};
use seedling_pki::CertKey;
use seedling_types::{ClusterDomain, ports};
use serde_json::{Value, json};

/// The identities that talk to the API during the bootstrap.
pub struct Row {
    pub id: Id,
    pub file: &'static str,
    pub host: Host,
    pub bundle: &'static str,
    pub user: &'static str,
    pub client: &'static str,
}

#[derive(Clone, Copy)]
pub enum Host {
    Api,
    ApiInt,
    Localhost,
}

const SERVERS: &str = "kube-apiserver-complete-server-ca-bundle";
const ADMIN: &str = "admin-kubeconfig-client";
/// What lies in bootstrap.ign is read by whoever sees that file: it ends with the bring-up's day, and the person's own is not in it.
const BOOTSTRAP_ADMIN: &str = "bootstrap-admin-client";

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    Row { id: graph::KUBECONFIG_ADMIN, file: "auth/kubeconfig", host: Host::Api, bundle: SERVERS, user: "admin", client: ADMIN },
    Row { id: graph::KUBECONFIG_INTERNAL, file: "auth/kubeconfig", host: Host::ApiInt, bundle: SERVERS, user: "admin", client: BOOTSTRAP_ADMIN },
    Row { id: graph::KUBECONFIG_KUBELET, file: "auth/kubeconfig-kubelet", host: Host::ApiInt, bundle: SERVERS, user: "kubelet", client: "kubelet-client" },
    Row { id: graph::KUBECONFIG_LOOPBACK, file: "auth/kubeconfig-loopback", host: Host::Localhost, bundle: "kube-apiserver-localhost-ca-bundle", user: "loopback", client: BOOTSTRAP_ADMIN },
];

impl Row {
    pub fn server(&self, domain: &ClusterDomain) -> String {
        let host = match self.host {
            Host::Api => domain.api(),
            Host::ApiInt => domain.api_int(),
            Host::Localhost => "localhost".into(),
        };
        format!("https://{host}:{}", ports::API)
    }
}

pub struct Kubeconfig<'a> {
    pub cluster: &'a str,
    pub server: String,
    pub ca: &'a str,
    pub user: &'a str,
    pub client: &'a CertKey,
}

impl Kubeconfig<'_> {
    pub fn to_yaml(&self) -> Result<String, CreateError> {
        let encode = |pem: &str| STANDARD.encode(pem);
        to_yaml(&json!({
            "clusters": [{
                "cluster": { "certificate-authority-data": encode(self.ca), "server": self.server },
                "name": self.cluster,
            }],
            "contexts": [{ "context": { "cluster": self.cluster, "user": self.user }, "name": self.user }],
            "current-context": self.user,
            "users": [{
                "name": self.user,
                "user": {
                    "client-certificate-data": encode(&self.client.cert),
                    "client-key-data": encode(&self.client.key),
                },
            }],
        }))
    }
}

/// The admin kubeconfig for a loopback forward: another address, the same server name.
pub fn lab_kubeconfig(admin_kubeconfig_yaml: &str, server: &str, tls_server_name: &str) -> String {
    let edit = || -> Option<String> {
        let mut config: Value = serde_saphyr::from_str(admin_kubeconfig_yaml).ok()?;
        let cluster = config.pointer_mut("/clusters/0/cluster")?.as_object_mut()?;
        cluster.insert("server".into(), server.into());
        cluster.insert("tls-server-name".into(), tls_server_name.into());
        to_yaml(&config).ok()
    };
    edit().unwrap_or_else(|| admin_kubeconfig_yaml.to_string())
}
