//! The kube-scheduler operator: the scheduler on every master, by revision.

use crate::static_pod::certificates::{LEAF, kubeconfig, leaf, required_configmap, signer};
use crate::static_pod::{self, Desired, Env, Health, Names, Operand};
use anyhow::Result;
use kube::Client;
use seedling_components::{Place, kube_scheduler};
use seedling_pki::{LeafSpec, Usage};
use seedling_types::names::{NS_CONFIG_MANAGED, NS_KAS_OPERATOR, NS_SCHEDULER, NS_SCHEDULER_OPERATOR};
use std::collections::BTreeMap;

const NAMES: Names = Names {
    operator: "kube-scheduler",
    kind: "KubeScheduler",
    namespace: NS_SCHEDULER,
    operator_namespace: NS_SCHEDULER_OPERATOR,
    pod: "openshift-kube-scheduler",
    pod_configmap: kube_scheduler::POD_CONFIGMAP,
};

pub async fn run(client: Client) -> Result<()> {
    let env = Env::load(client).await?;
    let operand = Operand {
        names: NAMES,
        desired: |env| Box::pin(desired(env)),
        health: |env, _| Box::pin(health(env)),
    };
    static_pod::run(&env, &operand).await
}

async fn desired(env: &Env) -> Result<Desired> {
    let kubeconfig =
        client_kubeconfig(env, NS_SCHEDULER, "kube-scheduler-client", "system:kube-scheduler").await?;
    let files = BTreeMap::from([("kubeconfig".to_string(), kubeconfig)]);
    Ok(Desired {
        configmaps: BTreeMap::new(),
        secrets: BTreeMap::from([("scheduler-kubeconfig".to_string(), files)]),
        pod: kube_scheduler::pod(&env.release, Place::Master)?,
    })
}

async fn health(env: &Env) -> Health {
    leader_is_a_master(env, "kube-scheduler").await
}

/// A kubeconfig for a control-plane program, through the internal load balancer.
pub(crate) async fn client_kubeconfig(env: &Env, namespace: &str, name: &str, user: &str) -> Result<String> {
    let (signer, _) = signer(&env.client, NS_KAS_OPERATOR, "kube-control-plane-signer").await?;
    let spec = LeafSpec {
        cn: user,
        organizations: vec![],
        usages: &[Usage::Client],
        dns: vec![],
        ips: vec![],
        validity: LEAF,
        append_parent: false,
        key_usage: true,
    };
    let pair = leaf(&env.client, namespace, name, &signer, &spec).await?;
    let ca = required_configmap(&env.client, NS_CONFIG_MANAGED, "kube-apiserver-server-ca").await?;
    let ca = ca.get("ca-bundle.crt").map(String::as_str).unwrap_or_default();
    Ok(kubeconfig(&env.config.api_internal_url(), ca, user, &pair))
}

/// Seen working: a master holds the lease and renewed it within its duration.
pub(crate) async fn leader_is_a_master(env: &Env, lease: &str) -> Health {
    let found =
        seedling_cluster::get(&env.client, "coordination.k8s.io/v1", "Lease", Some("kube-system"), lease)
            .await;
    let unseen = |message: String| Health { working: false, message };
    let lease = match found {
        Ok(Some(lease)) => lease,
        Ok(None) => return unseen("no leader yet".into()),
        Err(e) => return unseen(e.to_string()),
    };
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
    let host = holder.split('_').next().unwrap_or_default();
    let renewed = lease["spec"]["renewTime"].as_str().unwrap_or_default();
    let renewed = time::OffsetDateTime::parse(renewed, &time::format_description::well_known::Rfc3339);
    let fresh = renewed.is_ok_and(|t| time::OffsetDateTime::now_utc() - t < time::Duration::seconds(20));
    match env.inventory.masters().iter().any(|m| m.name == host) {
        true if fresh => Health { working: true, message: format!("{host} leads") },
        true => unseen(format!("{host} held the lease, but does not renew it")),
        false => unseen(format!("the lease is held by {holder:?}, which is no master")),
    }
}
