//! Machines that are no process of ours: switched on by a packet, or by their management controller.
//!
//! In: an entry of the install-config's `platform.baremetal.hosts`, or of a file with the same `hosts`. Out: a controller that can be
//! asked, without anything of its password in what is printed.

mod redfish;
mod wake;

pub use redfish::{BootOnce, Redfish, RedfishError, Reset};
pub use wake::{WakeError, broadcast_for, wake};

use serde_json::Value;
use std::fmt;

/// How a machine's controller is reached.
#[derive(Clone, PartialEq, Eq)]
pub struct Controller {
    /// `https://host[:port]`
    pub server: String,
    /// `/redfish/v1/Systems/1`; empty: the only one it has.
    pub system: String,
    pub username: String,
    pub password: String,
    /// Any certificate is taken.
    pub unverified: bool,
    /// PEM; none: what this machine trusts.
    pub authority: Option<String>,
}

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Controller({}{})", self.server, self.system)
    }
}

/// The controller of a machine by name.
pub fn controller(config: &Value, name: &str) -> Result<Controller, String> {
    let platform = &config["platform"]["baremetal"];
    let lists = [&config["hosts"], &platform["hosts"]];
    let mut hosts = lists.into_iter().filter_map(Value::as_array).flatten();
    let names = || {
        let all: Vec<_> =
            lists.iter().filter_map(|l| l.as_array()).flatten().filter_map(|h| h["name"].as_str()).collect();
        if all.is_empty() { "it lists no hosts".into() } else { format!("it has {}", all.join(", ")) }
    };
    let host =
        hosts.find(|host| host["name"] == name).ok_or_else(|| format!("no host {name}: {}", names()))?;
    let bmc = &host["bmc"];
    let text = |key: &str| bmc[key].as_str().filter(|text| !text.is_empty());
    let address = text("address").ok_or_else(|| format!("host {name} has no bmc.address"))?;
    let (server, system) = parse(address)?;
    let credential = |key| text(key).map(String::from).ok_or_else(|| format!("host {name} has no bmc.{key}"));
    Ok(Controller {
        server,
        system,
        username: credential("username")?,
        password: credential("password")?,
        unverified: bmc["disableCertificateVerification"] == true,
        authority: platform["bmcVerifyCA"].as_str().filter(|pem| !pem.is_empty()).map(String::from),
    })
}

/// As the baremetal operator reads it: `redfish://`, `redfish-virtualmedia+http://`, `idrac-virtualmedia://`, ….
fn parse(address: &str) -> Result<(String, String), String> {
    let (scheme, rest) = address.split_once("://").ok_or_else(|| {
        format!("{address:?} has no scheme: write redfish://{address}, or redfish-virtualmedia://…")
    })?;
    let (kind, transport) = scheme.split_once('+').unwrap_or((scheme, "https"));
    let speaks_redfish = [
        "redfish",
        "redfish-virtualmedia",
        "redfish-uefihttp",
        "idrac-redfish",
        "idrac-virtualmedia",
        "ilo5-redfish",
    ];
    if !speaks_redfish.contains(&kind) {
        return Err(format!(
            "{kind}:// is not spoken here, only Redfish: write redfish://… if the controller knows it, or wake the machine \
             with `seedling node wake`"
        ));
    }
    if !["http", "https"].contains(&transport) {
        return Err(format!("{scheme}:// is neither by http nor by https"));
    }
    let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    if host.is_empty() {
        return Err(format!("{address:?} names no host"));
    }
    Ok((format!("{transport}://{host}"), path.trim_end_matches('/').to_string()))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn addresses_are_the_baremetal_operators() {
        for (address, server, system) in [
            ("redfish://10.0.0.9/redfish/v1/Systems/1/", "https://10.0.0.9", "/redfish/v1/Systems/1"),
            (
                "redfish-virtualmedia+http://[fd00::9]:8000/redfish/v1/Systems/a",
                "http://[fd00::9]:8000",
                "/redfish/v1/Systems/a",
            ),
            ("redfish+https://bmc.example.com", "https://bmc.example.com", ""),
        ] {
            assert_eq!(parse(address), Ok((server.to_string(), system.to_string())), "{address}");
        }
        for (address, why) in [
            ("10.0.0.9", "write redfish://10.0.0.9"),
            ("ipmi://10.0.0.9:6230", "seedling node wake"),
            ("redfish+ftp://x/", "neither by http"),
            ("redfish:///x", "names no host"),
        ] {
            assert!(parse(address).unwrap_err().contains(why), "{address}");
        }
    }

    #[test]
    fn a_host_is_found_in_either_file_and_its_password_is_not_shown() {
        let host = json!({"name": "m0", "bmc": {"address": "redfish://b/redfish/v1/Systems/1", "username": "u", "password": "hush",
            "disableCertificateVerification": true}});
        for config in [json!({"hosts": [host]}), json!({"platform": {"baremetal": {"hosts": [host]}}})] {
            let found = controller(&config, "m0").unwrap();
            assert!(found.unverified && found.password == "hush");
            assert_eq!(format!("{found:?}"), "Controller(https://b/redfish/v1/Systems/1)");
            assert_eq!(controller(&config, "m1").unwrap_err(), "no host m1: it has m0");
        }
        assert!(controller(&json!({}), "m0").unwrap_err().contains("lists no hosts"));
        let bare = json!({"hosts": [{"name": "m0", "bmc": {"address": "redfish://b"}}]});
        assert_eq!(controller(&bare, "m0").unwrap_err(), "host m0 has no bmc.username");
    }
}
