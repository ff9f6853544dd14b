//! The kube-scheduler operator: the scheduler on every master, by revision.

use crate::Result;
use crate::runtime::Context;
use crate::static_pod::clients::{client_kubeconfig, leader_is_a_master};
use crate::static_pod::{self, Desired, Env, Names, Operand};
use seedling_api::KubeScheduler;
use seedling_components::{Place, kube_scheduler};
use seedling_pki::trust::SCHEDULER_CLIENT;
use seedling_types::names::{NS_SCHEDULER, NS_SCHEDULER_OPERATOR};
use std::collections::BTreeMap;

pub const NAMES: Names = Names {
    operator: "kube-scheduler",
    namespace: NS_SCHEDULER,
    operator_namespace: NS_SCHEDULER_OPERATOR,
    pod: "openshift-kube-scheduler",
    pod_configmap: kube_scheduler::POD_CONFIGMAP,
};

pub async fn run(context: Context) -> Result<()> {
    let operand = Operand {
        names: NAMES,
        desired: |env| Box::pin(desired(env)),
        health: leader_is_a_master("kube-scheduler"),
        calm: static_pod::always_calm,
    };
    static_pod::operate::<KubeScheduler>(&context, &operand).await
}

pub(crate) async fn desired(env: &Env) -> Result<Desired> {
    let kubeconfig = client_kubeconfig(env, &SCHEDULER_CLIENT).await?;
    let files = BTreeMap::from([("kubeconfig".to_string(), kubeconfig)]);
    Ok(Desired {
        configmaps: BTreeMap::new(),
        secrets: BTreeMap::from([("scheduler-kubeconfig".to_string(), files)]),
        pod: kube_scheduler::pod(&env.release, Place::Master)?,
    })
}
