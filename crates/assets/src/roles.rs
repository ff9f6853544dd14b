//! What belongs to a kind of machine: its pointer config, its manifests, and what became of an edited pointer config.

use crate::certificates::pair;
use crate::given::Given;
use crate::graph::{Asset, Found, Id, Parents};
use crate::identity::Identity;
use crate::store::{Files, one};
use crate::yaml::to_yaml;
use crate::{
    CreateError, Message, Result, certificates, identity, install_config, machine_config, manifests, pointer,
    shape,
};

pub(crate) struct OfRole {
    /// The machine-config pool.
    pub pool: &'static str,
    pub name: &'static str,
    pub pointer: Id,
    pub pointer_file: &'static str,
    pub machines: Id,
    pub customizations: Id,
}

#[rustfmt::skip]
pub(crate) static ROLES: [OfRole; 3] = [
    OfRole { pool: "master", name: "Master", pointer: "machine.Master", pointer_file: "master.ign", machines: "machines.Master", customizations: "machine.MasterIgnitionCustomizations" },
    OfRole { pool: "arbiter", name: "Arbiter", pointer: "machine.Arbiter", pointer_file: "arbiter.ign", machines: "machines.Arbiter", customizations: "machine.ArbiterIgnitionCustomizations" },
    OfRole { pool: "worker", name: "Worker", pointer: "machine.Worker", pointer_file: "worker.ign", machines: "machines.Worker", customizations: "machine.WorkerIgnitionCustomizations" },
];

pub(crate) fn assets() -> Vec<Asset> {
    ROLES.iter().flat_map(|of| [pointer_config(of), machines(of), customizations(of)]).collect()
}

/// Empty where there are no such machines.
fn of_pool(
    of: &'static OfRole,
    id: Id,
    what: &str,
    needs: &[Id],
    make: impl Fn(&Parents, &mut Vec<Message>) -> Result<Files> + 'static,
) -> Asset {
    Asset::new(id, &format!("{} {what}", of.name), needs, move |p, say| {
        if shape::has_pool(p.config()?, of.pool) { make(p, say) } else { Ok(Files::new()) }
    })
}

fn pointer_config(of: &'static OfRole) -> Asset {
    of_pool(of, of.pointer, "Ignition Config", &[install_config::ID, certificates::ROOT_CA], |p, _| {
        Ok(one(of.pointer_file, &unedited(of, p)?))
    })
    .loaded(|given, _| given.file(of.pointer_file))
    .checked(|files, _| match files.get(of.pointer_file) {
        Some(text) => pointer::parse(of.pointer_file, text).map(drop),
        None => Ok(()),
    })
}

fn unedited(of: &OfRole, made: &Parents) -> Result<String> {
    let (host, root_ca) = (shape::pointer_host(made.config()?), pair(made, "root-ca")?.cert);
    Ok(serde_json::to_string(&pointer::pointer(&host, of.pool, &root_ca))?)
}

fn machines(of: &'static OfRole) -> Asset {
    of_pool(of, of.machines, "Machines", &[identity::CLUSTER_ID, install_config::ID, of.pointer], |p, _| {
        let config = p.config()?;
        let current = p.file(of.pointer, of.pointer_file)?;
        // Without a machine beside it nothing could hold the addresses of bare metal.
        if of.pool == "master" && config.masters == 1 && shape::baremetal(config).is_some() {
            return Err(CreateError::SingleNode("baremetal"));
        }
        manifests::machines(config, &Identity::of(p)?, of.pool, current)
    })
    .loaded(|given, _| manifests_of(given, Some(of.pool)))
}

/// Files of `openshift/` that belong to machines of a pool, or to none.
pub(crate) fn manifests_of(given: &Given, pool: Option<&str>) -> Result<Option<Found>> {
    let mut found = given.store.manifests("openshift")?;
    found.retain(|path, _| machine_config::pool_of(path) == pool);
    let whole = match pool {
        Some(pool) => found.contains_key(&machine_config::user_data(pool)),
        None => !found.is_empty(),
    };
    Ok(whole.then(|| Found::all_of(found)))
}

/// Machines are sent on to the machine-config server, so what was added to their pointer config is served from there.
fn customizations(of: &'static OfRole) -> Asset {
    let needs = [install_config::ID, of.pointer, certificates::ROOT_CA];
    of_pool(of, of.customizations, "Ignition Customization Check", &needs, |p, say| {
        let current = p.file(of.pointer, of.pointer_file)?;
        let Some(added) = pointer::additions(of.pointer_file, current, &unedited(of, p)?)? else {
            return Ok(Files::new());
        };
        let text = "pointer ignition was modified. Saving contents to a machineconfig";
        say.push(Message::info(format!("{} {text}", of.name)));
        let path = format!("openshift/99_openshift-installer-ignition_{}.yaml", of.pool);
        Ok(one(&path, &to_yaml(&machine_config::of_pointer(of.pool, added))?))
    })
}
