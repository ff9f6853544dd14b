//! `seedling graph`: what each asset is made of.

use std::io::Write;

/// To stdout, for `dot -Tsvg`. A reader may close the pipe early.
pub(crate) fn run() {
    let _ = std::io::stdout().write_all(seedling_assets::dot().as_bytes());
}
