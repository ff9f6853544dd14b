//! A lab whose registry has the test images beside the release, and whose machines ask it for them.

use super::images::{NAMES, REGISTRY};
use anyhow::{Context, Result, ensure};
use seedling_e2e::{Lab, run};
use seedling_lab::Labs;
use seedling_release::Layout;
use seedling_types::names::REGISTRY as OURS;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// containerd asks the helper for the suite's registry as for the release's. Images are there before a test's clock runs.
const FETCH: &str = r#"
hosts=/etc/containerd/certs.d
mkdir -p $hosts/$1 && cp $hosts/$2/hosts.toml $hosts/$1/
registry=$1; shift 2
for image; do crictl pull "$registry/$image" > /dev/null || exit 1; done
"#;

/// The release with the test images, by hard links: what the lab's helper serves.
pub(crate) fn release(cache: &Path, release: &Path, images: &Path) -> Result<PathBuf> {
    let dir = place(cache);
    if dir.exists() {
        fs::remove_dir_all(&dir).with_context(|| dir.display().to_string())?;
    }
    run(Command::new("cp").arg("-al").arg(release).arg(&dir))?;
    Layout::open(&dir.join("oci"))?.take_in(&Layout::open(images)?)?;
    Ok(dir)
}

fn place(cache: &Path) -> PathBuf {
    cache.join("conformance/release")
}

pub(crate) fn grow(lab: &Lab, release: &Path) -> Result<()> {
    let status = lab.lab(&["up", "--release"]).arg(release).status()?;
    ensure!(status.success(), "lab up ended with {status}");
    Ok(())
}

/// One that was grown before must serve the test images.
pub(crate) fn is_usable(lab: &Lab, labs: &Labs) -> Result<()> {
    let served = &labs.open(&lab.name)?.record.spec.release_dir;
    let wanted = place(&labs.cache);
    ensure!(
        *served == wanted,
        "lab {} serves {}; grow it with `seedling lab up --name {0} --release {}`",
        lab.name,
        served.display(),
        wanted.display()
    );
    Ok(())
}

/// Gives every node the images; returns how many nodes there are.
pub(crate) fn fetch(lab: &Lab) -> Result<usize> {
    let nodes = lab.items(&["nodes"])?;
    for node in &nodes {
        let name = seedling_e2e::name(node);
        eprintln!("{name}: fetching {} test images", NAMES.len());
        let script = ["sh", "-c", FETCH, "sh", REGISTRY, OURS];
        lab.exec(name, &script.iter().chain(NAMES).copied().collect::<Vec<_>>())?;
    }
    Ok(nodes.len())
}
