//! What the static-pod operators do, done once while none of them runs. `seedling certs recover` needs it on a master whose
//! certificates have ended.

use crate::Result;
use crate::static_pod::{Desired, Env, Names, certificates, policy, revision, signers};
use crate::{etcd, kube_apiserver, kube_controller_manager, kube_scheduler};
use futures::future::BoxFuture;
use kube::Client;
use seedling_pki::trust::{
    AGGREGATOR_SIGNER, CONTROL_PLANE_SIGNER, CSR_CA, CSR_SIGNER, INTERNAL_API_SERVING,
};
use seedling_pki::{CertKey, issue_to_node, not_after};
use time::{Duration, OffsetDateTime};

/// A static pod of a master, and how its files are made.
pub struct Operand {
    pub names: Names,
    desired: for<'a> fn(&'a Env) -> BoxFuture<'a, Result<Desired>>,
}

/// Without etcd: its members run with what they have.
pub const OPERANDS: [Operand; 3] = [
    Operand { names: kube_apiserver::NAMES, desired: |env| Box::pin(kube_apiserver::desired(env)) },
    Operand {
        names: kube_controller_manager::NAMES,
        desired: |env| Box::pin(kube_controller_manager::desired(env)),
    },
    Operand { names: kube_scheduler::NAMES, desired: |env| Box::pin(kube_scheduler::desired(env)) },
];

/// Which objects have the files of a revision.
pub struct Revision {
    pub number: i64,
    pub configmaps: Vec<String>,
    pub secrets: Vec<String>,
}

impl Operand {
    /// Makes the leaves that are due, and a revision if anything differs from the latest.
    pub async fn make_revision(&self, client: &Client) -> Result<Revision> {
        let env = Env::load(client.clone(), &self.names).await?;
        let desired = (self.desired)(&env).await?;
        Ok(Revision {
            number: revision::ensure(&env.cache, &self.names, &desired, "").await?,
            configmaps: desired.configmaps.into_keys().collect(),
            secrets: desired.secrets.into_keys().collect(),
        })
    }
}

/// Expired signers get successors, whose names are passed to `told`; then what depends on them and belongs to no operand is made.
pub async fn replace_ended_signers(client: &Client, told: impl Fn(&str)) -> Result<()> {
    let env = Env::load(client.clone(), &kube_apiserver::NAMES).await?;
    let (policy, _) = policy::read(&env.cache).await?;
    for signer in [&CSR_SIGNER, &CONTROL_PLANE_SIGNER, &AGGREGATOR_SIGNER] {
        if signers::replace_ended(&env, signer, &policy).await? {
            told(signer.owned.secret);
        }
    }
    // The API servers trust the signers in this bundle, which the controllers' operator would have published.
    let csr = signers::read(&env.cache, &CSR_SIGNER).await?;
    signers::publish(&env.cache, &CSR_CA, &csr.certs()).await?;
    // Its Secrets only: its members run with what they have.
    etcd::desired(&Env::load(client.clone(), &etcd::NAMES).await?).await.map(drop)
}

/// Gives kubelets certificates, as the controller manager does with the same key.
#[derive(Clone)]
pub struct KubeletSigner {
    pub signs: CertKey,
    /// All signers that an expired certificate may be from.
    pub authorities: String,
    /// Of what it signs.
    pub life: Duration,
}

impl KubeletSigner {
    /// And the certificate that api-int serves with.
    pub async fn load(client: &Client) -> Result<(Self, CertKey)> {
        let Env { cache, .. } = Env::load(client.clone(), &kube_apiserver::NAMES).await?;
        let signer = Self {
            signs: signers::read(&cache, &CSR_SIGNER).await?.signs,
            authorities: signers::of_kubelets(&cache).await?,
            life: policy::read(&cache).await?.0.kubelet,
        };
        Ok((signer, certificates::kept_pair(&cache, &INTERNAL_API_SERVING.owned).await?))
    }

    pub fn issue(&self, node: &str, request: &str, now: OffsetDateTime) -> Result<String> {
        let ends = not_after(&self.signs.cert)?.min(now + self.life);
        Ok(issue_to_node(&self.signs, node, request, ends, now)?)
    }
}
