//! bootstrap.ign, profile `native`: everything the bootstrap node needs to grow a cluster, in one file.
//!
//! In: the manifests, the certificates, the release and the inventory. Out: an Ignition config. Next: real Ignition writes the
//! files, systemd starts release-image and bootkube.

mod host;

use crate::config::InstallConfig;
use crate::graph::{Asset, Id, Parents};
use crate::store::{Files, one};
use crate::{
    CreateError, Options, Result, certificates, expiry, identity, install_config, keys, kubeconfig,
    manifests, nodes, overrides, release, roles, shape,
};
use seedling_components::Outside;
use seedling_components::node::{self, NodeParams};
use seedling_ignition::{Config, Dropin, File, Passwd, Resource, Storage, Systemd, Unit, User, data_url};
use seedling_pki::trust::installer::{BUNDLES, LEAVES, SIGNERS};
use seedling_types::template::{render, table};
use seedling_types::{ReleaseInfo, paths};
use std::net::IpAddr;

pub(crate) const BOOTSTRAP: Id = "bootstrap.Bootstrap";
pub(crate) const IN_PLACE: Id = "bootstrap.SingleNodeBootstrapInPlace";

pub(crate) fn assets() -> Vec<Asset> {
    let ignition = |id, name, file: &'static str, config: fn(&Parents) -> Result<Config>| {
        Asset::new(id, name, &needs(), move |p, _| Ok(one(file, &serde_json::to_string(&config(p)?)?)))
            .loaded(move |given, _| if given.run.options.refresh { Ok(None) } else { given.file(file) })
            .checked(|files, options| expiry::check(files, options.now))
    };
    let in_place: fn(&Parents) -> _ = |p| Ok(config(p)?.merge(in_place(&in_place_disk(p.config()?)?)?));
    let (name, file) =
        ("Single node bootstrap In Place Ignition Config", "bootstrap-in-place-for-live-iso.ign");
    vec![
        ignition(BOOTSTRAP, "Bootstrap Ignition Config", "bootstrap.ign", config),
        ignition(IN_PLACE, name, file, in_place),
    ]
}

/// The bootstrap node does not sign with these, and an admin's certificate is in the kubeconfigs only.
const ELSEWHERE: [Id; 4] = [
    "tls.AdminKubeConfigSignerCertKey",
    "tls.KubeletBootstrapCertSigner",
    "tls.AdminKubeConfigClientCertKey",
    "seedling.BootstrapAdminClientCertKey",
];
const KUBECONFIGS: [Id; 3] = [kubeconfig::INTERNAL, kubeconfig::KUBELET, kubeconfig::LOOPBACK];

fn needs() -> Vec<Id> {
    let mut needs = vec![overrides::ID, install_config::ID, identity::CLUSTER_ID];
    needs.extend(KUBECONFIGS);
    needs.extend(roles::ROLES.iter().map(|of| of.customizations));
    needs.extend(roles::ROLES.iter().map(|of| of.machines));
    needs.extend([manifests::MANIFESTS, manifests::OPENSHIFT]);
    needs.extend(certificates::rows().map(|(id, _)| id).filter(|id| !ELSEWHERE.contains(id)));
    needs.extend([keys::SERVICE_ACCOUNT, keys::BOUND_SERVICE_ACCOUNT, keys::BOOTSTRAP_SSH]);
    needs.extend([release::ID, nodes::INVENTORY, nodes::NODE_TOKENS]);
    needs
}

/// Home of the user-data secrets. Upstream's payload has an operator that brings it; the native one does not.
const MACHINE_API: &str = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: openshift-machine-api\n";

fn config(made: &Parents) -> Result<Config> {
    let (config, release) = (made.config()?, &release::of(made)?);
    let params = NodeParams {
        domain: &config.domain,
        release,
        service_networks: config.networks.service.clone(),
        pod_networks: config.networks.cluster.iter().map(|network| network.cidr).collect(),
    };
    let own = Config {
        passwd: Passwd { users: vec![core(made)?] },
        storage: Storage { files: files(made, release)? },
        systemd: Systemd { units: units() },
        ..Config::default()
    };
    let manifests = manifests(made)?;
    let outside = Outside::of_manifests(manifests.values().map(String::as_str));
    let outside = node::outside(&config.domain, &outside, true);
    let mut config = node::bootstrap(&params)?.merge(own).merge(outside);
    if let Some(address) = node_ip(made.run().options)? {
        let contents =
            format!("[Service]\nEnvironment=\"NODE_ARGS=--node-ip={address} --address={address}\"\n");
        let kubelet = config.systemd.units.iter_mut().find(|unit| unit.name == "kubelet.service");
        let dropin = Dropin { name: "20-node-ip.conf".into(), contents };
        kubelet.into_iter().for_each(|unit| unit.dropins.push(dropin.clone()));
    }
    Ok(config)
}

fn core(made: &Parents) -> Result<User> {
    let own = made.file(keys::BOOTSTRAP_SSH, "tls/bootstrap-ssh.pub")?;
    let given = made.config()?.merged.ssh_key.lines().map(str::trim).filter(|line| !line.is_empty());
    let keys = given.chain([own]).map(str::to_string).collect();
    Ok(User { name: "core".into(), ssh_authorized_keys: keys })
}

