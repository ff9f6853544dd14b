//! Which assets there are, and what a run of `create` is for. Each asset's file says what it is, of what and how it is made.
//!
//! In: nothing. Out: assets, the targets of `create`, DOT for people. Next: [`engine`] walks it.

mod asset;
pub(crate) mod engine;
#[cfg(test)]
mod tests;

pub(crate) use asset::{Asset, Found, Id};
pub(crate) use engine::Parents;

use crate::{
    Target, bootstrap, certificates, identity, install_config, keys, kubeconfig, manifests, metadata, nodes,
    overrides, release, roles,
};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) fn assets() -> Vec<Asset> {
    let mut all = vec![install_config::asset(), overrides::asset(), release::asset(), metadata::asset()];
    let families = [
        identity::assets(),
        keys::assets(),
        certificates::assets(),
        manifests::assets(),
        kubeconfig::assets(),
        nodes::assets(),
        roles::assets(),
        bootstrap::assets(),
    ];
    all.extend(families.into_iter().flatten());
    all
}

/// What a target fetches and writes, in this order.
pub(crate) fn wanted(target: Target) -> Vec<Id> {
    let [master, arbiter, worker] = &roles::ROLES;
    match target {
        Target::InstallConfig => vec![install_config::ID],
        Target::Manifests => vec![
            master.machines,
            arbiter.machines,
            worker.machines,
            manifests::MANIFESTS,
            manifests::OPENSHIFT,
            manifests::CLUSTER_API,
            certificates::KEY_PARAMETERS,
        ],
        Target::IgnitionConfigs => vec![
            kubeconfig::ADMIN,
            identity::PASSWORD,
            master.pointer,
            arbiter.pointer,
            worker.pointer,
            bootstrap::BOOTSTRAP,
            nodes::NODE_POINTERS,
            metadata::ID,
        ],
        Target::SingleNodeIgnitionConfig => {
            vec![kubeconfig::ADMIN, identity::PASSWORD, worker.pointer, bootstrap::IN_PLACE, metadata::ID]
        }
    }
}

/// The graph in the language of Graphviz, laid out as upstream's: edges, then a box for each package.
pub fn dot() -> String {
    let mut edges = String::new();
    let mut boxes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for asset in assets() {
        let package = asset.id.split('.').next().unwrap_or_default();
        boxes.entry(package.into()).or_default().insert(format!("{:?};", asset.id));
        edges.extend(asset.needs.iter().map(|need| format!("\t{need:?}->{:?};\n", asset.id)));
    }
    for target in Target::ALL {
        let name = format!("Target {}", target.title());
        edges.extend(wanted(target).iter().map(|id| format!("\t{id:?}->{name:?};\n")));
        boxes.entry("Target".into()).or_default().insert(format!("{name:?} [ shape=box, style=filled ];"));
    }
    let in_box = |(label, nodes): (&String, &BTreeSet<String>)| {
        let nodes: String = nodes.iter().map(|node| format!("\t{node}\n")).collect();
        format!("\tsubgraph cluster_{label} {{\n\tlabel={label};\n{nodes}\n}}\n;\n")
    };
    let boxes: String = boxes.iter().map(in_box).collect();
    format!("strict digraph G {{\n\trankdir=LR;\n{edges}{boxes}\n}}\n")
}
