//! The assets and what each is made of, as one table. Names are upstream's: its state file, messages and graph have them too.
//!
//! In: nothing. Out: rows, the targets of `create`, DOT for people. Next: [`engine`] walks it.

pub mod engine;

use crate::Target;
use seedling_pki::table::{self, Names, TEN_YEARS};
use std::collections::{BTreeMap, BTreeSet};

pub type Id = &'static str;

pub const INSTALL_CONFIG: Id = "installconfig.InstallConfig";
pub const CLUSTER_ID: Id = "installconfig.ClusterID";
pub const KEY_PARAMETERS: Id = "tls.SignerKeyParams";
pub const ROOT_CA: Id = "tls.RootCA";
pub const MACHINE_CONFIG_SERVER: Id = "tls.MCSCertKey";
pub const SERVICE_ACCOUNT: Id = "tls.ServiceAccountKeyPair";
pub const BOUND_SERVICE_ACCOUNT: Id = "tls.BoundSASigningKey";
pub const BOOTSTRAP_SSH: Id = "tls.BootstrapSSHKeyPair";
pub const PASSWORD: Id = "password.KubeadminPassword";
pub const PASSWORD_SECRET: Id = "openshift.KubeadminPasswordSecret";
pub const OPENSHIFT_INSTALL: Id = "openshiftinstall.Config";
pub const MANIFESTS: Id = "manifests.Manifests";
pub const OPENSHIFT: Id = "manifests.Openshift";
pub const CLUSTER_API: Id = "clusterapi.Cluster";
pub const KUBECONFIG_ADMIN: Id = "kubeconfig.AdminClient";
pub const KUBECONFIG_INTERNAL: Id = "kubeconfig.AdminInternalClient";
pub const KUBECONFIG_KUBELET: Id = "kubeconfig.Kubelet";
pub const KUBECONFIG_LOOPBACK: Id = "kubeconfig.LoopbackClient";
pub const CVO_IGNORE: Id = "bootstrap.CVOIgnore";
pub const RELEASE: Id = "releaseimage.Image";
/// Not upstream's: hosts.yaml.
pub const INVENTORY: Id = "seedling.Inventory";
/// Not upstream's: what each machine of the inventory shows the machine-config server, and its pointer config with it.
pub const NODE_TOKENS: Id = "seedling.NodeTokens";
pub const NODE_POINTERS: Id = "seedling.NodePointers";
pub const BOOTSTRAP: Id = "bootstrap.Bootstrap";
pub const IN_PLACE: Id = "bootstrap.SingleNodeBootstrapInPlace";
pub const METADATA: Id = "cluster.Metadata";

/// What belongs to a kind of machine: its pointer config, its manifests, and what became of an edited pointer config.
pub struct OfRole {
    /// The machine-config pool.
    pub pool: &'static str,
    pub name: &'static str,
    pub pointer: Id,
    pub pointer_file: &'static str,
    pub machines: Id,
    pub customizations: Id,
}

pub const ROLES: [OfRole; 3] = [
    OfRole {
        pool: "master",
        name: "Master",
        pointer: "machine.Master",
        pointer_file: "master.ign",
        machines: "machines.Master",
        customizations: "machine.MasterIgnitionCustomizations",
    },
    OfRole {
        pool: "arbiter",
        name: "Arbiter",
        pointer: "machine.Arbiter",
        pointer_file: "arbiter.ign",
        machines: "machines.Arbiter",
        customizations: "machine.ArbiterIgnitionCustomizations",
    },
    OfRole {
        pool: "worker",
        name: "Worker",
        pointer: "machine.Worker",
        pointer_file: "worker.ign",
        machines: "machines.Worker",
        customizations: "machine.WorkerIgnitionCustomizations",
    },
];

pub struct Row {
    pub id: Id,
    pub name: String,
    pub needs: Vec<Id>,
}

