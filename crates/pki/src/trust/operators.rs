//! What operators make on the masters: certificates that outlive the installer's. A row here is made, put into its Secret and renewed; the
//! pod that uses it names its file in `crates/components`.

use super::installer::{LB_SIGNER, LOCALHOST_SIGNER, SERVICE_SIGNER};
use super::{
    AGGREGATOR_SIGNER, API_SERVER, APISERVER, Bundle, CONTROL_PLANE_SIGNER, KAS, KUBE_MASTER, Leaf, Names,
    Owned, Part, Pod, Renewal, Signer, TO_KUBELET_SIGNER, YEAR, bundle,
};
use seedling_types::names::{NS_CONFIG_MANAGED, NS_KAS};

pub const INTERNAL_API_SERVING: Leaf = serving("internal-loadbalancer-serving-certkey", Names::ApiInt, &LB_SIGNER);
/// Controllers and schedulers get theirs inside a kubeconfig. The signer's key stays with the API servers' operator, which makes these;
/// the programs' own operators only read them.
pub const CONTROLLER_MANAGER_CLIENT: Leaf = controller("kube-controller-manager-client-cert-key", "system:kube-controller-manager");
pub const SCHEDULER_CLIENT: Leaf = controller("kube-scheduler-client-cert-key", "system:kube-scheduler");

pub const LEAVES: &[Leaf] = &[
    serving("localhost-serving-cert-certkey", Names::Localhost, &LOCALHOST_SIGNER),
    serving("service-network-serving-certkey", Names::ServiceNetwork, &SERVICE_SIGNER),
    serving("external-loadbalancer-serving-certkey", Names::Api, &LB_SIGNER),
    INTERNAL_API_SERVING,
    client("kubelet-client", APISERVER, &TO_KUBELET_SIGNER),
    client("aggregator-client", "system:openshift-aggregator", &AGGREGATOR_SIGNER),
    CONTROLLER_MANAGER_CLIENT,
    SCHEDULER_CLIENT,
];

/// Signers of API servers that servers behind the API trust.
pub const AGGREGATOR_CA: Bundle = Bundle {
    namespace: NS_CONFIG_MANAGED, configmap: "kube-apiserver-aggregator-client-ca", copies: &[(Pod::ApiServer, "aggregator-client-ca")],
    ..bundle("", "", &[&AGGREGATOR_SIGNER])
};
pub const BUNDLES: &[Bundle] = &[AGGREGATOR_CA];

pub(super) const ROWS: Part = Part { made_by: "operator", signers: &[], leaves: LEAVES, bundles: BUNDLES };

/// An API server's certificate for one of the names under which it is reached.
const fn serving(secret: &'static str, names: Names, signer: &'static Signer) -> Leaf {
    let owned = Owned::by(KAS, NS_KAS, secret, Renewal::Leaf);
    Leaf { owned, validity: YEAR, ..super::serving("", "", names, signer) }
}

/// An API server's as a client of other servers.
const fn client(secret: &'static str, cn: &'static str, signer: &'static Signer) -> Leaf {
    let owned = Owned::by(KAS, NS_KAS, secret, Renewal::Leaf);
    Leaf { owned, mounted_by: API_SERVER, ..super::client("", "", cn, KUBE_MASTER, YEAR, signer) }
}

const fn controller(secret: &'static str, user: &'static str) -> Leaf {
    let owned = Owned::by(KAS, NS_CONFIG_MANAGED, secret, Renewal::Leaf);
    Leaf { owned, ..super::client("", "", user, &[], YEAR, &CONTROL_PLANE_SIGNER) }
}
