//! The common course of the network and DNS operators: read the config, apply the objects, follow the nodes' reports, tell.

use super::decide::decide;
use super::reports::{Views, follow_reports};
use anyhow::Context;
use ipnet::Ipv4Net;
use kube::Client;
use seedling_api::config::NetworkSpec;
use seedling_api::{DaemonSet, Infrastructure, Meta, Network};
use seedling_cluster::follow::{Followed, Selection, follow};
use seedling_cluster::operator_status::{Report, related_namespace, report, said_available};
use seedling_cluster::{Cache, ClusterError, apply, apply_status, manifest};
use seedling_types::node_report::{NodeReport, Probed};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Everything is applied again this often, for changes that no watch shows.
const RECONCILE: Duration = Duration::from_secs(180);
/// After a failed apply; a namespace may just be on its way.
const RETRY: Duration = Duration::from_millis(500);
/// Reports closer than this are told together.
const COALESCE: Duration = Duration::from_millis(100);

/// What both operators read from the cluster's config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClusterNetwork {
    pub cluster_network: Ipv4Net,
    pub service_network: Ipv4Net,
    pub api_host: String,
    pub api_port: u16,
    /// Network's, as it was written.
    pub spec: NetworkSpec,
}

impl ClusterNetwork {
    fn of(network: &Network, infrastructure: &Infrastructure) -> Option<Self> {
        let url = infrastructure.status.as_ref()?.api_server_internal_uri.strip_prefix("https://")?;
        let (host, port) = url.rsplit_once(':')?;
        let spec = network.spec.as_ref()?;
        Some(Self {
            cluster_network: spec.cluster_network.first()?.cidr.parse().ok()?,
            service_network: spec.service_network.first()?.parse().ok()?,
            api_host: host.into(),
            api_port: port.parse().ok()?,
            spec: spec.clone(),
        })
    }
}

pub(crate) struct Part<'a> {
    /// Of the ClusterOperator.
    pub name: &'static str,
    /// Of the payload.
    pub version: &'a str,
    pub namespace: &'static str,
    pub daemon_sets: &'a [&'static str],
    pub objects: &'a (dyn Fn(&ClusterNetwork) -> Vec<Value> + Sync),
    pub subject: fn(&ClusterNetwork) -> String,
    pub probed: fn(&NodeReport) -> &Probed,
    /// A config object whose status is this operator's to write, with it.
    pub status: fn(&ClusterNetwork, &Views) -> Option<Network>,
}

pub(crate) fn variable(name: &str) -> anyhow::Result<String> {
    std::env::var(name).with_context(|| format!("{name} is not set"))
}

