//! master.ign and worker.ign: only where the real config is and which CA to trust. A node's own pointer also has its token.

use crate::{CreateError, Result};
use seedling_ignition::{Config, HttpHeader, Ignition, Redirect, Resource, Security, Tls, data_url};
use seedling_types::{ClusterDomain, Host, Inventory, NodeToken, Role, ports};
use serde_json::{Value, json};

/// As upstream's, byte for byte.
pub(crate) fn pointer(host: &str, pool: &str, root_ca: &str) -> Config {
    to(host, pool, root_ca, vec![])
}

/// The token is a header, which Ignition sends to this server only and does not log.
pub fn node_pointer(domain: &ClusterDomain, role: Role, root_ca: &str, token: &NodeToken) -> Config {
    own_pointer(&domain.api_int(), role, root_ca, token)
}

pub(crate) fn own_pointer(host: &str, role: Role, root_ca: &str, token: &NodeToken) -> Config {
    let header = HttpHeader { name: "Authorization".into(), value: token.bearer() };
    to(host, role.as_str(), root_ca, vec![header])
}

/// Below the asset directory.
pub fn node_file(name: &str) -> String {
    format!("nodes/{name}.ign")
}

pub fn new_token() -> NodeToken {
    NodeToken::new(rand::random())
}

/// Machines that ask the machine-config server: all but the bootstrap machine, which brings everything along.
pub(crate) fn joining(inventory: &Inventory) -> impl Iterator<Item = &Host> {
    inventory.hosts.iter().filter(|host| host.role != Role::Bootstrap)
}

fn to(host: &str, pool: &str, root_ca: &str, http_headers: Vec<HttpHeader>) -> Config {
    let resource = |source: String| Resource { source: Some(source), ..Resource::default() };
    let config = format!("https://{host}:{}/config/{pool}", ports::MCS);
    Config {
        ignition: Ignition {
            config: Some(Redirect {
                merge: vec![Resource { http_headers, ..resource(config) }],
                replace: None,
            }),
            security: Some(Security {
                tls: Tls { certificate_authorities: vec![resource(data_url(root_ca.as_bytes()))] },
            }),
            ..Ignition::default()
        },
        ..Config::default()
    }
}

pub(crate) fn parse(file: &str, text: &str) -> Result<Value> {
    let failed = |e: serde_json::Error| {
        let why = if e.is_eof() { "unexpected end of JSON input".into() } else { e.to_string() };
        CreateError::Unmarshal { file: file.into(), why }
    };
    serde_json::from_str(text).map_err(failed)
}

/// What a user added to a pointer config, without the pointer itself: a machine that follows it would come back to it.
pub(crate) fn additions(file: &str, given: &str, made: &str) -> Result<Option<Value>> {
    let (mut given, made) = (parse(file, given)?, parse(file, made)?);
    if given == made {
        return Ok(None);
    }
    for list in ["/ignition/config/merge", "/ignition/security/tls/certificateAuthorities"] {
        let own = made.pointer(list).and_then(Value::as_array).cloned().unwrap_or_default();
        if let Some(items) = given.pointer_mut(list).and_then(Value::as_array_mut) {
            items.retain(|item| !own.contains(item));
        }
    }
    prune(&mut given);
    given["ignition"]["version"] = made["ignition"]["version"].clone();
    Ok((given != json!({ "ignition": { "version": made["ignition"]["version"] } })).then_some(given))
}

/// Takes away what is empty.
fn prune(value: &mut Value) {
    if let Value::Object(members) = value {
        members.values_mut().for_each(prune);
        members.retain(|_, v| {
            !(v.as_object().is_some_and(|o| o.is_empty()) || v.as_array().is_some_and(Vec::is_empty))
        });
    }
}
