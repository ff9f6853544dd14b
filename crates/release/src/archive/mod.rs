//! The payload as one file, for machines that build nothing and may reach no network.
//!
//! A plain tar: `index.json`, then one `<part>.tar.gz` for each part (the release, the node image). The index has size and sha256 of
//! each, so that a file that was cut off or changed on its way is refused before anything of it is unpacked. [`pack`] writes the
//! same bytes for the same content; [`load`] puts the parts where `lab up` looks for them.

mod load;
mod pack;
#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;

pub use load::{Places, load};
pub use pack::pack;

use crate::error::{ReleaseError, Result};
use serde::{Deserialize, Serialize};

/// Counted up when an older program could not read what a newer one packs.
const FORMAT: u32 = 1;
const INDEX: &str = "index.json";
const RELEASE: &str = "release";
const NODE_IMAGE: &str = "node-image";

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Index {
    format: u32,
    /// Of the program that the payload belongs to.
    version: String,
    /// The node image's name: what it was made of.
    node_image: String,
    /// In the order of the file.
    parts: Vec<Part>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    name: String,
    sha256: String,
    size: u64,
    /// Bytes of its tar.
    unpacked: u64,
}

impl Part {
    fn file(&self) -> String {
        format!("{}.tar.gz", self.name)
    }
}

impl Index {
    fn check(&self, version: &str, node_image: &str) -> Result<()> {
        let names: Vec<_> = self.parts.iter().map(|part| part.name.as_str()).collect();
        let known = self.format == FORMAT && names == [NODE_IMAGE, RELEASE];
        if known && (self.version.as_str(), self.node_image.as_str()) == (version, node_image) {
            return Ok(());
        }
        Err(ReleaseError::invalid(
            format!(
                "the archive is of seedling {} with node image {:?}; this is seedling {version}, which needs {node_image:?}",
                self.version, self.node_image
            ),
            "take the archive and the .deb from the same release",
        ))
    }
}
