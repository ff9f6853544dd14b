//! Certificates that operators make from the signers they were given, and renew well before they end.

use anyhow::{Context as _, Result};
use base64::{Engine, engine::general_purpose::STANDARD};
use seedling_cluster::Cache;
use seedling_pki::{CaSpec, CertKey, KeyAlgorithm, LeafSpec, Usage, issue, new_ca, not_after};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use time::{Duration, OffsetDateTime};

/// What the running cluster needs lives longer than this, always.
pub const RENEW_BEFORE: Duration = Duration::days(60);
/// Leaves live as long as upstream's control-plane signers.
pub const LEAF: Duration = Duration::days(365);
const MANAGER: &str = "seedling-certificates";

/// A Secret's data, decoded.
pub async fn secret(cache: &Cache, namespace: &str, name: &str) -> Result<Option<BTreeMap<String, String>>> {
    let Some(object) = cache.get("v1", "Secret", Some(namespace), name).await? else { return Ok(None) };
    let decode = |(key, value): (&String, &Value)| {
        let bytes = STANDARD.decode(value.as_str().unwrap_or_default())?;
        anyhow::Ok((key.clone(), String::from_utf8(bytes)?))
    };
    let data = object["data"].as_object().into_iter().flatten().map(decode).collect::<Result<_>>();
    Ok(Some(data.with_context(|| format!("Secret {namespace}/{name}"))?))
}

pub async fn required_secret(cache: &Cache, namespace: &str, name: &str) -> Result<BTreeMap<String, String>> {
    secret(cache, namespace, name)
        .await?
        .with_context(|| format!("Secret {namespace}/{name} is not there yet"))
}

pub async fn required_configmap(
    cache: &Cache,
    namespace: &str,
    name: &str,
) -> Result<BTreeMap<String, String>> {
    let map = cache.get("v1", "ConfigMap", Some(namespace), name).await?;
    let map = map.with_context(|| format!("ConfigMap {namespace}/{name} is not there yet"))?;
    Ok(serde_json::from_value(map["data"].clone()).unwrap_or_default())
}

fn pair(data: &BTreeMap<String, String>) -> Option<CertKey> {
    Some(CertKey { cert: data.get("tls.crt")?.clone(), key: data.get("tls.key")?.clone() })
}

fn lasts(pair: &CertKey, now: OffsetDateTime) -> bool {
    not_after(&pair.cert).is_ok_and(|end| end - now > RENEW_BEFORE)
}

/// The signer in a Secret; a new one takes its place when it ends soon. The old one's certificate is returned for bundles.
pub async fn signer(cache: &Cache, namespace: &str, name: &str) -> Result<(CertKey, Option<String>)> {
    let now = OffsetDateTime::now_utc();
    let data = required_secret(cache, namespace, name).await?;
    let old = pair(&data).with_context(|| format!("Secret {namespace}/{name} is no key pair"))?;
    if lasts(&old, now) {
        return Ok((old, data.get("previous.crt").cloned()));
    }
    let spec = CaSpec { cn: name, ou: Some("openshift"), validity: Duration::days(5 * 365) };
    let new = new_ca(&spec, KeyAlgorithm::default(), now)?;
    tracing::info!("signer {namespace}/{name} ended soon; a new one takes its place");
    store(cache, namespace, name, &new, Some(&old.cert)).await?;
    Ok((new, Some(old.cert)))
}

/// What a program of the control plane shows to the servers it asks.
pub fn client_leaf<'a>(cn: &'a str, organizations: &[&str]) -> LeafSpec<'a> {
    LeafSpec {
        cn,
        organizations: organizations.iter().map(ToString::to_string).collect(),
        usages: &[Usage::Client],
        dns: vec![],
        ips: vec![],
        validity: LEAF,
        append_parent: false,
        key_usage: true,
    }
}

/// The leaf in a Secret; made, or made anew when it ends soon.
pub async fn leaf(
    cache: &Cache,
    namespace: &str,
    name: &str,
    signer: &CertKey,
    spec: &LeafSpec<'_>,
) -> Result<CertKey> {
    let now = OffsetDateTime::now_utc();
    if let Some(have) = secret(cache, namespace, name).await?.as_ref().and_then(pair)
        && lasts(&have, now)
    {
        return Ok(have);
    }
    let made = issue(signer, spec, KeyAlgorithm::default(), now)?;
    store(cache, namespace, name, &made, None).await?;
    Ok(made)
}

async fn store(
    cache: &Cache,
    namespace: &str,
    name: &str,
    pair: &CertKey,
    previous: Option<&str>,
) -> Result<()> {
    let mut data = json!({"tls.crt": pair.cert, "tls.key": pair.key});
    if let Some(previous) = previous {
        data["previous.crt"] = json!(previous);
    }
    let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": namespace, "name": name},
        "type": "kubernetes.io/tls", "stringData": data});
    cache.apply(MANAGER, &object).await?;
    Ok(())
}

/// `tls.crt` and `tls.key`, as a revision copies them.
pub fn tls_files(pair: &CertKey) -> BTreeMap<String, String> {
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
