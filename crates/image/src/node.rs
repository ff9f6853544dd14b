//! The node image of a lab: a Debian root file system that every container machine has as its read-only lower layer.
//!
//! In: the recipe. Out: a directory named after the hash of its inputs, so a changed package list makes a new image and an
//! unchanged one is made once.

use crate::debian::Workshop;
use crate::furnish::furnish;
use crate::recipe::Kind;
use crate::run::{Progress, Result, at};
use std::fs;
use std::path::{Path, PathBuf};

/// Where the image for this program is, or will be.
pub fn path(cache: &Path) -> PathBuf {
    cache.join("node-image").join(Kind::Lab.hash())
}

/// Makes the image unless it is there. Safe to call from several processes at once, and after one that was killed.
pub async fn ensure(cache: &Path, progress: Progress<'_>) -> Result<PathBuf> {
    let image = path(cache);
    if image.exists() {
        return Ok(image);
    }
    let workshop = Workshop::enter(cache, progress).await?;
    if image.exists() {
        return Ok(image); // made while we waited
    }
    let building = workshop.bench()?;
    workshop.unpack(Kind::Lab, &building, progress).await?;
    furnish(&building, Kind::Lab)?;
    at(&image, fs::rename(&building, &image))?;
    progress("node image ready");
    Ok(image)
}