/// What a target fetches and writes, in this order.
pub fn wanted(target: Target) -> Vec<Id> {
    let [master, arbiter, worker] = &ROLES;
    match target {
        Target::InstallConfig => vec![INSTALL_CONFIG],
        Target::Manifests => vec![
            master.machines,
            arbiter.machines,
            worker.machines,
            MANIFESTS,
            OPENSHIFT,
            CLUSTER_API,
            KEY_PARAMETERS,
        ],
        Target::IgnitionConfigs => vec![
            KUBECONFIG_ADMIN,
            PASSWORD,
            master.pointer,
            arbiter.pointer,
            worker.pointer,
            BOOTSTRAP,
            NODE_POINTERS,
            METADATA,
        ],
        Target::SingleNodeIgnitionConfig => {
            vec![KUBECONFIG_ADMIN, PASSWORD, worker.pointer, IN_PLACE, METADATA]
        }
    }
}

pub fn rows() -> Vec<Row> {
    let row = |id, name: &str, needs: &[Id]| Row { id, name: name.into(), needs: needs.to_vec() };
    let server_bundle = "tls.KubeAPIServerCompleteCABundle";
    let admin = "tls.AdminKubeConfigClientCertKey";
    let bootstrap_admin = "seedling.BootstrapAdminClientCertKey";
    let mut rows = vec![
        row(INSTALL_CONFIG, "Install Config", &[]),
        row(CLUSTER_ID, "Cluster ID", &[INSTALL_CONFIG]),
        row(KEY_PARAMETERS, "Signer Key Parameters", &[]),
        row(SERVICE_ACCOUNT, "Key Pair (service-account.pub)", &[]),
        row(BOUND_SERVICE_ACCOUNT, "User-provided Service Account Signing key", &[]),
        row(BOOTSTRAP_SSH, "Bootstrap SSH Key Pair", &[]),
        row(PASSWORD, "Kubeadmin Password", &[]),
        row(PASSWORD_SECRET, "Kubeadmin Password Secret", &[PASSWORD]),
        row(OPENSHIFT_INSTALL, "OpenShift Install (Manifests)", &[]),
        row(MANIFESTS, "Common Manifests", &[CLUSTER_ID, INSTALL_CONFIG, ROOT_CA, MACHINE_CONFIG_SERVER]),
        row(
            OPENSHIFT,
            "Openshift Manifests",
            &[INSTALL_CONFIG, CLUSTER_ID, PASSWORD, PASSWORD_SECRET, OPENSHIFT_INSTALL],
        ),
        row(CLUSTER_API, "Cluster API Manifests", &[]),
        row(KUBECONFIG_ADMIN, "Kubeconfig Admin Client", &[admin, server_bundle, INSTALL_CONFIG]),
        row(
            KUBECONFIG_INTERNAL,
            "Kubeconfig Admin Internal Client",
            &[bootstrap_admin, server_bundle, INSTALL_CONFIG],
        ),
        row(
            KUBECONFIG_KUBELET,
            "Kubeconfig Kubelet",
            &[server_bundle, "tls.KubeletClientCertKey", INSTALL_CONFIG],
        ),
        row(
            KUBECONFIG_LOOPBACK,
            "Kubeconfig Admin Client (Loopback)",
            &[bootstrap_admin, "tls.KubeAPIServerLocalhostCABundle", INSTALL_CONFIG],
        ),
        row(CVO_IGNORE, "CVO Ignore", &[MANIFESTS, OPENSHIFT]),
        row(RELEASE, "Release Image Pull Spec", &[]),
        row(INVENTORY, "Inventory", &[]),
        row(NODE_TOKENS, "Node Tokens", &[]),
        row(NODE_POINTERS, "Node Ignition Configs", &[INSTALL_CONFIG, ROOT_CA, INVENTORY, NODE_TOKENS]),
    ];
    for of in &ROLES {
        rows.push(row(of.pointer, &format!("{} Ignition Config", of.name), &[INSTALL_CONFIG, ROOT_CA]));
        let name = format!("{} Machines", of.name);
        rows.push(row(of.machines, &name, &[CLUSTER_ID, INSTALL_CONFIG, of.pointer]));
        let name = format!("{} Ignition Customization Check", of.name);
        rows.push(row(of.customizations, &name, &[INSTALL_CONFIG, of.pointer]));
    }
    rows.extend(certificates());
    rows.push(row(BOOTSTRAP, "Bootstrap Ignition Config", &bootstrap_needs()));
    rows.push(row(IN_PLACE, "Single node bootstrap In Place Ignition Config", &bootstrap_needs()));
    rows.push(row(METADATA, "Metadata", &[CLUSTER_ID, INSTALL_CONFIG]));
    rows
}

