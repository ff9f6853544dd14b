//! A `create` that is killed at any operation leaves the old files, or what the next run makes the new ones of.
#![expect(clippy::unwrap_used, reason = "tests")]

mod common;
use common::{Assets, SEED};
use seedling_assets::{Disk, Folder, Target, create_on, recover};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::{fs, io};

/// Does what it is told until its time has come; then it does nothing any more. A write is cut off in its middle.
struct Mortal {
    disk: Folder,
    left: Cell<usize>,
}

impl Mortal {
    fn act(
        &self,
        last: impl FnOnce(&Folder) -> io::Result<()>,
        act: impl FnOnce(&Folder) -> io::Result<()>,
    ) -> io::Result<()> {
        match self.left.replace(self.left.get().saturating_sub(1)) {
            0 => Err(io::Error::other("killed")),
            1 => last(&self.disk).and(Err(io::Error::other("killed"))),
            _ => act(&self.disk),
        }
    }
}

impl Disk for Mortal {
    fn read(&self, path: &str) -> io::Result<Option<String>> {
        self.disk.read(path)
    }
    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.disk.list(folder)
    }
    fn write(&self, path: &str, contents: &str, mode: u32) -> io::Result<()> {
        let half = &contents[..contents.len() / 2];
        self.act(|disk| disk.write(path, half, mode), |disk| disk.write(path, contents, mode))
    }
    fn append(&self, path: &str, text: &str, mode: u32) -> io::Result<()> {
        self.act(|_| Ok(()), |disk| disk.append(path, text, mode))
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.act(|_| Ok(()), |disk| disk.rename(from, to))
    }
    fn remove(&self, path: &str) -> io::Result<()> {
        self.act(|_| Ok(()), |disk| disk.remove(path))
    }
    fn remove_empty(&self, folder: &str) -> io::Result<()> {
        self.act(|_| Ok(()), |disk| disk.remove_empty(folder))
    }
    fn sync(&self, folder: &str) -> io::Result<()> {
        self.act(|_| Ok(()), |disk| disk.sync(folder))
    }
}

fn contents(assets: &Assets) -> BTreeMap<String, String> {
    let ours = |name: &String| !name.ends_with(".new"); // a half-written journal; the next one replaces it
    assets.tree().into_iter().filter(ours).map(|name| (name.clone(), assets.read(&name))).collect()
}

/// Runs `target` again and again, each time on a fresh copy, and kills it one operation later than before.
fn killed_everywhere(start: &Assets, target: Target, edited: &str) {
    let old = contents(start);
    let reference = start.copy();
    reference.create(target).unwrap();
    let new_names = reference.tree();
    let (mut olds, mut news) = (0, 0);
    for left in 1.. {
        let assets = start.copy();
        let disk = Mortal { disk: Folder::new(assets.dir.path()), left: Cell::new(left) };
        let ended = create_on(&disk, target, assets.dir.path(), &assets.options());
        if disk.left.get() > 0 {
            ended.unwrap();
            break;
        }
        recover(assets.dir.path()).unwrap();
        let now = contents(&assets);
        if now == old {
            olds += 1;
        } else {
            assert_eq!(assets.tree(), new_names, "killed at operation {left}");
            news += 1;
        }
        let infra = |assets: &Assets| {
            seedling_assets::state_files(assets.dir.path()).unwrap()["*installconfig.ClusterID"]["infraID"]
                .clone()
        };
        let before = assets.path(".openshift_install_state.json").exists().then(|| infra(&assets));
        assets.create(target).unwrap();
        assert_eq!(assets.tree(), new_names, "run again after operation {left}");
        assert!(before.is_none_or(|before| before == infra(&assets)), "the identity is kept");
        let kept = seedling_assets::state_files(assets.dir.path()).unwrap();
        let kept = kept.values().flat_map(|files| files.values()).any(|contents| contents.contains(edited));
        assert!(kept, "the user's edit is not lost");
    }
    assert!(olds >= 2 && news > 10, "{olds} times the old files, {news} times the new ones");
}

#[test]
fn manifests_of_an_install_config() {
    killed_everywhere(&Assets::of_case(SEED), Target::Manifests, "ocp4");
}

#[test]
fn ignition_configs_of_edited_manifests() {
    let assets = Assets::of_case(SEED);
    assets.create(Target::Manifests).unwrap();
    let manifests = assets.copy();
    // Keys are in the state already: making them takes longer than all that is looked at here.
    assets.create(Target::IgnitionConfigs).unwrap();
    for name in manifests.tree().iter().filter(|name| name.contains('/')) {
        assets.write(name, &manifests.read(name));
    }
    for name in ["bootstrap.ign", "metadata.json", "auth/kubeconfig", "manifests/kube-cloud-config.yaml"] {
        fs::remove_file(assets.path(name)).unwrap();
    }
    let path = "manifests/cluster-scheduler-02-config.yml";
    assets.write(path, &assets.read(path).replace("true", "false"));
    killed_everywhere(&assets, Target::IgnitionConfigs, "mastersSchedulable: false");
}

/// The old manifests must not come back as a user's edits of the new cluster's.
#[test]
fn manifests_of_another_install_config() {
    let assets = Assets::of_case(SEED);
    let text = assets.read("install-config.yaml");
    assets.create(Target::Manifests).unwrap();
    assets.write("install-config.yaml", &text.replace("ocp4", "other"));
    let reference = assets.copy();
    reference.create(Target::Manifests).unwrap();
    let operations = 200;
    for left in (1..operations).step_by(11) {
        let copy = assets.copy();
        let disk = Mortal { disk: Folder::new(copy.dir.path()), left: Cell::new(left) };
        let _ = create_on(&disk, Target::Manifests, copy.dir.path(), &copy.options());
        copy.create(Target::Manifests).unwrap();
        assert!(copy.read("manifests/cluster-dns-02-config.yml").contains("other.alchemy.com"), "{left}");
        assert_eq!(copy.tree(), reference.tree());
    }
}
