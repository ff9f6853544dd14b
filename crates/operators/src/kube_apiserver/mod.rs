//! The kube-apiserver operator: the API on every master, by revision, with certificates that outlive the installer's.

mod encryption;

use crate::Result;
use crate::runtime::Context;
use crate::static_pod::certificates::{leaves, required_configmap, required_secret, tls_files, tls_pair};
use crate::static_pod::{self, Data, Desired, Env, Health, Names, Operand, policy, signers};
use seedling_api::{Etcd, KubeApiServer, StaticPodOperator};
use seedling_components::pod::{NODE_IP, to_yaml};
use seedling_components::{Place, kube_apiserver};
use seedling_pki::Policy;
use seedling_pki::trust::{
    self, AGGREGATOR_CA, AGGREGATOR_SIGNER, CLIENT_CA, CONTROL_PLANE_SIGNER, CSR_CA, ETCD_CA, ETCD_CLIENT,
    KUBELET_SERVING_CA,
};
use seedling_types::names::{NS_CONFIG_MANAGED, NS_ETCD, NS_KAS, NS_KAS_OPERATOR};
use seedling_types::ports;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use time::OffsetDateTime;

pub const NAMES: Names = Names {
    operator: "kube-apiserver",
    namespace: NS_KAS,
    operator_namespace: NS_KAS_OPERATOR,
    pod: "kube-apiserver",
    pod_configmap: kube_apiserver::POD_CONFIGMAP,
};

pub async fn run(context: Context) -> Result<()> {
    let operand = Operand {
        names: NAMES,
        desired: |env| Box::pin(desired(env)),
        health: Box::new(|env, masters| Box::pin(health(env, masters))),
        calm: |env| Box::pin(calm(env)),
    };
    static_pod::operate::<KubeApiServer>(&context, &operand).await
}

pub(crate) async fn desired(env: &Env) -> Result<Desired> {
    let cache = &env.cache;
    let (policy, _) = policy::read(cache).await?;
    // What the installer's signs on the bootstrap node is trusted as well.
    let old = signers::read(cache, &AGGREGATOR_SIGNER).await?;
    signers::publish(cache, &AGGREGATOR_CA, &old.certs()).await?;
    let mut secrets = BTreeMap::new();
    for row in trust::renewed_by(NAMES.operator) {
        let signer = signers::signing(env, row, &policy).await?;
        let files = leaves(env, &policy, row, &signer).await?;
        // Those of other namespaces are for other operators.
        if row.owned.namespace == NS_KAS {
            secrets.insert(row.owned.secret.to_string(), tls_files(&tls_pair(&files, &row.owned)?));
        }
    }
    let etcd_client = required_secret(cache, NS_ETCD, ETCD_CLIENT.owned.secret).await?;
    secrets.insert(ETCD_CLIENT.owned.secret.into(), etcd_client);
    let bound = required_secret(cache, NS_KAS_OPERATOR, "next-bound-service-account-signing-key").await?;
    secrets.insert("bound-service-account-signing-key".into(), bound);
    secrets.insert(kube_apiserver::encryption::SECRET.into(), encryption::keep(env, &policy).await?);
    let mut configmaps = bundles(env, &policy).await?;
    configmaps.extend(kube_apiserver::CONFIGS.map(|config| {
        (config.map.to_string(), BTreeMap::from([(config.key.to_string(), to_yaml(&(config.contents)()))]))
    }));
    let pod = kube_apiserver::pod(
        &env.config,
        &env.release,
        Place::Master,
        NODE_IP,
        &members(env, &policy).await?,
    )?;
    Ok(Desired { configmaps, secrets, pod })
}

/// The signers an API server trusts: the installer's, and every other one before it signs.
async fn bundles(env: &Env, policy: &Policy) -> Result<BTreeMap<String, Data>> {
    let cache = &env.cache;
    let control_plane = signers::keep(env, &CONTROL_PLANE_SIGNER, policy).await?;
    let aggregator = signers::keep(env, &AGGREGATOR_SIGNER, policy).await?;
    // Its key is the controllers' operator's; that publishes a signer before it signs.
    let csr = signers::published(cache, &CSR_CA).await?;
    let csr: Vec<_> = csr.iter().map(String::as_str).collect();
    let clients = [control_plane.certs(), csr.clone()].concat();
    let etcd_ca = required_configmap(cache, NS_ETCD, ETCD_CA.configmap).await?;
    let tokens = required_configmap(cache, NS_CONFIG_MANAGED, "sa-token-signing-certs").await?;
    Ok(BTreeMap::from([
        ("client-ca".into(), signers::publish(cache, &CLIENT_CA, &clients).await?),
        ("kubelet-serving-ca".into(), signers::publish(cache, &KUBELET_SERVING_CA, &csr).await?),
        ("aggregator-client-ca".into(), signers::publish(cache, &AGGREGATOR_CA, &aggregator.certs()).await?),
        ("etcd-serving-ca".into(), etcd_ca),
        ("sa-token-signing-certs".into(), tokens),
    ]))
}

/// An API server without its etcd member lets its callers wait, the kubelet that is to start the member again among them. So
/// before members are stopped, API servers know all of them. The first revision knows its own only: the others may be learners.
async fn members(env: &Env, policy: &Policy) -> Result<Vec<IpAddr>> {
    let etcd = env.cache.get::<Etcd>(None, "cluster").await?;
    let Some(etcd) = etcd else { return Ok(vec![]) };
    let rolls = etcd.status().latest() > 1;
    let asked = policy.renew.is_some_and(|moment| moment <= OffsetDateTime::now_utc());
    if !rolls && !asked {
        return Ok(vec![]);
    }
    let mut members = static_pod::addresses(env, &*etcd);
    members.sort();
    Ok(members)
}

/// While a member starts, nobody's API server is stopped.
async fn calm(env: &Env) -> Result<bool> {
    static_pod::all_ready(env, NS_ETCD, "etcd").await
}

/// Seen working: most masters' own servers say that they are ready.
async fn health(env: &Env, masters: &[String]) -> Health {
    let hosts: Vec<_> = masters.iter().filter_map(|name| env.inventory.by_name(name)).collect();
    let asked = hosts.iter().map(|host| {
        let request =
            env.http.get(format!("https://{}/readyz", SocketAddr::new(host.address, ports::API))).send();
        async move { request.await.is_ok_and(|response| response.status().is_success()) }
    });
    let ready = futures::future::join_all(asked).await.into_iter().filter(|ready| *ready).count();
    let wanted = env.inventory.masters().len();
    let message = format!("{ready} of {wanted} API servers are ready");
    Health { working: ready > wanted / 2, message, trouble: None }
}
