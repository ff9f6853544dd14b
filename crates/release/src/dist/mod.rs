//! What `make dist` gives away: a Debian package, the payload as one archive ([`crate::pack`]), a list of everything in them (SPDX),
//! and the sums of all three. The same sources give the same bytes.
//!
//! In: a built release, the node image, the files of the package. Out: a folder to publish.

mod deb;
mod go;
mod sbom;
mod sources;

pub use deb::{Package, write_deb};
pub use sbom::{Inputs, write_sbom};

use crate::error::{At, Result};
use crate::oci::write_atomically;
use crate::tree::sha256;
use std::fs::File;
use std::path::Path;

/// `SHA256SUMS` over some files of a folder, as `sha256sum -c` reads it.
pub fn write_sums(dir: &Path, names: &[String]) -> Result<()> {
    let mut lines = String::new();
    for name in names {
        let path = dir.join(name);
        lines.push_str(&format!("{}  {name}\n", sha256(File::open(&path).at(&path)?).at(&path)?));
    }
    write_atomically(&dir.join("SHA256SUMS"), lines.as_bytes())
}
