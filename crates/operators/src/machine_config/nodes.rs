//! Labels of Nodes for their roles in the inventory, the taint of masters, and which config each Node has.
//!
//! A kubelet may not set its own role, and operators wait for the master label: so this runs from the first Node on, in
//! bootkube, until the operator takes over.

use super::MANAGER;
use crate::OperatorError;
use crate::runtime::{Context, Inputs, Next, Pace};
use k8s_openapi::api::core::v1::Taint;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use seedling_api::{Meta, Node};
use seedling_cluster::follow::{Selection, follow};
use seedling_components::machine_config::{CURRENT_CONFIG, DESIRED_CONFIG, STATE};
use seedling_types::{Host, Inventory, Role};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use tokio::sync::watch;

const MASTER: &str = "node-role.kubernetes.io/master";
const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
const WORKER: &str = "node-role.kubernetes.io/worker";

/// What is known beside the inventory; nothing of it on the bootstrap node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Scheduler `cluster`: whether masters take everybody's pods.
    pub masters_schedulable: Option<bool>,
    /// Pool name → its rendered config.
    pub rendered: BTreeMap<String, String>,
}

/// Labels Nodes as they register, until dropped.
pub async fn label_nodes(client: &Client, inventory: &Inventory) {
    let (inventory, nothing_more) =
        (watch::Sender::new(inventory.clone()), watch::Sender::new(Wanted::default()));
    keep_labels(&client.clone().into(), inventory.subscribe(), nothing_more.subscribe()).await
}

/// A machine that is added later gets its labels too.
pub(super) async fn keep_labels(
    context: &Context,
    inventory: watch::Receiver<Inventory>,
    wanted: watch::Receiver<Wanted>,
) {
    let api: Api<Node> = Api::all(context.client.clone());
    let params = PatchParams { field_manager: Some(MANAGER.into()), ..PatchParams::default() };
    let nodes = follow::<Node>(&context.client, Selection::all());
    let inputs = Inputs::default().needs(&nodes).hears("wanted", &wanted).hears("inventory", &inventory);
    let labelling = context.reconcile("machine-config/nodes", Pace::AT_ONCE, inputs, async |_| {
        let (want, seen, machines) = (wanted.borrow().clone(), nodes.now(), inventory.borrow().clone());
        // One that cannot be changed keeps no other from its labels.
        let mut failed = None;
        for (name, node) in &seen.objects {
            let Some(patch) = machines.by_name(name).and_then(|host| patch_for(node, host, &want)) else {
                continue;
            };
            match api.patch(name, &params, &Patch::Merge(&patch)).await {
                Ok(_) => tracing::info!(node = name, "labels, taints and annotations set"),
                // Also if somebody has just changed the taints: it is looked at again.
                Err(e) => failed = Some(OperatorError::api(format!("Node {name}"))(e)),
            }
        }
        failed.map_or(Ok(Next::Quiet), Err)
    });
    labelling.await
}

