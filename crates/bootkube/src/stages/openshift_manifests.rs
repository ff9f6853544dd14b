//! Stage 1: the installer's second folder joins the first.

use super::names;
use crate::error::ensure;
use crate::{Context, Outcome, Result};
use seedling_steps::Stage;

pub(crate) const STAGE: Stage = Stage {
    name: "openshift-manifests",
    done: Some("openshift-manifests"),
    what: "Copies the installer's second folder, openshift/, into manifests/.",
    why: "everything that is to be created lies in one folder",
    reads: &["openshift/*"],
    writes: &["manifests/*"],
    check: "each file of openshift/ is in manifests/",
    fails: &[
        "a manifest of yours that cannot be read: put it right in the asset directory and boot from new Ignition files",
    ],
    upstream: "cp openshift/* manifests/",
    see: &["seed.003.1", "file./opt/openshift"],
};

pub(crate) async fn run(c: &Context) -> Result<Outcome> {
    for name in names(&c.dir("openshift"))? {
        c.write(&c.dir("manifests").join(&name), c.read(&format!("openshift/{name}"))?, 0o600)?;
    }
    Ok(Outcome::Done)
}

pub(crate) async fn check(c: &Context) -> Result<()> {
    for name in names(&c.dir("openshift"))? {
        let [copy, given] =
            ["manifests", "openshift"].map(|folder| c.read_if_there(&format!("{folder}/{name}")));
        ensure!(copy? == given?, "manifests/{name} is no copy");
    }
    Ok(())
}
