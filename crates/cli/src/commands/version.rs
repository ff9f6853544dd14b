//! `seedling version`

use super::lab::{Format, Output};
use anyhow::Result;
use clap::Args;

#[derive(Args)]
pub(crate) struct VersionArgs {
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(args: VersionArgs) -> Result<()> {
    let release = seedling_release::load(&seedling_release::default_cache().join("release")).ok();
    let kubernetes = release.as_ref().map(|r| r.kubernetes_version.clone());
    match args.output.output {
        Format::Json => {
            let version = serde_json::json!({"version": env!("CARGO_PKG_VERSION"), "kubernetes": kubernetes,
                "releaseImage": release.map(|r| r.release_image)});
            println!("{version}");
        }
        Format::Table => {
            println!("seedling {}", env!("CARGO_PKG_VERSION"));
            match release {
                Some(release) => {
                    println!("release {}, Kubernetes {}", release.release_image, release.kubernetes_version)
                }
                None => println!("no release yet: seedling release load ARCHIVE, or seedling release build"),
            }
        }
    }
    Ok(())
}
