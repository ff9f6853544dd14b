//! What bootkube makes: etcd's pairs for the whole inventory, and signers that outlive the installer's.

use super::installer::{ADMIN_SIGNER, CONTROL_PLANE_SIGNER, KUBELET_BOOTSTRAP_SIGNER, KUBELET_SIGNER, TO_KUBELET};
use super::{
    API_SERVER, Bundle, ETCD, FIVE_YEARS, KCM, Leaf, Names, Owned, Part, Pod, Renewal, Signer, Start, TEN_YEARS, bundle,
    client, signer,
};
use crate::Usage::{Client, Server};
use seedling_types::names::{NS_CONFIG_MANAGED, NS_ETCD, NS_KAS_OPERATOR, NS_KCM_OPERATOR};

/// Kubelets' certificates. The installer's lives a day, and no certificate outlives its signer.
pub const CSR_SIGNER: Signer = Signer {
    owned: Owned::by(KCM, NS_KCM_OPERATOR, "csr-signer", Renewal::Signer), mounted_by: &[Pod::ControllerManager],
    cn: "kube-csr-signer", next_cn: "kube-csr-signer", start: Start::Backdated, ..signer("", "csr-signer", FIVE_YEARS)
};
/// The installer's signer of API servers as clients of kubelets, with the same key, for as long as the other signers of a cluster live: every
/// node has a file that trusts it, which need not change then.
pub const TO_KUBELET_SIGNER: Signer = Signer {
    owned: Owned::never(NS_KAS_OPERATOR, "kube-apiserver-to-kubelet-signer", "ten years: a file on every node trusts it"),
    cn: TO_KUBELET.cn, key_file: TO_KUBELET.file, start: Start::Backdated, ..signer("", "kubelet-client-signer", TEN_YEARS)
};
const ETCD_CN: &str = "openshift-etcd_etcd-signer";
pub const ETCD_SIGNER: Signer = Signer {
    owned: Owned::by(ETCD, NS_ETCD, "etcd-signer", Renewal::Signer),
    cn: ETCD_CN, ou: None, next_cn: ETCD_CN, start: Start::Dated, ..signer("", "etcd-signer", FIVE_YEARS)
};
pub const SIGNERS: &[Signer] = &[CSR_SIGNER, TO_KUBELET_SIGNER, ETCD_SIGNER];

/// API servers and etcd's operator as clients of etcd.
pub const ETCD_CLIENT: Leaf = Leaf {
    owned: Owned::by(ETCD, NS_ETCD, "etcd-client", Renewal::LongLeaf), mounted_by: API_SERVER,
    ..client("", "etcd-client", "etcd-client", &["etcd-client", "system:etcd"], FIVE_YEARS, &ETCD_SIGNER)
};
pub const ETCD_MEMBERS: Leaf = Leaf {
    owned: Owned::by(ETCD, NS_ETCD, "etcd-all-certs", Renewal::LongLeaf), mounted_by: &[Pod::Etcd],
    usages: &[Server, Client], names: Names::EtcdMember, append_parent: true, ..client("", "", "", &[], FIVE_YEARS, &ETCD_SIGNER)
};
pub const LEAVES: &[Leaf] = &[ETCD_CLIENT, ETCD_MEMBERS];

/// Signers of clients that API servers trust.
pub const CLIENT_CA: Bundle = Bundle {
    namespace: NS_CONFIG_MANAGED, configmap: "kube-apiserver-client-ca", copies: &[(Pod::ApiServer, "client-ca")],
    ..bundle("", "client-ca-bundle", &[&ADMIN_SIGNER, &KUBELET_SIGNER, &CONTROL_PLANE_SIGNER, &TO_KUBELET, &KUBELET_BOOTSTRAP_SIGNER, &CSR_SIGNER])
};
/// Signers of kubelets that API servers trust.
pub const KUBELET_SERVING_CA: Bundle = Bundle {
    namespace: NS_CONFIG_MANAGED, configmap: "kubelet-serving-ca", copies: &[(Pod::ApiServer, "kubelet-serving-ca")],
    ..bundle("", "kubelet-serving-ca-all", &[&KUBELET_SIGNER, &CSR_SIGNER])
};
/// Who signs, and will sign, for kubelets. The controllers' operator passes it to the API servers' operator.
pub const CSR_CA: Bundle = Bundle { configmap: "csr-controller-ca", copies: &[], ..KUBELET_SERVING_CA };
pub const ETCD_CA: Bundle = Bundle {
    namespace: NS_ETCD, configmap: "etcd-ca-bundle", copies: &[(Pod::Etcd, "etcd-ca-bundle"), (Pod::ApiServer, "etcd-serving-ca")],
    ..bundle("", "etcd-ca-bundle", &[&ETCD_SIGNER])
};
pub const BUNDLES: &[Bundle] = &[CLIENT_CA, KUBELET_SERVING_CA, CSR_CA, ETCD_CA];

pub(super) const ROWS: Part = Part { made_by: "bootkube", signers: SIGNERS, leaves: LEAVES, bundles: BUNDLES };
