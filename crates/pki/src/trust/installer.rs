//! What the installer makes, with upstream's names, lifetimes and order. Each row is an asset.

use super::{
    API_SERVER, APISERVER, Bundle, DAY, KAS, KUBE_MASTER, Leaf, Names, Owned, Part, Pod, Renewal, Signer, TEN_YEARS, YEAR,
    bundle, client, serving, signer,
};
use crate::Usage::{Client, Server};
use seedling_types::names::{NS_CONFIG, NS_CONFIG_MANAGED, NS_KAS_OPERATOR, NS_KCM_OPERATOR, NS_MCO};

const IN_KUBECONFIGS: &str = "ten years: nodes' and people's kubeconfigs trust it, and only their owners can change them";
const ROOT: Owned = Owned::never(NS_MCO, "machine-config-server-ca", "ten years: every machine's pointer config trusts it");
const MCS_OWNED: Owned = Owned::never(NS_MCO, "machine-config-server-tls", "ten years, as the root CA in every machine's pointer config");
const UNUSED: Owned = Owned::never(NS_KCM_OPERATOR, "csr-signer-signer", "a day: nothing that it signed is in use");
const LOCALHOST: Owned = Owned::never(NS_KAS_OPERATOR, "localhost-serving-signer", IN_KUBECONFIGS);
const SERVICE: Owned = Owned::never(NS_KAS_OPERATOR, "service-network-serving-signer", IN_KUBECONFIGS);
const LB: Owned = Owned::never(NS_KAS_OPERATOR, "loadbalancer-serving-signer", IN_KUBECONFIGS);
const CONTROL_PLANE: Owned = Owned::by(KAS, NS_KAS_OPERATOR, "kube-control-plane-signer", Renewal::Signer);
const AGGREGATOR: Owned = Owned::by(KAS, NS_KAS_OPERATOR, "aggregator-client-signer", Renewal::Signer);

const ROOT_CA: Signer = Signer { owned: ROOT, ..signer("tls.RootCA", "root-ca", TEN_YEARS) };
pub(super) const ADMIN_SIGNER: Signer = signer("tls.AdminKubeConfigSignerCertKey", "admin-kubeconfig-signer", TEN_YEARS);
pub(super) const KUBELET_BOOTSTRAP_SIGNER: Signer = signer("tls.KubeletBootstrapCertSigner", "kubelet-bootstrap-kubeconfig-signer", TEN_YEARS);
pub(super) const LOCALHOST_SIGNER: Signer = Signer { owned: LOCALHOST, ..signer("tls.KubeAPIServerLocalhostSignerCertKey", "kube-apiserver-localhost-signer", TEN_YEARS) };
pub(super) const SERVICE_SIGNER: Signer = Signer { owned: SERVICE, ..signer("tls.KubeAPIServerServiceNetworkSignerCertKey", "kube-apiserver-service-network-signer", TEN_YEARS) };
pub(super) const LB_SIGNER: Signer = Signer { owned: LB, ..signer("tls.KubeAPIServerLBSignerCertKey", "kube-apiserver-lb-signer", TEN_YEARS) };
/// Client certificates of controllers and schedulers.
pub const CONTROL_PLANE_SIGNER: Signer = Signer { owned: CONTROL_PLANE, next_cn: "kube-control-plane-signer", ..signer("tls.KubeControlPlaneSignerCertKey", "kube-control-plane-signer", YEAR) };
/// Its key gets a longer certificate from bootkube, and that one is kept.
pub(super) const TO_KUBELET: Signer = signer("tls.KubeAPIServerToKubeletSignerCertKey", "kube-apiserver-to-kubelet-signer", YEAR);
pub const AGGREGATOR_SIGNER: Signer = Signer { owned: AGGREGATOR, next_cn: "aggregator-client-signer", from_the_start: true, ..signer("tls.AggregatorSignerCertKey", "aggregator-signer", DAY) };
pub(super) const KUBELET_SIGNER: Signer = Signer { owned: UNUSED, ..signer("tls.KubeletCSRSignerCertKey", "kubelet-signer", DAY) };
const AGGREGATOR_CA_SIGNER: Signer = Signer { cn: "aggregator", ou: Some("bootkube"), ..signer("tls.AggregatorCA", "aggregator-ca", DAY) };

pub const SIGNERS: &[Signer] = &[
    ROOT_CA, ADMIN_SIGNER, KUBELET_BOOTSTRAP_SIGNER, LOCALHOST_SIGNER, SERVICE_SIGNER, LB_SIGNER, CONTROL_PLANE_SIGNER, TO_KUBELET,
    AGGREGATOR_SIGNER, KUBELET_SIGNER, AGGREGATOR_CA_SIGNER,
];

const MASTERS: &[&str] = &["system:masters"];
const BOOTSTRAPPER: &str = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper";
const BOOTSTRAPPER_GROUPS: &[&str] = &["system:serviceaccounts", "system:serviceaccounts:openshift-machine-config-operator"];
const PROXY: &str = "system:kube-apiserver-proxy";
const MCS: &str = "system:machine-config-server";

