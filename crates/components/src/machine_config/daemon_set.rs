//! The machine-config server on every master: `release/templates/machine-config-server.yaml`.

use crate::template::{self, BadTemplate};
use seedling_types::{paths, ports};
use serde_json::Value;

const TEMPLATE: &str = include_str!("../../../../release/templates/machine-config-server.yaml");
pub const SERVER: &str = "machine-config-server";
/// Of `paths::MCS_AUDIT_LOG`; on the node, where it outlives the pod.
pub const AUDIT_DIR: &str = "/var/log/machine-config-server";

/// `api_server` is `https://api-int.CD:6443`: the address given to joining kubelets.
pub fn server_objects(image: &str, api_server: &str) -> Result<Vec<Value>, BadTemplate> {
    let port = ports::MCS.to_string();
    let values = [
        ("image:seedling", image),
        ("api-server", api_server),
        ("port", &port),
        ("certs", paths::MCS_TLS),
        ("audit", AUDIT_DIR),
    ];
    template::objects(TEMPLATE, &values)
}
