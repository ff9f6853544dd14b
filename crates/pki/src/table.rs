//! What the installer makes, as one table: signers, leaves, bundles. File names are those under `tls/`; `asset` is the name in
//! the graph of assets, which is upstream's.

use crate::Usage::{Client, Server};
use crate::{CaSpec, CertKey, KeyAlgorithm, LeafSpec, PkiError, Usage, issue, new_ca, renew_ca};
use seedling_types::ClusterDomain;
use std::net::IpAddr;
use time::{Duration, OffsetDateTime};

pub const DAY: Duration = Duration::days(1);
pub const YEAR: Duration = Duration::days(365);
pub const TEN_YEARS: Duration = Duration::days(3650);

/// A self-signed authority.
pub struct Signer {
    pub asset: &'static str,
    pub file: &'static str,
    pub cn: &'static str,
    pub ou: &'static str,
    pub validity: Duration,
}

/// A certificate that a process of the cluster or a person shows.
pub struct Leaf {
    pub asset: &'static str,
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
    /// api-int and, where the platform has them, its virtual addresses, each as an address and as a name.
    MachineConfigServer,
}

/// A file of trusted signers.
pub struct Bundle {
    pub asset: &'static str,
    pub file: &'static str,
    pub signers: &'static [&'static str],
}

pub const SIGNERS: &[Signer] = &[
    signer("tls.RootCA", "root-ca", TEN_YEARS),
    signer("tls.AdminKubeConfigSignerCertKey", "admin-kubeconfig-signer", TEN_YEARS),
    signer("tls.KubeletBootstrapCertSigner", "kubelet-bootstrap-kubeconfig-signer", TEN_YEARS),
    signer("tls.KubeAPIServerLocalhostSignerCertKey", "kube-apiserver-localhost-signer", TEN_YEARS),
    signer(
        "tls.KubeAPIServerServiceNetworkSignerCertKey",
        "kube-apiserver-service-network-signer",
        TEN_YEARS,
    ),
    signer("tls.KubeAPIServerLBSignerCertKey", "kube-apiserver-lb-signer", TEN_YEARS),
    signer("tls.KubeControlPlaneSignerCertKey", "kube-control-plane-signer", YEAR),
    signer("tls.KubeAPIServerToKubeletSignerCertKey", "kube-apiserver-to-kubelet-signer", YEAR),
    signer("tls.AggregatorSignerCertKey", "aggregator-signer", DAY),
    signer("tls.KubeletCSRSignerCertKey", "kubelet-signer", DAY),
    Signer {
        asset: "tls.AggregatorCA",
        file: "aggregator-ca",
        cn: "aggregator",
        ou: "bootkube",
        validity: DAY,
    },
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
    Leaf { usages: &[Server, Client], ..client("tls.AdminKubeConfigClientCertKey", "admin-kubeconfig-client", "system:admin", MASTERS, TEN_YEARS, "admin-kubeconfig-signer") },
    // Not upstream's, which puts the person's own, for ten years, into bootstrap.ign.
    client("seedling.BootstrapAdminClientCertKey", "bootstrap-admin-client", "system:admin", MASTERS, DAY, "admin-kubeconfig-signer"),
    // Upstream's lives ten years. Masters ask for their first certificate with it; later machines get a token that ends as soon.
    client("tls.KubeletClientCertKey", "kubelet-client", BOOTSTRAPPER, BOOTSTRAPPER_GROUPS, DAY, "kubelet-bootstrap-kubeconfig-signer"),
    client("tls.KubeControlPlaneKubeControllerManagerClientCertKey", "kube-control-plane-kube-controller-manager-client", "system:admin", MASTERS, YEAR, "kube-control-plane-signer"),
    client("tls.KubeControlPlaneKubeSchedulerClientCertKey", "kube-control-plane-kube-scheduler-client", "system:admin", MASTERS, YEAR, "kube-control-plane-signer"),
    client("tls.KubeAPIServerToKubeletClientCertKey", "kube-apiserver-to-kubelet-client", APISERVER, KUBE_MASTER, YEAR, "kube-apiserver-to-kubelet-signer"),
    server("tls.KubeAPIServerLocalhostServerCertKey", "kube-apiserver-localhost-server", Names::Localhost, LOCALHOST_SIGNER),
    server("tls.KubeAPIServerServiceNetworkServerCertKey", "kube-apiserver-service-network-server", Names::ServiceNetwork, SERVICE_SIGNER),
    server("tls.KubeAPIServerExternalLBServerCertKey", "kube-apiserver-lb-server", Names::Api, LB_SIGNER),
    server("tls.KubeAPIServerInternalLBServerCertKey", "kube-apiserver-internal-lb-server", Names::ApiInt, LB_SIGNER),
    client("tls.APIServerProxyCertKey", "apiserver-proxy", PROXY, KUBE_MASTER, DAY, "aggregator-ca"),
    client("tls.AggregatorClientCertKey", "aggregator-client", PROXY, KUBE_MASTER, DAY, "aggregator-signer"),
    Leaf { usages: &[Server], names: Names::MachineConfigServer, key_usage: false, ..client("tls.MCSCertKey", "machine-config-server", MCS, &[], TEN_YEARS, "root-ca") },
    Leaf { usages: &[Server, Client], ..client("tls.JournalCertKey", "journal-gatewayd", "journal-gatewayd", &["OpenShift Bootstrap"], TEN_YEARS, "root-ca") },
];

