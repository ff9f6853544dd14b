//! The kube-controller-manager operator: the controllers on every master, by revision, and the signer of kubelets' certificates.

use crate::Result;
use crate::runtime::Context;
use crate::static_pod::certificates::{required_configmap, required_secret, tls_files};
use crate::static_pod::clients::{client_kubeconfig, leader_is_a_master};
use crate::static_pod::{self, Desired, Env, Names, Operand, policy, signers};
use seedling_api::KubeControllerManager;
use seedling_components::{Place, kube_controller_manager};
use seedling_pki::trust::{CONTROLLER_MANAGER_CLIENT, CSR_CA, CSR_SIGNER, SERVER_CA};
use seedling_types::names::{NS_CONFIG, NS_KCM, NS_KCM_OPERATOR};
use std::collections::BTreeMap;

pub const NAMES: Names = Names {
    operator: "kube-controller-manager",
    namespace: NS_KCM,
    operator_namespace: NS_KCM_OPERATOR,
    pod: "kube-controller-manager",
    pod_configmap: kube_controller_manager::POD_CONFIGMAP,
};

pub async fn run(context: Context) -> Result<()> {
    let operand = Operand {
        names: NAMES,
        desired: |env| Box::pin(desired(env)),
        health: leader_is_a_master("kube-controller-manager"),
        calm: static_pod::always_calm,
    };
    static_pod::operate::<KubeControllerManager>(&context, &operand).await
}

pub(crate) async fn desired(env: &Env) -> Result<Desired> {
    let kubeconfig = client_kubeconfig(env, &CONTROLLER_MANAGER_CLIENT).await?;
    let (policy, _) = policy::read(&env.cache).await?;
    let csr_signer = signers::keep(env, &CSR_SIGNER, &policy).await?;
    signers::publish(&env.cache, &CSR_CA, &csr_signer.certs()).await?;
    let key = required_secret(&env.cache, NS_CONFIG, "initial-service-account-private-key").await?;
    let ca = required_configmap(&env.cache, SERVER_CA.namespace, SERVER_CA.configmap).await?;
    Ok(Desired {
        configmaps: BTreeMap::from([("serviceaccount-ca".to_string(), ca)]),
        secrets: BTreeMap::from([
            (
                "controller-manager-kubeconfig".to_string(),
                BTreeMap::from([("kubeconfig".to_string(), kubeconfig)]),
            ),
            (CSR_SIGNER.owned.secret.to_string(), tls_files(&csr_signer.signs)),
            ("service-account-private-key".to_string(), key),
        ]),
        pod: kube_controller_manager::pod(&env.config, &env.release, Place::Master, policy.kubelet)?,
    })
}
