//! What the installer makes, as one table: signers, leaves, bundles. File names are those under `tls/`.

use crate::Usage::{Client, Server};
use crate::{CaSpec, CertKey, KeyAlgorithm, LeafSpec, PkiError, Usage, bundle, issue, new_ca};
use seedling_types::ClusterDomain;
use std::{collections::BTreeMap, net::IpAddr};
use time::{Duration, OffsetDateTime};

pub const DAY: Duration = Duration::days(1);
pub const YEAR: Duration = Duration::days(365);
pub const TEN_YEARS: Duration = Duration::days(3650);

/// A self-signed authority.
pub struct Signer {
    pub file: &'static str,
    pub cn: &'static str,
    pub ou: &'static str,
    pub validity: Duration,
}

/// A certificate that a process of the cluster or a person shows.
pub struct Leaf {
    pub file: &'static str,
    pub cn: &'static str,
    pub organizations: &'static [&'static str],
    pub usages: &'static [Usage],
    pub names: Names,
    pub validity: Duration,
    pub signer: &'static str,
    pub append_parent: bool,
    pub key_usage: bool,
}

/// Which names a leaf is valid for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Names {
    None,
    Localhost,
    ServiceNetwork,
    Api,
    ApiInt,
}

/// A file of trusted signers.
pub struct Bundle {
    pub file: &'static str,
    pub signers: &'static [&'static str],
}

pub const SIGNERS: &[Signer] = &[
    signer("root-ca", TEN_YEARS),
    signer("admin-kubeconfig-signer", TEN_YEARS),
    signer("kubelet-bootstrap-kubeconfig-signer", TEN_YEARS),
    signer("kube-apiserver-localhost-signer", TEN_YEARS),
    signer("kube-apiserver-service-network-signer", TEN_YEARS),
    signer("kube-apiserver-lb-signer", TEN_YEARS),
    signer("kube-control-plane-signer", YEAR),
    signer("kube-apiserver-to-kubelet-signer", YEAR),
    signer("aggregator-signer", DAY),
    signer("kubelet-signer", DAY),
    Signer { file: "aggregator-ca", cn: "aggregator", ou: "bootkube", validity: DAY },
];

const MASTERS: &[&str] = &["system:masters"];
const KUBE_MASTER: &[&str] = &["kube-master"];
const BOOTSTRAPPER: &str = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper";
const BOOTSTRAPPER_GROUPS: &[&str] =
    &["system:serviceaccounts", "system:serviceaccounts:openshift-machine-config-operator"];
const APISERVER: &str = "system:kube-apiserver";
const PROXY: &str = "system:kube-apiserver-proxy";
const MCS: &str = "system:machine-config-server";
const LOCALHOST_SIGNER: &str = "kube-apiserver-localhost-signer";
const SERVICE_SIGNER: &str = "kube-apiserver-service-network-signer";
const LB_SIGNER: &str = "kube-apiserver-lb-signer";

#[rustfmt::skip]
pub const LEAVES: &[Leaf] = &[
    Leaf { usages: &[Server, Client], ..client("admin-kubeconfig-client", "system:admin", MASTERS, TEN_YEARS, "admin-kubeconfig-signer") },
    client("kubelet-client", BOOTSTRAPPER, BOOTSTRAPPER_GROUPS, TEN_YEARS, "kubelet-bootstrap-kubeconfig-signer"),
    client("kube-control-plane-kube-controller-manager-client", "system:admin", MASTERS, YEAR, "kube-control-plane-signer"),
    client("kube-control-plane-kube-scheduler-client", "system:admin", MASTERS, YEAR, "kube-control-plane-signer"),
    client("kube-apiserver-to-kubelet-client", APISERVER, KUBE_MASTER, YEAR, "kube-apiserver-to-kubelet-signer"),
    server("kube-apiserver-localhost-server", Names::Localhost, LOCALHOST_SIGNER),
    server("kube-apiserver-service-network-server", Names::ServiceNetwork, SERVICE_SIGNER),
    server("kube-apiserver-lb-server", Names::Api, LB_SIGNER),
    server("kube-apiserver-internal-lb-server", Names::ApiInt, LB_SIGNER),
    client("apiserver-proxy", PROXY, KUBE_MASTER, DAY, "aggregator-ca"),
    client("aggregator-client", PROXY, KUBE_MASTER, DAY, "aggregator-signer"),
    Leaf { usages: &[Server], names: Names::ApiInt, key_usage: false, ..client("machine-config-server", MCS, &[], TEN_YEARS, "root-ca") },
    Leaf { usages: &[Server, Client], ..client("journal-gatewayd", "journal-gatewayd", &["OpenShift Bootstrap"], TEN_YEARS, "root-ca") },
];

