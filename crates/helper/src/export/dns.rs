//! BIND: the cluster's zone, the reverse zones, and who is asked for the rest.

use super::{Exported, Program, file, head};
use seedling_types::helper::HelperV4;
use seedling_types::{HelperConfig, ports};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::Ipv4Addr;

pub(super) fn bind(config: &HelperConfig, here: &HelperV4) -> Vec<Exported> {
    let domain = &config.cluster_domain;
    let mut reverse: BTreeMap<String, String> = BTreeMap::new();
    let mut back = |address: Ipv4Addr, name: String| {
        let [a, b, c, d] = address.octets();
        let _ =
            writeln!(reverse.entry(format!("{c}.{b}.{a}.in-addr.arpa")).or_default(), "{d} IN PTR {name}.");
    };
    for name in [domain.api(), domain.api_int()] {
        back(here.address, name);
    }
    let mut forward = String::new();
    for name in ["api", "api-int", "helper", "*.apps"] {
        let _ = writeln!(forward, "{name} IN A {}", config.address);
    }
    for host in &config.inventory.hosts {
        let _ = writeln!(forward, "{} IN A {}", host.name, host.address);
        if let Some(address) = host.v4() {
            back(address, domain.host(&host.name));
        }
    }
    if config.etcd_srv {
        for (index, master) in config.inventory.masters().iter().enumerate() {
            let _ = writeln!(forward, "etcd-{index} IN A {}", master.address);
            let _ = writeln!(forward, "_etcd-server-ssl._tcp IN SRV 0 10 {} etcd-{index}", ports::ETCD_PEER);
        }
    }
    let mut zones = vec![(domain.to_string(), forward)];
    zones.extend(reverse);
    let mut files = vec![file("named.conf", named(config, &zones))];
    for (zone, records) in zones {
        files.push(file(format!("db.{zone}"), zone_file(config, &records)));
    }
    files
}

fn named(config: &HelperConfig, zones: &[(String, String)]) -> String {
    let mut text = head("//", Program::Bind);
    let others = match config.forwarders.as_slice() {
        [] => "    recursion no;\n".to_string(),
        servers => {
            let list: Vec<_> = servers.iter().map(|server| format!("{server};")).collect();
            format!(
                "    recursion yes;\n    allow-recursion {{ 127.0.0.0/8; {}; }};\n    forwarders {{ {} }};\n    forward only;\n",
                config.network,
                list.join(" ")
            )
        }
    };
    let _ = write!(
        text,
        "// Put it in /etc/bind with the files beside it.\noptions {{\n    directory \"/var/cache/bind\";\n    \
         listen-on {{ 127.0.0.1; {}; }};\n    listen-on-v6 {{ none; }};\n    allow-query {{ any; }};\n    \
         // Nobody signs a cluster's zone.\n    dnssec-validation no;\n{others}}};\n",
        config.address
    );
    for (zone, _) in zones {
        let _ = write!(
            text,
            "\nzone \"{zone}\" {{\n    type primary;\n    file \"/etc/bind/db.{zone}\";\n    allow-transfer {{ none; }};\n}};\n"
        );
    }
    text
}

fn zone_file(config: &HelperConfig, records: &str) -> String {
    let helper = config.cluster_domain.helper();
    format!(
        "{}$TTL 30\n@ IN SOA {helper}. root.{}. (\n    1 ; serial: let it grow with every change\n    3600 600 86400 5 )\n@ IN NS {helper}.\n{records}",
        head(";", Program::Bind),
        config.cluster_domain
    )
}
