//! bootstrap.ign, profile `native`: everything the bootstrap node needs to grow a cluster, in one file.
//!
//! In: the manifests, the certificates, the release and the inventory. Out: an Ignition config. Next: real Ignition writes the
//! files, systemd starts release-image and bootkube.

use crate::config::InstallConfig;
use crate::kubeconfig::Kubeconfig;
use crate::manifests::Manifests;
use crate::{CreateError, overrides};
use seedling_components::node::{self, NodeParams};
use seedling_ignition::{Config, File, Passwd, Resource, Storage, Systemd, Unit, User, data_url};
use seedling_pki::{CertKey, KeyPair, PkiError, table};
use seedling_types::{Admission, Inventory, ReleaseInfo, paths, ports};
use std::collections::BTreeMap;

pub struct Inputs<'a> {
    pub config: &'a InstallConfig,
    pub manifests: &'a Manifests,
    pub certificates: &'a BTreeMap<String, CertKey>,
    pub service_account: &'a KeyPair,
    pub bootstrap_ssh: &'a KeyPair,
    pub release: &'a ReleaseInfo,
    pub inventory: Option<&'a Inventory>,
    /// Digests of the nodes' tokens.
    pub admission: &'a Admission,
}

/// Signers whose keys stay with the installer: the bootstrap node does not sign with them.
const KEPT_BACK: &[&str] = &["root-ca", "admin-kubeconfig-signer", "kubelet-bootstrap-kubeconfig-signer"];
/// A person's certificate: it is in the kubeconfigs only.
const IN_KUBECONFIG: &str = "admin-kubeconfig-client";

/// Home of the user-data secrets. Upstream's payload has an operator that brings it; the native one does not.
const MACHINE_API: &str = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: openshift-machine-api\n";

pub fn config(i: &Inputs) -> Result<Config, CreateError> {
    let params = NodeParams {
        domain: &i.config.domain,
        release: i.release,
        cluster_dns: i.config.networks.service_address(10),
        pod_networks: i.config.networks.cluster.iter().map(|network| network.cidr).collect(),
    };
    let own = Config {
        passwd: Passwd { users: vec![core(i)] },
        storage: Storage { files: files(i)? },
        systemd: Systemd { units: units() },
        ..Config::default()
    };
    Ok(node::bootstrap(&params)?.merge(own))
}

fn core(i: &Inputs) -> User {
    let given = i.config.merged.ssh_key.lines().map(str::trim).filter(|line| !line.is_empty());
    let keys = given.chain([i.bootstrap_ssh.public.as_str()]).map(str::to_string).collect();
    User { name: "core".into(), ssh_authorized_keys: keys }
}

fn files(i: &Inputs) -> Result<Vec<File>, CreateError> {
    let mut files = vec![motd()];
    let put = |path: &str, mode, contents: &str| {
        File::inline(format!("{}/{path}", paths::OPT_OPENSHIFT), mode, contents)
    };
    let (manifests, patch) = overrides::ignore(i.manifests)?;
    files.extend(manifests.iter().map(|(path, contents)| put(path, 0o644, contents)));
    files.push(put("manifests/00_openshift-machine-api-ns.yaml", 0o644, MACHINE_API));
    files.push(put("original_cvo_overrides.patch", 0o644, &patch));
    files.push(put("release.json", 0o644, &serde_json::to_string_pretty(i.release)?));
    files.push(put("node-tokens.json", 0o600, &serde_json::to_string(i.admission)?));
    if let Some(inventory) = i.inventory {
        files.push(put("hosts.yaml", 0o644, &inventory.to_yaml()));
    }
    let bundles = table::bundles(i.certificates);
    let kubeconfigs = Kubeconfigs { config: i.config, certificates: i.certificates, bundles: &bundles };
    let loopback = kubeconfigs.loopback()?;
    files.push(put("auth/kubeconfig", 0o600, &kubeconfigs.admin(&i.config.domain.api_int())?));
    files.push(put("auth/kubeconfig-kubelet", 0o600, &kubeconfigs.kubelet()?));
    files.push(put("auth/kubeconfig-loopback", 0o600, &loopback));
    files.push(File::inline(paths::LOCALHOST_KUBECONFIG, 0o600, &loopback));
    files.extend(bundles.iter().map(|(name, certs)| put(&format!("tls/{name}.crt"), 0o600, certs)));
    for (name, pair) in i.certificates {
        if !KEPT_BACK.contains(&name.as_str()) && name != IN_KUBECONFIG {
            files.push(put(&format!("tls/{name}.key"), 0o600, &pair.key));
            files.push(put(&format!("tls/{name}.crt"), 0o600, &pair.cert));
        }
    }
    files.push(put("tls/service-account.key", 0o600, &i.service_account.key));
    files.push(put("tls/service-account.pub", 0o600, &i.service_account.public));
    files.push(put("tls/root-ca.crt", 0o644, &certificate(i.certificates, "root-ca")?.cert));
    Ok(files)
}

fn motd() -> File {
    let source = Some(data_url(include_bytes!("files/etc/motd")));
    File {
        overwrite: Some(false),
        append: vec![Resource { source, ..Resource::default() }],
        contents: None,
        ..File::inline("/etc/motd", 0o644, "")
    }
}

/// Unlike upstream's, bootkube is enabled: nothing else has to pull it in.
fn units() -> Vec<Unit> {
    vec![
        Unit::new("approve-csr.service", true, include_str!("files/etc/systemd/system/approve-csr.service")),
        Unit::new("bootkube.service", true, include_str!("files/etc/systemd/system/bootkube.service")),
        Unit::new("progress.service", true, include_str!("files/etc/systemd/system/progress.service")),
        Unit::new(
            "release-image.service",
            false,
            include_str!("files/etc/systemd/system/release-image.service"),
        ),
    ]
}

/// The three identities that talk to the API during the bootstrap.
pub struct Kubeconfigs<'a> {
    pub config: &'a InstallConfig,
    pub certificates: &'a BTreeMap<String, CertKey>,
    pub bundles: &'a BTreeMap<String, String>,
}

impl Kubeconfigs<'_> {
    pub fn admin(&self, host: &str) -> Result<String, CreateError> {
        self.make(host, "kube-apiserver-complete-server-ca-bundle", "admin", IN_KUBECONFIG)
    }
    fn kubelet(&self) -> Result<String, CreateError> {
        let host = self.config.domain.api_int();
        self.make(&host, "kube-apiserver-complete-server-ca-bundle", "kubelet", "kubelet-client")
    }
    fn loopback(&self) -> Result<String, CreateError> {
        self.make("localhost", "kube-apiserver-localhost-ca-bundle", "loopback", IN_KUBECONFIG)
    }
    fn make(&self, host: &str, bundle: &str, user: &str, client: &str) -> Result<String, CreateError> {
        let ca = self.bundles.get(bundle).ok_or_else(|| PkiError::Unknown(bundle.into()))?;
        let server = format!("https://{host}:{}", ports::API);
        let client = certificate(self.certificates, client)?;
        Kubeconfig { cluster: &self.config.name, server, ca, user, client }.to_yaml()
    }
}

pub fn certificate<'a>(made: &'a BTreeMap<String, CertKey>, name: &str) -> Result<&'a CertKey, PkiError> {
    made.get(name).ok_or_else(|| PkiError::Unknown(name.into()))
}
