//! The machine-config server with a thousand masters that ask at once, as on a bootstrap node: from files, over TLS, each with its own token.
//! Beside it nginx gives the same document to everybody, without a look at who asks: nobody can do less.

use super::MACHINES;
use super::load::{PATIENCE, block_on};
use super::site::{Running, SERVER, Site, machine};
use anyhow::{Context, Result, ensure};
use axum_server::Handle;
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use seedling_components::machine_config::{Inputs, render_bootstrap};
use seedling_components::node::NodeParams;
use seedling_machine_config_server::{Listen, Source, serve as serve_configs};
use seedling_pki::{CaSpec, KeyAlgorithm, LeafSpec, Usage, issue, new_ca};
use seedling_types::admission::Issued;
use seedling_types::release::Binary;
use seedling_types::{Admission, ClusterDomain, NodeToken, ReleaseInfo, ports};
use serde_json::json;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio_rustls::TlsConnector;

const NAME: &str = "api-int.race.example.com";
const DOCUMENT: &str = "configs/www/config/master";

/// In a process of its own, as `helper-bench --serve-configs DIR`.
pub(crate) fn serve(dir: &Path) -> Result<()> {
    let inventory = seedling_cluster::inventory::read(&dir.join("hosts.yaml"))?;
    let source =
        Source::bootstrap(dir.join("bootstrap"), dir.join("kubeconfig"), dir.join("node-tokens.json"));
    let listen =
        Listen { tls: (SERVER, ports::MCS).into(), plain: (Ipv4Addr::LOCALHOST, ports::MCS_LOOPBACK).into() };
    let served = async {
        let inventory = tokio::sync::watch::Sender::new(inventory);
        let audit = Some(dir.join("audit.log"));
        let inventory = inventory.subscribe();
        serve_configs(source, &dir.join("tls"), inventory, audit, listen, Handle::new(), Handle::new()).await
    };
    Ok(tokio::runtime::Runtime::new()?.block_on(served)?)
}

pub(crate) fn start(site: &Site) -> Result<Running> {
    if !site.path("configs").exists() {
        prepare(site)?;
    }
    let program = std::env::current_exe()?;
    let command = format!("{} --serve-configs {}", program.display(), site.path("configs").display());
    let running = site.start("server", &command)?;
    site.wait_for_port("the machine-config server", SERVER, ports::MCS)?;
    Ok(running)
}

/// With what ours gives to the first machine.
pub(crate) fn start_nginx(site: &Site) -> Result<Running> {
    if !site.path(DOCUMENT).exists() {
        let _ours = start(site)?;
        let client = client(site)?;
        let document = site.among_clients(|| block_on(get(&client, 0)))?;
        site.write(DOCUMENT, document)?;
    }
    let dir = site.path("configs");
    let conf = format!(
        "user root; worker_processes auto; worker_rlimit_nofile 65536; pid {0}/pid; error_log {0}/error.log; daemon off;\n\
         events {{ worker_connections 8192; }}\n\
         http {{ access_log {0}/access.log; sendfile on; default_type application/json;\n  \
         server {{ listen {SERVER}:{1} ssl backlog=4096; root {0}/www;\n    \
         ssl_certificate {0}/tls/tls.crt; ssl_certificate_key {0}/tls/tls.key; }} }}\n",
        dir.display(),
        ports::MCS
    );
    let conf = site.write("configs/nginx.conf", conf)?;
    let running = site.start("server", &format!("nginx -c {}", conf.display()))?;
    site.wait_for_port("nginx", SERVER, ports::MCS)?;
    Ok(running)
}

/// Machines that have their config a second, when all ask at once.
pub(crate) fn fetch(site: &Site) -> Result<f64> {
    let client = client(site)?;
    site.among_clients(|| {
        block_on(async {
            let begun = Instant::now();
            let all = futures::future::join_all((0..MACHINES).map(|n| get(&client, n))).await;
            let seconds = begun.elapsed().as_secs_f64();
            let mut longest = 0;
            for document in all {
                let document = document?;
                ensure!(document.ends_with(b"}") || document.ends_with(b"}\n"), "a config that is not whole");
                longest = longest.max(document.len());
            }
            ensure!(longest > 10_000, "{longest} bytes are no config");
            Ok(MACHINES as f64 / seconds)
        })
    })
}

