//! `seedling helper init|install|uninstall|export|images`: the helper on a real network.

use super::helper::CONFIG;
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use ipnet::Ipv4Net;
use seedling_helper::boot::images;
use seedling_helper::export::{self, Program};
use seedling_helper::init::{self, Wanted};
use seedling_helper::{load, unit};
use seedling_steps::{Probe, wait_for, write_atomic};
use seedling_types::{ClusterDomain, Inventory};
use serde_json::Value;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const UNITS: &str = "/etc/systemd/system";

#[derive(Args)]
pub(crate) struct InitArgs {
    /// The directory with install-config.yaml, or the assets made of it, and hosts.yaml
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// The machines [default: hosts.yaml in that directory]
    #[arg(long, value_name = "FILE")]
    hosts: Option<PathBuf>,
    /// The cluster's domain, if there is no install-config.yaml
    #[arg(long, value_name = "NAME.DOMAIN")]
    domain: Option<String>,
    /// The machines' network [default: the install-config's machineNetwork, else the interface's]
    #[arg(long)]
    network: Option<Ipv4Net>,
    /// The interface on it [default: the one with an address on it]
    #[arg(long)]
    interface: Option<String>,
    /// The helper's address on it [default: this machine's]
    #[arg(long)]
    address: Option<Ipv4Addr>,
    /// The boot image's directory, for machines that boot over the network
    #[arg(long, value_name = "DIR")]
    image: Option<PathBuf>,
    /// The file to write
    #[arg(long, default_value = "helper.yaml")]
    output: PathBuf,
    /// Print it instead of writing a file
    #[arg(long)]
    print: bool,
}

pub(crate) fn init(args: &InitArgs) -> Result<()> {
    let file = args.dir.join("install-config.yaml");
    let config: Option<Value> = match std::fs::read_to_string(&file) {
        Ok(text) => Some(serde_saphyr::from_str(&text).with_context(|| file.display().to_string())?),
        Err(_) => None,
    };
    let named = config.as_ref().and_then(|config| {
        Some(ClusterDomain::new(config["metadata"]["name"].as_str()?, config["baseDomain"].as_str()?))
    });
    let Some(domain) = args.domain.clone().map(ClusterDomain).or(named) else {
        bail!("{} has no metadata.name and baseDomain; name the cluster with --domain", file.display());
    };
    let hosts = args.hosts.clone().unwrap_or_else(|| args.dir.join("hosts.yaml"));
    let text = std::fs::read_to_string(&hosts).with_context(|| format!("cannot read {}", hosts.display()))?;
    let inventory = Inventory::parse(&text).map_err(|errors| {
        let lines: Vec<_> = errors.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("{}: {}", hosts.display(), lines.join("\n"))
    })?;
    let machine_network = config.as_ref().and_then(|config| {
        config["networking"]["machineNetwork"][0]["cidr"].as_str()?.parse::<Ipv4Net>().ok()
    });
    // The default of an install-config is wider than any interface; the machines say where they are.
    let network = args.network.or(machine_network);
    let locals = init::ask_locals();
    if inventory.hosts.iter().any(|host| host.v6().is_some()) {
        bail!(
            "{} has IPv6 addresses: write `secondAddress: ADDRESS/PREFIX`, or IPv6 in `address:` and `network:`, by hand",
            hosts.display()
        );
    }
    let first = inventory.hosts.first().and_then(|host| host.v4());
    let near: Vec<_> = locals
        .iter()
        .filter(|local| {
            args.interface.is_some()
                || args.address.is_some()
                || first.is_none_or(|first| local.network.contains(&first))
        })
        .cloned()
        .collect();
    let found = init::choose(&near, network, args.interface.as_deref(), args.address);
    let (interface, address, network) = match (found, &args.interface, args.address, network) {
        (Some(local), ..) => (local.interface.clone(), local.address, args.network.unwrap_or(local.network)),
        (None, Some(interface), Some(address), Some(network)) => (interface.clone(), address, network),
        _ => bail!(
            "this machine has no address on the machines' network{}; give --interface, --address and --network",
            network.map(|network| format!(" {network}")).unwrap_or_default()
        ),
    };
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.into());
    let text = init::yaml(&Wanted {
        domain,
        interface,
        address,
        network,
        inventory,
        assets: absolute(&args.dir),
        release: seedling_release::default_cache().join("release"),
        router: init::ask_router().filter(|router| network.contains(router) && *router != address),
        forwarders: init::ask_resolvers().into_iter().filter(|server| *server != address).collect(),
        image: args.image.as_deref().map(absolute),
    });
    if args.print {
        print!("{text}");
        return Ok(());
    }
    let to = &args.output;
    if to.exists() {
        bail!("{} is there already; move it away first, or use --print", to.display());
    }
    write_atomic(to, text, 0o644).with_context(|| format!("cannot write {}", to.display()))?;
    eprintln!("{0} is written; read it, then: seedling helper check --config {0}", to.display());
    Ok(())
}

