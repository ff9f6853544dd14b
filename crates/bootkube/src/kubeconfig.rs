//! Kubeconfigs that bootkube makes from the cluster's own certificates.

use serde_json::{Value, json};

pub struct Kubeconfig<'a> {
    pub server: &'a str,
    pub ca: &'a str,
    pub user: &'a str,
    pub cert: &'a str,
    pub key: &'a str,
}

impl Kubeconfig<'_> {
    pub fn yaml(&self) -> String {
        use base64::{Engine, engine::general_purpose::STANDARD};
        let b64 = |s: &str| STANDARD.encode(s);
        let config: Value = json!({
            "clusters": [{"name": "cluster", "cluster": {"certificate-authority-data": b64(self.ca), "server": self.server}}],
            "contexts": [{"name": self.user, "context": {"cluster": "cluster", "user": self.user}}],
            "current-context": self.user,
            "users": [{"name": self.user, "user": {"client-certificate-data": b64(self.cert), "client-key-data": b64(self.key)}}],
        });
        seedling_components::pod::to_yaml(&config)
    }
}
