//! Who runs: the helper, and the servers that do one of its jobs, with the configuration that `helper export` writes for them.

use super::configs;
use super::site::{BACKEND, CLIENT, INTERFACE, NETWORK, Running, SERVER, Site, machine, sh};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

pub(crate) const DOMAIN: &str = "race.example.com";
pub(crate) const HTTP: u16 = 8080;
/// What machines fetch by TFTP and HTTP.
pub(crate) const LOADER: &str = "ipxe.efi";
pub(crate) const LARGE: &str = "rootfs.squashfs";
pub(crate) const LOADER_BYTES: u64 = 32 << 20;
pub(crate) const LARGE_BYTES: u64 = 1 << 30;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rival {
    Ours,
    Dnsmasq,
    Bind,
    Kea,
    TftpdHpa,
    Nginx,
    Haproxy,
    /// Not the helper, but what a node hears of it: the machine-config server.
    ConfigServer,
    ConfigNginx,
}

impl Rival {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ours | Self::ConfigServer => "seedling",
            Self::Dnsmasq => "dnsmasq",
            Self::Bind => "bind",
            Self::Kea => "kea",
            Self::TftpdHpa => "tftpd-hpa",
            Self::Nginx | Self::ConfigNginx => "nginx",
            Self::Haproxy => "haproxy",
        }
    }
}

/// What is served, on disk; `machines` have an Ignition config each.
pub(crate) fn prepare(site: &Site, machines: usize) -> Result<()> {
    let ignition =
        format!("{{\"ignition\": {{\"version\": \"3.2.0\"}}, \"padding\": \"{}\"}}", "x".repeat(3000));
    for role in ["bootstrap", "master", "worker"] {
        site.write(&format!("ign/{role}.ign"), &ignition)?;
    }
    site.write("release/bin/none", "")?;
    site.write("release/oci/none", "")?;
    for (name, bytes) in [(LOADER, LOADER_BYTES), (LARGE, LARGE_BYTES)] {
        let path = site.write(&format!("image/{name}"), "")?;
        std::fs::File::options().write(true).open(path)?.set_len(bytes)?;
    }
    let macs: Vec<String> = (0..machines).map(|n| machine(n).0).collect();
    site.write("macs", macs.join("\n") + "\n")?;
    // Nobody is the first to read a file, and servers that give up their rights read them all the same.
    sh(&format!("cd {} && cat image/* > /dev/null && chmod -R a+rX .", site.folder.path().display()))
        .map(drop)
}

/// The machines are all of the network, or only the one behind the balancer.
fn helper_yaml(site: &Site, machines: Option<usize>, boot: bool) -> Result<PathBuf> {
    let host = |name: String, role: &str, mac: String, address: String| json!({"name": name, "role": role, "mac": mac, "address": address});
    let mut hosts = vec![
        host("bootstrap".into(), "bootstrap", "52:54:00:00:00:01".into(), "10.77.0.10".into()),
        host("master-0".into(), "master", "52:54:00:00:00:02".into(), "10.77.0.11".into()),
    ];
    match machines {
        None => {
            hosts.push(host("worker-0".into(), "worker", "52:54:00:00:00:03".into(), BACKEND.to_string()))
        }
        Some(count) => hosts.extend((0..count).map(|n| {
            let (mac, address) = machine(n);
            host(format!("worker-{n}"), "worker", mac, address.to_string())
        })),
    }
    let at = |name: &str| site.path(name);
    let config: Value = json!({
        "clusterDomain": DOMAIN, "interface": INTERFACE, "address": SERVER, "network": NETWORK,
        "inventory": {"hosts": hosts}, "ignitionDir": at("ign"), "releaseDir": at("release"),
        "events": at("state/events.jsonl"), "readyFile": at("state/ready"), "relays": [CLIENT],
        "ingress": machines.is_none(),
        "boot": boot.then(|| json!({"imageDir": at("image")})),
    });
    site.write("helper.yaml", serde_json::to_string_pretty(&config)?)
}

