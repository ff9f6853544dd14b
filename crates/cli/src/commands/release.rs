//! `seedling release`: make the payload, or take it in as one file; show what is in it.

use super::lab::{Format, Output};
use anyhow::{Context, Result};
use clap::Subcommand;
use seedling_release::{Options, Places, build, default_cache, load, load_archive, rows};
use std::path::{Path, PathBuf};

#[derive(Debug, Subcommand)]
pub(crate) enum ReleaseCommand {
    /// Build images, node software and manifests from source; only what changed is built again
    Build {
        /// The bill of materials: Go modules, Debian packages, manifests
        #[arg(long, value_name = "DIR", default_value = "release")]
        source: PathBuf,
        /// The directory to write the release into [default: release/ in the cache]
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        /// The seedling binary to put into images and onto nodes [default: this one]
        #[arg(long, value_name = "PATH")]
        seedling: Option<PathBuf>,
    },
    /// Unpack a release archive made by `make dist`: release and node image, without compilers or a network
    ///
    /// The file is checked before it is unpacked, also against a SHA256SUMS file beside it. Running it again is harmless.
    Load {
        /// The archive, seedling-payload-VERSION-amd64.tar
        archive: PathBuf,
        /// The directory to write the release into [default: release/ in the cache]
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// List components, versions, image digests and sizes
    Info {
        #[command(flatten)]
        output: Output,
        /// The release's directory [default: release/ in the cache]
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

pub(crate) async fn run(command: ReleaseCommand) -> Result<()> {
    // Compilers and archives: nothing here is asynchronous.
    tokio::task::spawn_blocking(|| match command {
        ReleaseCommand::Build { source, out, seedling } => build_release(source, out, seedling),
        ReleaseCommand::Load { archive, dir } => load_release(&archive, dir),
        ReleaseCommand::Info { output, dir } => {
            show(output.output, dir.unwrap_or_else(|| default_cache().join("release")))
        }
    })
    .await?
}

/// The release a lab boots from: the one given, else the cache's.
pub(crate) async fn ensure_release(dir: Option<PathBuf>) -> Result<PathBuf> {
    let dir = dir.unwrap_or_else(|| default_cache().join("release"));
    load(&dir)
        .context("there is no release to boot from; run `seedling release load ARCHIVE`, or `seedling release build` in a checkout")?;
    Ok(dir)
}

fn build_release(source: PathBuf, out: Option<PathBuf>, seedling: Option<PathBuf>) -> Result<()> {
    let cache = default_cache();
    let out = out.unwrap_or_else(|| cache.join("release"));
    let seedling = seedling.map_or_else(std::env::current_exe, Ok).context("finding this program")?;
    let release = build(&Options { source, out, cache, seedling })?;
    println!("{}", release.release_image);
    Ok(())
}

fn load_release(archive: &Path, dir: Option<PathBuf>) -> Result<()> {
    let cache = default_cache();
    let release = dir.unwrap_or_else(|| cache.join("release"));
    let places = Places { node_image: seedling_machines::image::path(&cache), release, cache };
    let loaded = load_archive(archive, env!("CARGO_PKG_VERSION"), &places, &|text| eprintln!("{text}"))?;
    println!("{}", loaded.release_image);
    Ok(())
}

fn show(output: Format, dir: PathBuf) -> Result<()> {
    let release = load(&dir)?;
    if output == Format::Json {
        println!("{}", serde_json::to_string_pretty(&release)?);
        return Ok(());
    }
    println!(
        "Release {}, Kubernetes {}\n{}\n",
        release.version, release.kubernetes_version, release.release_image
    );
    println!("{:<24} {:<10} {:>9}  DIGEST", "COMPONENT", "VERSION", "SIZE");
    for row in rows(&dir, &release)? {
        let size = format!("{:.1} MB", row.size as f64 / 1e6);
        println!("{:<24} {:<10} {size:>9}  {}", row.component, row.version, row.digest);
    }
    println!("\n{:<24} {:>9}", "BINARY", "SIZE");
    for (name, binary) in &release.binaries {
        println!("{name:<24} {:>9}", format!("{:.1} MB", binary.size as f64 / 1e6));
    }
    Ok(())
}
