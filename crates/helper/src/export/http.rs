//! nginx: Ignition configs, each only to its machine, node software and the boot image.

use super::{Exported, Program, boots, file, head};
use crate::doors::ignition_file;
use seedling_types::boot::Next;
use seedling_types::{HelperConfig, ports};
use std::fmt::Write;

pub(super) fn nginx(config: &HelperConfig) -> Vec<Exported> {
    let mut locations = String::new();
    for host in &config.inventory.hosts {
        let _ = write!(
            locations,
            "\n        location = /ign/{} {{\n            allow {};\n            deny all;\n            \
             default_type application/vnd.coreos.ignition+json;\n            alias {};\n        }}\n",
            host.mac,
            host.address,
            ignition_file(config, host).display()
        );
    }
    let mut files = Vec::new();
    if let Some(boot) = &config.boot {
        let _ = write!(
            locations,
            "\n        location /boot/ {{\n            alias {}/;\n            types {{ }}\n        }}\n",
            boot.image_dir.display()
        );
    }
    for boot in boots(config) {
        let (mac, address) = (&boot.host.mac, boot.host.address);
        let name = format!("ipxe/{}", mac.replace(':', "-"));
        let _ = write!(
            locations,
            "\n        location = /boot/ipxe/{mac} {{\n            allow {address};\n            deny all;\n            \
             default_type text/plain;\n            alias /etc/nginx/seedling/{name};\n        }}\n"
        );
        files.push(file(name, boot.script(Next::Install)));
    }
    let text = format!(
        "{}# Put it in place of /etc/nginx/nginx.conf, and the folder ipxe in /etc/nginx/seedling.\n\
         # It does not know who is installed: a machine whose script is here installs itself whenever it boots over the network.\n\
         # It gives an Ignition config as often as its machine asks: take bootstrap's away after the handoff.\n\
         user www-data;\nevents {{ }}\n\nhttp {{\n    sendfile on;\n    access_log /var/log/nginx/seedling.log;\n\n    server {{\n        \
         listen {}:{};\n\n        location = /healthz {{\n            return 200 \"ok\";\n        }}\n\n        \
         location /bin/ {{\n            alias {}/bin/;\n        }}\n{locations}    }}\n}}\n",
        head("#", Program::Nginx),
        config.address,
        ports::HELPER_HTTP,
        config.release_dir.display()
    );
    files.insert(0, file("nginx.conf", text));
    files
}
