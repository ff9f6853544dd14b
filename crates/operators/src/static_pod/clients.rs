//! Control-plane programs that are clients of the API: how they reach it, and how they are seen working.

use super::certificates::{client_leaf, kubeconfig, leaf, required_configmap};
use super::{Env, Health, policy, signers};
use anyhow::Result;
use seedling_types::names::NS_CONFIG_MANAGED;

/// A kubeconfig for a control-plane program, through the internal load balancer.
pub(crate) async fn client_kubeconfig(env: &Env, namespace: &str, name: &str, user: &str) -> Result<String> {
    let (policy, _) = policy::read(&env.cache).await?;
    let signer = signers::read(&env.cache, &signers::CONTROL_PLANE).await?.signs;
    let pair = leaf(env, &policy, namespace, name, &signer, &client_leaf(user, &[])).await?;
    let ca = required_configmap(&env.cache, NS_CONFIG_MANAGED, "kube-apiserver-server-ca").await?;
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
