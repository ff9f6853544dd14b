//! Leaves that operators make from the signers they were given, and renew well before they end.

use super::{Data, Env};
use crate::{OperatorError, Result};
use base64::{Engine, engine::general_purpose::STANDARD};
use seedling_api::{ConfigMap, Files, Meta, Secret};
use seedling_cluster::Cache;
use seedling_pki::trust::{Cluster, Leaf, Owned, Renewal};
use seedling_pki::{CertKey, Life, Policy, not_after, validity};
use serde_json::json;
use std::collections::BTreeMap;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

const MANAGER: &str = "seedling-certificates";
/// A certificate is valid from before it was made, so its Secret says when that was.
pub(crate) const ISSUED: &str = "seedling.dev/issued";

/// A Secret's data, decoded.
pub async fn secret(cache: &Cache, namespace: &str, name: &str) -> Result<Option<Data>> {
    let Some(object) = cache.get::<Secret>(Some(namespace), name).await? else { return Ok(None) };
    decoded(&object).map(Some)
}

fn decoded(secret: &Secret) -> Result<Data> {
    let unreadable = |e| {
        let namespace = secret.metadata.namespace.as_deref().unwrap_or_default();
        OperatorError::unreadable(format!("Secret {namespace}/{}", secret.name()), e)
    };
    let text = |(key, bytes): (&String, &seedling_api::ByteString)| {
        Ok((key.clone(), String::from_utf8(bytes.0.clone()).map_err(unreadable)?))
    };
    secret.data.iter().flatten().map(text).collect()
}

pub async fn required_secret(cache: &Cache, namespace: &str, name: &str) -> Result<Data> {
    let data = secret(cache, namespace, name).await?;
    data.ok_or_else(|| OperatorError::Missing(format!("Secret {namespace}/{name}")))
}

pub async fn required_configmap(cache: &Cache, namespace: &str, name: &str) -> Result<Data> {
    let map = cache.get::<ConfigMap>(Some(namespace), name).await?;
    let missing = || OperatorError::Missing(format!("ConfigMap {namespace}/{name}"));
    Ok(map.ok_or_else(missing)?.files())
}

/// `<stem>.crt` and `<stem>.key`.
pub fn pair(data: &Data, stem: &str) -> Option<CertKey> {
    let part = |ending: &str| data.get(&format!("{stem}.{ending}")).cloned();
    Some(CertKey { cert: part("crt")?, key: part("key")? })
}

/// The pair that a Secret has now.
pub async fn kept_pair(cache: &Cache, owned: &Owned) -> Result<CertKey> {
    let data = required_secret(cache, owned.namespace, owned.secret).await?;
    tls_pair(&data, owned)
}

pub fn tls_pair(data: &Data, owned: &Owned) -> Result<CertKey> {
    let none = || OperatorError::NoKeyPair(format!("Secret {}/{}", owned.namespace, owned.secret));
    pair(data, "tls").ok_or_else(none)
}

/// All files of a row's Secret, by name. When one of its leaves is due all are made: they go to the masters together. How long they live is the
/// policy's.
pub async fn leaves(env: &Env, policy: &Policy, row: &Leaf, signer: &CertKey) -> Result<Data> {
    let (namespace, name) = (row.owned.namespace, row.owned.secret);
    let policy = match row.owned.renewal {
        Renewal::LongLeaf => &Policy { leaf: policy.signer, ..policy.clone() },
        _ => policy,
    };
    let cluster = Cluster {
        domain: &env.config.domain,
        service_addresses: env.config.service_addresses(1),
        api_vips: &[],
        hosts: &env.inventory.hosts,
    };
    let now = OffsetDateTime::now_utc();
    let live = env.cache.get::<Secret>(Some(namespace), name).await?;
    let data = live.as_deref().map(decoded).transpose()?.unwrap_or_default();
    let ends = policy.leaf_ends(not_after(&signer.cert)?, now);
    let due = |stem: &String| policy.leaf_due(life(live.as_deref(), &data, stem), ends, now);
    if !row.stems(&cluster).iter().any(due) {
        return Ok(data);
    }
    tracing::info!("issued new certificates in Secret {namespace}/{name}");
    let made = row.make_files(signer, &cluster, ends - now, now)?;
    let files = made.iter().map(|(k, v)| (k.as_str(), v.as_str()));
    let mut object = seedling_api::secret(namespace, name, row.secret_type(), files);
    object.metadata.annotations = Some([(ISSUED.to_string(), now.format(&Rfc3339)?)].into());
    env.cache.apply(MANAGER, &object).await?;
    Ok(made)
}

/// What bootkube made says nothing of when: it was not before it is valid.
fn life(secret: Option<&Secret>, data: &Data, stem: &str) -> Option<Life> {
    let (valid_from, ends) = validity(&pair(data, stem)?.cert).ok()?;
    let issued = secret?.annotation(ISSUED).and_then(|text| OffsetDateTime::parse(text, &Rfc3339).ok());
    Some(Life { issued: issued.unwrap_or(valid_from), ends })
}

/// `tls.crt` and `tls.key`, as a revision copies them.
pub fn tls_files(pair: &CertKey) -> Data {
    BTreeMap::from([("tls.crt".into(), pair.cert.clone()), ("tls.key".into(), pair.key.clone())])
}

/// A kubeconfig with a client certificate inside.
pub fn kubeconfig(server: &str, ca: &str, user: &str, client: &CertKey) -> String {
    let b64 = |s: &str| STANDARD.encode(s);
    seedling_components::pod::to_yaml(&json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "cluster", "cluster": {"certificate-authority-data": b64(ca), "server": server}}],
        "contexts": [{"name": user, "context": {"cluster": "cluster", "user": user}}],
        "current-context": user,
        "users": [{"name": user, "user": {"client-certificate-data": b64(&client.cert), "client-key-data": b64(&client.key)}}],
    }))
}
