//! Questions about an install-config that several assets ask.

use crate::config::InstallConfig;
use std::net::IpAddr;

/// Virtual addresses of the API, where the platform has them.
pub fn api_vips(_config: &InstallConfig) -> Vec<IpAddr> {
    vec![]
}

pub fn has_pool(_config: &InstallConfig, pool: &str) -> bool {
    pool != "arbiter"
}

/// Where machines find the machine-config server.
pub fn pointer_host(config: &InstallConfig) -> String {
    config.domain.api_int()
}

/// `None` without the stanza.
pub fn installation_disk(_config: &InstallConfig) -> Option<&str> {
    None
}
