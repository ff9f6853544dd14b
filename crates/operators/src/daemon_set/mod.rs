//! Operators that keep a few objects, DaemonSets among them, and prove from every node that what these do works.
//!
//! In: a row (`rows.rs`), Network and Infrastructure `cluster`, the nodes' reports. Out: the row's objects, applied and kept; its
//! ClusterOperator, which is available only when what the row asks for answered on every node.

mod decide;
mod reports;
mod rows;

pub use rows::{DNS, NETWORK};

use crate::Result;
use crate::error::variable;
use crate::runtime::{Context, Inputs, Next, Pace, Status};
use decide::decide;
use ipnet::IpNet;
use kube::Client;
use reports::{Views, follow_reports};
use seedling_api::config::NetworkSpec;
use seedling_api::{DaemonSet, Infrastructure, Meta, Network};
use seedling_cluster::follow::{Followed, Selection, follow};
use seedling_cluster::operator_status::related_namespace;
use seedling_cluster::{Cache, ClusterError, apply, apply_status, manifest};
use seedling_components::cluster_config::one_a_family;
use seedling_types::node_report::{NodeReport, Probed};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Everything is applied again this often, for changes that no watch shows.
const RECONCILE: Duration = Duration::from_secs(180);

/// What the templates read from the cluster's config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClusterNetwork {
    /// The first of each family.
    pub cluster_networks: Vec<IpNet>,
    pub service_networks: Vec<IpNet>,
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
        let networks = |texts: Vec<&str>| -> Option<Vec<IpNet>> {
            let networks = texts.iter().map(|text| text.parse().ok()).collect::<Option<Vec<IpNet>>>()?;
            Some(one_a_family(networks, |network| *network)).filter(|networks| !networks.is_empty())
        };
        Some(Self {
            cluster_networks: networks(
                spec.cluster_network.iter().map(|entry| entry.cidr.as_str()).collect(),
            )?,
            service_networks: networks(spec.service_network.iter().map(String::as_str).collect())?,
            api_host: host.into(),
            api_port: port.parse().ok()?,
            spec: spec.clone(),
        })
    }
}

/// What the Deployment gives: the payload's version and pull specs, by environment variable.
pub type Given = fn(&str) -> Result<String>;

/// All that one of these operators is.
pub struct Row {
    /// Of the ClusterOperator.
    name: &'static str,
    namespace: &'static str,
    daemon_sets: &'static [&'static str],
    /// The objects, in the order in which they are applied.
    template: fn(&ClusterNetwork, Given) -> Result<Vec<Value>>,
    /// What the nodes ask for, in words, and where their reports have the answer.
    subject: fn(&ClusterNetwork) -> String,
    probed: fn(&NodeReport) -> &Probed,
    /// A config object whose status is this operator's to write, with it.
    status: fn(&ClusterNetwork, &Views) -> Option<Network>,
}

pub async fn run(context: Context, row: &'static Row) -> Result<()> {
    operate(context, row, variable).await
}

pub async fn operate(context: Context, row: &'static Row, given: Given) -> Result<()> {
    let (client, version) = (&context.client, given("RELEASE_VERSION")?);
    let network = follow::<Network>(client, Selection::one(None, "cluster"));
    let infrastructure = follow::<Infrastructure>(client, Selection::one(None, "cluster"));
    let (views, reports) = watch::channel(Views::new());
    let daemon_sets = follow(client, Selection::within(row.namespace));
    let mut kept =
        Kept { client, row, manager: format!("{}-operator", row.name), daemon_sets, applied: None };
    let related = vec![related_namespace(row.namespace)];
    let mut status = Status::new(Cache::new(client), row.name, &version, related);
    // As it was first seen: another network under running pods is more than an apply.
    let (mut config, mut written) = (None, None);
    let inputs = Inputs::default().needs(&network).needs(&infrastructure).hears("reports", &reports);
    // Whether they may be watched is only certain once their namespace has been applied.
    let inputs = inputs.watches(&kept.daemon_sets);
    let keeping = context.reconcile(row.name, Pace::DAEMON_SET, inputs, async |_| {
        if let (None, Some(network), Some(infrastructure)) = (&config, network.one(), infrastructure.one()) {
            config = ClusterNetwork::of(&network, &infrastructure);
        }
        let Some(config) = &config else { return Ok(Next::Waits("Network and Infrastructure cluster")) };
        let applied = kept.keep(config, given).await;
        let views = reports.borrow().clone();
        let (subject, was_available) = ((row.subject)(config), status.was_available().await?);
        let failure = applied.as_ref().err();
        let verdict = decide(&subject, &views, row.probed, was_available, failure);
        status.report(verdict.available, verdict.progressing, verdict.degraded).await?;
        let object = (row.status)(config, &views);
        if let Some(object) = object.filter(|object| written.as_ref() != Some(object)) {
            write_status(client, &kept.manager, &object).await?;
            written = Some(object);
        }
        applied.map(|()| Next::Quiet)
    });
    tokio::select! {
        () = keeping => {}
        () = follow_reports(client, &views) => {}
    }
    Ok(())
}