/// One request, one connection, until the server closes it.
async fn get(client: &TlsConnector, n: usize) -> Result<Vec<u8>> {
    let from = machine(n).1;
    let asked = async {
        let socket = TcpSocket::new_v4()?;
        socket.bind((from, 0).into())?;
        let stream = socket.connect((SERVER, ports::MCS).into()).await?;
        let mut stream = client.connect(ServerName::try_from(NAME)?, stream).await?;
        let request = format!(
            "GET /config/master HTTP/1.1\r\nHost: {NAME}\r\nAuthorization: {}\r\nConnection: close\r\n\r\n",
            token(n).bearer()
        );
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        anyhow::Ok(answer)
    };
    let answer = tokio::time::timeout(PATIENCE, asked).await.context("no answer")??;
    let head = answer.windows(4).position(|four| four == b"\r\n\r\n").context("no head")?;
    let said = String::from_utf8_lossy(&answer[..head]);
    ensure!(said.starts_with("HTTP/1.1 200"), "{from} got: {said}");
    Ok(answer[head + 4..].to_vec())
}

fn client(site: &Site) -> Result<TlsConnector> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(site.path("configs/ca.crt"))?)?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let versions =
        rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config = versions.with_root_certificates(roots).with_no_client_auth();
    // Each is another machine, which has not been here before.
    config.resumption = rustls::client::Resumption::disabled();
    Ok(TlsConnector::from(Arc::new(config)))
}

fn token(n: usize) -> NodeToken {
    let mut bytes = [7; 32];
    bytes[..8].copy_from_slice(&(n as u64).to_be_bytes());
    NodeToken::new(bytes)
}

/// What a bootstrap node has after bootkube has rendered it, with the kinds of keys that the installer makes.
fn prepare(site: &Site) -> Result<()> {
    let (domain, release) = (ClusterDomain("race.example.com".into()), release());
    let service_networks = vec!["172.30.0.0/16".parse()?];
    let node = NodeParams { domain: &domain, release: &release, service_networks, pod_networks: vec![] };
    let inputs =
        Inputs { node, outside: Default::default(), root_ca: "ROOT", kube_ca: "KUBE", extra: vec![] };
    for (path, contents) in render_bootstrap(&inputs)? {
        site.write(&format!("configs/bootstrap/{path}"), contents)?;
    }
    site.write("configs/kubeconfig", "apiVersion: v1\n")?;
    let hosts = (0..MACHINES).map(|n| {
        let (mac, address) = machine(n);
        json!({"name": format!("master-{n}"), "role": "master", "mac": mac, "address": address})
    });
    let hosts = json!({"hosts": hosts.collect::<Vec<_>>()});
    site.write("configs/hosts.yaml", serde_json::to_string(&hosts)?)?;
    let issued = |n| (format!("master-{n}"), Issued { sha256: token(n).digest(), spent: None });
    let admission = Admission { open: false, nodes: (0..MACHINES).map(issued).collect() };
    site.write("configs/node-tokens.json", serde_json::to_string(&admission)?)?;
    let (now, day) = (time::OffsetDateTime::now_utc(), time::Duration::days(1));
    let ca = new_ca(&CaSpec { cn: "root-ca", ou: None, validity: day }, KeyAlgorithm::Rsa2048, now)?;
    let leaf = LeafSpec {
        cn: "system:machine-config-server",
        organizations: vec![],
        usages: &[Usage::Server],
        dns: vec![NAME.into()],
        ips: vec![],
        validity: day,
        append_parent: false,
        key_usage: false,
    };
    let pair = issue(&ca, &leaf, KeyAlgorithm::Rsa2048, now)?;
    site.write("configs/ca.crt", &ca.cert)?;
    site.write("configs/tls/tls.crt", &pair.cert)?;
    site.write("configs/tls/tls.key", &pair.key).map(drop)
}

fn release() -> ReleaseInfo {
    let binary = |name: &str| (name.to_string(), Binary { sha512: "0".repeat(128), size: 1 });
    let image = |name: &str| {
        (name.to_string(), format!("registry.seedling.internal/seedling/{name}@sha256:{}", "0".repeat(64)))
    };
    let programs =
        ["kubelet", "kubectl", "crictl", "containerd", "containerd-shim-runc-v2", "ctr", "runc", "seedling"];
    ReleaseInfo {
        version: "0.1.0".into(),
        kubernetes_version: "1.36.4".into(),
        release_image: image("release").1,
        images: ["seedling", "pause"].map(image).into(),
        binaries: programs.map(binary).into(),
        components: [].into(),
    }
}
