//! The node image that container machines boot from: see `seedling-image`, which makes it.

use crate::run::{MachineError, Progress, Result};
use std::path::{Path, PathBuf};

pub use seedling_image::node::path;

/// Makes the image unless it is there. Safe to call from several processes at once, and after one that was killed.
pub async fn ensure(cache: &Path, progress: Progress<'_>) -> Result<PathBuf> {
    Ok(seedling_image::node::ensure(cache, progress).await?)
}

/// Removes a file, a link or a whole directory; it may be missing.
pub(crate) fn remove_tree(path: &Path) -> Result<()> {
    seedling_image::remove_tree(path).map_err(MachineError::Image)
}
