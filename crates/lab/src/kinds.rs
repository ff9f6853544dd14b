//! What a lab's machines are made of: `--machines` as a type, and a kind for each machine. Pure.

use seedling_machines::Hardware;
use seedling_types::{Inventory, Role};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::str::FromStr;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum MachineKind {
    #[default]
    Container,
    Qemu(Hardware),
}

impl MachineKind {
    pub fn as_str(&self) -> &'static str {
        match self {
            MachineKind::Container => "container",
            MachineKind::Qemu(_) => "qemu",
        }
    }
}

/// Kinds by host; who is not in it is a container.
pub type Kinds = BTreeMap<String, MachineKind>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Container,
    Qemu,
}

/// `qemu`, `container`, or parts for a role or a machine: `master=container,worker=qemu`. What is not named is a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machines {
    all: Option<Word>,
    of: BTreeMap<String, Word>,
}

impl FromStr for Machines {
    type Err = String;

    /// Says everything that is wrong with it.
    fn from_str(text: &str) -> Result<Self, String> {
        let (mut machines, mut wrong) = (Self::default(), Vec::new());
        for part in text.split(',').map(str::trim) {
            let (of, kind) = part.split_once('=').map_or((None, part), |(of, kind)| (Some(of), kind));
            let word = match kind {
                "container" => Word::Container,
                "qemu" => Word::Qemu,
                _ => {
                    wrong.push(format!("{kind:?} is neither container nor qemu"));
                    continue;
                }
            };
            let before = match of {
                None => machines.all.replace(word),
                Some(of) => machines.of.insert(of.into(), word),
            };
            if before.is_some_and(|before| before != word) {
                wrong.push(format!("{} is said twice", of.unwrap_or("what all machines are")));
            }
        }
        if wrong.is_empty() { Ok(machines) } else { Err(wrong.join("; ")) }
    }
}

impl Machines {
    /// A machine's own word counts more than its role's, and that more than the word for all.
    pub fn kinds(&self, inventory: &Inventory, hardware: impl Fn(Role) -> Hardware) -> Result<Kinds, String> {
        let role =
            |name: &str| [Role::Bootstrap, Role::Master, Role::Worker].iter().any(|r| r.as_str() == name);
        let unknown: Vec<_> = (self.of.keys())
            .filter(|name| !role(name) && inventory.by_name(name).is_none())
            .map(|name| format!("{name:?} is no role and no machine of this lab"))
            .collect();
        if !unknown.is_empty() {
            return Err(unknown.join("; "));
        }
        let word = |name: &str, role: Role| {
            self.of.get(name).or_else(|| self.of.get(role.as_str())).copied().or(self.all)
        };
        let qemu = inventory.hosts.iter().filter(|host| word(&host.name, host.role) == Some(Word::Qemu));
        Ok(qemu.map(|host| (host.name.clone(), MachineKind::Qemu(hardware(host.role)))).collect())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::{default_inventory, with_workers};

    #[test]
    fn words_become_kinds() {
        let inventory = with_workers(default_inventory(3), 2).unwrap();
        for (text, want) in [
            ("container", ""),
            ("qemu", "bootstrap master-0 master-1 master-2 worker-0 worker-1"),
            ("worker=qemu", "worker-0 worker-1"),
            ("master=container,worker=qemu", "worker-0 worker-1"),
            ("qemu,master=container,bootstrap=container", "worker-0 worker-1"),
            ("worker=qemu, worker-0=container", "worker-1"),
            ("worker-1=qemu", "worker-1"),
        ] {
            let kinds = text.parse::<Machines>().unwrap().kinds(&inventory, |_| Hardware::default()).unwrap();
            assert_eq!(kinds.into_keys().collect::<Vec<_>>().join(" "), want, "{text}");
        }
    }

    #[test]
    fn everything_wrong_is_said_at_once() {
        let said = "worker=vmware,master=xen,qemu,container".parse::<Machines>().unwrap_err();
        for words in ["\"vmware\" is neither", "\"xen\" is neither", "what all machines are is said twice"] {
            assert!(said.contains(words), "{said}");
        }
        let machines: Machines = "workers=qemu,worker-7=qemu".parse().unwrap();
        let said = machines.kinds(&default_inventory(3), |_| Hardware::default()).unwrap_err();
        assert!(said.contains("\"workers\" is no role") && said.contains("\"worker-7\""), "{said}");
    }

    #[test]
    fn a_kind_is_written_with_its_hardware() {
        let qemu = MachineKind::Qemu(Hardware::default());
        let json = serde_json::to_value(&qemu).unwrap();
        assert_eq!((json["kind"].as_str(), json["memoryMib"].as_u64()), (Some("qemu"), Some(2048)));
        assert_eq!(serde_json::from_value::<MachineKind>(json).unwrap(), qemu);
    }
}
