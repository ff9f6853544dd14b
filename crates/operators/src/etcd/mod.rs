//! The etcd operator: a member on every master, by revision; members added, promoted, and the bootstrap member removed.

mod decide;
mod masters;
mod members;
#[cfg(test)]
mod model;
#[cfg(test)]
mod recovery_model;
mod sums;
#[cfg(test)]
mod tests;

use crate::runtime::Context;
use crate::static_pod::certificates::leaves;
use crate::static_pod::{self, Desired, Env, Health, Names, Operand, policy, signers};
use crate::{OperatorError, Result};
use decide::State;
use seedling_api::{ConfigMap, Etcd, Files, KubeApiServer, StaticPodOperator};
use seedling_components::{etcd, kube_apiserver};
use seedling_pki::trust::{ETCD_CA, ETCD_CLIENT, ETCD_MEMBERS, ETCD_SIGNER};
use seedling_types::Role;
use seedling_types::names::{NS_ETCD, NS_ETCD_OPERATOR, NS_KAS};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;

pub const NAMES: Names = Names {
    operator: "etcd",
    namespace: NS_ETCD,
    operator_namespace: NS_ETCD_OPERATOR,
    pod: "etcd",
    pod_configmap: etcd::POD_CONFIGMAP,
};

pub async fn run(context: Context) -> Result<()> {
    let fence = context.fence.clone();
    let fence = fence.ok_or_else(|| hindered("only a leader may change etcd's members"))?;
    let env = Env::load(context.client.clone(), &NAMES).await?;
    let unasked = OperatorError::Waits("the members were not asked yet".into());
    let (tell, seen) = watch::channel(Err(Arc::new(unasked)));
    let operand = Operand {
        names: NAMES,
        desired: |env| Box::pin(desired(env)),
        health: Box::new(move |env, _| Box::pin(std::future::ready(health(env, &seen.borrow())))),
        calm: |env| Box::pin(calm(env)),
    };
    tokio::select! {
        ended = static_pod::keep_on_masters::<Etcd>(&context, &env, &operand) => ended,
        ended = members::keep_members(&context, &env, fence, &tell) => ended,
    }
}

pub(crate) async fn desired(env: &Env) -> Result<Desired> {
    let (policy, _) = policy::read(&env.cache).await?;
    let signer = signers::keep(env, &ETCD_SIGNER, &policy).await?;
    let ca = signers::publish(&env.cache, &ETCD_CA, &signer.certs()).await?;
    leaves(env, &policy, &ETCD_CLIENT, &signer.signs).await?;
    let certs = leaves(env, &policy, &ETCD_MEMBERS, &signer.signs).await?;
    // The list that a joining member asks; it must not change when bootstrap leaves, or every member would roll again.
    let peers: Vec<_> = (env.inventory.hosts.iter())
        .filter(|host| host.role != Role::Worker)
        .map(|host| match host.role {
            Role::Bootstrap => (etcd::BOOTSTRAP_MEMBER.to_string(), host.address),
            _ => (host.name.clone(), host.address),
        })
        .collect();
    Ok(Desired {
        configmaps: BTreeMap::from([("etcd-ca-bundle".to_string(), ca)]),
        secrets: BTreeMap::from([(ETCD_MEMBERS.owned.secret.to_string(), certs)]),
        pod: etcd::master_pod(&env.release, &peers)?,
    })
}

/// A member is stopped while all API servers answer, and know the others.
async fn calm(env: &Env) -> Result<bool> {
    let settings = env.cache.get::<Etcd>(None, "cluster").await?;
    let members = settings.map(|s| static_pod::addresses(env, &*s)).unwrap_or_default();
    let settings = env.cache.get::<KubeApiServer>(None, "cluster").await?;
    for node in settings.map(|s| s.status().node_statuses).unwrap_or_default() {
        let name = format!("{}-{}", kube_apiserver::POD_CONFIGMAP, node.current());
        let map = env.cache.get::<ConfigMap>(Some(NS_KAS), &name).await?;
        let text = map.as_ref().and_then(|map| map.file("pod.yaml")).unwrap_or("{}");
        let pod = serde_saphyr::from_str(text)
            .map_err(|e| OperatorError::unreadable(format!("ConfigMap {NS_KAS}/{name}"), e))?;
        if !kube_apiserver::knows_members(&pod, &members) {
            return Ok(false);
        }
    }
    static_pod::all_ready(env, NS_KAS, "openshift-kube-apiserver").await
}

/// What the members say, for the status report.
type Seen = Result<State, Arc<OperatorError>>;

fn health(env: &Env, seen: &Seen) -> Health {
    match seen {
        Ok(state) => {
            let (healthy, masters) = (state.carrying(), env.inventory.masters().len());
            Health {
                working: healthy > masters / 2,
                message: format!("{healthy} of {masters} masters' members are healthy voters"),
                trouble: trouble(state),
            }
        }
        Err(e) => Health { working: false, message: e.in_full(), trouble: None },
    }
}

fn trouble(state: &State) -> Option<(&'static str, String)> {
    if let Some(unclear) = &state.unclear {
        return Some(("DataDiffers", format!("{unclear}; restore a backup: seedling etcd restore --help")));
    }
    let full = state.nearly_full();
    (!full.is_empty()).then(|| ("DatabaseNearlyFull", full.join("; ")))
}

/// What keeps the members from being changed.
fn hindered(why: impl Into<String>) -> OperatorError {
    OperatorError::Members(why.into())
}

fn ensure(holds: bool, otherwise: impl Into<String>) -> Result<()> {
    if holds { Ok(()) } else { Err(hindered(otherwise)) }
}
