//! The inventory inside the cluster: which machines belong to it.

use kube::Client;
use seedling_api::{ConfigMap, Files};
use seedling_cluster::follow::{Selection, follow};
use seedling_types::Inventory;
use seedling_types::names::{INVENTORY_CONFIGMAP, NS_CONFIG};
use thiserror::Error;
use tokio::sync::watch;

#[derive(Debug, Error)]
pub enum InventoryError {
    #[error("ConfigMap {NS_CONFIG}/{INVENTORY_CONFIGMAP}: {0}")]
    Unusable(String),
}

/// Waits until it is there: an operator may be quicker than the manifests it lives on.
pub async fn wait(client: &Client) -> Inventory {
    let mut followed = follow::<ConfigMap>(client, Selection::one(Some(NS_CONFIG), INVENTORY_CONFIGMAP));
    loop {
        match followed.next().await.one().map(|map| parse(&map)) {
            Some(Ok(inventory)) => return inventory,
            Some(Err(e)) => tracing::warn!("{e}"),
            None => tracing::info!("waiting for ConfigMap {NS_CONFIG}/{INVENTORY_CONFIGMAP}"),
        }
    }
}

/// As it is now, and as it changes; a broken one is not taken over.
pub async fn keep(client: &Client) -> watch::Receiver<Inventory> {
    let (sender, receiver) = watch::channel(wait(client).await);
    let mut followed = follow::<ConfigMap>(client, Selection::one(Some(NS_CONFIG), INVENTORY_CONFIGMAP));
    tokio::spawn(async move {
        while !sender.is_closed() {
            match followed.next().await.one().map(|map| parse(&map)) {
                Some(Ok(inventory)) => drop(sender.send_replace(inventory)),
                Some(Err(e)) => tracing::warn!("{e}"),
                None => {}
            }
        }
    });
    receiver
}

pub fn parse(config_map: &ConfigMap) -> Result<Inventory, InventoryError> {
    let text = config_map
        .file("hosts.yaml")
        .ok_or_else(|| InventoryError::Unusable("it has no hosts.yaml".into()))?;
    Inventory::parse(text).map_err(|errors| {
        let all: Vec<_> = errors.iter().map(ToString::to_string).collect();
        InventoryError::Unusable(all.join("; "))
    })
}