#[rustfmt::skip]
pub const BUNDLES: &[Bundle] = &[
    Bundle { asset: "tls.AdminKubeConfigCABundle", file: "admin-kubeconfig-ca-bundle", signers: &["admin-kubeconfig-signer"] },
    Bundle { asset: "tls.AggregatorCABundle", file: "aggregator-ca-bundle", signers: &["aggregator-signer"] },
    Bundle { asset: "tls.KubeAPIServerCompleteClientCABundle", file: "kube-apiserver-complete-client-ca-bundle", signers: &[
        "admin-kubeconfig-signer", "kubelet-signer", "kube-control-plane-signer", "kube-apiserver-to-kubelet-signer",
        "kubelet-bootstrap-kubeconfig-signer",
    ] },
    Bundle { asset: "tls.KubeAPIServerCompleteCABundle", file: "kube-apiserver-complete-server-ca-bundle", signers: &[LOCALHOST_SIGNER, SERVICE_SIGNER, LB_SIGNER] },
    Bundle { asset: "tls.KubeAPIServerLBCABundle", file: "kube-apiserver-lb-ca-bundle", signers: &[LB_SIGNER] },
    Bundle { asset: "tls.KubeAPIServerLocalhostCABundle", file: "kube-apiserver-localhost-ca-bundle", signers: &[LOCALHOST_SIGNER] },
    Bundle { asset: "tls.KubeAPIServerServiceNetworkCABundle", file: "kube-apiserver-service-network-ca-bundle", signers: &[SERVICE_SIGNER] },
    Bundle { asset: "tls.KubeAPIServerToKubeletCABundle", file: "kube-apiserver-to-kubelet-ca-bundle", signers: &["kube-apiserver-to-kubelet-signer"] },
    Bundle { asset: "tls.KubeControlPlaneCABundle", file: "kube-control-plane-ca-bundle", signers: &["kube-control-plane-signer", LB_SIGNER, LOCALHOST_SIGNER, SERVICE_SIGNER] },
    Bundle { asset: "tls.KubeletBootstrapCABundle", file: "kubelet-bootstrap-kubeconfig-ca-bundle", signers: &["kubelet-bootstrap-kubeconfig-signer"] },
    Bundle { asset: "tls.KubeletClientCABundle", file: "kubelet-client-ca-bundle", signers: &["kubelet-signer"] },
    Bundle { asset: "tls.KubeletServingCABundle", file: "kubelet-serving-ca-bundle", signers: &["kubelet-signer"] },
];

const fn signer(asset: &'static str, file: &'static str, validity: Duration) -> Signer {
    Signer { asset, file, cn: file, ou: "openshift", validity }
}

const fn client(
    asset: &'static str,
    file: &'static str,
    cn: &'static str,
    organizations: &'static [&'static str],
    validity: Duration,
    signer: &'static str,
) -> Leaf {
    let (names, append_parent, key_usage) = (Names::None, false, true);
    Leaf {
        asset,
        file,
        cn,
        organizations,
        usages: &[Client],
        names,
        validity,
        signer,
        append_parent,
        key_usage,
    }
}

/// kube-apiserver's serving certificates: one day, until the operator takes over.
const fn server(asset: &'static str, file: &'static str, names: Names, signer: &'static str) -> Leaf {
    let (usages, append_parent, key_usage): (&[Usage], _, _) = (&[Server], true, true);
    Leaf {
        asset,
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
    /// Addresses under which api-int is reached where there is no DNS name for it yet.
    pub api_vips: &'a [IpAddr],
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
            Names::MachineConfigServer => {
                let vips = cluster.api_vips.iter().map(IpAddr::to_string);
                vips.chain([cluster.domain.api_int()]).collect()
            }
        }
    }
    pub fn ips(self, cluster: &Cluster) -> Vec<IpAddr> {
        match self {
            Names::Localhost => vec![IpAddr::from([127, 0, 0, 1]), IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1u16])],
            Names::ServiceNetwork => vec![cluster.service_address],
            Names::MachineConfigServer => cluster.api_vips.to_vec(),
            _ => vec![],
        }
    }
}

impl Signer {
    pub fn make(&self, alg: KeyAlgorithm, now: OffsetDateTime) -> Result<CertKey, PkiError> {
        new_ca(&self.spec(), alg, now)
    }
    /// The same signer with the same key, valid from now on: what it signed stays good.
    pub fn renew(&self, old: &CertKey, now: OffsetDateTime) -> Result<CertKey, PkiError> {
        renew_ca(&self.spec(), &old.key, now)
    }
    fn spec(&self) -> CaSpec<'static> {
        CaSpec { cn: self.cn, ou: Some(self.ou), validity: self.validity }
    }
}

impl Leaf {
    /// Without a cluster it has no names.
    pub fn make(
        &self,
        ca: &CertKey,
        cluster: Option<&Cluster>,
        alg: KeyAlgorithm,
        now: OffsetDateTime,
    ) -> Result<CertKey, PkiError> {
        let spec = LeafSpec {
            cn: self.cn,
            organizations: self.organizations.iter().map(|o| o.to_string()).collect(),
            usages: self.usages,
            dns: cluster.map(|cluster| self.names.dns(cluster)).unwrap_or_default(),
            ips: cluster.map(|cluster| self.names.ips(cluster)).unwrap_or_default(),
            validity: self.validity,
            append_parent: self.append_parent,
            key_usage: self.key_usage,
        };
        issue(ca, &spec, alg.of_leaf(), now)
    }
}
