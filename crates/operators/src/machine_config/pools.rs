//! Pools: each has its MachineConfigs rendered, and counts the Nodes that run the result.

use super::nodes::Wanted;
use super::{MANAGER, Rendered};
use crate::runtime::{Context, Inputs, Next, Pace};
use crate::{OperatorError, Result};
use kube::Client;
use seedling_api::{Conditions, ControllerConfig, MachineConfigPool, Meta, Node, named, now};
use seedling_cluster::follow::{Selection, follow};
use seedling_cluster::{Kind, apply, apply_status, manifest};
use seedling_components::machine_config::{
    API_VERSION, CONTROLLER_CONFIG, CURRENT_CONFIG, MachineConfig, STATE, pool, render, selected,
    with_configuration,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;

const BUILT_IN: [&str; 2] = ["master", "worker"];

/// Renders again whenever a pool, a MachineConfig, the ControllerConfig or a Node changes.
pub(super) async fn keep_rendered(
    context: &Context,
    version: &str,
    wanted: &watch::Sender<Wanted>,
    rendered: &watch::Sender<Rendered>,
) {
    let client = &context.client;
    let pools = follow::<MachineConfigPool>(client, Selection::all());
    let configs = follow::<seedling_api::MachineConfig>(client, Selection::all());
    let controller = follow::<ControllerConfig>(client, Selection::one(None, CONTROLLER_CONFIG));
    let nodes = follow::<Node>(client, Selection::all());
    let inputs = Inputs::default().needs(&pools).needs(&configs).needs(&controller).needs(&nodes);
    let say = |result: &Rendered| {
        let text = |result: &Rendered| result.as_ref().err().map(ToString::to_string);
        rendered.send_if_modified(|was| text(&std::mem::replace(was, result.clone())) != text(result))
    };
    let rendering = context.reconcile("machine-config/pools", Pace::USUAL, inputs, async |_| {
        let Some(controller) = controller.one() else {
            let text = format!("waiting for ControllerConfig {CONTROLLER_CONFIG}");
            say(&Err(Arc::new(OperatorError::Waits(text))));
            return Ok(Next::Waits("the ControllerConfig"));
        };
        let sources = machine_configs(&configs.now().objects);
        let nodes = nodes.now().objects.into_values().collect();
        let world = World { client, version, controller: value(&*controller), sources, nodes };
        let pools = pools.now().objects;
        let pools = pools.iter().map(|(name, pool)| (name.clone(), value(&**pool))).collect();
        let result = world.sync(&pools, wanted).await.map_err(Arc::new);
        say(&result);
        result?;
        Ok(Next::Quiet)
    });
    rendering.await
}

/// As people and the payload wrote it.
fn value<K: Kind>(object: &K) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}

fn machine_configs(objects: &BTreeMap<String, Arc<seedling_api::MachineConfig>>) -> Vec<MachineConfig> {
    let read = |(name, object): (&String, &Arc<_>)| match serde_json::from_value(value(&**object)) {
        Ok(config) => Some(config),
        Err(e) => {
            tracing::warn!("MachineConfig {name}: {e}");
            None
        }
    };
    objects.iter().filter_map(read).collect()
}

struct World<'a> {
    client: &'a Client,
    version: &'a str,
    controller: Value,
    sources: Vec<MachineConfig>,
    nodes: Vec<Arc<Node>>,
}

impl World<'_> {
    async fn sync(&self, pools: &BTreeMap<String, Value>, wanted: &watch::Sender<Wanted>) -> Result<()> {
        for name in BUILT_IN.iter().filter(|n| !pools.contains_key(**n)) {
            manifest::create_if_missing(self.client, &pool(name)).await?;
        }
        let mut names = BTreeMap::new();
        for (name, live) in pools {
            names.insert(name.clone(), self.sync_pool(live).await?);
        }
        wanted.send_if_modified(|w| {
            let changed = w.rendered != names;
            w.rendered = names;
            changed
        });
        Ok(())
    }

    async fn sync_pool(&self, live: &Value) -> Result<String> {
        let rendered = render(live, &self.sources, &self.controller, self.version)?;
        let name = rendered.metadata.name.clone();
        if !self.sources.iter().any(|mc| mc.metadata.name == name) {
            let mut object = rendered.to_value();
            object["metadata"]["ownerReferences"] = json!([{
                "apiVersion": API_VERSION, "kind": "MachineConfigPool", "controller": true, "blockOwnerDeletion": true,
                "name": live["metadata"]["name"], "uid": live["metadata"]["uid"],
            }]);
            if manifest::create_if_missing(self.client, &object).await? {
                tracing::info!("rendered {name}");
            }
        }
        let metadata = || named(live["metadata"]["name"].as_str().unwrap_or_default());
        let full = with_configuration(json!({}), &name, &selected(live, &self.sources));
        if live["spec"]["configuration"] != full["spec"]["configuration"] {
            let spec = Some(full["spec"].clone());
            apply(self.client, MANAGER, &MachineConfigPool { metadata: metadata(), spec, status: None })
                .await?;
        }
        let status = status(live, &full["status"]["configuration"], self.nodes.iter().map(|node| &**node));
        if live["status"] != status {
            let told = MachineConfigPool { metadata: metadata(), spec: None, status: Some(status) };
            apply_status(self.client, MANAGER, &told).await?;
        }
        Ok(name)
    }
}

