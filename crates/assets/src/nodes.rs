//! Not upstream's: the inventory, what each of its machines shows the machine-config server, and its pointer config with it.

use crate::certificates::pair;
use crate::given::HOSTS_FILE;
use crate::graph::{Asset, Found, Id, Parents};
use crate::store::{Files, one};
use crate::{CreateError, Result, certificates, install_config, pointer, shape};
use seedling_types::admission::{Admission, Issued};
use seedling_types::{Host, Inventory, NodeToken};
use std::collections::BTreeMap;

/// hosts.yaml.
pub(crate) const INVENTORY: Id = "seedling.Inventory";
pub(crate) const NODE_TOKENS: Id = "seedling.NodeTokens";
pub(crate) const NODE_POINTERS: Id = "seedling.NodePointers";

pub(crate) fn assets() -> Vec<Asset> {
    let needs = [install_config::ID, certificates::ROOT_CA, INVENTORY, NODE_TOKENS];
    vec![
        Asset::new(INVENTORY, "Inventory", &[], |_, _| Ok(Files::new())).loaded(|given, _| {
            Ok(given.hosts.as_ref().map(|text| Found { files: one(HOSTS_FILE, text), ..Found::default() }))
        }),
        // None for a server that is open to everybody.
        Asset::new(NODE_TOKENS, "Node Tokens", &[], |_, _| Err(CreateError::Missing(NODE_TOKENS))).loaded(
            |given, known| {
                let inventory = given.inventory.as_ref().filter(|_| !given.run.options.open);
                Ok(Some(Found { files: tokens(inventory, known), ..Found::default() }))
            },
        ),
        Asset::new(NODE_POINTERS, "Node Ignition Configs", &needs, |p, _| pointers(p)),
    ]
}

/// One token a machine of the inventory, kept from run to run: pointers already handed out stay good.
fn tokens(inventory: Option<&Inventory>, known: Option<&Files>) -> Files {
    let token = |host: &Host| {
        let known = known.and_then(|files| files.get(&host.name)).cloned();
        let token = known.or_else(|| serde_json::to_string(&pointer::new_token()).ok());
        Some((host.name.clone(), token?))
    };
    inventory.into_iter().flat_map(pointer::joining).filter_map(token).collect()
}

/// The same as the role's, with the machine's own token.
fn pointers(made: &Parents) -> Result<Files> {
    let (host, root_ca) = (shape::pointer_host(made.config()?), pair(made, "root-ca")?.cert);
    let tokens = made.files(NODE_TOKENS)?;
    let mut files = Files::new();
    for machine in made.inventory()?.into_iter().flat_map(pointer::joining) {
        if let Some(token) = tokens.get(&machine.name) {
            let own = pointer::own_pointer(&host, machine.role, &root_ca, &serde_json::from_str(token)?);
            files.insert(pointer::node_file(&machine.name), serde_json::to_string(&own)?);
        }
    }
    Ok(files)
}

/// What the machine-config server knows of the tokens: their digests.
pub(crate) fn admission(made: &Parents) -> Result<Admission> {
    let tokens = made.files(NODE_TOKENS)?;
    let mut nodes = BTreeMap::new();
    for (name, token) in tokens {
        let token: NodeToken = serde_json::from_str(token)?;
        nodes.insert(name.clone(), Issued { sha256: token.digest(), spent: None });
    }
    Ok(Admission { open: tokens.is_empty(), nodes })
}
