//! Kea's DHCP server.

use super::{Program, boots, head, lease_seconds, script_url};
use crate::boot::efi_loader;
use seedling_types::helper::HelperV4;
use seedling_types::{HelperConfig, ports};
use serde_json::{Value, json};

pub(super) fn kea(config: &HelperConfig, here: &HelperV4) -> String {
    let option = |name: &str, data: String| json!({"name": name, "data": data});
    let mut options = vec![
        option("routers", here.gateway.to_string()),
        option("domain-name-servers", config.address.to_string()),
        option("domain-name", config.cluster_domain.to_string()),
        option("domain-search", config.cluster_domain.to_string()),
    ];
    if !config.ntp_servers.is_empty() {
        let servers: Vec<_> = config.ntp_servers.iter().map(ToString::to_string).collect();
        options.push(option("ntp-servers", servers.join(", ")));
    }
    let reservations: Vec<Value> = config
        .inventory
        .hosts
        .iter()
        .map(|host| json!({"hw-address": host.mac, "ip-address": host.address, "hostname": host.name}))
        .collect();
    let seconds = lease_seconds(config);
    let mut all = json!({"Dhcp4": {
        "interfaces-config": {"interfaces": [config.interface]},
        "lease-database": {"type": "memfile", "name": "/var/lib/kea/kea-leases4.csv"},
        "authoritative": true,
        "valid-lifetime": seconds,
        "renew-timer": seconds / 2,
        "rebind-timer": seconds / 8 * 7,
        // Without a pool nobody gets an address but those with a reservation.
        "subnet4": [{
            "id": 1,
            "subnet": config.network,
            "option-data": options,
            "reservations-in-subnet": true,
            "reservations": reservations,
        }],
    }});
    if let Some(pool) = &config.pool {
        all["Dhcp4"]["subnet4"][0]["pools"] = json!([{"pool": format!("{} - {}", pool.from, pool.to)}]);
    }
    // Kea takes no empty list.
    let classes = classes(config);
    if !classes.is_empty() {
        all["Dhcp4"]["client-classes"] = classes.into();
    }
    head("//", Program::Kea) + &format!("{all:#}\n")
}

/// One a machine and kind of client: the first that fits says what is booted.
fn classes(config: &HelperConfig) -> Vec<Value> {
    let mut classes = Vec::new();
    for boot in boots(config) {
        let host = boot.host;
        let is_it = format!("hexstring(pkt4.mac, ':') == '{}'", host.mac);
        let loader = "not (option[77].hex == 'iPXE')";
        let name = efi_loader(boot.boot);
        let efi = format!("http://{}:{}/boot/{name}", config.address, ports::HELPER_HTTP);
        let rows = [
            ("ipxe", "option[77].hex == 'iPXE'".to_string(), script_url(config, host)),
            ("bios", format!("{loader} and option[93].hex == 0x0000"), boot.boot.bios_loader.clone()),
            (
                "efi",
                format!("{loader} and (option[93].hex == 0x0007 or option[93].hex == 0x0009)"),
                name.into(),
            ),
            ("http", format!("{loader} and option[93].hex == 0x0010"), efi),
        ];
        for (kind, test, file) in rows {
            let mut class = json!({
                "name": format!("{}-{kind}", host.name),
                "test": format!("{is_it} and {test}"),
                "next-server": config.address,
                "boot-file-name": file,
            });
            if kind == "http" {
                class["option-data"] =
                    json!([{"name": "vendor-class-identifier", "data": "HTTPClient", "always-send": true}]);
            }
            classes.push(class);
        }
    }
    classes
}