fn files(made: &Parents, release: &ReleaseInfo) -> Result<Vec<File>> {
    let gather = include_str!("files/usr/local/bin/installer-gather.sh");
    let mut files = vec![motd(), File::inline("/usr/local/bin/installer-gather.sh", 0o555, gather)];
    files.extend(host::files(made.config()?));
    let put = |path: &str, mode, contents: &str| {
        File::inline(format!("{}/{path}", paths::OPT_OPENSHIFT), mode, contents)
    };
    for (path, contents) in manifests(made)? {
        let mode = if path.contains("fencing-credentials") { 0o600 } else { 0o644 };
        files.push(put(&path, mode, &contents));
    }
    files.push(put("manifests/00_openshift-machine-api-ns.yaml", 0o644, MACHINE_API));
    files.push(put("release.json", 0o644, &serde_json::to_string_pretty(release)?));
    files.push(put("node-tokens.json", 0o600, &serde_json::to_string(&nodes::admission(made)?)?));
    if let Some(inventory) = made.inventory()? {
        files.push(put("hosts.yaml", 0o644, &inventory.to_yaml()));
    }
    for id in KUBECONFIGS {
        files.extend(made.files(id)?.iter().map(|(path, contents)| put(path, 0o600, contents)));
    }
    let loopback = made.file(kubeconfig::LOOPBACK, "auth/kubeconfig-loopback")?;
    files.push(File::inline(paths::LOCALHOST_KUBECONFIG, 0o600, loopback));
    for (path, contents) in tls(made)? {
        files.push(put(path, 0o600, contents));
    }
    files.push(put("tls/root-ca.crt", 0o644, made.file(certificates::ROOT_CA, "tls/root-ca.crt")?));
    Ok(files)
}

/// In upstream's order of precedence: a later asset's file replaces an earlier one's.
fn manifests(made: &Parents) -> Result<Files> {
    let mut all = Files::new();
    let roles = roles::ROLES.iter().flat_map(|of| [of.machines, of.customizations]);
    for id in [manifests::MANIFESTS, manifests::OPENSHIFT].into_iter().chain(roles).chain([overrides::ID]) {
        all.extend(made.files(id)?.clone());
    }
    Ok(all)
}

/// Every key and certificate that the bootstrap node works with.
fn tls<'a>(made: &Parents<'a>) -> Result<Vec<(&'a String, &'a String)>> {
    // Of root-ca only the certificate goes along.
    let here = |id: &Id| *id != certificates::ROOT_CA && !ELSEWHERE.contains(id);
    let signers = SIGNERS.iter().map(|s| s.asset).filter(here);
    let leaves = LEAVES.iter().map(|l| l.asset).filter(here);
    let bundles = BUNDLES.iter().map(|b| b.asset);
    let pairs = [keys::SERVICE_ACCOUNT, keys::BOUND_SERVICE_ACCOUNT];
    let mut files = Vec::new();
    for id in bundles.chain(signers).chain(leaves).chain(pairs) {
        files.extend(made.files(id)?);
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
fn in_place(disk: &str) -> Result<Config> {
    let service = include_str!("files/etc/systemd/system/install-to-disk.service");
    let service = render(service, table(&[("disk", &quoted(disk))]))?;
    let script = include_str!("files/usr/local/bin/install-to-disk.sh");
    let units = vec![
        Unit::new("install-to-disk.service", true, service),
        Unit::new(
            "install-to-disk.path",
            true,
            include_str!("files/etc/systemd/system/install-to-disk.path"),
        ),
    ];
    Ok(Config {
        storage: Storage { files: vec![File::inline("/usr/local/bin/install-to-disk.sh", 0o555, script)] },
        systemd: Systemd { units },
        ..Config::default()
    })
}

/// One word of a systemd command line, whatever is in it.
fn quoted(word: &str) -> String {
    let escaped = word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    format!("\"{escaped}\"")
}

/// Where the kubelet must not choose one of several addresses by itself.
fn node_ip(options: &Options) -> Result<Option<IpAddr>> {
    let Some(text) = &options.bootstrap_node_ip else { return Ok(None) };
    let why = format!("OPENSHIFT_INSTALL_BOOTSTRAP_NODE_IP: Invalid value: {text:?}: must be an IP address");
    text.parse().map(Some).map_err(|_| CreateError::Refused(vec![why]))
}

fn in_place_disk(config: &InstallConfig) -> Result<String> {
    let mut refused = Vec::new();
    if config.masters != 1 {
        refused.push(format!(
            "controlPlane.replicas: Invalid value: {}: bootstrap in place requires a single ControlPlane replica",
            config.masters
        ));
    }
    match shape::installation_disk(config) {
        None => refused.push(
            "bootstrapInPlace: Required value: bootstrapInPlace is required when creating a single node bootstrap-in-place ignition"
                .into(),
        ),
        Some("") => refused.push(
            "bootstrapInPlace.installationDisk: Required value: installationDisk must be set the target disk drive for the installation"
                .into(),
        ),
        Some(disk) if refused.is_empty() => return Ok(disk.into()),
        Some(_) => {}
    }
    Err(CreateError::Refused(refused))
}
