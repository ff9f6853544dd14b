//! A node founds one cluster. Which one is settled by its first run, twice: in the journal, and beside etcd's data. Each would
//! give a stranger away, and each tells when the other was lost.

use crate::error::{cannot, in_file};
use crate::{Error, Result};
use seedling_steps::journal::{State, fold};
use seedling_steps::{Journal, write_atomic};
use seedling_types::paths;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Of the assets, from `metadata.json`'s two numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    #[serde(rename = "clusterID")]
    pub cluster_id: String,
    #[serde(rename = "infraID")]
    pub infra_id: String,
}

/// In the data directory: whose it is, and since etcd first had a leader, etcd's own number of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Owner {
    #[serde(flatten)]
    identity: Identity,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    etcd_cluster: Option<String>,
}

const PIN: &str = "cluster/pin";
const FOUNDED: &str = "cluster/founded";
const ETCD_CLUSTER: &str = "etcdCluster";

#[derive(Debug, Error, PartialEq, Eq)]
pub enum Refused {
    #[error(
        "this node has begun the cluster {journal}, and the files in {} are of {assets}: a node founds one cluster; \
         next: boot it from a blank disk, or with the Ignition config of {journal}",
        paths::OPT_OPENSHIFT
    )]
    OtherAssets { journal: String, assets: String },
    #[error(
        "{} holds the data of {owner}, and the files in {} are of {assets}; \
         next: mv {}/member somewhere safe if nobody needs it here, then systemctl restart bootkube.service",
        paths::ETCD_DATA,
        paths::OPT_OPENSHIFT,
        paths::ETCD_DATA
    )]
    OthersData { owner: String, assets: String },
    #[error(
        "etcd of {cluster} was founded on this node, and its data in {} is gone: starting again would make a second cluster; \
         next: put {}/member back, or make new assets (seedling create ignition-configs) and boot all machines from blank disks",
        paths::ETCD_DATA,
        paths::ETCD_DATA
    )]
    DataGone { cluster: String },
    #[error(
        "etcd on this node is the cluster {now}, and {founded} was founded: its data was replaced; next: put {}/member of {founded} back",
        paths::ETCD_DATA
    )]
    OtherCluster { founded: String, now: String },
}

/// What is on the disk.
struct Found {
    pinned: Option<Identity>,
    owner: Option<Owner>,
    /// etcd's number, from the journal or from beside the data.
    founded: Option<String>,
    has_data: bool,
}

/// May a run with these assets continue?
fn judge(assets: &Identity, found: &Found) -> Result<(), Refused> {
    let name = |i: &Identity| format!("{} ({})", i.infra_id, i.cluster_id);
    if let Some(pinned) = found.pinned.as_ref().filter(|p| *p != assets) {
        return Err(Refused::OtherAssets { journal: name(pinned), assets: name(assets) });
    }
    let owner = found.owner.as_ref().map(|o| &o.identity);
    let known = owner.or(found.pinned.as_ref());
    if found.has_data && known != Some(assets) {
        let owner = known.map_or("somebody who is not in this node's journal".into(), name);
        return Err(Refused::OthersData { owner, assets: name(assets) });
    }
    if found.founded.is_some() && !found.has_data {
        return Err(Refused::DataGone { cluster: name(assets) });
    }
    Ok(())
}

impl Identity {
    pub fn of_assets(dir: &Path) -> Result<Self> {
        let read = |name: &str, pointer: &str| {
            let path = dir.join("manifests").join(name);
            let text = std::fs::read_to_string(&path).map_err(cannot("read", &path))?;
            let object: Value = serde_saphyr::from_str(&text).map_err(in_file(path.display()))?;
            let value = object.pointer(pointer).and_then(Value::as_str).map(str::to_string);
            value.ok_or_else(|| Error::Seen(format!("{} has no {pointer}", path.display())))
        };
        Ok(Self {
            cluster_id: read("cvo-overrides.yaml", "/spec/clusterID")?,
            infra_id: read("cluster-infrastructure-02-config.yml", "/status/infrastructureName")?,
        })
    }
}

fn pinned(state: &State, who: &str) -> Option<Identity> {
    let facts = &state.step(who, PIN)?.facts;
    Some(Identity { cluster_id: facts.get("clusterID")?.clone(), infra_id: facts.get("infraID")?.clone() })
}

/// Where it is written down which cluster this node founds.
pub struct Pins<'a> {
    /// Of the assets.
    pub identity: &'a Identity,
    pub journal: &'a Journal,
    pub etcd_data: PathBuf,
}