/// A machine is updated when it runs the rendered config, ready when it is Ready besides.
fn status<'a>(pool: &Value, configuration: &Value, nodes: impl Iterator<Item = &'a Node>) -> Value {
    let name = pool["metadata"]["name"].as_str().unwrap_or_default();
    let goal = configuration["name"].as_str().unwrap_or_default();
    let members: Vec<_> = nodes.filter(|n| belongs(n, name, pool)).collect();
    let updated =
        |n: &&&Node| n.annotation(CURRENT_CONFIG) == Some(goal) && n.annotation(STATE) == Some("Done");
    let ready = |n: &&&Node| n.is("Ready");
    let updated_count = members.iter().filter(updated).count();
    let ready_count = members.iter().filter(|n| updated(n) && ready(n)).count();
    let unavailable = members.iter().filter(|n| !ready(n)).count();
    let all = updated_count == members.len();
    let condition = |kind: &str, holds: bool, message: String| {
        let value = if holds { "True" } else { "False" };
        let before = pool["status"]["conditions"].as_array();
        let same = before.into_iter().flatten().find(|c| c["type"] == kind && c["status"] == value);
        let since = same.map(|c| c["lastTransitionTime"].clone()).unwrap_or_else(|| json!(now()));
        json!({"type": kind, "status": value, "reason": "", "message": message, "lastTransitionTime": since})
    };
    json!({
        "conditions": [
            condition("Updated", all, if all { format!("All nodes are updated with {goal}") } else { String::new() }),
            condition("Updating", !all, if all { String::new() } else { format!("All nodes are updating to {goal}") }),
            condition("NodeDegraded", false, String::new()),
            condition("RenderDegraded", false, String::new()),
            condition("Degraded", false, String::new()),
        ],
        "configuration": configuration,
        "degradedMachineCount": 0,
        "machineCount": members.len(),
        "observedGeneration": pool["metadata"]["generation"],
        "readyMachineCount": ready_count,
        "unavailableMachineCount": unavailable,
        "updatedMachineCount": updated_count,
    })
}

/// A master is never a machine of another pool, whatever labels it wears besides.
fn belongs(node: &Node, name: &str, pool: &Value) -> bool {
    let master = node.label("node-role.kubernetes.io/master").is_some();
    let selector = pool["spec"]["nodeSelector"]["matchLabels"].as_object();
    let selected = selector
        .is_some_and(|s| !s.is_empty() && s.iter().all(|(key, value)| node.label(key) == value.as_str()));
    selected && master == (name == "master")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(roles: &[&str], current: &str, ready: &str) -> Node {
        let labels: serde_json::Map<_, _> =
            roles.iter().map(|r| (format!("node-role.kubernetes.io/{r}"), json!(""))).collect();
        let node = json!({
            "metadata": {"labels": labels, "annotations": {CURRENT_CONFIG: current, STATE: "Done"}},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        });
        serde_json::from_value(node).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn counts_its_own_machines() {
        let nodes = [
            node(&["master", "worker"], "new", "True"),
            node(&["master", "worker"], "old", "True"),
            node(&["master", "worker"], "new", "False"),
            node(&["worker"], "w", "True"),
        ];
        let counts = |name: &str, goal: &str| {
            let status = status(&pool(name), &json!({"name": goal}), nodes.iter());
            ["machineCount", "updatedMachineCount", "readyMachineCount", "unavailableMachineCount"]
                .map(|c| status[c].as_u64().unwrap_or(99))
        };
        assert_eq!(counts("master", "new"), [3, 2, 1, 1]);
        assert_eq!(counts("worker", "w"), [1, 1, 1, 0]);
    }

    #[test]
    fn a_status_is_stable() {
        let mut pool = pool("master");
        pool["metadata"]["generation"] = json!(1);
        let (configuration, nodes) = (json!({"name": "new"}), [node(&["master"], "new", "True")]);
        let first = status(&pool, &configuration, nodes.iter());
        pool["status"] = first.clone();
        pool["status"]["conditions"][0]["lastTransitionTime"] = json!("2020-01-01T00:00:00Z");
        let second = status(&pool, &configuration, nodes.iter());
        assert_eq!(second["conditions"][0]["lastTransitionTime"], "2020-01-01T00:00:00Z");
        assert_eq!(second["machineCount"], first["machineCount"]);
    }
}
