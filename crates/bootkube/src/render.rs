//! A rendering stage alone: its files, made in a directory of their own from a copy of its inputs.

use crate::error::{cannot, ensure};
use crate::{Context, Error, PLAN, PlannedStage, Result};
use seedling_steps::{matches_pattern, write_atomic};
use seedling_types::description::on_node;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Path on the node → contents.
pub type Tree = BTreeMap<String, Vec<u8>>;

pub struct Rendered {
    /// On the node; below the output directory they have the same path.
    pub files: Vec<String>,
    /// Stages that had to run before, because this one reads what they write and it was not there.
    pub first: Vec<&'static str>,
}

/// What makes the stage's inputs comes from `input`, or from earlier rendering stages. Nothing else of this machine is touched.
pub async fn render(step: &'static PlannedStage, input: &Tree, output: &Path) -> Result<Rendered> {
    ensure!(step.renders(), "{} renders nothing: it asks a running cluster", step.stage.name);
    let scratch = Scratch::new(output)?;
    plant(&scratch.0, input)?;
    let first = missing(step, input);
    for earlier in &first {
        run(earlier, &scratch.0).await?;
    }
    let before = tree(&scratch.0)?;
    run(step, &scratch.0).await?;
    let after = tree(&scratch.0)?;
    let written =
        after.into_iter().filter(|(path, contents)| before.get(path) != Some(contents) && !is_record(path));
    let mut files = Vec::new();
    for (path, contents) in written {
        let to = output.join(path.trim_start_matches('/'));
        put(&to, &contents)?;
        files.push(path);
    }
    Ok(Rendered { files, first: first.iter().map(|step| step.stage.name).collect() })
}

async fn run(step: &PlannedStage, root: &Path) -> Result<()> {
    step.work(&Context::load(root)?).await.map(drop).map_err(|error| error.in_stage(step.stage.name))
}

/// The earlier stages that write what is read and is not there, with what those need in turn; in the order of the plan.
fn missing(step: &PlannedStage, input: &Tree) -> Vec<&'static PlannedStage> {
    let mut wanted: Vec<&str> = vec![step.stage.name];
    let place = PLAN.iter().position(|other| other.stage.name == step.stage.name).unwrap_or_default();
    let mut found = Vec::new();
    for other in PLAN[..place].iter().rev().filter(|other| other.renders()) {
        let needs = |reader: &PlannedStage| {
            let lacks = |read: &&&str| !input.keys().any(|path| matches_pattern(&on_node(read), path));
            let writes =
                |read: &&str| other.stage.writes.iter().any(|write| overlap(&on_node(write), &on_node(read)));
            reader.stage.reads.iter().filter(|read| !read.contains(" (")).filter(lacks).any(writes)
        };
        if PLAN.iter().filter(|reader| wanted.contains(&reader.stage.name)).any(needs) {
            wanted.push(other.stage.name);
            found.insert(0, other);
        }
    }
    found
}

/// Whether two patterns may mean the same file.
fn overlap(one: &str, other: &str) -> bool {
    let some = |pattern: &str| pattern.replace('*', "x");
    one == other || matches_pattern(one, &some(other)) || matches_pattern(other, &some(one))
}

/// The journal and its views tell of the run, and are not what it made.
fn is_record(path: &str) -> bool {
    path.starts_with("/var/log/")
}

/// Gone when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(output: &Path) -> Result<Self> {
        let path = output.join(".render-scratch");
        let _ = fs::remove_dir_all(&path); // of a run that was killed
        fs::create_dir_all(&path).map_err(cannot("make", &path))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn plant(root: &Path, tree: &Tree) -> Result<()> {
    tree.iter().try_for_each(|(path, contents)| put(&root.join(path.trim_start_matches('/')), contents))
}

/// Keys are among them.
fn put(path: &Path, contents: &[u8]) -> Result<()> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).map_err(cannot("make", dir))?;
    }
    write_atomic(path, contents, 0o600).map_err(cannot("write", path))
}

/// All files below a node's root.
pub fn tree(root: &Path) -> Result<Tree> {
    fn add(dir: &Path, root: &Path, found: &mut Tree) -> Result<()> {
        for entry in fs::read_dir(dir).map_err(cannot("list", dir))? {
            let entry = entry.map_err(cannot("list", dir))?;
            let path = entry.path();
            let kind = entry.file_type().map_err(cannot("list", &path))?;
            if kind.is_dir() {
                add(&path, root, found)?;
            } else if kind.is_file() {
                let below = path.strip_prefix(root).map_err(|e| Error::Seen(e.to_string()))?;
                found
                    .insert(format!("/{}", below.display()), fs::read(&path).map_err(cannot("read", &path))?);
            }
        }
        Ok(())
    }
    let mut found = Tree::new();
    add(root, root, &mut found)?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(stage: &str, there: &[&str]) -> Vec<&'static str> {
        let input: Tree = there.iter().map(|path| (on_node(path), vec![])).collect();
        let step = PLAN.iter().find(|step| step.stage.name == stage);
        step.map(|step| missing(step, &input).iter().map(|step| step.stage.name).collect())
            .unwrap_or_default()
    }

    #[test]
    fn what_is_missing_is_made_first() {
        let of_all = [
            "release.json",
            "hosts.yaml",
            "manifests/cluster-config.yaml",
            "tls/kubelet-signer.key",
            "tls/service-account.key",
        ];
        assert_eq!(first("kube-controller-manager-bootstrap", &of_all), ["config-bootstrap"]);
        let mut with = of_all.to_vec();
        with.push("tls/csr-signer.crt");
        assert!(first("kube-controller-manager-bootstrap", &with).is_empty());
        assert!(first("kube-scheduler-bootstrap", &of_all).is_empty());
    }
}
