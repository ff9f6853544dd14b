//! `cargo run --release -p seedling-release --example build -- SEEDLING [seed]`: the release without the command line.

use seedling_release::{Options, build, default_cache, seed_store};
use std::path::PathBuf;

fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let seedling = args.next().map_or_else(std::env::current_exe, |path| Ok(PathBuf::from(path)))?;
    let cache = default_cache();
    let out = cache.join("release");
    build(&Options { source: "release".into(), out: out.clone(), cache: cache.clone(), seedling })?;
    if args.next().as_deref() == Some("seed") {
        println!("{}", seed_store(&out, &cache)?.display());
    }
    Ok(())
}
