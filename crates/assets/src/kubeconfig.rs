//! Kubeconfigs: one cluster, one user, one context named like the user, everything inline.

use crate::certificates::{asset_of, pair};
use crate::given::Given;
use crate::graph::{Asset, Id, Parents};
use crate::store::one;
use crate::yaml::to_yaml;
use crate::{Result, install_config};
use base64::{Engine, engine::general_purpose::STANDARD};
use seedling_types::ports;
use serde_json::{Value, json};

pub(crate) const ADMIN: Id = "kubeconfig.AdminClient";
pub(crate) const INTERNAL: Id = "kubeconfig.AdminInternalClient";
pub(crate) const KUBELET: Id = "kubeconfig.Kubelet";
pub(crate) const LOOPBACK: Id = "kubeconfig.LoopbackClient";

/// The identities that talk to the API during the bootstrap.
pub(crate) struct Row {
    pub id: Id,
    name: &'static str,
    file: &'static str,
    host: Host,
    bundle: &'static str,
    user: &'static str,
    client: &'static str,
}

#[derive(Clone, Copy)]
enum Host {
    Api,
    ApiInt,
    Localhost,
}

const SERVERS: &str = "kube-apiserver-complete-server-ca-bundle";
/// Who sees bootstrap.ign can read all of it: this one expires a day after the bring-up, and the administrator's own is not in it.
const BOOTSTRAP_ADMIN: &str = "bootstrap-admin-client";

#[rustfmt::skip]
pub(crate) const ROWS: &[Row] = &[
    Row { id: ADMIN, name: "Kubeconfig Admin Client", file: "auth/kubeconfig", host: Host::Api, bundle: SERVERS, user: "admin", client: "admin-kubeconfig-client" },
    Row { id: INTERNAL, name: "Kubeconfig Admin Internal Client", file: "auth/kubeconfig", host: Host::ApiInt, bundle: SERVERS, user: "admin", client: BOOTSTRAP_ADMIN },
    Row { id: KUBELET, name: "Kubeconfig Kubelet", file: "auth/kubeconfig-kubelet", host: Host::ApiInt, bundle: SERVERS, user: "kubelet", client: "kubelet-client" },
    Row { id: LOOPBACK, name: "Kubeconfig Admin Client (Loopback)", file: "auth/kubeconfig-loopback", host: Host::Localhost, bundle: "kube-apiserver-localhost-ca-bundle", user: "loopback", client: BOOTSTRAP_ADMIN },
];

pub(crate) fn assets() -> Vec<Asset> {
    ROWS.iter().map(Row::asset).collect()
}

impl Row {
    fn asset(&'static self) -> Asset {
        let needs = [asset_of(self.client), asset_of(self.bundle), install_config::ID];
        let asset = Asset::new(self.id, self.name, &needs, |p, _| Ok(one(self.file, &self.yaml(p)?)));
        // The others are in bootstrap.ign only.
        let lies_there = |given: &Given| self.id == ADMIN && !given.run.options.refresh;
        asset.loaded(move |given, _| if lies_there(given) { given.file(self.file) } else { Ok(None) })
    }
    fn yaml(&self, made: &Parents) -> Result<String> {
        let (config, user) = (made.config()?, self.user);
        let host = match self.host {
            Host::Api => config.domain.api(),
            Host::ApiInt => config.domain.api_int(),
            Host::Localhost => "localhost".into(),
        };
        let encode = |pem: &str| STANDARD.encode(pem);
        let ca = made.file(asset_of(self.bundle), &format!("tls/{}.crt", self.bundle))?;
        let client = pair(made, self.client)?;
        to_yaml(&json!({
            "clusters": [{
                "cluster": {
                    "certificate-authority-data": encode(ca),
                    "server": format!("https://{host}:{}", ports::API),
                },
                "name": config.name,
            }],
            "contexts": [{ "context": { "cluster": config.name, "user": user }, "name": user }],
            "current-context": user,
            "users": [{
                "name": user,
                "user": {
                    "client-certificate-data": encode(&client.cert),
                    "client-key-data": encode(&client.key),
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
