//! `seedling graph`: what each asset is made of.

/// To stdout, for `dot -Tsvg`.
pub fn run() {
    print!("{}", seedling_assets::dot());
}
