//! master.ign and worker.ign: nothing but where the real config is and whom to trust. A node's own pointer has its token besides.

use seedling_ignition::{Config, HttpHeader, Ignition, Redirect, Resource, Security, Tls, data_url};
use seedling_types::{ClusterDomain, Host, Inventory, NodeToken, Role, ports};

/// As upstream's, byte for byte.
pub fn pointer(domain: &ClusterDomain, role: Role, root_ca: &str) -> Config {
    to(domain, role, root_ca, vec![])
}

/// The token is a header, which Ignition sends to this server only and does not log.
pub fn node_pointer(domain: &ClusterDomain, role: Role, root_ca: &str, token: &NodeToken) -> Config {
    to(domain, role, root_ca, vec![HttpHeader { name: "Authorization".into(), value: token.bearer() }])
}

/// Below the asset directory.
pub fn node_file(name: &str) -> String {
    format!("nodes/{name}.ign")
}

pub fn new_token() -> NodeToken {
    NodeToken::new(rand::random())
}

/// Machines that ask the machine-config server: all but the bootstrap machine, which brings everything along.
pub fn joining(inventory: &Inventory) -> impl Iterator<Item = &Host> {
    inventory.hosts.iter().filter(|host| host.role != Role::Bootstrap)
}

fn to(domain: &ClusterDomain, role: Role, root_ca: &str, http_headers: Vec<HttpHeader>) -> Config {
    let resource = |source: String| Resource { source: Some(source), ..Resource::default() };
    let config = format!("https://{}:{}/config/{}", domain.api_int(), ports::MCS, role.as_str());
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
