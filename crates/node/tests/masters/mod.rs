//! Real members of etcd on this machine, with the certificates that masters have.

#![allow(dead_code, reason = "each test binary uses a part")]

#[path = "../../../operators/tests/control_plane/programs.rs"]
pub(crate) mod programs;

use programs::{program, spawn};
use seedling_cluster::etcd::{Etcd, EtcdTls};
use seedling_node::etcd::JoinArgs;
use seedling_pki::KeyAlgorithm;
use seedling_pki::trust::{Cluster, ETCD_MEMBERS, ETCD_SIGNER};
use seedling_types::{ClusterDomain, Host, Role};
use std::collections::BTreeSet;
use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Child;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

pub(crate) const NAMES: [&str; 3] = ["master-0", "master-1", "master-2"];

/// Masters on loopback addresses of their own, so that every port is the one it is on a master.
pub(crate) struct Masters {
    pub(crate) dir: tempfile::TempDir,
    network: u32,
    pub(crate) tls: EtcdTls,
    /// Flags that the members have beside those that they need.
    pub(crate) flags: &'static [&'static str],
    running: Vec<(usize, Child)>,
}

impl Drop for Masters {
    fn drop(&mut self) {
        (0..3).for_each(|n| self.kill(n));
    }
}

/// One a test.
static NETWORKS: AtomicU32 = AtomicU32::new(0);

pub(crate) fn address(network: u32, n: usize) -> IpAddr {
    IpAddr::from([127, (network / 250 % 250) as u8 + 1, (network % 250) as u8 + 1, 11 + n as u8])
}

impl Masters {
    pub(crate) fn new(flags: &'static [&'static str]) -> Self {
        let network = std::process::id() + 1000 * NETWORKS.fetch_add(1, Ordering::Relaxed);
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let dir = tempfile::tempdir().unwrap();
        let now = time::OffsetDateTime::now_utc();
        let validity = time::Duration::days(1);
        let ca = ETCD_SIGNER.make(KeyAlgorithm::default(), now).unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join("resources").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("configmaps/etcd-ca-bundle/ca-bundle.crt", &ca.cert);
        let host = |(n, name): (usize, &&str)| Host {
            name: name.to_string(),
            role: Role::Master,
            mac: String::new(),
            address: address(network, n),
            second_address: None,
        };
        let (hosts, domain) =
            (NAMES.iter().enumerate().map(host).collect::<Vec<_>>(), ClusterDomain("ocp4".into()));
        let cluster = Cluster {
            domain: &domain,
            service_addresses: vec![[172, 30, 0, 1].into()],
            api_vips: &[],
            hosts: &hosts,
        };
        let files = ETCD_MEMBERS.make_files(&ca, &cluster, validity, now).unwrap();
        files.iter().for_each(|(file, text)| write(&format!("secrets/etcd-all-certs/{file}"), text));
        let [cert, key] = ["crt", "key"].map(|end| files[&format!("etcd-peer-master-2.{end}")].clone());
        let tls = EtcdTls { ca: ca.cert.clone(), cert, key };
        Self { network, tls, flags, dir, running: vec![] }
    }

    pub(crate) fn address(&self, n: usize) -> IpAddr {
        address(self.network, n)
    }
    pub(crate) fn peer_url(&self, n: usize) -> String {
        format!("https://{}:2380", self.address(n))
    }
    pub(crate) fn data(&self, n: usize) -> PathBuf {
        self.dir.path().join(NAMES[n])
    }
    pub(crate) fn log(&self, n: usize) -> PathBuf {
        self.data(n).join("member/wal")
    }
    pub(crate) fn args(&self, n: usize) -> JoinArgs {
        JoinArgs {
            name: NAMES[n].into(),
            address: self.address(n),
            peers: NAMES.iter().enumerate().map(|(n, name)| (name.to_string(), self.address(n))).collect(),
            resources: self.dir.path().join("resources"),
            out: PathBuf::new(),
            command: vec![],
        }
    }

    pub(crate) fn start(&mut self, n: usize, members: &[usize], state: &str) {
        let resources = self.dir.path().join("resources");
        let file = |path: &str| resources.join(path).display().to_string();
        let (ca, pair) = (
            file("configmaps/etcd-ca-bundle/ca-bundle.crt"),
            file(&format!("secrets/etcd-all-certs/etcd-peer-{}", NAMES[n])),
        );
        let client = format!("https://{}:2379", self.address(n));
        let all: Vec<_> = members.iter().map(|m| format!("{}={}", NAMES[*m], self.peer_url(*m))).collect();
        let mut flags = vec![
            format!("--name={}", NAMES[n]),
            format!("--data-dir={}", self.data(n).display()),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={}", self.peer_url(n)),
            format!("--initial-advertise-peer-urls={}", self.peer_url(n)),
            format!("--initial-cluster={}", all.join(",")),
            format!("--initial-cluster-state={state}"),
        ];
        flags.extend(self.flags.iter().map(|flag| flag.to_string()));
        for prefix in ["", "peer-"] {
            flags.push(format!("--{prefix}client-cert-auth"));
            flags.push(format!("--{prefix}trusted-ca-file={ca}"));
            flags.push(format!("--{prefix}cert-file={pair}.crt"));
            flags.push(format!("--{prefix}key-file={pair}.key"));
        }
        let logs = self.dir.path().join(format!("log-{n}-{}", self.running.len()));
        fs::create_dir_all(&logs).unwrap();
        self.running.push((n, spawn(&logs, "etcd", &flags)));
    }

    /// As power that is lost.
    pub(crate) fn kill(&mut self, n: usize) {
        for (_, process) in self.running.iter_mut().filter(|(m, _)| *m == n) {
            let _ = process.kill();
            let _ = process.wait();
        }
        self.running.retain(|(m, _)| *m != n);
    }

    pub(crate) async fn etcd(&self, n: usize) -> Result<Etcd, String> {
        let url = format!("https://{}:2379", self.address(n));
        Etcd::connect(&[url], &self.tls).await.map_err(|e| e.to_string())
    }

    /// Whether it leads or follows.
    pub(crate) async fn serves(&self, n: usize) {
        for _ in 0..200 {
            if let Ok(mut etcd) = self.etcd(n).await
                && etcd.revision().await.is_ok()
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{} does not serve", NAMES[n]);
    }

    pub(crate) async fn cluster(&self, n: usize) -> u64 {
        self.etcd(n).await.unwrap().status().await.unwrap().cluster
    }

    pub(crate) fn etcdctl(&self, n: usize, words: &[&str]) -> Result<String, String> {
        let resources = self.dir.path().join("resources");
        let pair = resources.join(format!("secrets/etcd-all-certs/etcd-peer-{}", NAMES[n]));
        let output = std::process::Command::new(program("etcdctl"))
            .arg(format!("--endpoints=https://{}:2379", self.address(n)))
            .arg(format!("--cacert={}/configmaps/etcd-ca-bundle/ca-bundle.crt", resources.display()))
            .arg(format!("--cert={}.crt", pair.display()))
            .arg(format!("--key={}.key", pair.display()))
            .args(words)
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    pub(crate) fn keys(&self, n: usize) -> BTreeSet<String> {
        let ask = || self.etcdctl(n, &["get", "--prefix", "key", "--keys-only"]);
        // Two cores, and whoever else measures on them: a leader may be late.
        let listed = (0..10).find_map(|_| ask().ok()).unwrap_or_else(|| ask().unwrap());
        listed.lines().filter(|line| !line.is_empty()).map(str::to_string).collect()
    }
}
