//! Step mode of a lab: which stages of its bootkube may run, written where bootkube looks, whether its machine is on or off.

use crate::{Lab, LabError, Result, at};
use seedling_machines::{Machine, Power};
use seedling_steps::{if_there, write_atomic};
use seedling_types::paths;
use std::fs;
use std::path::{Path, PathBuf};

/// How `up` lets bootkube work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// Without pauses.
    #[default]
    Free,
    /// It asks before each stage that is not allowed yet; what was allowed before stays so.
    Ask,
    /// Only these stages.
    Only(Vec<String>),
}

impl Lab {
    pub fn bootstrap(&self) -> Result<Machine> {
        let bootstrap = self.record.spec.inventory.bootstrap();
        self.machine(&bootstrap.map(|host| host.name.clone()).unwrap_or_default())
    }

    /// The bootstrap machine's file system as it sees it itself; only while it is on.
    pub async fn bootstrap_root(&self) -> Result<PathBuf> {
        let machine = self.bootstrap()?;
        match machine.inspect().await?.pid {
            Some(pid) => Ok(PathBuf::from(format!("/proc/{pid}/root"))),
            None => Err(LabError::NotGrown(format!("{} is not on", machine.name))),
        }
    }
}

/// Before the machine is switched on, so that bootkube never gets ahead of it.
pub(crate) async fn set(lab: &Lab, pace: &Pace) -> Result<()> {
    let Ok(machine) = lab.bootstrap() else { return Ok(()) };
    let path = format!("{}/allowed", paths::STEP);
    // What a first boot that begins anew finds, and what the machine has now.
    let mut places = vec![machine.at_first_boot(&path)];
    match machine.inspect().await?.power {
        Power::Off if machine.first_boot_done() => places.push(machine.on_disk(&path)),
        Power::Off => {}
        _ => places.push(lab.bootstrap_root().await?.join(path.trim_start_matches('/'))),
    }
    places.iter().try_for_each(|place| write(place, pace))
}

fn write(place: &Path, pace: &Pace) -> Result<()> {
    let text = match pace {
        Pace::Free => return at(place, if_there(fs::remove_file(place)).map(drop)),
        Pace::Ask if place.exists() => return Ok(()),
        Pace::Ask => String::new(),
        Pace::Only(stages) => stages.iter().map(|stage| format!("{stage}\n")).collect(),
    };
    if let Some(dir) = place.parent() {
        at(dir, fs::create_dir_all(dir))?;
    }
    at(place, write_atomic(place, text, 0o644))
}
