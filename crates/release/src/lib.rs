//! The release: a bill of materials becomes what a cluster is grown from.
//!
//! In: `release/` (a go.mod + go.sum a group, Debian package names, CRD names, manifests), the seedling binary.
//! Out: `oci/` (an OCI image layout), `bin/` (node software) and `release.json` (`types::ReleaseInfo`), all cached by content:
//! what did not change is not built again. `seed_store` unpacks the images once for all nodes of a lab. The helper serves
//! `oci/` and `bin/`; bootkube and the operators read the digests. `pack` makes one file of it for other machines, `load_archive`
//! takes it in there.

mod archive;
mod bill;
mod build;
mod debian;
pub mod dist;
mod error;
mod gobuild;
mod info;
mod manifests;
mod oci;
mod operators;
mod programs;
mod progress;
mod retry;
mod seed;
mod toolchain;
mod tree;

pub use archive::{Places, load as load_archive, pack};
pub use build::{Options, build};
pub use error::{ReleaseError, Result};
pub use gobuild::module_dir;
pub use info::{Row, load, rows};
pub use manifests::Payload;
pub use oci::{Blob, Layout, Start};
pub use programs::compile;
pub use progress::Progress;
pub use seed::{clone_store, seed_store};
pub use toolchain::{GO, Toolchain};
pub use tree::{Source, Tree};

use std::path::PathBuf;

/// `$SEEDLING_CACHE`, or `/var/cache/seedling`.
pub fn default_cache() -> PathBuf {
    std::env::var_os("SEEDLING_CACHE").map_or_else(|| PathBuf::from("/var/cache/seedling"), PathBuf::from)
}
