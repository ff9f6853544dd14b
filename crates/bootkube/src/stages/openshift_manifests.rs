//! Stage 1: the installer's second folder joins the first.

use crate::{Context, Outcome};
use anyhow::Result;
use seedling_steps::Stage;

pub const STAGE: Stage = Stage {
    name: "openshift-manifests",
    done: Some("openshift-manifests"),
    why: "everything that is to be created lies in one folder",
    reads: &["openshift/*"],
    writes: &["manifests/*"],
    check: "each file of openshift/ is in manifests/",
};

pub async fn run(c: &Context) -> Result<Outcome> {
    for entry in std::fs::read_dir(c.dir("openshift"))? {
        let path = entry?.path();
        if let Some(name) = path.file_name() {
            c.write(&c.dir("manifests").join(name), std::fs::read(&path)?, 0o600)?;
        }
    }
    Ok(Outcome::Done)
}