pub const LEAVES: &[Leaf] = &[
    Leaf { usages: &[Server, Client], ..client("tls.AdminKubeConfigClientCertKey", "admin-kubeconfig-client", "system:admin", MASTERS, TEN_YEARS, &ADMIN_SIGNER) },
    // Not upstream's, which puts the person's own, for ten years, into bootstrap.ign.
    client("seedling.BootstrapAdminClientCertKey", "bootstrap-admin-client", "system:admin", MASTERS, DAY, &ADMIN_SIGNER),
    // Upstream's lives ten years. Masters ask for their first certificate with it; later machines get a token that ends as soon.
    client("tls.KubeletClientCertKey", "kubelet-client", BOOTSTRAPPER, BOOTSTRAPPER_GROUPS, DAY, &KUBELET_BOOTSTRAP_SIGNER),
    client("tls.KubeControlPlaneKubeControllerManagerClientCertKey", "kube-control-plane-kube-controller-manager-client", "system:admin", MASTERS, YEAR, &CONTROL_PLANE_SIGNER),
    client("tls.KubeControlPlaneKubeSchedulerClientCertKey", "kube-control-plane-kube-scheduler-client", "system:admin", MASTERS, YEAR, &CONTROL_PLANE_SIGNER),
    Leaf { mounted_by: API_SERVER, ..client("tls.KubeAPIServerToKubeletClientCertKey", "kube-apiserver-to-kubelet-client", APISERVER, KUBE_MASTER, YEAR, &TO_KUBELET) },
    serving("tls.KubeAPIServerLocalhostServerCertKey", "kube-apiserver-localhost-server", Names::Localhost, &LOCALHOST_SIGNER),
    serving("tls.KubeAPIServerServiceNetworkServerCertKey", "kube-apiserver-service-network-server", Names::ServiceNetwork, &SERVICE_SIGNER),
    serving("tls.KubeAPIServerExternalLBServerCertKey", "kube-apiserver-lb-server", Names::Api, &LB_SIGNER),
    serving("tls.KubeAPIServerInternalLBServerCertKey", "kube-apiserver-internal-lb-server", Names::ApiInt, &LB_SIGNER),
    client("tls.APIServerProxyCertKey", "apiserver-proxy", PROXY, KUBE_MASTER, DAY, &AGGREGATOR_CA_SIGNER),
    Leaf { mounted_by: API_SERVER, ..client("tls.AggregatorClientCertKey", "aggregator-client", PROXY, KUBE_MASTER, DAY, &AGGREGATOR_SIGNER) },
    Leaf { usages: &[Server], names: Names::MachineConfigServer, key_usage: false, owned: MCS_OWNED, ..client("tls.MCSCertKey", "machine-config-server", MCS, &[], TEN_YEARS, &ROOT_CA) },
    Leaf { usages: &[Server, Client], ..client("tls.JournalCertKey", "journal-gatewayd", "journal-gatewayd", &["OpenShift Bootstrap"], TEN_YEARS, &ROOT_CA) },
];

const CLIENT_SIGNERS: &[&Signer] = &[&ADMIN_SIGNER, &KUBELET_SIGNER, &CONTROL_PLANE_SIGNER, &TO_KUBELET, &KUBELET_BOOTSTRAP_SIGNER];
const ADMIN_CA: Bundle = Bundle { namespace: NS_CONFIG, configmap: "admin-kubeconfig-client-ca", ..bundle("tls.AdminKubeConfigCABundle", "admin-kubeconfig-ca-bundle", &[&ADMIN_SIGNER]) };
/// Signers of API servers that clients trust.
pub const SERVER_CA: Bundle = Bundle {
    namespace: NS_CONFIG_MANAGED, configmap: "kube-apiserver-server-ca", copies: &[(Pod::ControllerManager, "serviceaccount-ca")],
    ..bundle("tls.KubeAPIServerCompleteCABundle", "kube-apiserver-complete-server-ca-bundle", &[&LOCALHOST_SIGNER, &SERVICE_SIGNER, &LB_SIGNER])
};

pub const BUNDLES: &[Bundle] = &[
    ADMIN_CA,
    bundle("tls.AggregatorCABundle", "aggregator-ca-bundle", &[&AGGREGATOR_SIGNER]),
    bundle("tls.KubeAPIServerCompleteClientCABundle", "kube-apiserver-complete-client-ca-bundle", CLIENT_SIGNERS),
    SERVER_CA,
    bundle("tls.KubeAPIServerLBCABundle", "kube-apiserver-lb-ca-bundle", &[&LB_SIGNER]),
    bundle("tls.KubeAPIServerLocalhostCABundle", "kube-apiserver-localhost-ca-bundle", &[&LOCALHOST_SIGNER]),
    bundle("tls.KubeAPIServerServiceNetworkCABundle", "kube-apiserver-service-network-ca-bundle", &[&SERVICE_SIGNER]),
    bundle("tls.KubeAPIServerToKubeletCABundle", "kube-apiserver-to-kubelet-ca-bundle", &[&TO_KUBELET]),
    bundle("tls.KubeControlPlaneCABundle", "kube-control-plane-ca-bundle", &[&CONTROL_PLANE_SIGNER, &LB_SIGNER, &LOCALHOST_SIGNER, &SERVICE_SIGNER]),
    bundle("tls.KubeletBootstrapCABundle", "kubelet-bootstrap-kubeconfig-ca-bundle", &[&KUBELET_BOOTSTRAP_SIGNER]),
    bundle("tls.KubeletClientCABundle", "kubelet-client-ca-bundle", &[&KUBELET_SIGNER]),
    bundle("tls.KubeletServingCABundle", "kubelet-serving-ca-bundle", &[&KUBELET_SIGNER]),
];

pub(super) const ROWS: Part = Part { made_by: "installer", signers: SIGNERS, leaves: LEAVES, bundles: BUNDLES };