#[rustfmt::skip]
pub const BUNDLES: &[Bundle] = &[
    Bundle { file: "admin-kubeconfig-ca-bundle", signers: &["admin-kubeconfig-signer"] },
    Bundle { file: "aggregator-ca-bundle", signers: &["aggregator-signer"] },
    Bundle { file: "kube-apiserver-complete-client-ca-bundle", signers: &[
        "admin-kubeconfig-signer", "kubelet-signer", "kube-control-plane-signer", "kube-apiserver-to-kubelet-signer",
        "kubelet-bootstrap-kubeconfig-signer",
    ] },
    Bundle { file: "kube-apiserver-complete-server-ca-bundle", signers: &[LOCALHOST_SIGNER, SERVICE_SIGNER, LB_SIGNER] },
    Bundle { file: "kube-apiserver-lb-ca-bundle", signers: &[LB_SIGNER] },
    Bundle { file: "kube-apiserver-localhost-ca-bundle", signers: &[LOCALHOST_SIGNER] },
    Bundle { file: "kube-apiserver-service-network-ca-bundle", signers: &[SERVICE_SIGNER] },
    Bundle { file: "kube-apiserver-to-kubelet-ca-bundle", signers: &["kube-apiserver-to-kubelet-signer"] },
    Bundle { file: "kube-control-plane-ca-bundle", signers: &["kube-control-plane-signer", LB_SIGNER, LOCALHOST_SIGNER, SERVICE_SIGNER] },
    Bundle { file: "kubelet-bootstrap-kubeconfig-ca-bundle", signers: &["kubelet-bootstrap-kubeconfig-signer"] },
    Bundle { file: "kubelet-client-ca-bundle", signers: &["kubelet-signer"] },
    Bundle { file: "kubelet-serving-ca-bundle", signers: &["kubelet-signer"] },
];

const fn signer(file: &'static str, validity: Duration) -> Signer {
    Signer { file, cn: file, ou: "openshift", validity }
}

const fn client(
    file: &'static str,
    cn: &'static str,
    organizations: &'static [&'static str],
    validity: Duration,
    signer: &'static str,
) -> Leaf {
    let (names, append_parent, key_usage) = (Names::None, false, true);
    Leaf { file, cn, organizations, usages: &[Client], names, validity, signer, append_parent, key_usage }
}

/// kube-apiserver's serving certificates: one day, until the operator takes over.
const fn server(file: &'static str, names: Names, signer: &'static str) -> Leaf {
    let (usages, append_parent, key_usage): (&[Usage], _, _) = (&[Server], true, true);
    Leaf {
        file,
        cn: APISERVER,
        organizations: KUBE_MASTER,
        usages,
        names,
        validity: DAY,
        signer,
        append_parent,
        key_usage,
    }
}

/// What of the cluster goes into certificates.
pub struct Cluster<'a> {
    pub domain: &'a ClusterDomain,
    /// Address of the Service `kubernetes`: the first host of the first service network.
    pub service_address: IpAddr,
}

impl Names {
    pub fn dns(self, cluster: &Cluster) -> Vec<String> {
        match self {
            Names::None => vec![],
            Names::Localhost => vec!["localhost".into()],
            Names::ServiceNetwork => ["kubernetes", "openshift"]
                .iter()
                .flat_map(|name| {
                    ["", ".default", ".default.svc", ".default.svc.cluster.local"]
                        .map(|end| format!("{name}{end}"))
                })
                .collect(),
            Names::Api => vec![cluster.domain.api()],
            Names::ApiInt => vec![cluster.domain.api_int()],
        }
    }
    pub fn ips(self, cluster: &Cluster) -> Vec<IpAddr> {
        match self {
            Names::Localhost => vec![IpAddr::from([127, 0, 0, 1]), IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1u16])],
            Names::ServiceNetwork => vec![cluster.service_address],
            _ => vec![],
        }
    }
}

impl Signer {
    pub fn make(&self, alg: KeyAlgorithm, now: OffsetDateTime) -> Result<CertKey, PkiError> {
        new_ca(&CaSpec { cn: self.cn, ou: Some(self.ou), validity: self.validity }, alg, now)
    }
}

impl Leaf {
    pub fn make(
        &self,
        ca: &CertKey,
        cluster: &Cluster,
        alg: KeyAlgorithm,
        now: OffsetDateTime,
    ) -> Result<CertKey, PkiError> {
        let spec = LeafSpec {
            cn: self.cn,
            organizations: self.organizations.iter().map(|o| o.to_string()).collect(),
            usages: self.usages,
            dns: self.names.dns(cluster),
            ips: self.names.ips(cluster),
            validity: self.validity,
            append_parent: self.append_parent,
            key_usage: self.key_usage,
        };
        issue(ca, &spec, alg, now)
    }
}

/// Makes the named certificate, and its signer, if they are not there yet.
pub fn make(
    file: &str,
    made: &mut BTreeMap<String, CertKey>,
    cluster: &Cluster,
    alg: KeyAlgorithm,
    now: OffsetDateTime,
) -> Result<(), PkiError> {
    if made.contains_key(file) {
        return Ok(());
    }
    let pair = if let Some(signer) = SIGNERS.iter().find(|s| s.file == file) {
        signer.make(alg, now)?
    } else {
        let leaf = LEAVES.iter().find(|l| l.file == file).ok_or_else(|| PkiError::Unknown(file.into()))?;
        make(leaf.signer, made, cluster, alg, now)?;
        leaf.make(&made[leaf.signer], cluster, alg, now)?
    };
    made.insert(file.to_string(), pair);
    Ok(())
}

/// Completes the whole table, by file name.
pub fn make_all(
    made: &mut BTreeMap<String, CertKey>,
    cluster: &Cluster,
    alg: KeyAlgorithm,
    now: OffsetDateTime,
) -> Result<(), PkiError> {
    let files = SIGNERS.iter().map(|s| s.file).chain(LEAVES.iter().map(|l| l.file));
    files.into_iter().try_for_each(|file| make(file, made, cluster, alg, now))
}

/// The bundles of a made table, by file name.
pub fn bundles(made: &BTreeMap<String, CertKey>) -> BTreeMap<String, String> {
    let certs = |of: &[&str]| {
        of.iter().filter_map(|s| made.get(*s)).map(|pair| pair.cert.as_str()).collect::<Vec<_>>()
    };
    BUNDLES.iter().map(|b| (b.file.to_string(), bundle(&certs(b.signers)))).collect()
}
