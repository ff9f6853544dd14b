//! A restore that was ordered, and how far it is: both are on the disk beside etcd's data, so that a killed process can continue.
//!
//! ```text
//! /var/lib/etcd/member                      etcd's data; as it was, until everything else is ready
//! /var/lib/etcd/restore/order.json          written last by the command
//! /var/lib/etcd/restore/snapshot.db         what is restored: given, or made of this member's own data
//! /var/lib/etcd/restore/new                 the new cluster's data
//! /var/lib/etcd/restore/told                it knows which clusters it stands for
//! /var/lib/etcd/member.before-restore-<id>  what was there; nobody removes it
//! /var/lib/etcd/restored-<id>.json          the order, when it is over
//! ```

use crate::Result;
use crate::error::{cannot, ensure, in_file, read_if_there, write};
use seedling_cluster::recovery::Tail;
use seedling_steps::{if_there, sync_directory};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Order {
    /// Makes the new cluster one that never was: etcd's ids follow from it.
    pub id: String,
    /// The end of the log that a person was shown. None: a snapshot is restored, whatever is in the log.
    pub log: Option<Tail>,
    /// Clusters that no longer exist. Their members learn it when they come back.
    pub given_up: BTreeSet<u64>,
    /// Static pods whose revisions of the snapshot's time are put back.
    #[serde(default)]
    pub runs: BTreeMap<String, i64>,
}

/// What is to be done next. In this order; each can be done again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RestoreStep {
    Snapshot,
    Make,
    Tell,
    /// From here on there is no way back but by hand.
    MoveAside,
    PutInPlace,
    Finish,
}

impl RestoreStep {
    pub fn name(self) -> &'static str {
        match self {
            Self::Snapshot => "snapshot",
            Self::Make => "make",
            Self::Tell => "tell",
            Self::MoveAside => "move-aside",
            Self::PutInPlace => "put-in-place",
            Self::Finish => "finish",
        }
    }
}

/// What is on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disk {
    pub snapshot: bool,
    pub made: bool,
    pub told: bool,
    /// The new data is not in its place yet.
    pub waits: bool,
    pub member: bool,
}

pub(super) fn next(disk: Disk) -> RestoreStep {
    match disk {
        Disk { made: true, told: true, waits: false, .. } => RestoreStep::Finish,
        Disk { made: true, told: true, member: false, .. } => RestoreStep::PutInPlace,
        Disk { made: true, told: true, .. } => RestoreStep::MoveAside,
        Disk { made: true, .. } => RestoreStep::Tell,
        Disk { snapshot: true, .. } => RestoreStep::Make,
        _ => RestoreStep::Snapshot,
    }
}

/// etcd's data directory, seen by those who restore.
#[derive(Clone, Debug)]
pub struct Site(pub PathBuf);

impl Site {
    pub fn member(&self) -> PathBuf {
        self.0.join("member")
    }
    pub fn log(&self) -> PathBuf {
        self.0.join("member/wal")
    }
    pub fn scratch(&self) -> PathBuf {
        self.0.join("restore")
    }
    fn order_file(&self) -> PathBuf {
        self.scratch().join("order.json")
    }
    pub fn snapshot(&self) -> PathBuf {
        self.scratch().join("snapshot.db")
    }
    pub fn made(&self) -> PathBuf {
        self.scratch().join("new")
    }
    pub fn told(&self) -> PathBuf {
        self.scratch().join("told")
    }
    pub fn before(&self, order: &Order) -> PathBuf {
        self.0.join(format!("member.before-restore-{}", order.id))
    }
    fn over(&self, id: &str) -> PathBuf {
        self.0.join(format!("restored-{id}.json"))
    }

    pub fn look(&self) -> Disk {
        Disk {
            snapshot: self.snapshot().exists(),
            made: self.made().exists(),
            told: self.told().exists(),
            waits: self.made().join("member").exists(),
            member: self.member().exists(),
        }
    }

    pub fn order(&self) -> Result<Option<Order>> {
        let order = read_if_there(&self.order_file())?.map(|text| serde_json::from_str(&text));
        order.transpose().map_err(in_file("etcd/restore/order.json"))
    }

    /// What an earlier one left; an order that holds is not touched.
    pub fn clear(&self) -> Result<()> {
        ensure!(self.order()?.is_none(), "a restore is under way");
        remove(&self.scratch())
    }

    pub fn leave(&self, order: &Order) -> Result<()> {
        write(&self.order_file(), serde_json::to_vec(order)?)
    }

    /// Before anything of the data was touched.
    pub fn withdraw(&self) -> Result<()> {
        let removed = fs::remove_file(self.order_file()).and_then(|()| sync_directory(&self.scratch()));
        removed.map_err(cannot("remove", self.order_file()))?;
        remove(&self.scratch())
    }

    pub fn finish(&self, order: &Order) -> Result<()> {
        let kept = fs::rename(self.order_file(), self.over(&order.id)).and_then(|()| sync_directory(&self.0));
        kept.map_err(cannot("rename", self.order_file()))?;
        remove(&self.scratch())
    }

    pub fn was_done(&self, id: &str) -> bool {
        self.over(id).exists()
    }

    /// Clusters that were given up by restores on this machine.
    pub fn given_up(&self) -> BTreeSet<u64> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let orders = entries.filter(|e| e.file_name().to_string_lossy().starts_with("restored-"));
        let read = |e: fs::DirEntry| serde_json::from_slice::<Order>(&fs::read(e.path()).ok()?).ok();
        orders.filter_map(read).flat_map(|order| order.given_up).collect()
    }
}

pub(super) fn remove(dir: &Path) -> Result<()> {
    if_there(fs::remove_dir_all(dir)).map(drop).map_err(cannot("remove", dir))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn what_is_next_is_seen_on_the_disk() {
        let disk = |snapshot, made, told, waits, member| Disk { snapshot, made, told, waits, member };
        for (seen, expected) in [
            (disk(false, false, false, false, true), RestoreStep::Snapshot),
            (disk(true, false, false, false, true), RestoreStep::Make),
            (disk(true, false, false, false, false), RestoreStep::Make),
            (disk(true, true, false, true, true), RestoreStep::Tell),
            (disk(true, true, true, true, true), RestoreStep::MoveAside),
            (disk(true, true, true, true, false), RestoreStep::PutInPlace),
            (disk(true, true, true, false, true), RestoreStep::Finish),
        ] {
            assert_eq!(next(seen), expected, "{seen:?}");
        }
    }

    #[test]
    fn an_order_is_kept_when_it_is_over() {
        let dir = tempfile::tempdir().unwrap();
        let site = Site(dir.path().into());
        assert_eq!(site.order().unwrap(), None);
        let order = Order { id: "7".into(), log: None, given_up: [1, 2].into(), runs: [].into() };
        site.leave(&order).unwrap();
        assert!(site.clear().is_err());
        assert_eq!(site.order().unwrap(), Some(order.clone()));
        site.finish(&order).unwrap();
        assert!(site.order().unwrap().is_none() && site.was_done("7") && !site.scratch().exists());
        assert_eq!(site.given_up(), BTreeSet::from([1, 2]));
        site.leave(&Order { id: "8".into(), ..order }).unwrap();
        site.withdraw().unwrap();
        assert!(!site.was_done("8") && !site.scratch().exists());
    }
}
