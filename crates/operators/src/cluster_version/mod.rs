//! The version operator: works the payload's manifests into the cluster and says how far it is.
//!
//! In: the release image's `/release-manifests`, ClusterVersion `version`, the ClusterOperators. Out: every included manifest
//! applied and kept, ClusterVersion's status. It runs twice in a cluster's life, under one lease: as a static pod on the
//! bootstrap node, then as a Deployment on a master, which continues where the first one stopped.

mod apply;
mod board;
mod drift;
mod graph;
mod inclusion;
mod operators;
mod payload;
mod reconcile;
mod schedule;
mod status;
mod sync;

use crate::Result;
use crate::runtime::Context;
use seedling_types::names::NS_CVO;
use std::path::PathBuf;

pub use payload::{Payload, PayloadError};
pub use sync::work_payload;

/// (namespace, name) of the lease that the bootstrap pod and the Deployment share.
pub const LEASE: (&str, &str) = (NS_CVO, "version");
/// Owner of the applied fields.
const MANAGER: &str = "cluster-version-operator";

pub(crate) async fn run(context: Context) -> Result<()> {
    Ok(work_payload(context.client, &Options::from_env()?).await?)
}

#[derive(Clone, Debug)]
pub struct Options {
    pub manifests: PathBuf,
    /// The pull spec this operator itself runs from: the payload cannot contain its own digest.
    pub release_image: String,
}

impl Options {
    /// `RELEASE_MANIFESTS` (default `/release-manifests`) and `RELEASE_IMAGE`, as the manifests set them.
    pub fn from_env() -> Result<Self, PayloadError> {
        let manifests = std::env::var_os("RELEASE_MANIFESTS").unwrap_or_else(|| "/release-manifests".into());
        let release_image = std::env::var("RELEASE_IMAGE").map_err(|_| PayloadError::NoReleaseImage)?;
        Ok(Self { manifests: manifests.into(), release_image })
    }
}