/// The bootstrap node does not sign with these, and an admin's certificate is in the kubeconfigs only.
pub const NOT_IN_BOOTSTRAP: [Id; 4] = [
    "tls.AdminKubeConfigSignerCertKey",
    "tls.KubeletBootstrapCertSigner",
    "tls.AdminKubeConfigClientCertKey",
    "seedling.BootstrapAdminClientCertKey",
];

fn bootstrap_needs() -> Vec<Id> {
    let mut needs = vec![
        CVO_IGNORE,
        INSTALL_CONFIG,
        CLUSTER_ID,
        KUBECONFIG_INTERNAL,
        KUBECONFIG_KUBELET,
        KUBECONFIG_LOOPBACK,
    ];
    needs.extend(ROLES.iter().map(|of| of.customizations));
    needs.extend(ROLES.iter().map(|of| of.machines));
    needs.extend([MANIFESTS, OPENSHIFT]);
    needs.extend(certificates().iter().map(|row| row.id).filter(|id| !NOT_IN_BOOTSTRAP.contains(id)));
    needs.extend([SERVICE_ACCOUNT, BOUND_SERVICE_ACCOUNT, BOOTSTRAP_SSH, RELEASE, INVENTORY, NODE_TOKENS]);
    needs
}

/// Rows of the certificate table: a leaf is made of its signer, a bundle of its signers.
fn certificates() -> Vec<Row> {
    let asset = |file: &str| table::SIGNERS.iter().find(|s| s.file == file).map(|s| s.asset);
    let certificate = |id, file, needs| Row { id, name: format!("Certificate ({file})"), needs };
    let mut rows = Vec::new();
    for signer in table::SIGNERS {
        let needs = if signer.validity == TEN_YEARS {
            vec![KEY_PARAMETERS]
        } else {
            vec![KEY_PARAMETERS, INSTALL_CONFIG]
        };
        rows.push(certificate(signer.asset, signer.file, needs));
    }
    for leaf in table::LEAVES {
        let of_this_cluster = leaf.names != Names::None || leaf.validity != TEN_YEARS;
        let needs = asset(leaf.signer).into_iter().chain(of_this_cluster.then_some(INSTALL_CONFIG));
        rows.push(certificate(leaf.asset, leaf.file, needs.collect()));
    }
    for bundle in table::BUNDLES {
        let needs = bundle.signers.iter().filter_map(|file| asset(file)).collect();
        rows.push(certificate(bundle.asset, bundle.file, needs));
    }
    rows
}

/// The graph in the language of Graphviz, laid out as upstream's: edges, then a box for each package.
pub fn dot() -> String {
    let mut edges = String::new();
    let mut boxes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in rows() {
        let package = row.id.split('.').next().unwrap_or_default();
        boxes.entry(package.into()).or_default().insert(format!("{:?};", row.id));
        edges.extend(row.needs.iter().map(|need| format!("\t{need:?}->{:?};\n", row.id)));
    }
    for target in Target::ALL {
        let name = format!("Target {}", target.title());
        edges.extend(wanted(target).iter().map(|id| format!("\t{id:?}->{name:?};\n")));
        boxes.entry("Target".into()).or_default().insert(format!("{name:?} [ shape=box, style=filled ];"));
    }
    let in_box = |(label, nodes): (&String, &BTreeSet<String>)| {
        let nodes: String = nodes.iter().map(|node| format!("\t{node}\n")).collect();
        format!("\tsubgraph cluster_{label} {{\n\tlabel={label};\n{nodes}\n}}\n;\n")
    };
    let boxes: String = boxes.iter().map(in_box).collect();
    format!("strict digraph G {{\n\trankdir=LR;\n{edges}{boxes}\n}}\n")
}
