//! master.ign and worker.ign: nothing but where the real config is and whom to trust.

use seedling_ignition::{Config, Ignition, Redirect, Resource, Security, Tls, data_url};
use seedling_types::{ClusterDomain, Role, ports};

pub fn pointer(domain: &ClusterDomain, role: Role, root_ca: &str) -> Config {
    let resource = |source: String| Resource { source: Some(source), ..Resource::default() };
    let config = format!("https://{}:{}/config/{}", domain.api_int(), ports::MCS, role.as_str());
    Config {
        ignition: Ignition {
            config: Some(Redirect { merge: vec![resource(config)], replace: None }),
            security: Some(Security {
                tls: Tls { certificate_authorities: vec![resource(data_url(root_ca.as_bytes()))] },
            }),
            ..Ignition::default()
        },
        ..Config::default()
    }
}
