//! `seedling version`

use anyhow::Result;
use clap::Args;

#[derive(Args)]
pub struct VersionArgs {
    /// Output format
    #[arg(short, long, value_enum, default_value_t = super::release::Output::Table)]
    output: super::release::Output,
}

pub fn run(args: VersionArgs) -> Result<()> {
    let release = seedling_release::load(&seedling_release::default_cache().join("release")).ok();
    let kubernetes = release.as_ref().map(|r| r.kubernetes_version.clone());
    match args.output {
        super::release::Output::Json => {
            let version = serde_json::json!({"version": env!("CARGO_PKG_VERSION"), "kubernetes": kubernetes,
                "releaseImage": release.map(|r| r.release_image)});
            println!("{version}");
        }
        super::release::Output::Table => {
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
