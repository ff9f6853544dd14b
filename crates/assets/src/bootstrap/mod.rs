//! bootstrap.ign, profile `native`: everything the bootstrap node needs to grow a cluster, in one file.
//!
//! In: the manifests, the certificates, the release and the inventory. Out: an Ignition config. Next: real Ignition writes the
//! files, systemd starts release-image and bootkube.

mod host;

use crate::CreateError;
use crate::config::InstallConfig;
use crate::graph::engine::Made;
use crate::graph::{self, Id, ROLES};
use crate::store::Files;
use seedling_components::node::{self, NodeParams};
use seedling_ignition::{Config, Dropin, File, Passwd, Resource, Storage, Systemd, Unit, User, data_url};
use seedling_pki::table;
use seedling_types::{Admission, Inventory, ReleaseInfo, paths};
use std::net::IpAddr;

pub struct Inputs<'a> {
    pub config: &'a InstallConfig,
    pub made: &'a Made<'a>,
    pub release: &'a ReleaseInfo,
    pub inventory: Option<&'a Inventory>,
    /// Digests of the nodes' tokens.
    pub admission: &'a Admission,
    /// Where the kubelet must not choose one of several addresses by itself.
    pub node_ip: Option<IpAddr>,
}

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
        passwd: Passwd { users: vec![core(i)?] },
        storage: Storage { files: files(i)? },
        systemd: Systemd { units: units() },
        ..Config::default()
    };
    let mut config = node::bootstrap(&params)?.merge(own);
    if let Some(address) = i.node_ip {
        let contents =
            format!("[Service]\nEnvironment=\"NODE_ARGS=--node-ip={address} --address={address}\"\n");
        let kubelet = config.systemd.units.iter_mut().find(|unit| unit.name == "kubelet.service");
        let dropin = Dropin { name: "20-node-ip.conf".into(), contents };
        kubelet.into_iter().for_each(|unit| unit.dropins.push(dropin.clone()));
    }
    Ok(config)
}

fn core(i: &Inputs) -> Result<User, CreateError> {
    let own = i.made.file(graph::BOOTSTRAP_SSH, "tls/bootstrap-ssh.pub")?;
    let given = i.config.merged.ssh_key.lines().map(str::trim).filter(|line| !line.is_empty());
    let keys = given.chain([own]).map(str::to_string).collect();
    Ok(User { name: "core".into(), ssh_authorized_keys: keys })
}

fn files(i: &Inputs) -> Result<Vec<File>, CreateError> {
    let gather = include_str!("files/usr/local/bin/installer-gather.sh");
    let mut files = vec![motd(), File::inline("/usr/local/bin/installer-gather.sh", 0o555, gather)];
    files.extend(host::files(i.config));
    let put = |path: &str, mode, contents: &str| {
        File::inline(format!("{}/{path}", paths::OPT_OPENSHIFT), mode, contents)
    };
    for (path, contents) in manifests(i)? {
        let mode = if path.contains("fencing-credentials") { 0o600 } else { 0o644 };
        files.push(put(&path, mode, &contents));
    }
    files.push(put("manifests/00_openshift-machine-api-ns.yaml", 0o644, MACHINE_API));
    files.push(put("release.json", 0o644, &serde_json::to_string_pretty(i.release)?));
    files.push(put("node-tokens.json", 0o600, &serde_json::to_string(i.admission)?));
    if let Some(inventory) = i.inventory {
        files.push(put("hosts.yaml", 0o644, &inventory.to_yaml()));
    }
    for id in [graph::KUBECONFIG_INTERNAL, graph::KUBECONFIG_KUBELET, graph::KUBECONFIG_LOOPBACK] {
        files.extend(i.made.files(id)?.iter().map(|(path, contents)| put(path, 0o600, contents)));
    }
    let loopback = i.made.file(graph::KUBECONFIG_LOOPBACK, "auth/kubeconfig-loopback")?;
    files.push(File::inline(paths::LOCALHOST_KUBECONFIG, 0o600, loopback));
    for (path, contents) in tls(i)? {
        files.push(put(path, 0o600, contents));
    }
    files.push(put("tls/root-ca.crt", 0o644, i.made.file(graph::ROOT_CA, "tls/root-ca.crt")?));
    Ok(files)
}

/// In upstream's order of precedence: a later asset's file replaces an earlier one's.
fn manifests(i: &Inputs) -> Result<Files, CreateError> {
    let mut all = Files::new();
    let roles = ROLES.iter().flat_map(|of| [of.machines, of.customizations]);
    for id in [graph::MANIFESTS, graph::OPENSHIFT].into_iter().chain(roles).chain([graph::CVO_IGNORE]) {
        all.extend(i.made.files(id)?.clone());
    }
    Ok(all)
}

/// Every key and certificate that the bootstrap node works with.
fn tls<'a>(i: &Inputs<'a>) -> Result<Vec<(&'a String, &'a String)>, CreateError> {
    // Of root-ca only the certificate goes along.
    let here = |id: &Id| *id != graph::ROOT_CA && !graph::NOT_IN_BOOTSTRAP.contains(id);
    let signers = table::SIGNERS.iter().map(|s| s.asset).filter(here);
    let leaves = table::LEAVES.iter().map(|l| l.asset).filter(here);
    let bundles = table::BUNDLES.iter().map(|b| b.asset);
    let pairs = [graph::SERVICE_ACCOUNT, graph::BOUND_SERVICE_ACCOUNT];
    let mut files = Vec::new();
    for id in bundles.chain(signers).chain(leaves).chain(pairs) {
        files.extend(i.made.files(id)?);
    }
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
    let mut units = vec![
        Unit::new("approve-csr.service", true, include_str!("files/etc/systemd/system/approve-csr.service")),
        Unit::new("bootkube.service", true, include_str!("files/etc/systemd/system/bootkube.service")),
        Unit::new("progress.service", true, include_str!("files/etc/systemd/system/progress.service")),
        Unit::new(
            "release-image.service",
            false,
            include_str!("files/etc/systemd/system/release-image.service"),
        ),
    ];
    units.extend(host::units());
    units
}

/// What an installation in place adds: when bootkube is done, the node is written to its disk and started from there.
pub fn in_place(disk: &str) -> Config {
    let service =
        include_str!("files/etc/systemd/system/install-to-disk.service").replace("@DISK@", &quoted(disk));
    let script = include_str!("files/usr/local/bin/install-to-disk.sh");
    let units = vec![
        Unit::new("install-to-disk.service", true, service),
        Unit::new(
            "install-to-disk.path",
            true,
            include_str!("files/etc/systemd/system/install-to-disk.path"),
        ),
    ];
    Config {
        storage: Storage { files: vec![File::inline("/usr/local/bin/install-to-disk.sh", 0o555, script)] },
        systemd: Systemd { units },
        ..Config::default()
    }
}

/// One word of a systemd command line, whatever is in it.
fn quoted(word: &str) -> String {
    let escaped = word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    format!("\"{escaped}\"")
}
