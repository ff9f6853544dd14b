//! A real etcd, kube-apiserver and, if asked for, a kube-controller-manager that signs, on loopback, from the built release; stopped and
//! removed when dropped.

mod programs;

use kube::Client;
use programs::{cache, spawn};
use seedling_pki::{CaSpec, KeyAlgorithm, new_ca};
use seedling_release::Payload;
use seedling_types::ReleaseInfo;
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Child;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const NO_PROGRESS: Duration = Duration::from_secs(60);

pub(crate) struct ControlPlane {
    pub dir: tempfile::TempDir,
    pub client: Client,
    processes: Vec<Child>,
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// A loopback address for each control plane, with the ports it has on a master: a port that is merely free when it is looked for may be
/// taken before the server listens on it.
fn address() -> Ipv4Addr {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let (process, nth) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    Ipv4Addr::new(127, (process >> 8 & 127) as u8 + 1, process as u8, nth as u8)
}

impl ControlPlane {
    pub(crate) async fn start() -> Self {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
        let address = address();
        let keys = seedling_pki::rsa_keypair().unwrap();
        std::fs::write(file("sa.key"), &keys.key).unwrap();
        std::fs::write(file("sa.pub"), &keys.public).unwrap();
        std::fs::write(file("tokens.csv"), "secret,admin,admin,system:masters\n").unwrap();
        let policy = json!({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
            "rules": [{"level": "Metadata"}]});
        std::fs::write(file("audit-policy.json"), policy.to_string()).unwrap();
        let spawn = |name: &str, arguments: &[String]| spawn(dir.path(), name, arguments);
        let etcd = spawn(
            "etcd",
            &[
                format!("--data-dir={}", file("etcd")),
                format!("--listen-client-urls=http://{address}:2379"),
                format!("--advertise-client-urls=http://{address}:2379"),
                format!("--listen-peer-urls=http://{address}:2380"),
                format!("--initial-advertise-peer-urls=http://{address}:2380"),
                format!("--initial-cluster=default=http://{address}:2380"),
                "--unsafe-no-fsync".into(),
            ],
        );
        let apiserver = spawn(
            "kube-apiserver",
            &[
                format!("--etcd-servers=http://{address}:2379"),
                "--secure-port=6443".into(),
                format!("--bind-address={address}"),
                format!("--advertise-address={address}"),
                format!("--cert-dir={}", file("certs")),
                "--service-cluster-ip-range=172.30.0.0/16".into(),
                "--service-account-issuer=https://seedling.test".into(),
                format!("--service-account-key-file={}", file("sa.pub")),
                format!("--service-account-signing-key-file={}", file("sa.key")),
                format!("--token-auth-file={}", file("tokens.csv")),
                "--authorization-mode=Node,RBAC".into(),
                "--allow-privileged=true".into(),
                format!("--audit-policy-file={}", file("audit-policy.json")),
                format!("--audit-log-path={}", file("audit.log")),
                "--disable-admission-plugins=ServiceAccount".into(),
            ],
        );
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "clusters": [{"name": "x", "cluster": {
                "server": format!("https://{address}:6443"), "insecure-skip-tls-verify": true,
            }}],
            "users": [{"name": "x", "user": {"token": "secret"}}],
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        });
        std::fs::create_dir(file("auth")).unwrap();
        std::fs::write(file("auth/kubeconfig"), kubeconfig.to_string()).unwrap();
        let client = seedling_cluster::connect_yaml(&kubeconfig.to_string()).await.unwrap();
        let plane = Self { processes: vec![apiserver, etcd], client, dir };
        plane.ready().await;
        plane
    }

    /// Approved requests get their certificates.
    pub(crate) fn with_signer(mut self) -> Self {
        let file = |name: &str| self.dir.path().join(name).to_str().unwrap().to_string();
        let spec = CaSpec { cn: "csr-signer", ou: None, validity: time::Duration::days(1) };
        let ca = new_ca(&spec, KeyAlgorithm::EcdsaP256, time::OffsetDateTime::now_utc()).unwrap();
        std::fs::write(file("signer.crt"), &ca.cert).unwrap();
        std::fs::write(file("signer.key"), &ca.key).unwrap();
        let arguments = [
            format!("--kubeconfig={}", file("auth/kubeconfig")),
            format!("--cluster-signing-cert-file={}", file("signer.crt")),
            format!("--cluster-signing-key-file={}", file("signer.key")),
            // The publisher's are the authorities that joining machines trust.
            "--controllers=certificatesigningrequest-signing-controller,root-ca-certificate-publisher-controller"
                .into(),
            format!("--service-account-private-key-file={}", file("sa.key")),
            format!("--root-ca-file={}", file("signer.crt")),
            "--leader-elect=false".into(),
            "--secure-port=0".into(),
        ];
        self.processes.insert(0, spawn(self.dir.path(), "kube-controller-manager", &arguments));
        self
    }

    async fn ready(&self) {
        for _ in 0..300 {
            let request = axum::http::Request::get("/readyz").body(vec![]).unwrap();
            if self.client.request_text(request).await.is_ok_and(|text| text == "ok") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{}", std::fs::read_to_string(self.dir.path().join("kube-apiserver.log")).unwrap());
    }

    pub(crate) async fn get(
        &self,
        api_version: &str,
        kind: &str,
        namespace: Option<&str>,
        name: &str,
    ) -> Value {
        let found = seedling_cluster::manifest::get(&self.client, api_version, kind, namespace, name).await;
        found.ok().flatten().unwrap_or_default()
    }

    pub(crate) async fn list(&self, api_version: &str, kind: &str, labels: &str) -> Vec<Value> {
        let api = seedling_cluster::manifest::api(&self.client, api_version, kind, None).await.unwrap();
        let found = api.list(&kube::api::ListParams::default().labels(labels)).await.unwrap();
        found.items.iter().map(|object| serde_json::to_value(object).unwrap()).collect()
    }

    /// What was refused to service accounts: `who: verb uri`.
    pub(crate) fn refused(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.dir.path().join("audit.log")).unwrap();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let refused = lines
            .filter(|line| line["responseStatus"]["code"] == 403 && line["impersonatedUser"].is_object());
        let text =
            |line: &Value, path: &str| line.pointer(path).and_then(Value::as_str).unwrap_or("?").to_string();
        refused
            .map(|l| {
                format!(
                    "{}: {} {}",
                    text(&l, "/impersonatedUser/username"),
                    text(&l, "/verb"),
                    text(&l, "/requestURI")
                )
            })
            .collect()
    }

    /// Asks until it is so; gives up when what is seen instead has not changed for a minute. Eight control planes share the machine.
    pub(crate) async fn until(&self, what: &str, mut met: impl AsyncFnMut() -> Result<(), String>) {
        let (mut last, mut since) = (String::new(), Instant::now());
        while since.elapsed() < NO_PROGRESS {
            match met().await {
                Ok(()) => return,
                Err(seen) if seen != last => (last, since) = (seen, Instant::now()),
                Err(_) => {}
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{what}: {last}");
    }
}

/// The manifests of the source tree; of the built payload what is not in there: kinds and metadata.
pub(crate) fn payload(into: &Path) {
    let release: Value = read(&cache().join("release/release.json"));
    let blob =
        |digest: &str| cache().join("release/oci/blobs/sha256").join(digest.rsplit(':').next().unwrap());
    let image: Value = read(&blob(release["releaseImage"].as_str().unwrap()));
    for layer in image["layers"].as_array().unwrap() {
        let layer = std::fs::File::open(blob(layer["digest"].as_str().unwrap())).unwrap();
        for entry in tar::Archive::new(layer).entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().into_owned();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let made = name.ends_with(".crd.yaml") || !name.contains('.');
            if path.starts_with("release-manifests") && made && entry.header().entry_type().is_file() {
                entry.unpack(into.join(path.file_name().unwrap())).unwrap();
            }
        }
    }
    let release: ReleaseInfo = serde_json::from_value(release).unwrap();
    let of = Payload { version: &release.version, images: &release.images, components: &release.components };
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../release");
    for (name, text) in of.manifests(&sources).unwrap() {
        let target = into.join(name);
        let _ = std::fs::remove_file(&target);
        std::fs::write(target, text).unwrap();
    }
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}
