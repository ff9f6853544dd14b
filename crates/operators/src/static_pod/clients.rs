//! Control-plane programs that are clients of the API: how they reach it, and how they are seen working.

use super::certificates::{client_leaf, kubeconfig, leaf, pair, required_configmap, required_secret};
use super::{Env, Health};
use anyhow::{Context as _, Result};
use seedling_pki::{CertKey, Policy};
use seedling_types::names::NS_CONFIG_MANAGED;

/// A program's Secret in openshift-config-managed, and as whom it asks. The signer's key stays with the API servers' operator, which
/// makes these; whoever looks after the program only reads its own.
pub(crate) struct ClientOf {
    pub secret: &'static str,
    pub user: &'static str,
}
pub(crate) const CONTROLLER_MANAGER: ClientOf =
    ClientOf { secret: "kube-controller-manager-client-cert-key", user: "system:kube-controller-manager" };
pub(crate) const SCHEDULER: ClientOf =
    ClientOf { secret: "kube-scheduler-client-cert-key", user: "system:kube-scheduler" };

/// For the API servers' operator: made, or made anew when they are due.
pub(crate) async fn keep(env: &Env, policy: &Policy, signer: &CertKey) -> Result<()> {
    for client in [&CONTROLLER_MANAGER, &SCHEDULER] {
        leaf(env, policy, NS_CONFIG_MANAGED, client.secret, signer, &client_leaf(client.user, &[])).await?;
    }
    Ok(())
}

/// A kubeconfig for a control-plane program, through the internal load balancer.
pub(crate) async fn client_kubeconfig(env: &Env, client: &ClientOf) -> Result<String> {
    let data = required_secret(&env.cache, NS_CONFIG_MANAGED, client.secret).await?;
    let pair = pair(&data, "tls").with_context(|| format!("Secret {} is no key pair", client.secret))?;
    let ca = required_configmap(&env.cache, NS_CONFIG_MANAGED, "kube-apiserver-server-ca").await?;
    let ca = ca.get("ca-bundle.crt").map(String::as_str).unwrap_or_default();
    Ok(kubeconfig(&env.config.api_internal_url(), ca, client.user, &pair))
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
