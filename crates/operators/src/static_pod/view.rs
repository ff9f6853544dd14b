//! What is seen of the masters and their pods: by watches, or by asking the API.

use super::Names;
use super::decide::{Installer, NodeView, Static};
use crate::Result;
use crate::runtime::Inputs;
use kube::Client;
use seedling_api::operator::StaticPodStatus;
use seedling_api::{Conditions, Meta, Node, Pod, StaticPodOperator};
use seedling_cluster::follow::{Followed, Selection, follow};
use seedling_cluster::{Cache, Kind, list};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) struct View {
    pub masters: Vec<String>,
    pub pods: BTreeMap<String, Arc<Pod>>,
    /// Why all are to be installed again; another reason is another revision.
    pub reason: String,
    /// What the operator's settings say of each master.
    pub recorded: StaticPodStatus,
}

impl View {
    /// Masters and pods as the API has them at this moment.
    pub(super) async fn now(&self, client: &Client, names: &Names) -> Result<Self> {
        let nodes = list::<Node>(client, None, "").await?;
        let pods = list::<Pod>(client, Some(names.namespace), "").await?;
        let pods = pods.into_iter().map(|p| (p.name().to_string(), Arc::new(p))).collect();
        let (reason, recorded) = (self.reason.clone(), self.recorded.clone());
        Ok(Self { masters: masters(nodes.iter()), pods, reason, recorded })
    }
}

pub(super) struct Watched<K> {
    nodes: Followed<Node>,
    pods: Followed<Pod>,
    settings: Followed<K>,
}

impl<K: Kind + StaticPodOperator> Watched<K> {
    pub(super) fn start(client: &Client, names: &Names) -> Self {
        Self {
            nodes: follow(client, Selection::all()),
            pods: follow(client, Selection::within(names.namespace)),
            settings: follow(client, Selection::one(None, "cluster")),
        }
    }

    pub(super) fn inputs(&self, cache: &Cache) -> Inputs {
        Inputs::default().needs(&self.nodes).needs(&self.pods).needs(&self.settings).caches(cache)
    }

    /// Nothing, as long as there are no settings.
    pub(super) fn view(&self) -> Option<View> {
        let (nodes, pods, settings) = (self.nodes.now(), self.pods.now(), self.settings.one()?);
        let pods = pods.objects.into_values().map(|p| (p.name().to_string(), p)).collect();
        let masters = masters(nodes.objects.values().map(|node| &**node));
        let (reason, recorded) = (settings.spec().force_redeployment_reason, settings.status());
        Some(View { masters, pods, reason, recorded })
    }
}

fn masters<'a>(nodes: impl Iterator<Item = &'a Node>) -> Vec<String> {
    let masters = nodes.filter(|n| n.label("node-role.kubernetes.io/master").is_some());
    masters.map(|n| n.name().to_string()).collect()
}

pub(super) fn node_view(names: &Names, view: &View, node: &str) -> NodeView {
    let current = view.recorded.of_node(node).map_or(0, |recorded| recorded.current());
    let running = view.pods.get(&format!("{}-{node}", names.pod)).map(|pod| Static {
        revision: pod.label("revision").and_then(|r| r.parse().ok()).unwrap_or(0),
        ready: pod.is("Ready"),
    });
    let installers = view.pods.values().filter_map(|pod| installer_view(pod, node)).collect();
    NodeView { name: node.into(), current, running, installers, broken: false }
}

/// Its kubelet has started it several times, and waits longer each time.
pub(super) fn crashes(names: &Names, view: &View, node: &str) -> bool {
    let pod = view.pods.get(&format!("{}-{node}", names.pod));
    pod.is_some_and(|pod| {
        let mut waiting = pod.containers().iter().filter_map(|container| container.state.waiting.as_ref());
        waiting.any(|waiting| waiting.reason.as_deref() == Some("CrashLoopBackOff"))
    })
}

fn installer_view(pod: &Pod, node: &str) -> Option<Installer> {
    if pod.label("app")? != "installer" || pod.spec.as_ref()?.node_name.as_deref() != Some(node) {
        return None;
    }
    let number = |label: &str| pod.label(label)?.parse::<i64>().ok();
    let ended = |phase: &str| pod.phase() == phase;
    Some(Installer {
        pod: pod.name().into(),
        revision: number("revision")?,
        retry: number("retry").unwrap_or(0),
        failed: ended("Failed"),
        done: ended("Succeeded"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn only_what_its_kubelet_gives_up_on_crashes() {
        let names = crate::kube_scheduler::NAMES;
        let view = |state: Value| {
            let container = |state: Value| json!({"name": "c", "state": state});
            let pod = json!({"metadata": {}, "status": {"containerStatuses": [container(json!({"running": {}})), container(state)]}});
            let pod = serde_json::from_value(pod).unwrap_or_else(|e| panic!("{e}"));
            let pods = BTreeMap::from([(format!("{}-master-1", names.pod), Arc::new(pod))]);
            View { masters: vec![], pods, reason: String::new(), recorded: StaticPodStatus::default() }
        };
        let waiting = |reason: &str| view(json!({"waiting": {"reason": reason}}));
        assert!(crashes(&names, &waiting("CrashLoopBackOff"), "master-1"));
        assert!(!crashes(&names, &waiting("CrashLoopBackOff"), "master-0"), "another master's");
        assert!(!crashes(&names, &waiting("ContainerCreating"), "master-1"));
        assert!(!crashes(&names, &view(json!({"terminated": {"reason": "Error"}})), "master-1"));
    }
}
