//! `seedling graph`: what each asset is made of.

use std::io::Write;

/// To stdout, for `dot -Tsvg`. Who reads only the beginning has what he wants.
pub(crate) fn run() {
    let _ = std::io::stdout().write_all(seedling_assets::dot().as_bytes());
}
