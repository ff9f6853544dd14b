//! The machine-config server against what upstream's answered (`data/mcs-matrix.txt`: request, status, Location, Ignition version).
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use axum_server::Handle;
use seedling_components::machine_config::{Inputs, render_bootstrap};
use seedling_components::node::NodeParams;
use seedling_operators::machine_config::server::{Listen, Source, serve};
use seedling_pki::{CaSpec, KeyAlgorithm, LeafSpec, Usage, issue, new_ca};
use seedling_types::release::Binary;
use seedling_types::{ClusterDomain, Inventory, ReleaseInfo};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const MATRIX: &str = include_str!("data/mcs-matrix.txt");

struct Running {
    tls: SocketAddr,
    plain: SocketAddr,
    ca: String,
    _dir: tempfile::TempDir,
}

fn release() -> ReleaseInfo {
    let binary = |name: &str| (name.to_string(), Binary { sha512: "0".repeat(128), size: 1 });
    let image = |name: &str| {
        (name.to_string(), format!("registry.seedling.internal/seedling/{name}@sha256:{}", "0".repeat(64)))
    };
    ReleaseInfo {
        version: "0.1.0".into(),
        kubernetes_version: "1.36.4".into(),
        release_image: image("release").1,
        images: ["seedling", "pause"].map(image).into(),
        binaries: [
            "kubelet",
            "kubectl",
            "crictl",
            "containerd",
            "containerd-shim-runc-v2",
            "ctr",
            "seedling",
        ]
        .map(binary)
        .into(),
        components: [].into(),
    }
}

fn write(path: &Path, contents: impl AsRef<[u8]>) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, contents).unwrap();
}

/// A bootstrap server on loopback, with configs as bootkube renders them.
async fn start() -> Running {
    let dir = tempfile::tempdir().unwrap();
    let (domain, release) = (ClusterDomain("ocp4.example.com".into()), release());
    let node = NodeParams { domain: &domain, release: &release, cluster_dns: Ipv4Addr::new(172, 30, 0, 10).into() };
    let inputs = Inputs { node, root_ca: "ROOT", kube_ca: "KUBE", extra: vec![] };
    for (path, contents) in render_bootstrap(&inputs).unwrap() {
        write(&dir.path().join("bootstrap").join(path), contents);
    }
    write(&dir.path().join("kubeconfig"), "kubelet's");
    let now = time::OffsetDateTime::now_utc();
    let day = time::Duration::days(1);
    let ca =
        new_ca(&CaSpec { cn: "root-ca", ou: None, validity: day }, KeyAlgorithm::EcdsaP256, now).unwrap();
    let leaf = LeafSpec {
        cn: "system:machine-config-server",
        organizations: vec![],
        usages: &[Usage::Server],
        dns: vec![domain.api_int()],
        ips: vec![],
        validity: day,
        append_parent: false,
        key_usage: false,
    };
    let pair = issue(&ca, &leaf, KeyAlgorithm::EcdsaP256, now).unwrap();
    write(&dir.path().join("tls/tls.crt"), &pair.cert);
    write(&dir.path().join("tls/tls.key"), &pair.key);

    let source =
        Source::Bootstrap { base: dir.path().join("bootstrap"), kubeconfig: dir.path().join("kubeconfig") };
    let any = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
    let (tls, plain, tls_dir) = (Handle::new(), Handle::new(), dir.path().join("tls"));
    let (tls_handle, plain_handle) = (tls.clone(), plain.clone());
    tokio::spawn(async move {
        serve(
            source,
            &tls_dir,
            Inventory::default(),
            Listen { tls: any, plain: any },
            tls_handle,
            plain_handle,
        )
        .await
        .unwrap();
    });
    let (tls, plain) = (tls.listening().await.unwrap(), plain.listening().await.unwrap());
    Running { tls, plain, ca: ca.cert, _dir: dir }
}

/// Written by hand: an HTTP client would clean the path.
async fn request(to: SocketAddr, method: &str, path: &str, accept: Option<&str>) -> String {
    let accept = accept.map(|a| format!("Accept: {a}\r\n")).unwrap_or_default();
    let mut stream = tokio::net::TcpStream::connect(to).await.unwrap();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{accept}Connection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.split_once(name)
        .map(|(_, rest)| rest.split(['|', ' ', '\r']).next().unwrap_or_default())
        .filter(|v| !v.is_empty())
}

#[tokio::test]
async fn answers_as_upstream_does() {
    let server = start().await;
    let mut cases = 0;
    for line in MATRIX.lines() {
        let (asked, expected) = line.split_once(" => ").unwrap();
        let (method, path, accept) = match asked.strip_prefix("accept[").and_then(|a| a.strip_suffix(']')) {
            Some(accept) => ("GET", "/config/master".to_string(), Some(accept)),
            None => {
                let (method, path) = asked.split_once(' ').unwrap();
                (method, if path.starts_with('/') { path.into() } else { format!("/{path}") }, None)
            }
        };
        let answer = request(server.plain, method, &path, accept).await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert_eq!(head.split(' ').nth(1), expected.split(' ').nth(1), "{asked}: {head}");
        let location = head.lines().find_map(|l| l.strip_prefix("location: "));
        assert_eq!(location, field(expected, "Location: "), "{asked}");
        let length: usize =
            head.lines().find_map(|l| l.strip_prefix("content-length: ")).expect("a length").parse().unwrap();
        assert_eq!(body.len(), if method == "HEAD" { 0 } else { length }, "{asked}");
        if let Some(version) = field(expected, " ign=") {
            let config: serde_json::Value = serde_json::from_str(body).unwrap();
            assert_eq!(config["ignition"]["version"], version, "{asked}");
        }
        if asked == "HEAD config/master" {
            assert!(length > 10_000);
        }
        cases += 1;
    }
    assert_eq!(cases, 42);
}

#[tokio::test]
async fn a_machine_is_served_over_tls_only_by_the_name_in_its_pointer() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let server = start().await;
    let client = |name: &str| {
        let ca = reqwest::Certificate::from_pem(server.ca.as_bytes()).unwrap();
        reqwest::Client::builder().tls_certs_only([ca]).no_proxy().resolve(name, server.tls).build().unwrap()
    };
    let get = |name: &'static str| {
        let url = format!("https://{name}:{}/config/master", server.tls.port());
        client(name)
            .get(url)
            .header("Accept", "application/vnd.coreos.ignition+json;version=3.3.0, */*;q=0.1")
            .send()
    };
    let config: serde_json::Value = get("api-int.ocp4.example.com").await.unwrap().json().await.unwrap();
    assert_eq!(config["ignition"]["version"], "3.3.0");
    let files = config["storage"]["files"].as_array().unwrap();
    let kubeconfig = files.iter().find(|f| f["path"] == "/etc/kubernetes/kubeconfig").unwrap();
    assert_eq!(kubeconfig["contents"]["source"], "data:,kubelet%27s");
    assert!(get("other.example.com").await.is_err());
}
