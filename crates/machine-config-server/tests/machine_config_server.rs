//! The machine-config server against what upstream's answered (`data/mcs-matrix.txt`: request, status, Location, Ignition version).
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use axum_server::Handle;
use seedling_components::machine_config::{Inputs, render_bootstrap};
use seedling_components::node::NodeParams;
use seedling_machine_config_server::{Listen, Source, serve};
use seedling_pki::{CaSpec, KeyAlgorithm, LeafSpec, Usage, issue, new_ca};
use seedling_types::admission::{Issued, Spent};
use seedling_types::release::Binary;
use seedling_types::{Admission, ClusterDomain, Inventory, NodeToken, ReleaseInfo, proxy_protocol};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;

const MATRIX: &str = include_str!("data/mcs-matrix.txt");

struct Running {
    tls: SocketAddr,
    plain: SocketAddr,
    ca: String,
    dir: tempfile::TempDir,
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
            "runc",
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

/// As upstream: whoever asks is answered.
async fn start() -> Running {
    start_with(Inventory::default(), &Admission { open: true, ..Admission::default() }).await
}

/// A bootstrap server on loopback, with configs as bootkube renders them.
async fn start_with(inventory: Inventory, admission: &Admission) -> Running {
    let dir = tempfile::tempdir().unwrap();
    let (domain, release) = (ClusterDomain("ocp4.example.com".into()), release());
    let service_networks = vec!["172.30.0.0/16".parse().unwrap()];
    let node = NodeParams { domain: &domain, release: &release, service_networks, pod_networks: vec![] };
    let inputs =
        Inputs { node, outside: Default::default(), root_ca: "ROOT", kube_ca: "KUBE", extra: vec![] };
    for (path, contents) in render_bootstrap(&inputs).unwrap() {
        write(&dir.path().join("bootstrap").join(path), contents);
    }
    write(&dir.path().join("kubeconfig"), "kubelet's");
    let tokens = dir.path().join("node-tokens.json");
    write(&tokens, serde_json::to_string(admission).unwrap());
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

    let (base, kubeconfig) = (dir.path().join("bootstrap"), dir.path().join("kubeconfig"));
    let source = Source::bootstrap(base, kubeconfig, tokens);
    let audit = dir.path().join("audit.log");
    let any = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
    let (tls, plain, tls_dir) = (Handle::new(), Handle::new(), dir.path().join("tls"));
    let (tls_handle, plain_handle) = (tls.clone(), plain.clone());
    tokio::spawn(async move {
        let inventory = watch::Sender::new(inventory);
        let listen = Listen { tls: any, plain: any };
        let audit = Some(audit);
        serve(source, &tls_dir, inventory.subscribe(), audit, listen, tls_handle, plain_handle)
            .await
            .unwrap();
    });
    let (tls, plain) = (tls.listening().await.unwrap(), plain.listening().await.unwrap());
    Running { tls, plain, ca: ca.cert, dir }
}

async fn request(to: SocketAddr, method: &str, path: &str, accept: Option<&str>) -> String {
    let accept = accept.map(|a| format!("Accept: {a}\r\n")).unwrap_or_default();
    request_with(&[], to, method, path, &accept).await
}

/// Written by hand: an HTTP client would clean the path, and knows no PROXY protocol.
async fn request_with(before: &[u8], to: SocketAddr, method: &str, path: &str, headers: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(to).await.unwrap();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Connection: close\r\n\r\n");
    stream.write_all(before).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    // A connection that is refused may be reset, with what was sent unread.
    let _ = stream.read_to_string(&mut answer).await;
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

const MACHINES: &str = "hosts:\n\
    - {name: master-0, role: master, mac: '52:54:00:00:00:02', address: 10.0.0.11}\n\
    - {name: master-1, role: master, mac: '52:54:00:00:00:03', address: 10.0.0.12}\n";

fn one_token(token: &NodeToken, spent: Option<Spent>) -> Admission {
    let issued = Issued { sha256: token.digest(), spent };
    Admission { open: false, nodes: [("master-0".to_string(), issued)].into() }
}

fn status(answer: &str) -> Option<&str> {
    answer.split(' ').nth(1)
}

/// Behind a balancer: loopback is it, and says by PROXY protocol who asks.
#[tokio::test]
async fn a_config_is_for_the_machine_with_its_token_at_its_address() {
    let token = NodeToken::new([1; 32]);
    let inventory = Inventory::parse(&format!("{MACHINES}loadBalancers: [127.0.0.1]\n")).unwrap();
    let server = start_with(inventory, &one_token(&token, None)).await;
    let for_client = |address: &str| {
        proxy_protocol::header(format!("{address}:1").parse().unwrap(), "10.0.0.10:22623".parse().unwrap())
    };
    let (own, other) = (for_client("10.0.0.11"), for_client("10.0.0.12"));
    let good = format!("Authorization: {}\r\n", token.bearer());
    let wrong = format!("Authorization: {}\r\n", NodeToken::new([2; 32]).bearer());
    let claimed = format!("{good}X-Forwarded-For: 10.0.0.11\r\nForwarded: for=10.0.0.11\r\n");
    let cases: [(&str, &[u8], &str, &str, &str); 10] = [
        ("itself", &own, "/config/master", &good, "200"),
        ("again, as a machine killed while booting", &own, "/config/master", &good, "200"),
        ("without a token", &own, "/config/master", "", "403"),
        ("with another token", &own, "/config/master", &wrong, "403"),
        ("another machine with its token", &other, "/config/master", &claimed, "403"),
        ("the balancer for nobody", &[], "/config/master", &claimed, "403"),
        ("another pool", &own, "/config/worker", &good, "403"),
        ("a token in the query", &own, "/config/master?token=x", "", "403"),
        ("a health check without the protocol", &[], "/healthz", "", "200"),
        ("the operator", &other, "/readyz/master", "", "200"),
    ];
    for (what, before, path, headers, wanted) in cases {
        let answer = request_with(before, server.plain, "GET", path, headers).await;
        assert_eq!(status(&answer), Some(wanted), "{what}: {answer}");
        if wanted == "403" {
            assert!(!answer.contains("kubelet%27s") && !answer.contains("token"), "{what}: {answer}");
        }
    }
    let audit = std::fs::read_to_string(server.dir.path().join("audit.log")).unwrap();
    let lines: Vec<serde_json::Value> = audit.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(lines.len(), 8, "every config that was asked for, and nothing else");
    assert_eq!((&lines[0]["verdict"], &lines[0]["node"]), (&"allowed".into(), &"master-0".into()));
    assert_eq!((&lines[0]["address"], &lines[0]["loadBalancer"]), (&"10.0.0.11".into(), &"127.0.0.1".into()));
    assert_eq!((&lines[4]["verdict"], &lines[4]["node"]), (&"refused".into(), &"master-1".into()));
    assert!(!audit.contains("0101") && !audit.contains("0202"), "no token is written down: {audit}");
    // Its certificate is issued: from now on the token is spent.
    let spent = one_token(&token, Some(Spent { at: "T".into(), key: "k".into() }));
    write(&server.dir.path().join("node-tokens.json"), serde_json::to_string(&spent).unwrap());
    let answer = request_with(&own, server.plain, "GET", "/config/master", &good).await;
    assert_eq!(status(&answer), Some("403"));
    // Nobody knows whom to answer: nobody is, but may ask again.
    std::fs::remove_file(server.dir.path().join("node-tokens.json")).unwrap();
    let answer = request_with(&own, server.plain, "GET", "/config/master", &good).await;
    assert_eq!(status(&answer), Some("500"));
}

#[tokio::test]
async fn nobody_but_a_balancer_speaks_for_others() {
    let token = NodeToken::new([1; 32]);
    let server = start_with(Inventory::parse(MACHINES).unwrap(), &one_token(&token, None)).await;
    let header = proxy_protocol::header("10.0.0.11:1".parse().unwrap(), "10.0.0.10:1".parse().unwrap());
    let good = format!("Authorization: {}\r\n", token.bearer());
    let answer = request_with(&header, server.plain, "GET", "/config/master", &good).await;
    assert_eq!(answer, "", "the connection is closed without a word");
    let answer = request_with(&[], server.plain, "GET", "/config/master", &good).await;
    assert_eq!(status(&answer), Some("403"), "loopback is no machine's address");
}

/// What is kept is not older than its source: each file that a config is made of, changed to another of the same length.
#[tokio::test]
async fn a_changed_source_is_served_at_once() {
    let server = start().await;
    let get = async || request(server.plain, "GET", "/config/master", None).await;
    let base = server.dir.path().join("bootstrap");
    let edit = |path: &Path, from: &str, to: &str| {
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.contains(from) && from.len() == to.len(), "{}", path.display());
        write(path, text.replace(from, to));
    };
    let kubeconfig = server.dir.path().join("kubeconfig");
    let controller_config = base.join("controller-config/machine-config-controller.yaml");
    let (pool, configs) = (base.join("machine-pools/master.yaml"), base.join("machine-configs"));
    let name = |answer: &str| {
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        let at = body.find("rendered-master-").unwrap();
        body[at..].split('%').next().unwrap().to_string()
    };
    let first = get().await;
    assert_eq!(get().await, first);
    let rendered = name(&first);
    assert!(first.contains("kubelet%27s") && first.contains("data:,KUBE"), "{rendered}");
    edit(&kubeconfig, "kubelet's", "another's");
    let second = get().await;
    assert!(second.contains("another%27s") && !second.contains("kubelet%27s"));
    edit(&controller_config, "S1VCRQ==", "UE9PTA=="); // base64: KUBE, POOL
    let third = get().await;
    assert!(third.contains("data:,POOL") && !third.contains("data:,KUBE"));
    let other = rendered.replace("rendered-master-", "rendered-mentor-");
    let file = |name: &str| configs.join(format!("{name}.yaml"));
    std::fs::copy(file(&rendered), file(&other)).unwrap();
    edit(&file(&other), "kubelet.service", "another.service");
    edit(&pool, &rendered, &other);
    let fourth = get().await;
    assert!(fourth.contains("another.service"), "the pool has another config");
    std::fs::remove_file(&kubeconfig).unwrap();
    assert_eq!(status(&get().await), Some("404"), "what is gone is not served either");
}

/// Directly, over TLS: the machine's address is the peer's.
#[tokio::test]
async fn a_machine_needs_no_balancer() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let token = NodeToken::new([1; 32]);
    let here = MACHINES.replace("10.0.0.11", "127.0.0.1");
    let server = start_with(Inventory::parse(&here).unwrap(), &one_token(&token, None)).await;
    let ca = reqwest::Certificate::from_pem(server.ca.as_bytes()).unwrap();
    let name = "api-int.ocp4.example.com";
    let client = reqwest::Client::builder().tls_certs_only([ca]).no_proxy().resolve(name, server.tls);
    let url = format!("https://{name}:{}/config/master", server.tls.port());
    let client = client.build().unwrap();
    let with = client.get(&url).header("Authorization", token.bearer()).send().await.unwrap();
    assert_eq!(with.status().as_u16(), 200);
    assert_eq!(client.get(&url).send().await.unwrap().status().as_u16(), 403);
}
