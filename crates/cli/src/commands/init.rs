//! `seedling init`: an install-config to start from, with a comment for every field.

use anyhow::{Context, Result, bail};
use clap::Args;
use seedling_steps::write_atomic;
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct InitArgs {
    /// The directory to write install-config.yaml into; it is created if missing
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// Print it instead of writing a file
    #[arg(long)]
    print: bool,
}

pub(crate) fn run(args: &InitArgs) -> Result<()> {
    let example = seedling_assets::config::example();
    if args.print {
        print!("{example}");
        return Ok(());
    }
    let path = args.dir.join("install-config.yaml");
    if path.exists() {
        bail!("{} is there already; move it away first", path.display());
    }
    std::fs::create_dir_all(&args.dir).with_context(|| format!("cannot make {}", args.dir.display()))?;
    write_atomic(&path, example, 0o600).with_context(|| format!("cannot write {}", path.display()))?;
    eprintln!(
        "{} is written; edit it, then: seedling create ignition-configs --dir {}",
        path.display(),
        args.dir.display()
    );
    Ok(())
}
