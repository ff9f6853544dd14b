//! A living lab gets a machine, or loses one. Each step can be done again, so a run that was killed is simply run again: lab.json has a
//! machine before anything of it is made, and until nothing of it is left.

use crate::store::{Lab, Labs, Lock};
use crate::up::boots_over_the_network;
use crate::{LabError, MachineKind, at, helper, new_machine};
use seedling_machines::Progress;
use seedling_steps::write_atomic;
use seedling_types::{Host, Inventory, Role, hosts_file};
use std::fs;
use std::path::Path;

/// Nobody else works on the lab meanwhile.
pub struct Change {
    pub lab: Lab,
    _lock: Lock,
}

impl Change {
    pub async fn begin(labs: &Labs, name: &str, progress: Progress<'_>) -> Result<Self, LabError> {
        // A lock is a file, of which nothing is to be left where there is no lab.
        labs.open(name)?;
        let lock = labs.lock(name, progress).await?;
        Ok(Self { lab: labs.open(name)?, _lock: lock })
    }

    /// From now on the lab has this machine; the one that is there already, if it is one of this role.
    pub fn add(&mut self, name: &str, role: Role, kind: Option<MachineKind>) -> Result<Host, LabError> {
        let spec = &self.lab.record.spec;
        let (host, inventory) = added(&spec.inventory, name, role)?;
        let known = spec.inventory.by_name(name).is_some();
        let kind = kind.unwrap_or_else(|| spec.kind(name));
        if known && kind.as_str() != spec.kind(name).as_str() {
            return Err(LabError::OtherKind { name: name.into(), kind: spec.kind(name).as_str() });
        }
        if !known {
            let spec = &mut self.lab.record.spec;
            spec.inventory = inventory;
            if kind != MachineKind::Container {
                spec.kinds.insert(name.into(), kind);
            }
            self.lab.save()?;
        }
        Ok(host)
    }

    /// Programs and the boot image, where there is a QEMU machine.
    pub async fn make_bootable(&mut self, labs: &Labs, progress: Progress<'_>) -> Result<(), LabError> {
        boots_over_the_network(labs, &mut self.lab, progress).await
    }

    /// hosts.yaml and the helper know the machines as lab.json does.
    pub async fn tell_helper(&self) -> Result<(), LabError> {
        write_hosts(&self.lab.record.spec.assets.join("hosts.yaml"), &self.lab.record.spec.inventory)?;
        helper::reload(&self.lab).await
    }

    /// Disks and network card, then power.
    pub async fn boot(&self, name: &str) -> Result<(), LabError> {
        self.lab.prepare(&self.lab.machine(name)?).await?;
        self.lab.switch_on(name).await
    }

    /// Nothing is left of the machine, and nobody gives it an address any more.
    pub async fn remove(&mut self, name: &str) -> Result<(), LabError> {
        let machine = self.lab.machine(name)?;
        machine.remove().await?;
        let spec = &mut self.lab.record.spec;
        let files = [
            spec.assets.join("nodes").join(format!("{name}.ign")),
            self.lab.dir.join("doors").join(format!("{name}.json")),
            self.lab.dir.join("boots").join(format!("{name}.json")),
        ];
        spec.inventory = spec.inventory.without(name);
        spec.kinds.remove(name);
        self.tell_helper().await?;
        files.iter().try_for_each(|file| helper::remove_if_there(file))?;
        self.lab.save()
    }
}

/// Pure. The machine, and the inventory with it.
fn added(before: &Inventory, name: &str, role: Role) -> Result<(Host, Inventory), LabError> {
    let host = match before.by_name(name) {
        Some(known) if known.role == role => known.clone(),
        Some(known) => {
            return Err(LabError::OtherRole { name: name.into(), role: known.role.as_str() });
        }
        None => new_machine(before, name, role)?,
    };
    let inventory = before.with(host.clone()).map_err(LabError::Machines)?;
    Ok((host, inventory))
}

/// Whether a machine may leave, and the reason why not. Pure.
pub fn may_leave(host: &Host) -> Result<(), LabError> {
    let why = match host.role {
        Role::Worker => return Ok(()),
        Role::Master => {
            "it is a master: etcd and the API servers count on it, and a smaller control plane is a new cluster. To install a broken \
             one anew: seedling node reissue, in a lab: seedling lab reinstall"
        }
        Role::Bootstrap => {
            "it is the bootstrap machine: it left the cluster when the masters took over, and is off"
        }
    };
    Err(LabError::Stays { name: host.name.clone(), why })
}

/// What people wrote in it stays, unless it can only be written anew.
pub fn write_hosts(path: &Path, inventory: &Inventory) -> Result<(), LabError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => edited(&text, inventory).unwrap_or_else(|| inventory.to_yaml()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => inventory.to_yaml(),
        Err(e) => return at(path, Err(e)),
    };
    at(path, write_atomic(path, text, 0o644))
}

/// None: the text cannot be edited into this inventory. Pure.
fn edited(text: &str, wanted: &Inventory) -> Option<String> {
    let before = Inventory::parse(text).ok()?;
    let gone = before.hosts.iter().filter(|host| wanted.by_name(&host.name).is_none());
    let text = gone
        .map(|host| &host.name)
        .try_fold(text.to_string(), |text, name| hosts_file::remove(&text, name))?;
    let new = wanted.hosts.iter().filter(|host| before.by_name(&host.name) != Some(host));
    let text = new.into_iter().try_fold(text, |text, host| hosts_file::add(&text, host))?;
    (Inventory::parse(&text).ok()?.hosts == wanted.hosts).then_some(text)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::{default_inventory, with_workers};

    #[test]
    fn adding_twice_is_adding_once_and_a_masters_name_is_taken() {
        let before = with_workers(default_inventory(3), 1).unwrap();
        let (host, more) = added(&before, "worker-1", Role::Worker).unwrap();
        assert_eq!((host.v4().unwrap().octets()[3], more.hosts.len()), (22, 6));
        assert_eq!(added(&more, "worker-1", Role::Worker).unwrap(), (host, more.clone()));
        assert!(added(&more, "master-0", Role::Worker).unwrap_err().to_string().contains("is a master"));
        assert!(
            added(&more, "Not_a_name", Role::Worker).unwrap_err().to_string().contains("usable host name")
        );
    }

    #[test]
    fn only_workers_leave() {
        let inventory = with_workers(default_inventory(1), 1).unwrap();
        let said = |name: &str| may_leave(inventory.by_name(name).unwrap()).err().map(|e| e.to_string());
        assert_eq!(said("worker-0"), None);
        assert!(said("master-0").unwrap().contains("etcd"));
        assert!(said("bootstrap").unwrap().contains("is off"));
    }

    #[test]
    fn comments_stay_in_hosts_yaml() {
        let before = with_workers(default_inventory(1), 1).unwrap();
        let text = format!("# ours\n{}", before.to_yaml());
        let more = with_workers(default_inventory(1), 2).unwrap();
        let less = more.without("worker-0");
        for wanted in [&before, &more, &less] {
            let text = edited(&text, wanted).unwrap();
            assert!(text.starts_with("# ours\n"));
            assert_eq!(&Inventory::parse(&text).unwrap(), wanted);
        }
        assert_eq!(edited("hosts: nonsense", &before), None);
    }
}
