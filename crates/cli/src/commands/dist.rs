//! `seedling dist`: what is given away, made in a checkout from a built release. `make dist` calls it.

use anyhow::{Context, Result};
use clap::{Args, Command};
use clap_complete::Shell;
use seedling_release::dist::{Inputs, Package, write_deb, write_sbom, write_sums};
use seedling_release::{default_cache, pack};
use std::path::{Path, PathBuf};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(Args)]
pub(crate) struct DistArgs {
    /// The checkout
    #[arg(long, value_name = "DIR", default_value = ".")]
    source: PathBuf,
    /// A built release
    #[arg(long, value_name = "DIR")]
    release: PathBuf,
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Of the sources, in seconds since 1970: the time of everything that has one
    #[arg(long, env = "SOURCE_DATE_EPOCH", value_name = "SECONDS")]
    date: u32,
}

pub(crate) async fn run(args: DistArgs, command: Command) -> Result<()> {
    std::fs::create_dir_all(&args.out)?;
    let cache = default_cache();
    let node_image = seedling_machines::image::ensure(&cache, &|text| eprintln!("{text}")).await?;
    let deb = format!("seedling_{VERSION}_amd64.deb");
    let payload = format!("seedling-payload-{VERSION}-amd64.tar");
    let sbom = format!("seedling-{VERSION}.spdx.json");
    let package = package(&args.source, command)?;
    let created = OffsetDateTime::from_unix_timestamp(args.date.into())?.format(&Rfc3339)?;
    // Archives and compression: nothing here is asynchronous.
    tokio::task::spawn_blocking(move || {
        let out = |name: &str| args.out.join(name);
        write_deb(&package, VERSION, args.date.into(), &out(&deb))?;
        pack(VERSION, &args.release, &node_image, &out(&payload))?;
        let inputs = Inputs {
            source: &args.source,
            release: &args.release,
            node_image: &node_image,
            cache: &cache,
            version: VERSION,
            created: &created,
        };
        write_sbom(&inputs, &out(&sbom))?;
        write_sums(&args.out, &[deb, payload, sbom])?;
        println!("{}", args.out.join("SHA256SUMS").display());
        Ok(())
    })
    .await?
}

/// With the names of all commands below; `help` needs no page.
fn built(command: Command) -> Command {
    let mut command = without_help(command);
    command.build();
    command
}

fn without_help(command: Command) -> Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}

/// The .deb's files: this program, what a shell and a reader need, and the helper's unit.
fn package(source: &Path, mut command: Command) -> Result<Package> {
    let read = |path: &str| {
        let path = source.join(path);
        std::fs::read_to_string(&path).with_context(|| path.display().to_string())
    };
    let mut package = Package::new(read("dist/control")?);
    for script in ["postinst", "postrm"] {
        package.scripts.push((script.into(), read(&format!("dist/{script}"))?));
    }
    package.program("usr/bin/seedling", &std::env::current_exe()?);
    package.text("usr/lib/systemd/system/seedling-helper.service", read("dist/seedling-helper.service")?);
    package.text("usr/share/doc/seedling/examples/helper.yaml", read("dist/helper.yaml")?);
    package.text("usr/share/doc/seedling/copyright", read("dist/copyright")?);
    package.compressed("usr/share/doc/seedling/changelog", read("CHANGELOG.md")?.as_bytes())?;
    for (shell, path) in [
        (Shell::Bash, "usr/share/bash-completion/completions/seedling"),
        (Shell::Zsh, "usr/share/zsh/vendor-completions/_seedling"),
        (Shell::Fish, "usr/share/fish/vendor_completions.d/seedling.fish"),
    ] {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command, "seedling", &mut script);
        package.text(path, script);
    }
    for (name, page) in man_pages(&built(command))? {
        package.compressed(&format!("usr/share/man/man1/{name}.1"), &page)?;
    }
    Ok(package)
}

/// A page for each command that `--help` shows: `seedling-lab-up`.
fn man_pages(command: &Command) -> Result<Vec<(String, Vec<u8>)>> {
    let name = command.get_display_name().unwrap_or(command.get_name()).to_string();
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    let mut pages = vec![(name, page)];
    for sub in command.get_subcommands().filter(|c| !c.is_hide_set()) {
        pages.extend(man_pages(sub)?);
    }
    Ok(pages)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_command_has_a_page() {
        let pages = man_pages(&built(crate::Cli::command())).unwrap();
        let find = |name: &str| pages.iter().find(|(page, _)| page == name).map(|(_, text)| text);
        let text = String::from_utf8_lossy(find("seedling-lab-up").unwrap());
        assert!(text.contains(".TH seedling-lab-up 1"), "{text}");
        assert!(text.contains("etcd\\-disk"), "{text}");
        assert!(pages.iter().all(|(name, _)| !name.ends_with("-help")));
        assert!(find("seedling").is_some() && find("seedling-release-load").is_some());
        assert!(
            find("seedling-dist").is_none() && find("seedling-operator").is_none(),
            "hidden ones have none"
        );
    }

    /// What the package is made of is there, and its unit starts a command that exists.
    #[test]
    fn the_package_is_complete() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let package = package(&source, crate::Cli::command()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        write_deb(&package, VERSION, 0, &dir.path().join("x.deb")).unwrap();
        let unit = std::fs::read_to_string(source.join("dist/seedling-helper.service")).unwrap();
        let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/")).unwrap();
        crate::Cli::command().try_get_matches_from(start.split_whitespace()).unwrap();
        let example = source.join("dist/helper.yaml");
        seedling_helper::load(&example).unwrap();
    }
}