/// The merge patch that gives a Node what it lacks.
fn patch_for(node: &Node, host: &Host, want: &Wanted) -> Option<Value> {
    let schedulable = want.masters_schedulable.filter(|_| host.role == Role::Master);
    let labels: Vec<(&str, bool)> = match host.role {
        Role::Bootstrap => return None,
        Role::Worker => vec![(WORKER, true)],
        Role::Master => {
            let mut labels = vec![(MASTER, true), (CONTROL_PLANE, true)];
            labels.extend(schedulable.map(|s| (WORKER, s)));
            labels
        }
    };
    let mut patch = Map::new();
    let missing: Map<String, Value> = (labels.into_iter())
        .filter(|(label, wanted)| node.label(label).is_some() != *wanted)
        .map(|(label, wanted)| (label.into(), if wanted { json!("") } else { Value::Null }))
        .collect();
    let annotations = annotations(node, want.rendered.get(host.role.as_str()));
    let metadata: Map<String, Value> = [("labels", missing), ("annotations", annotations)]
        .into_iter()
        .filter(|(_, members)| !members.is_empty())
        .map(|(member, members)| (member.into(), Value::Object(members)))
        .collect();
    if !metadata.is_empty() {
        patch.insert("metadata".into(), Value::Object(metadata));
    }
    if let Some(taints) = schedulable.and_then(|s| taints(node, s)) {
        // A list is replaced as a whole, so it must not have changed in between.
        patch.entry("metadata").or_insert(json!({}))["resourceVersion"] =
            json!(node.metadata.resource_version);
        patch.insert("spec".into(), json!({"taints": taints}));
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// A Node without a word of its config just came up with what its pool is served. One that has another shall get it.
fn annotations(node: &Node, rendered: Option<&String>) -> Map<String, Value> {
    let Some(rendered) = rendered else { return Map::new() };
    let new = match node.annotation(CURRENT_CONFIG) {
        None => json!({CURRENT_CONFIG: rendered, DESIRED_CONFIG: rendered, STATE: "Done"}),
        Some(_) if node.annotation(DESIRED_CONFIG) != Some(rendered) => json!({DESIRED_CONFIG: rendered}),
        Some(_) => json!({}),
    };
    new.as_object().cloned().unwrap_or_default()
}

/// The taints as they should be, if they are not.
fn taints(node: &Node, schedulable: bool) -> Option<Vec<Taint>> {
    let have = node.spec.as_ref().map(|spec| spec.taints.clone()).unwrap_or_default();
    let is_master = |taint: &Taint| taint.key == MASTER && taint.effect == "NoSchedule";
    let master = || Taint { key: MASTER.into(), effect: "NoSchedule".into(), ..Taint::default() };
    match (have.iter().any(is_master), schedulable) {
        (true, true) => Some(have.into_iter().filter(|t| !is_master(t)).collect()),
        (false, false) => Some(have.into_iter().chain([master()]).collect()),
        _ => None,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn host(role: Role) -> Host {
        Host {
            name: "n".into(),
            role,
            mac: String::new(),
            address: [10, 0, 0, 1].into(),
            second_address: None,
        }
    }

    fn tainted() -> Node {
        let node = json!({
            "metadata": {"name": "n", "resourceVersion": "7", "labels": {"a": "b"}},
            "spec": {"taints": [
                {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
                {"key": MASTER, "effect": "NoSchedule"},
            ]},
        });
        serde_json::from_value(node).unwrap()
    }

    #[test]
    fn before_the_cluster_has_a_scheduler_config_only_roles_are_known() {
        let patch = patch_for(&tainted(), &host(Role::Master), &Wanted::default()).unwrap();
        assert_eq!(patch, json!({"metadata": {"labels": {MASTER: "", CONTROL_PLANE: ""}}}));
        let patch = patch_for(&tainted(), &host(Role::Worker), &Wanted::default()).unwrap();
        assert_eq!(patch, json!({"metadata": {"labels": {WORKER: ""}}}));
        assert_eq!(patch_for(&tainted(), &host(Role::Bootstrap), &Wanted::default()), None);
    }

    #[test]
    fn a_schedulable_master_loses_its_taint_and_only_that() {
        let rendered = BTreeMap::from([("master".into(), "rendered-master-1".into())]);
        let want = Wanted { masters_schedulable: Some(true), rendered };
        let patch = patch_for(&tainted(), &host(Role::Master), &want).unwrap();
        assert_eq!(patch["metadata"]["labels"][WORKER], "");
        assert_eq!(patch["metadata"]["resourceVersion"], "7");
        assert_eq!(patch["metadata"]["annotations"][CURRENT_CONFIG], "rendered-master-1");
        assert_eq!(
            patch["spec"]["taints"],
            json!([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}])
        );
    }

    #[test]
    fn what_is_right_stays_and_a_new_config_is_only_desired() {
        let old = "rendered-master-1";
        let labels = json!({MASTER: "", CONTROL_PLANE: "", WORKER: ""});
        let annotations = json!({CURRENT_CONFIG: old, DESIRED_CONFIG: old, STATE: "Done"});
        let node = json!({"metadata": {"labels": labels, "annotations": annotations}});
        let node: Node = serde_json::from_value(node).unwrap();
        let want = |name: &str| Wanted {
            masters_schedulable: Some(true),
            rendered: BTreeMap::from([("master".into(), name.into())]),
        };
        assert_eq!(patch_for(&node, &host(Role::Master), &want(old)), None);
        let patch = patch_for(&node, &host(Role::Master), &want("rendered-master-2")).unwrap();
        assert_eq!(patch, json!({"metadata": {"annotations": {DESIRED_CONFIG: "rendered-master-2"}}}));
    }
}
