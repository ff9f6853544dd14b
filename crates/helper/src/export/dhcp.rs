//! dnsmasq (names, addresses, TFTP) and ISC's dhcpd.

use super::{Program, boots, head, lease_seconds, script_url};
use crate::boot::efi_loader;
use seedling_types::helper::HelperV4;
use seedling_types::{HelperConfig, ports};
use std::fmt::Write;

fn list<T: ToString>(values: &[T], between: &str) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(between)
}

pub(super) fn dnsmasq(config: &HelperConfig, here: &HelperV4) -> String {
    let domain = &config.cluster_domain;
    let mut lines = vec![
        "# Names".to_string(),
        "no-hosts".into(),
        "no-resolv".into(),
        format!("local=/{domain}/"),
        format!("domain={domain}"),
        "bogus-priv".into(),
    ];
    lines.extend(config.forwarders.iter().map(|server| format!("server={server}")));
    for name in [domain.api(), domain.api_int(), domain.helper()] {
        lines.push(format!("host-record={name},{}", config.address));
    }
    lines.push(format!("address=/{}/{}", domain.apps(), config.address));
    for host in &config.inventory.hosts {
        lines.push(format!("host-record={},{}", domain.host(&host.name), host.address));
    }
    if config.etcd_srv {
        for (index, master) in config.inventory.masters().iter().enumerate() {
            let member = domain.host(&format!("etcd-{index}"));
            lines.push(format!("address=/{member}/{}", master.address));
            lines.push(format!("srv-host=_etcd-server-ssl._tcp.{domain},{member},{},0,10", ports::ETCD_PEER));
        }
    }
    let who = if config.pool.is_some() {
        "# Addresses"
    } else {
        "# Addresses: machines of the inventory, and nobody else"
    };
    lines.extend(["".into(), who.into()]);
    lines.push(format!("interface={}", config.interface));
    lines.push("bind-interfaces".into());
    lines.push("dhcp-authoritative".into());
    let (network, mask) = (here.network.network(), here.network.netmask());
    lines.push(format!("dhcp-range={network},static,{mask},{}s", lease_seconds(config)));
    match &config.pool {
        Some(pool) => {
            lines.push(format!("dhcp-range={},{},{mask},{}s", pool.from, pool.to, lease_seconds(config)));
        }
        None => lines.push("dhcp-ignore=tag:!known".into()),
    }
    lines.push(format!("dhcp-option=option:router,{}", here.gateway));
    lines.push(format!("dhcp-option=option:dns-server,{}", config.address));
    lines.push(format!("dhcp-option=option:domain-search,{domain}"));
    if !config.ntp_servers.is_empty() {
        lines.push(format!("dhcp-option=option:ntp-server,{}", list(&config.ntp_servers, ",")));
    }
    for host in &config.inventory.hosts {
        lines.push(format!("dhcp-host={},set:{},{},{}", host.mac, host.name, host.address, host.name));
    }
    if let Some(boot) = &config.boot {
        lines.extend(["".into(), "# Network boot".into(), "enable-tftp".into()]);
        lines.push(format!("tftp-root={}", boot.image_dir.display()));
        lines.push("dhcp-userclass=set:ipxe,iPXE".into());
        for (tag, number) in [("bios", 0), ("efi", 7), ("efi", 9), ("http", 16)] {
            lines.push(format!("dhcp-match=set:{tag},option:client-arch,{number}"));
        }
        lines.push("dhcp-option-force=tag:http,60,HTTPClient".into());
        for boot in boots(config) {
            let (name, efi) = (&boot.host.name, efi_loader(boot.boot));
            let base = format!("http://{}:{}/boot", config.address, ports::HELPER_HTTP);
            lines.push(format!("dhcp-boot=tag:{name},tag:!ipxe,tag:bios,{}", boot.boot.bios_loader));
            lines.push(format!("dhcp-boot=tag:{name},tag:!ipxe,tag:efi,{efi}"));
            lines.push(format!("dhcp-boot=tag:{name},tag:!ipxe,tag:http,{base}/{efi}"));
            lines.push(format!("dhcp-boot=tag:{name},tag:ipxe,{}", script_url(config, boot.host)));
        }
    }
    head("#", Program::Dnsmasq) + &lines.join("\n") + "\n"
}

pub(super) fn dhcpd(config: &HelperConfig, here: &HelperV4) -> String {
    let mut text = head("#", Program::Dhcpd);
    let seconds = lease_seconds(config);
    let (network, mask) = (here.network.network(), here.network.netmask());
    let domain = &config.cluster_domain;
    let strangers = if config.pool.is_some() { "" } else { "deny unknown-clients;\n" };
    let _ = write!(
        text,
        "authoritative;\n{strangers}default-lease-time {seconds};\nmax-lease-time {seconds};\n\
         option arch code 93 = unsigned integer 16;\n\n\
         subnet {network} netmask {mask} {{\n    option routers {};\n    option broadcast-address {};\n    \
         option domain-name-servers {};\n    option domain-name \"{domain}\";\n    option domain-search \"{domain}\";\n",
        here.gateway,
        here.network.broadcast(),
        config.address,
    );
    if !config.ntp_servers.is_empty() {
        let _ = writeln!(text, "    option ntp-servers {};", list(&config.ntp_servers, ", "));
    }
    if let Some(pool) = &config.pool {
        let _ = writeln!(text, "    range {} {};", pool.from, pool.to);
    }
    text += "}\n";
    for host in &config.inventory.hosts {
        let _ = write!(
            text,
            "\nhost {} {{\n    hardware ethernet {};\n    fixed-address {};\n    option host-name \"{0}\";\n",
            host.name, host.mac, host.address
        );
        if let Some(boot) = boots(config).find(|boot| boot.host.name == host.name) {
            let base = format!("http://{}:{}/boot", config.address, ports::HELPER_HTTP);
            let efi = efi_loader(boot.boot);
            let _ = write!(
                text,
                "    next-server {};\n    if exists user-class and option user-class = \"iPXE\" {{\n        filename \"{}\";\n    \
                 }} elsif exists arch and (option arch = 00:07 or option arch = 00:09) {{\n        filename \"{efi}\";\n    \
                 }} elsif exists arch and option arch = 00:10 {{\n        option vendor-class-identifier \"HTTPClient\";\n        \
                 filename \"{base}/{efi}\";\n    }} else {{\n        filename \"{}\";\n    }}\n",
                config.address,
                script_url(config, host),
                boot.boot.bios_loader
            );
        }
        text += "}\n";
    }
    text
}