type Generations = BTreeMap<String, i64>;

/// The objects of a row: applied at the start, when a DaemonSet among them is missing or changed, and from time to time.
struct Kept<'a> {
    client: &'a Client,
    row: &'static Row,
    manager: String,
    daemon_sets: Followed<DaemonSet>,
    /// When, and the generations that our DaemonSets had then.
    applied: Option<(Instant, Generations)>,
}

impl Kept<'_> {
    async fn keep(&mut self, config: &ClusterNetwork, given: Given) -> Result<()> {
        let news = self.daemon_sets.state.has_changed().unwrap_or(false);
        let is_as_applied = self.applied.as_ref().is_some_and(|(at, ours)| {
            let seen = self.daemon_sets.state.borrow_and_update();
            at.elapsed() < RECONCILE && !(news && seen.synced && drifted(self.row, ours, &seen.objects))
        });
        if is_as_applied {
            return Ok(());
        }
        self.applied = None;
        let mut generations = Generations::new();
        for object in (self.row.template)(config, given)? {
            let live = manifest::apply(self.client, &self.manager, &object).await?;
            if live["kind"] == "DaemonSet" {
                let name = live["metadata"]["name"].as_str().unwrap_or_default();
                generations.insert(name.into(), live["metadata"]["generation"].as_i64().unwrap_or(0));
            }
        }
        self.applied = Some((Instant::now(), generations));
        Ok(())
    }
}

fn drifted(row: &Row, ours: &Generations, seen: &BTreeMap<String, Arc<DaemonSet>>) -> bool {
    row.daemon_sets.iter().any(|name| match seen.get(&format!("{}/{name}", row.namespace)) {
        None => true,
        Some(live) => live.generation() > ours.get(*name).copied(),
    })
}

/// Some config kinds have a status of its own address, for others it is a part like any other.
async fn write_status(client: &Client, manager: &str, object: &Network) -> Result<(), ClusterError> {
    match apply_status(client, manager, object).await {
        Err(e) if e.is_not_found() => apply(client, manager, object).await.map(drop),
        done => done.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use seedling_components::cluster_config::joined;
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
        let found =
            found.map(|n| (joined(&n.cluster_networks), joined(&n.service_networks), n.api_host, n.api_port));
        let expected =
            ("10.128.0.0/14".into(), "172.30.0.0/16".into(), "api-int.ocp4.example.com".into(), 6443);
        assert_eq!(found, Some(expected));
        assert_eq!(ClusterNetwork::of(&network, &Infrastructure::default()), None);
    }

    #[test]
    fn what_is_gone_or_changed_has_drifted() {
        let ours = Generations::from([("dns-default".to_string(), 2)]);
        for (name, generation, want) in [
            ("dns-default", 2, false),
            ("dns-default", 1, false),
            ("dns-default", 3, true),
            ("other", 2, true),
        ] {
            let live = json!({"metadata": {"name": name, "generation": generation}});
            let live = serde_json::from_value(live).unwrap_or_else(|e| panic!("{e}"));
            let seen = BTreeMap::from([(format!("openshift-dns/{name}"), Arc::new(live))]);
            assert_eq!(drifted(&DNS, &ours, &seen), want, "{name} {generation}");
        }
    }
}