#[derive(Args)]
pub(crate) struct InstallArgs {
    /// The helper's configuration
    #[arg(long, default_value = CONFIG)]
    config: PathBuf,
    /// Show the unit and what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn install(args: &InstallArgs) -> Result<()> {
    let config = load(&args.config)?;
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let path = std::path::absolute(&args.config)?;
    let text = unit::unit(&program, &path, &config);
    let to = Path::new(UNITS).join(unit::NAME);
    if args.dry_run {
        println!("# {}\n{text}", to.display());
        eprintln!(
            "not done: write {}; systemctl daemon-reload; systemctl enable {1}; systemctl restart {1}",
            to.display(),
            unit::NAME
        );
        return Ok(());
    }
    if !Path::new("/run/systemd/system").exists() {
        bail!(
            "systemd does not run here; `seedling helper run --config {}` is what the unit starts",
            path.display()
        );
    }
    write_atomic(&to, text, 0o644)
        .with_context(|| format!("cannot write {} (are you root?)", to.display()))?;
    for arguments in [&["daemon-reload"][..], &["enable", unit::NAME], &["restart", unit::NAME]] {
        systemctl(arguments)?;
    }
    let hint = format!("journalctl -u {}", unit::NAME);
    let condition = seedling_lab::listens(hint);
    wait_for(&condition, Duration::from_millis(100), async || match is_ready(&config.ready_file) {
        true => Probe::Met(()),
        false => Probe::Unmet("its ready file is not there yet".into()),
    })
    .await?;
    eprintln!("the helper runs; next: seedling helper check, seedling helper status");
    Ok(())
}

/// The process that the unit has now listens. One that was killed before it left its file behind.
fn is_ready(file: &Path) -> bool {
    let asked = Command::new("systemctl").args(["show", "-P", "MainPID", unit::NAME]).output();
    let main = asked.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_string()).unwrap_or_default();
    std::fs::read_to_string(file).is_ok_and(|text| text.lines().next() == Some(main.as_str()))
}

#[derive(Args)]
pub(crate) struct UninstallArgs {
    /// Show what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn uninstall(args: &UninstallArgs) -> Result<()> {
    let file = Path::new(UNITS).join(unit::NAME);
    if !file.exists() {
        eprintln!("there is no {}: nothing to do", file.display());
        return Ok(());
    }
    if args.dry_run {
        eprintln!(
            "not done: systemctl disable --now {}; rm {}; systemctl daemon-reload",
            unit::NAME,
            file.display()
        );
        return Ok(());
    }
    systemctl(&["disable", "--now", unit::NAME])?;
    std::fs::remove_file(&file).with_context(|| format!("cannot remove {}", file.display()))?;
    systemctl(&["daemon-reload"])?;
    eprintln!("the helper is stopped and its unit is gone; helper.yaml and its event log are still there");
    Ok(())
}

fn systemctl(arguments: &[&str]) -> Result<()> {
    let out = Command::new("systemctl").args(arguments).output().context("cannot run systemctl")?;
    if !out.status.success() {
        bail!("systemctl {}: {}", arguments.join(" "), String::from_utf8_lossy(&out.stderr).trim());
    }
    Ok(())
}

#[derive(Args)]
pub(crate) struct ExportArgs {
    /// Which program: haproxy, dnsmasq, bind, dhcpd, kea, nginx, pxelinux, matchbox, libvirt
    #[arg(value_parser = program)]
    program: Program,
    /// The helper's configuration
    #[arg(long, default_value = CONFIG)]
    config: PathBuf,
    /// The directory to write into [default: a single file is printed]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

fn program(name: &str) -> Result<Program, String> {
    let known: Vec<_> = Program::ALL.iter().map(|program| program.as_str()).collect();
    Program::named(name).ok_or_else(|| format!("there are {}", known.join(", ")))
}

pub(crate) fn export(args: &ExportArgs) -> Result<()> {
    let files = export::export(args.program, &load(&args.config)?)?;
    match (&args.dir, files.as_slice()) {
        (None, [one]) => print!("{}", one.content),
        (None, files) => {
            let names: Vec<_> = files.iter().map(|file| file.name.as_str()).collect();
            bail!("there are {} files ({}); name a directory with --dir", files.len(), names.join(", "));
        }
        (Some(dir), files) => {
            for file in files {
                let path = dir.join(&file.name);
                write_atomic(&path, &file.content, 0o644)
                    .with_context(|| format!("cannot write {}", path.display()))?;
                println!("{}", path.display());
            }
        }
    }
    Ok(())
}

#[derive(Subcommand)]
pub(crate) enum ImagesCommand {
    /// Take the live image of Fedora CoreOS or RHCOS for network boot
    ///
    /// The three files are copied under the names that machines ask for, with this machine's iPXE and PXELINUX beside them.
    Add {
        /// The kernel, such as fedora-coreos-…-live-kernel-x86_64
        kernel: PathBuf,
        /// The initramfs, such as fedora-coreos-…-live-initramfs.x86_64.img
        initramfs: PathBuf,
        /// The root file system, such as fedora-coreos-…-live-rootfs.x86_64.img
        rootfs: PathBuf,
        /// Where to: the `imageDir` of helper.yaml's section `boot`
        #[arg(long, default_value = "/var/lib/seedling/boot")]
        dir: PathBuf,
    },
}

pub(crate) fn images(command: &ImagesCommand) -> Result<()> {
    let ImagesCommand::Add { kernel, initramfs, rootfs, dir } = command;
    let added = images::add(dir, kernel, initramfs, rootfs)?;
    for name in &added.files {
        println!("{}", dir.join(name).display());
    }
    for (package, name) in &added.missing {
        eprintln!("there is no {name} on this machine: apt install {package}, then run this again");
    }
    eprintln!(
        "in helper.yaml:\nboot:\n  imageDir: {}\n  kind: coreos\n  installDevice: /dev/sda   # by its name",
        dir.display()
    );
    Ok(())
}