impl Pins<'_> {
    /// At the start of every run: refuses, or settles which cluster it is.
    pub fn pin(&self) -> Result<()> {
        let found = self.look()?;
        judge(self.identity, &found)?;
        if found.pinned.is_none() {
            let facts = [("clusterID", &self.identity.cluster_id), ("infraID", &self.identity.infra_id)];
            self.journal.settle(PIN, facts.map(|(k, v)| (k.to_string(), v.clone())).into())?;
        }
        if found.owner.is_none() {
            self.own(found.founded)?;
        }
        Ok(())
    }

    /// Whether etcd had a leader here before. Until then nobody can have written anything to it: the API server is started in a
    /// later stage.
    pub fn is_founded(&self) -> Result<bool> {
        Ok(self.look()?.founded.is_some())
    }

    /// etcd leads, as this cluster. From the first time on it is this one, and no other.
    pub fn settle_founded(&self, etcd_cluster: u64) -> Result<()> {
        let now = format!("{etcd_cluster:x}");
        match self.look()?.founded {
            Some(founded) if founded == now => Ok(()),
            Some(founded) => Err(Refused::OtherCluster { founded, now }.into()),
            None => {
                self.journal.settle(FOUNDED, [(ETCD_CLUSTER.to_string(), now.clone())].into())?;
                self.own(Some(now))
            }
        }
    }

    fn owner_file(&self) -> PathBuf {
        self.etcd_data.join("cluster.json")
    }

    fn own(&self, etcd_cluster: Option<String>) -> Result<()> {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.etcd_data)
            .map_err(cannot("make", &self.etcd_data))?;
        let owner = Owner { identity: self.identity.clone(), etcd_cluster };
        let path = self.owner_file();
        write_atomic(&path, serde_json::to_vec(&owner)?, 0o600).map_err(cannot("write", &path))
    }

    fn look(&self) -> Result<Found> {
        let (state, who) = (fold(&self.journal.read()?), self.journal.who());
        let owner = std::fs::read(self.owner_file()).ok();
        let owner: Option<Owner> = owner.and_then(|json| serde_json::from_slice(&json).ok());
        let journal = state.step(who, FOUNDED).and_then(|s| s.facts.get(ETCD_CLUSTER).cloned());
        let beside = owner.as_ref().and_then(|o| o.etcd_cluster.clone());
        // etcd makes the log last and whole.
        let has_data = self.etcd_data.join("member/wal").exists();
        Ok(Found { pinned: pinned(&state, who), owner, founded: journal.or(beside), has_data })
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn id(name: &str) -> Identity {
        Identity { cluster_id: format!("{name}-id"), infra_id: name.into() }
    }

    #[test]
    fn a_node_founds_one_cluster() {
        let ours = || Some(id("a"));
        let other = || Some(id("b"));
        let cases = [
            ("a blank disk", None, None, false, false, "goes on"),
            ("killed before etcd began", ours(), ours(), false, false, "goes on"),
            ("killed while etcd began", ours(), ours(), false, true, "goes on"),
            ("founded", ours(), ours(), true, true, "goes on"),
            ("the journal is lost", None, ours(), true, true, "goes on"),
            ("the owner file is lost", ours(), None, true, true, "goes on"),
            ("other assets", other(), other(), true, true, "other assets"),
            ("other assets, before etcd", other(), None, false, false, "other assets"),
            ("a disk of another cluster's etcd", None, other(), true, true, "others data"),
            ("a disk of anybody's etcd", None, None, false, true, "others data"),
            ("data put in place by hand", ours(), other(), false, true, "others data"),
            ("data wiped", ours(), None, true, false, "data gone"),
            ("member wiped, owner left, journal lost", None, ours(), true, false, "data gone"),
        ];
        for (case, pinned, owner, founded, has_data, want) in cases {
            let owner = owner.map(|identity| Owner { identity, etcd_cluster: None });
            let found = Found { pinned, owner, founded: founded.then(|| "cafe".into()), has_data };
            let said = match judge(&id("a"), &found) {
                Ok(()) => "goes on",
                Err(Refused::OtherAssets { .. }) => "other assets",
                Err(Refused::OthersData { .. }) => "others data",
                Err(Refused::DataGone { .. }) => "data gone",
                Err(Refused::OtherCluster { .. }) => "other cluster",
            };
            assert_eq!(said, want, "{case}");
        }
    }

    #[test]
    fn no_restart_founds_a_second_cluster() {
        let root = tempfile::tempdir().unwrap();
        let (identity, other) = (id("a"), id("b"));
        let journal = Journal::of(root.path(), "bootkube");
        let etcd_data = root.path().join("etcd");
        let pins = |identity| Pins { identity, journal: &journal, etcd_data: etcd_data.clone() };
        let ours = pins(&identity);
        ours.pin().unwrap();
        assert!(!ours.is_founded().unwrap());
        std::fs::create_dir_all(etcd_data.join("member/wal")).unwrap();
        ours.settle_founded(0xcafe).unwrap();
        ours.settle_founded(0xcafe).unwrap();
        ours.pin().unwrap();

        let refused = |result: Result<()>| match result.unwrap_err() {
            Error::Refused(refused) => refused,
            other => panic!("{other}"),
        };
        assert!(matches!(refused(pins(&other).pin()), Refused::OtherAssets { .. }));
        assert!(matches!(refused(ours.settle_founded(0xbeef)), Refused::OtherCluster { .. }));

        // What is lost on one side is known by the other.
        let lines = std::fs::read(root.path().join("var/log/openshift/journal.jsonl")).unwrap();
        std::fs::remove_dir_all(root.path().join("var")).unwrap();
        assert!(matches!(refused(pins(&other).pin()), Refused::OthersData { .. }));
        assert!(ours.is_founded().unwrap());
        ours.pin().unwrap();
        std::fs::write(root.path().join("var/log/openshift/journal.jsonl"), lines).unwrap();
        std::fs::remove_dir_all(&etcd_data).unwrap();
        assert!(matches!(refused(ours.pin()), Refused::DataGone { .. }));
    }
}
