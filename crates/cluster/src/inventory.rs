//! The inventory: which machines belong to the cluster. From the cluster itself, or from a file where there is no API yet.

use crate::follow::{Followed, Selection, follow};
use crate::{ClusterError, get};
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use seedling_api::{ConfigMap, Files, ObjectMeta};
use seedling_types::Inventory;
use seedling_types::names::{INVENTORY_CONFIGMAP, NS_CONFIG};
use std::path::{Path, PathBuf};
use thiserror::Error;
use tokio::sync::watch;

#[derive(Debug, Error)]
pub enum InventoryError {
    #[error("ConfigMap {NS_CONFIG}/{INVENTORY_CONFIGMAP}: {0}")]
    Unusable(String),
    #[error("cannot read {}: {why}", path.display())]
    NoFile { path: PathBuf, why: std::io::Error },
    #[error("{0}")]
    Wrong(String),
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

/// Waits until it is there: an operator may be quicker than the manifests it lives on.
pub async fn wait(client: &Client) -> Inventory {
    next(&mut followed(client)).await
}

/// As it is now, and as it changes; a broken one is not taken over.
pub async fn keep(client: &Client) -> watch::Receiver<Inventory> {
    let mut followed = followed(client);
    let (sender, receiver) = watch::channel(next(&mut followed).await);
    tokio::spawn(async move {
        while !sender.is_closed() {
            sender.send_replace(next(&mut followed).await);
        }
    });
    receiver
}

fn followed(client: &Client) -> Followed<ConfigMap> {
    follow(client, Selection::one(Some(NS_CONFIG), INVENTORY_CONFIGMAP))
}

async fn next(followed: &mut Followed<ConfigMap>) -> Inventory {
    loop {
        match followed.next().await.one().map(|map| parse(&map)) {
            Some(Ok(inventory)) => return inventory,
            Some(Err(e)) => tracing::warn!("{e}"),
            None => tracing::info!("waiting for ConfigMap {NS_CONFIG}/{INVENTORY_CONFIGMAP}"),
        }
    }
}

pub fn parse(config_map: &ConfigMap) -> Result<Inventory, InventoryError> {
    let text = config_map
        .file("hosts.yaml")
        .ok_or_else(|| InventoryError::Unusable("it has no hosts.yaml".into()))?;
    Inventory::parse(text).map_err(|errors| InventoryError::Unusable(joined(&errors)))
}

/// Changes it as `change` says, by compare and swap: what others change meanwhile is kept. True: it is another one now.
pub async fn change(
    client: &Client,
    change: impl Fn(&Inventory) -> Result<Inventory, Vec<seedling_types::InventoryError>>,
) -> Result<bool, InventoryError> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), NS_CONFIG);
    loop {
        let live = get::<ConfigMap>(client, Some(NS_CONFIG), INVENTORY_CONFIGMAP).await?;
        let live = live.ok_or_else(|| InventoryError::Unusable("it is not there".into()))?;
        let before = parse(&live)?;
        let next = change(&before).map_err(|errors| InventoryError::Wrong(joined(&errors)))?;
        if next == before {
            return Ok(false);
        }
        let metadata =
            ObjectMeta { resource_version: live.metadata.resource_version, ..ObjectMeta::default() };
        let data = Some([("hosts.yaml".to_string(), next.to_yaml())].into());
        let patch = ConfigMap { metadata, data, ..ConfigMap::default() };
        match api.patch(INVENTORY_CONFIGMAP, &PatchParams::default(), &Patch::Merge(&patch)).await {
            Ok(_) => return Ok(true),
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(e) => return Err(InventoryError::Unusable(crate::innermost(&e))),
        }
    }
}

/// From a file, as the bootstrap node has it.
pub fn read(path: &Path) -> Result<Inventory, InventoryError> {
    let no_file = |why| InventoryError::NoFile { path: path.into(), why };
    let text = std::fs::read_to_string(path).map_err(no_file)?;
    Inventory::parse(&text).map_err(|errors| InventoryError::Wrong(joined(&errors)))
}

fn joined(errors: &[seedling_types::InventoryError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
