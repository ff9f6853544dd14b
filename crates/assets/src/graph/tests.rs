//! An asset reads what it declares, and nothing else. What those that there are read is tried by every run of `create`.
#![expect(clippy::unwrap_used, reason = "tests")]

use super::engine::Engine;
use super::*;
use crate::given::Given;
use crate::store::{Files, Folder, Store};
use crate::{Options, Result};

type Read = fn(&Parents) -> Result<()>;

/// Makes an asset that reads something, beside all the others.
fn make(needs: &[Id], read: Read) -> Result<(), String> {
    let dir = tempfile::tempdir().unwrap();
    let text = "apiVersion: v1\nbaseDomain: example.com\nmetadata: {name: ocp4}\nplatform: {none: {}}\n\
                pullSecret: '{\"auths\":{\"r\":{\"auth\":\"eA==\"}}}'\n";
    std::fs::write(dir.path().join(install_config::FILE), text).unwrap();
    let options = Options { release: dir.path().into(), ..Options::default() };
    let disk = Folder::new(dir.path());
    let store = Store::open(dir.path(), &disk).unwrap();
    let given = Given::read(&store, Target::Manifests, &options, &BTreeMap::new()).unwrap();
    let reader = Asset::new("test.Reader", "Reader", needs, move |p, _| read(p).map(|()| Files::new()));
    let all = assets().into_iter().chain([reader]).collect();
    let mut engine = Engine::new(all, &given, BTreeMap::new());
    // It is there, so that only the missing declaration is in the way.
    engine.fetch_target(identity::CLUSTER_ID).unwrap();
    engine.fetch_target("test.Reader").map_err(|error| error.to_string())
}

#[test]
fn what_is_not_declared_cannot_be_read() {
    let ways: [(Id, Read); 4] = [
        (identity::CLUSTER_ID, |p| p.files(identity::CLUSTER_ID).map(drop)),
        (identity::CLUSTER_ID, |p| identity::Identity::of(p).map(drop)),
        (install_config::ID, |p| p.config().map(drop)),
        (nodes::INVENTORY, |p| p.inventory().map(drop)),
    ];
    for (need, read) in ways {
        let refused = make(&[], read).unwrap_err();
        let why = format!("test.Reader is made of {need}, and does not declare it");
        assert!(refused.ends_with(&why), "{refused}");
        // What a parent is made of is not declared by declaring the parent.
        let refused = make(&[keys::BOOTSTRAP_SSH, manifests::MANIFESTS], read).unwrap_err();
        assert!(refused.ends_with(&why), "{refused}");
        make(&[need], read).unwrap();
    }
}

#[test]
fn every_need_is_an_asset_that_comes_before() {
    let mut open = assets();
    let count = open.len();
    let mut ids = BTreeSet::new();
    while !open.is_empty() {
        let (ready, later): (Vec<_>, Vec<_>) =
            open.into_iter().partition(|asset| asset.needs.iter().all(|need| ids.contains(need)));
        assert!(!ready.is_empty(), "{:?}", later.iter().map(|asset| asset.id).collect::<Vec<_>>());
        ids.extend(ready.iter().map(|asset| asset.id));
        open = later;
    }
    assert_eq!(ids.len(), count, "two assets have one name");
    for target in Target::ALL {
        assert!(wanted(target).iter().all(|id| ids.contains(id)));
    }
}
