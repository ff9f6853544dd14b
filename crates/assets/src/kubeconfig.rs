//! Kubeconfigs: one cluster, one user, one context named like the user, everything inline.

use crate::CreateError;
use crate::yaml::to_yaml;
use base64::{Engine, engine::general_purpose::STANDARD};
use seedling_pki::CertKey;
use serde_json::{Value, json};

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