impl Part<'_> {
    pub async fn run(&self, client: Client) -> anyhow::Result<()> {
        let network = follow(&client, Selection::one(None, "cluster"));
        let infrastructure = follow(&client, Selection::one(None, "cluster"));
        let config = cluster_network(network, infrastructure).await;
        let views = watch::Sender::new(Views::new());
        let applied = watch::Sender::new(Err("not applied yet".to_string()));
        tokio::select! {
            () = self.keep_applied(&client, &config, &applied) => {}
            () = follow_reports(&client, &views) => {}
            () = self.tell(&client, &config, views.subscribe(), applied.subscribe()) => {}
        }
        Ok(())
    }

    /// Applied at the start, when a DaemonSet of ours is missing or changed, and from time to time.
    async fn keep_applied(
        &self,
        client: &Client,
        config: &ClusterNetwork,
        applied: &watch::Sender<Result<(), String>>,
    ) {
        let mut daemon_sets = follow::<DaemonSet>(client, Selection::within(self.namespace));
        loop {
            let ours = match self.apply_all(client, config).await {
                Ok(generations) => generations,
                Err(e) => {
                    tracing::warn!("{e}");
                    applied.send_modify(|a| *a = Err(e.to_string()));
                    tokio::time::sleep(RETRY).await;
                    continue;
                }
            };
            applied.send_if_modified(|a| std::mem::replace(a, Ok(())) != Ok(()));
            let drift = async {
                loop {
                    let seen = daemon_sets.next().await;
                    if seen.synced && self.drifted(&ours, &seen.objects) {
                        return;
                    }
                }
            };
            let _ = tokio::time::timeout(RECONCILE, drift).await;
        }
    }

    /// Generations of our DaemonSets after the apply.
    async fn apply_all(
        &self,
        client: &Client,
        config: &ClusterNetwork,
    ) -> Result<BTreeMap<String, i64>, ClusterError> {
        let manager = format!("{}-operator", self.name);
        let mut generations = BTreeMap::new();
        for object in (self.objects)(config) {
            let live = manifest::apply(client, &manager, &object).await?;
            if live["kind"] == "DaemonSet" {
                let name = live["metadata"]["name"].as_str().unwrap_or_default();
                generations.insert(name.into(), live["metadata"]["generation"].as_i64().unwrap_or(0));
            }
        }
        Ok(generations)
    }

    fn drifted(&self, ours: &BTreeMap<String, i64>, seen: &BTreeMap<String, Arc<DaemonSet>>) -> bool {
        self.daemon_sets.iter().any(|name| match seen.get(&format!("{}/{name}", self.namespace)) {
            None => true,
            Some(live) => live.generation() > ours.get(*name).copied(),
        })
    }

    async fn tell(
        &self,
        client: &Client,
        config: &ClusterNetwork,
        mut views: watch::Receiver<Views>,
        mut applied: watch::Receiver<Result<(), String>>,
    ) {
        let cache = Cache::new(client);
        let mut was_available = None;
        let mut written = None;
        loop {
            let was = match was_available {
                Some(was) => was,
                None => match said_available(&cache, self.name).await {
                    Ok(was) => was,
                    Err(e) => {
                        tracing::warn!("{e}");
                        tokio::time::sleep(RETRY).await;
                        continue;
                    }
                },
            };
            let done = applied.borrow_and_update().clone();
            let subject = (self.subject)(config);
            let done = done.as_ref().map(|_| ()).map_err(String::as_str);
            let verdict = decide(&subject, &views.borrow_and_update(), self.probed, was, done);
            was_available = Some(verdict.available.status);
            let told = Report {
                name: self.name.into(),
                available: verdict.available,
                progressing: verdict.progressing,
                degraded: verdict.degraded,
                version: self.version.into(),
                related: vec![related_namespace(self.namespace)],
            };
            if let Err(e) = report(&cache, &told).await {
                tracing::warn!("{e}");
                tokio::time::sleep(RETRY).await;
                continue;
            }
            let status = (self.status)(config, &views.borrow());
            if let Some(object) = status.filter(|object| written.as_ref() != Some(object)) {
                match self.write_status(client, &object).await {
                    Ok(()) => written = Some(object),
                    Err(e) => {
                        tracing::warn!("{e}");
                        tokio::time::sleep(RETRY).await;
                        continue;
                    }
                }
            }
            tokio::select! {
                _ = views.changed() => {}
                _ = applied.changed() => {}
            }
            tokio::time::sleep(COALESCE).await;
        }
    }
}

impl Part<'_> {
    /// Some config kinds have a status of its own address, for others it is a part like any other.
    async fn write_status(&self, client: &Client, object: &Network) -> Result<(), ClusterError> {
        let manager = format!("{}-operator", self.name);
        match apply_status(client, &manager, object).await {
            Err(e) if e.is_not_found() => apply(client, &manager, object).await.map(drop),
            done => done.map(drop),
        }
    }
}

async fn cluster_network(
    mut network: Followed<Network>,
    mut infrastructure: Followed<Infrastructure>,
) -> ClusterNetwork {
    let mut said = false;
    loop {
        if let (Some(network), Some(infrastructure)) = (network.one(), infrastructure.one())
            && let Some(found) = ClusterNetwork::of(&network, &infrastructure)
        {
            return found;
        }
        if !std::mem::replace(&mut said, true) {
            tracing::info!("waiting for Network and Infrastructure cluster");
        }
        tokio::select! {
            _ = network.next() => {}
            _ = infrastructure.next() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reads_the_clusters_config() {
        let network = json!({"metadata": {}, "spec": {
            "clusterNetwork": [{"cidr": "10.128.0.0/14", "hostPrefix": 23}], "serviceNetwork": ["172.30.0.0/16"],
        }});
        let network: Network = serde_json::from_value(network).unwrap_or_default();
        let infrastructure = json!({"metadata": {}, "status": {"apiServerInternalURI": "https://api-int.ocp4.example.com:6443"}});
        let infrastructure = serde_json::from_value(infrastructure).unwrap_or_default();
        let found = ClusterNetwork::of(&network, &infrastructure);
        let found = found
            .map(|n| (n.cluster_network.to_string(), n.service_network.to_string(), n.api_host, n.api_port));
        let expected =
            ("10.128.0.0/14".into(), "172.30.0.0/16".into(), "api-int.ocp4.example.com".into(), 6443);
        assert_eq!(found, Some(expected));
        assert_eq!(ClusterNetwork::of(&network, &Infrastructure::default()), None);
    }
}
