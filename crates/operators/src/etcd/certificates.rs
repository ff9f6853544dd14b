//! Certificates of etcd's members and of its clients, from etcd's own signer.

use crate::static_pod::Env;
use crate::static_pod::certificates::{client_leaf, leaf, leaves};
use anyhow::Result;
use seedling_components::etcd::certificate_names;
use seedling_pki::{CertKey, LeafSpec, Policy, Usage};
use seedling_types::names::NS_ETCD;
use seedling_types::{Inventory, Role};
use std::collections::BTreeMap;

/// Of API servers and of this operator.
const CLIENT: &str = "etcd-client";
/// A pair each for a member's clients and its peers, of all members.
const ALL: &str = "etcd-all-certs";

/// The files of a revision; made by bootkube, and made anew here when they are due. They live as long as their signer: a cluster that was
/// off for a year needs etcd to get its other certificates back.
pub async fn keep(env: &Env, policy: &Policy, signer: &CertKey) -> Result<BTreeMap<String, String>> {
    let policy = &Policy { leaf: policy.signer, ..policy.clone() };
    leaf(env, policy, NS_ETCD, CLIENT, signer, &client_leaf(CLIENT, &[CLIENT, "system:etcd"])).await?;
    let names = addresses(&env.inventory);
    let members: Vec<_> = names.iter().map(|(stem, address)| (stem.clone(), member(address))).collect();
    leaves(env, policy, (NS_ETCD, ALL, "Opaque"), signer, &members).await
}

/// Stem of the files, and the member's address.
fn addresses(inventory: &Inventory) -> Vec<(String, (String, std::net::Ipv4Addr))> {
    let members = inventory.hosts.iter().filter(|h| h.role != Role::Worker);
    let both = members.flat_map(|host| {
        let name = if host.role == Role::Bootstrap { "bootstrap" } else { &host.name };
        ["peer", "serving"]
            .map(|kind| (format!("etcd-{kind}-{name}"), (host.address.to_string(), host.address)))
    });
    both.collect()
}

fn member((name, address): &(String, std::net::Ipv4Addr)) -> LeafSpec<'_> {
    let (dns, ips) = certificate_names(*address);
    LeafSpec {
        usages: &[Usage::Server, Usage::Client],
        dns,
        ips,
        append_parent: true,
        ..client_leaf(name, &[])
    }
}
