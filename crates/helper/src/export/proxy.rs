//! HAProxy: the load balancer, as the helper's is.

use super::{Program, head};
use crate::lb::{SERVICES, Service};
use seedling_types::{HelperConfig, ports};
use std::fmt::Write;

pub(super) fn haproxy(config: &HelperConfig) -> String {
    let mut text = head("#", Program::Haproxy);
    text += "# hosts.yaml must name this balancer's address in loadBalancers: the machine-config server asks whom it speaks for.\n\
             global\n    maxconn 8192\n    log /dev/log local0\n\n\
             defaults\n    mode tcp\n    log global\n    option dontlognull\n    timeout connect 5s\n    timeout check 2s\n\
             \x20   # Watches are quiet for long.\n    timeout client 4h\n    timeout server 4h\n    timeout queue 5s\n\n\
             listen stats\n    mode http\n    bind 127.0.0.1:9000\n    stats enable\n    stats uri /\n    stats refresh 10s\n";
    for service in SERVICES.iter().filter(|service| service.health.is_some() || config.ingress) {
        let _ = write!(text, "\n{}", listen(config, service));
    }
    text
}

fn listen(config: &HelperConfig, service: &Service) -> String {
    let name = match service.port {
        ports::API => "api",
        ports::MCS => "machine-config",
        ports::HTTP => "applications-http",
        _ => "applications-https",
    };
    let mut text =
        format!("listen {name}\n    bind {}:{}\n    balance roundrobin\n", config.address, service.port);
    let mut check = "check inter 2s fall 2 rise 1".to_string();
    if let Some(path) = service.health {
        let _ = write!(
            text,
            "    option httpchk\n    http-check send meth GET uri {path} ver HTTP/1.1 hdr Host {}\n    http-check expect status 200\n",
            config.cluster_domain.api_int()
        );
        check = match &config.server_ca {
            Some(ca) => format!(
                "check check-ssl check-sni {0} inter 1s fall 2 rise 1 verify required ca-file {1} verifyhost {0}",
                config.cluster_domain.api_int(),
                ca.display()
            ),
            None => "check check-ssl inter 1s fall 2 rise 1 verify none".into(),
        };
    }
    if service.names_client {
        check += " send-proxy-v2";
    }
    for host in service.backends.of(&config.inventory) {
        let _ = writeln!(text, "    server {} {}:{} {check}", host.name, host.address, service.port);
    }
    text
}
