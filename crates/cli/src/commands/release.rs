//! `seedling release`: make the payload, show what is in it.

use anyhow::{Context, Result};
use clap::{Subcommand, ValueEnum};
use seedling_release::{Options, build, default_cache, load, rows};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum ReleaseCommand {
    /// Build images, node software and manifests from the bill of materials; only what changed is made again
    Build {
        /// The bill of materials
        #[arg(long, value_name = "DIR", default_value = "release")]
        source: PathBuf,
        /// Where the release goes [default: release/ in the cache]
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        /// The binary for the images and the nodes [default: this one]
        #[arg(long, value_name = "PATH")]
        seedling: Option<PathBuf>,
    },
    /// Show components, versions, image digests and sizes
    Info {
        #[arg(short, long, value_enum, default_value_t = Output::Table)]
        output: Output,
        /// A release [default: release/ in the cache]
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Output {
    Table,
    Json,
}

pub async fn run(command: ReleaseCommand) -> Result<()> {
    // Compilers and archives: nothing here is asynchronous.
    tokio::task::spawn_blocking(|| match command {
        ReleaseCommand::Build { source, out, seedling } => build_release(source, out, seedling),
        ReleaseCommand::Info { output, dir } => {
            show(output, dir.unwrap_or_else(|| default_cache().join("release")))
        }
    })
    .await?
}

/// The release a lab boots from: the one given, else the cache's.
pub async fn ensure_release(dir: Option<PathBuf>) -> Result<PathBuf> {
    let dir = dir.unwrap_or_else(|| default_cache().join("release"));
    load(&dir)
        .context("there is no release to boot from; run `seedling release build` in a checkout first")?;
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

fn show(output: Output, dir: PathBuf) -> Result<()> {
    let release = load(&dir)?;
    if let Output::Json = output {
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