/// Runs alone, with nothing left of the one before it.
pub(crate) fn start(
    site: &Site,
    seedling: &Path,
    rival: Rival,
    machines: Option<usize>,
    boot: bool,
) -> Result<Running> {
    let _ = std::fs::remove_dir_all(site.path("state"));
    let yaml = helper_yaml(site, machines, boot)?;
    site.write("state/none", "")?;
    let export = |program: &str, edit: &dyn Fn(String) -> String| -> Result<PathBuf> {
        let dir = site.path(program);
        sh(&format!(
            "{} helper export {program} --config {} --dir {}",
            seedling.display(),
            yaml.display(),
            dir.display()
        ))?;
        let main = ["dnsmasq.conf", "named.conf", "kea-dhcp4.conf", "nginx.conf", "haproxy.cfg"];
        let path = main.iter().map(|name| dir.join(name)).find(|path| path.exists()).context("no file")?;
        std::fs::write(&path, edit(std::fs::read_to_string(&path)?))?;
        Ok(path)
    };
    let state = site.path("state");
    match rival {
        Rival::Ours => {
            // As the helper leaves it when they have asked for an address.
            let open = r#"{"open":{"by":"dhcp","until":99999999999,"started":0},"served":null,"over":null}"#;
            for n in 0..machines.unwrap_or(0) {
                site.write(&format!("state/doors/worker-{n}.json"), open)?;
            }
            let running = site
                .start("server", &format!("{} helper run --config {}", seedling.display(), yaml.display()))?;
            site.wait("the helper", || state.join("ready").exists())?;
            Ok(running)
        }
        Rival::Dnsmasq => {
            let path = export("dnsmasq", &|text| text)?;
            let leases = state.join("leases");
            let many = "--dns-forward-max=10000 --dhcp-lease-max=65536";
            let command = format!(
                "dnsmasq --keep-in-foreground --user=root --conf-file={} --dhcp-leasefile={} --pid-file={} {many}",
                path.display(),
                leases.display(),
                state.join("pid").display()
            );
            let running = site.start("server", &command)?;
            answers_names(site, "dnsmasq", machines)?;
            Ok(running)
        }
        Rival::Bind => {
            let dir = site.path("bind");
            let path = export("bind", &|text| {
                text.replace("/etc/bind/", &format!("{}/", dir.display()))
                    .replace("/var/cache/bind", &state.display().to_string())
                    .replace(
                        "options {",
                        &format!(
                            "options {{\n    pid-file \"{}/pid\";\n    session-keyfile \"{}/key\";",
                            state.display(),
                            state.display()
                        ),
                    )
            })?;
            let running = site.start("server", &format!("named -g -c {}", path.display()))?;
            answers_names(site, "named", machines)?;
            Ok(running)
        }
        Rival::Kea => {
            let path =
                export("kea", &|text| text.replace("/var/lib/kea/", &format!("{}/", state.display())))?;
            let command = format!(
                "env KEA_PIDFILE_DIR={0} KEA_LOCKFILE_DIR={0} kea-dhcp4 -c {1}",
                state.display(),
                path.display()
            );
            let running = site.start("server", &command)?;
            site.wait("kea", || state.join("kea-leases4.csv").exists())?;
            Ok(running)
        }
        Rival::TftpdHpa => {
            let image = site.path("image");
            let command = format!("in.tftpd -L -4 -a :69 -u root -s {}", image.display());
            let running = site.start("server", &command)?;
            // It answers, with an error.
            let probe =
                format!("curl -sS -m 1 -o /dev/null tftp://{SERVER}/missing 2>/dev/null; [ $? = 68 ]");
            site.wait("tftpd-hpa", || site.ask(&probe).is_ok())?;
            Ok(running)
        }
        Rival::Nginx => {
            let path = export("nginx", &|text| {
                let text = text.replace("/var/log/nginx/", &format!("{}/", state.display()));
                text.replace("events { }", "worker_processes auto;\nworker_rlimit_nofile 65536;\nevents { worker_connections 8192; }")
            })?;
            let command =
                format!("nginx -g 'daemon off; pid {}/pid;' -c {}", state.display(), path.display());
            let running = site.start("server", &command)?;
            site.wait_for_port("nginx", SERVER, HTTP)?;
            Ok(running)
        }
        Rival::Haproxy => {
            let path = export("haproxy", &|text| text.replace("log /dev/log local0", "log stdout local0"))?;
            let running = site.start("server", &format!("haproxy -db -f {}", path.display()))?;
            site.wait_for_port("haproxy", SERVER, 80)?;
            Ok(running)
        }
        Rival::ConfigServer => configs::start(site),
        Rival::ConfigNginx => configs::start_nginx(site),
    }
}

/// Zones are read one after the other, and all are asked for.
fn answers_names(site: &Site, who: &str, machines: Option<usize>) -> Result<()> {
    // The first machine of each 256 is in a zone of its own.
    let reverse = (0..machines.unwrap_or(0)).step_by(256).map(|n| format!("-x {}", machine(n).1));
    for what in std::iter::once(format!("api.{DOMAIN}")).chain(reverse) {
        let ask = format!("dig +short +time=1 +tries=1 @{SERVER} {what}");
        site.wait(who, || site.ask(&ask).is_ok_and(|said| said.contains(DOMAIN) || said.contains("10.77.")))?;
    }
    Ok(())
}

/// Behind the balancer: a web server with the large file and a small page.
pub(crate) fn backend(site: &Site) -> Result<Running> {
    let dir = site.path("backend");
    let conf = format!(
        "user root; worker_processes 1; pid {0}/pid; error_log {0}/error.log; daemon off;\nevents {{ worker_connections 8192; }}\n\
         http {{ access_log off; sendfile on; keepalive_timeout 0;\n  server {{ listen {BACKEND}:80; root {1};\n    \
         location = /small {{ return 200 'ok'; }} }} }}\n",
        dir.display(),
        site.path("image").display()
    );
    let conf = site.write("backend/nginx.conf", conf)?;
    let running = site.start("backend", &format!("nginx -c {}", conf.display()))?;
    site.wait_for_port("nginx behind the balancer", BACKEND, 80)?;
    Ok(running)
}
