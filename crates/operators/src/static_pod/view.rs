//! What is seen of the masters and their pods: told by watches, or asked for.

use super::decide::{Installer, NodeView, Static};
use super::{Names, is_ready, name};
use anyhow::Result;
use kube::Client;
use seedling_cluster::follow::{Followed, Selection, follow};
use seedling_cluster::{Cache, list};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

pub struct View {
    pub masters: Vec<String>,
    pub pods: BTreeMap<String, Value>,
    pub settings: Value,
}

impl View {
    /// Masters and pods as the API has them at this moment.
    pub async fn now(&self, client: &Client, names: &Names) -> Result<Self> {
        let nodes = list(client, "v1", "Node", None, "").await?;
        let pods = list(client, "v1", "Pod", Some(names.namespace), "").await?;
        let pods = pods.into_iter().map(|p| (name(&p).to_string(), p)).collect();
        Ok(Self { masters: masters(nodes.iter()), pods, settings: self.settings.clone() })
    }
}

pub struct Watched {
    nodes: Followed,
    pods: Followed,
    settings: Followed,
}

impl Watched {
    pub fn start(client: &Client, names: &Names) -> Self {
        let pods = Selection { namespace: Some(names.namespace.into()), ..Selection::all("v1", "Pod") };
        Self {
            nodes: follow(client, Selection::all("v1", "Node")),
            pods: follow(client, pods),
            settings: follow(client, Selection::one("operator.openshift.io/v1", names.kind, None, "cluster")),
        }
    }

    pub fn view(&self) -> Option<View> {
        let (nodes, pods, settings) = (self.nodes.now(), self.pods.now(), self.settings.now());
        if !(nodes.synced && pods.synced && settings.synced) {
            return None;
        }
        let settings = settings.objects.into_values().next()?;
        let pods = pods.objects.into_values().map(|p| (name(&p).to_string(), p)).collect();
        Some(View { masters: masters(nodes.objects.values()), pods, settings })
    }

    pub async fn changed(&mut self, cache: &Cache, at_most: Duration) {
        let changed = async {
            tokio::select! {
                _ = self.nodes.next() => {}
                _ = self.pods.next() => {}
                _ = self.settings.next() => {}
                () = cache.changed(at_most) => {}
            }
        };
        let _ = tokio::time::timeout(at_most, changed).await;
    }
}

fn masters<'a>(nodes: impl Iterator<Item = &'a Value>) -> Vec<String> {
    let is_master = |n: &&Value| n.pointer("/metadata/labels/node-role.kubernetes.io~1master").is_some();
    nodes.filter(is_master).map(|n| name(n).to_string()).collect()
}

pub fn node_view(names: &Names, view: &View, node: &str) -> NodeView {
    let recorded = view.settings["status"]["nodeStatuses"].as_array().into_iter().flatten();
    let recorded = recorded.into_iter().find(|n| n["nodeName"] == node);
    let current = recorded.and_then(|n| n["currentRevision"].as_i64()).unwrap_or(0);
    let running = view.pods.get(&format!("{}-{node}", names.pod)).map(|pod| Static {
        revision: pod
            .pointer("/metadata/labels/revision")
            .and_then(Value::as_str)
            .and_then(|r| r.parse().ok())
            .unwrap_or(0),
        ready: is_ready(pod),
    });
    let installers = view.pods.values().filter_map(|pod| installer_view(pod, node)).collect();
    NodeView { name: node.into(), current, running, installers, broken: false }
}

/// Its kubelet has started it several times, and waits longer each time.
pub fn crashes(names: &Names, view: &View, node: &str) -> bool {
    let pod = view.pods.get(&format!("{}-{node}", names.pod));
    let containers = pod.and_then(|pod| pod["status"]["containerStatuses"].as_array()).into_iter().flatten();
    containers
        .map(|c| c.pointer("/state/waiting/reason"))
        .any(|reason| reason.is_some_and(|r| r == "CrashLoopBackOff"))
}

fn installer_view(pod: &Value, node: &str) -> Option<Installer> {
    if pod.pointer("/metadata/labels/app")? != "installer" || pod["spec"]["nodeName"] != node {
        return None;
    }
    let number =
        |label: &str| pod.pointer(&format!("/metadata/labels/{label}"))?.as_str()?.parse::<i64>().ok();
    let ended = |phase: &str| pod["status"]["phase"] == phase;
    Some(Installer {
        pod: name(pod).into(),
        revision: number("revision")?,
        retry: number("retry").unwrap_or(0),
        failed: ended("Failed"),
        done: ended("Succeeded"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_its_kubelet_gives_up_on_crashes() {
        let names = crate::kube_scheduler::NAMES;
        let view = |state: Value| {
            let pod =
                json!({"status": {"containerStatuses": [{"state": {"running": {}}}, {"state": state}]}});
            let pods = BTreeMap::from([(format!("{}-master-1", names.pod), pod)]);
            View { masters: vec![], pods, settings: Value::Null }
        };
        let waiting = |reason: &str| view(json!({"waiting": {"reason": reason}}));
        assert!(crashes(&names, &waiting("CrashLoopBackOff"), "master-1"));
        assert!(!crashes(&names, &waiting("CrashLoopBackOff"), "master-0"), "another master's");
        assert!(!crashes(&names, &waiting("ContainerCreating"), "master-1"));
        assert!(!crashes(&names, &view(json!({"terminated": {"reason": "Error"}})), "master-1"));
    }
}
