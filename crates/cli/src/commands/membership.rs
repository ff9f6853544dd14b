//! A machine becomes one of the cluster's, or stops being one: what `lab add`, `lab remove`, `node add` and `node remove` share. Each step
//! can be done again, in the same order, after a run that was killed.

use anyhow::{Context, Result, bail};
use seedling_api::{ConfigMap, Dns, Files, Node};
use seedling_assets::{new_token, node_file, node_pointer};
use seedling_cluster::{Kind, admission, delete, get, inventory};
use seedling_types::names::NS_MCO;
use seedling_types::{ClusterDomain, Host, Inventory, Role};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A machine can only join a cluster that its masters carry.
pub(super) async fn must_be_grown(client: &kube::Client) -> Result<()> {
    let silent = "the cluster does not answer; `seedling lab up` switches a lab on";
    let done = get::<ConfigMap>(client, Some("kube-system"), "bootstrap").await.context(silent)?;
    match done.and_then(|map| map.file("status").map(|status| status == "complete")) {
        Some(true) => Ok(()),
        _ => bail!(
            "the masters do not carry the cluster yet: wait for `seedling wait-for bootstrap-complete`, or run `lab up`"
        ),
    }
}

/// The inventory knows it, and its token; returns its pointer config. A pointer that is still good is kept.
pub(super) async fn admit(client: &kube::Client, host: &Host, dir: &Path) -> Result<PathBuf> {
    // Before anything is changed: what others said of a machine of this name is not overwritten.
    inventory::change(client, |before| with(before, host)).await?;
    let path = dir.join(node_file(&host.name));
    let issued = admission::read(client).await?.nodes.remove(&host.name);
    let kept = std::fs::read(&path).ok().and_then(|json| token_digest(&serde_json::from_slice(&json).ok()?));
    if kept.is_some() && kept == issued.map(|issued| issued.sha256) {
        return Ok(path);
    }
    issue(client, host, &path).await?;
    Ok(path)
}

/// A new token for a machine: first in the cluster, since a pointer whose token nobody knows would only mislead.
pub(super) async fn issue(client: &kube::Client, host: &Host, path: &Path) -> Result<()> {
    let dns = read::<Dns>(client, None, "cluster").await?;
    let domain = dns.spec.context("DNS cluster has no baseDomain")?.base_domain;
    let ca = read::<ConfigMap>(client, Some(NS_MCO), "machine-config-server-ca").await?;
    let ca = ca.file("ca-bundle.crt").context("machine-config-server-ca has no ca-bundle.crt")?;
    let token = new_token();
    let pointer = node_pointer(&ClusterDomain(domain), host.role, ca, &token);
    admission::reissue(client, &host.name, token.digest()).await?;
    seedling_steps::write_atomic(path, serde_json::to_vec(&pointer)?, 0o600)
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Neither its token nor a certificate of its own brings it back, and its Node is gone.
pub(super) async fn dismiss(client: &kube::Client, name: &str) -> Result<()> {
    inventory::change(client, |before| Ok(before.without(name))).await?;
    admission::withdraw(client, name).await?;
    delete::<Node>(client, None, name).await?;
    Ok(())
}

/// Pure. The inventory with it; a machine that is known is not changed by the way.
fn with(before: &Inventory, host: &Host) -> Result<Inventory, Vec<seedling_types::InventoryError>> {
    match before.by_name(&host.name) {
        Some(known) if known != host => Err(vec![seedling_types::InventoryError {
            path: host.name.clone(),
            line: None,
            message: format!(
                "is known as a {} with MAC {} at {}; remove it first, or take another name",
                known.role.as_str(),
                known.mac,
                known.address
            ),
            hint: None,
        }]),
        _ => before.with(host.clone()),
    }
}

/// Of the token in a machine's own pointer config.
fn token_digest(pointer: &Value) -> Option<String> {
    let headers = pointer.pointer("/ignition/config/merge/0/httpHeaders")?.as_array()?;
    let header = headers.iter().find(|header| header["name"] == "Authorization")?;
    Some(seedling_types::admission::digest(header["value"].as_str()?.strip_prefix("Bearer ")?))
}

/// Which machine of the cluster is meant.
pub(super) async fn known(client: &kube::Client, name: &str) -> Result<Host> {
    use seedling_types::names::{INVENTORY_CONFIGMAP, NS_CONFIG};
    let hosts = inventory::parse(&read(client, Some(NS_CONFIG), INVENTORY_CONFIGMAP).await?)?;
    let host = hosts.by_name(name).filter(|host| host.role != Role::Bootstrap).cloned();
    host.with_context(|| {
        format!("no master or worker {name:?} is in ConfigMap {NS_CONFIG}/{INVENTORY_CONFIGMAP}")
    })
}

pub(super) async fn read<K: Kind>(client: &kube::Client, namespace: Option<&str>, name: &str) -> Result<K> {
    get(client, namespace, name).await?.with_context(|| format!("the cluster has no {} {name}", K::kind(&())))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_pointers_token_is_known_by_its_digest() {
        let token = new_token();
        let pointer = node_pointer(&ClusterDomain("ocp4.example.com".into()), Role::Worker, "ca", &token);
        assert_eq!(token_digest(&serde_json::to_value(pointer).unwrap()), Some(token.digest()));
        assert_eq!(token_digest(&serde_json::json!({"ignition": {}})), None);
    }

    #[test]
    fn a_machine_that_is_known_is_not_changed_by_the_way() {
        let host = |last: u8| Host {
            name: "worker-0".into(),
            role: Role::Worker,
            mac: format!("52:54:00:00:00:{last:02x}"),
            address: [10, 0, 0, last].into(),
            second_address: None,
        };
        let one = with(&Inventory::default(), &host(1)).unwrap();
        assert_eq!(with(&one, &host(1)).unwrap(), one);
        let said = with(&one, &host(2)).unwrap_err()[0].to_string();
        assert_eq!(
            said,
            "worker-0: is known as a worker with MAC 52:54:00:00:00:01 at 10.0.0.1; remove it first, or take another name"
        );
    }
}
