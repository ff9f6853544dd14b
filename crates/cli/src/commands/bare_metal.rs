//! `seedling node power`, `node boot` and `node wake`: machines of iron, by their management controllers or by a packet.

use crate::conditions;
use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, ValueEnum};
use seedling_machines::bare_metal::{BootOnce, Redfish, Reset, broadcast_for, controller, wake};
use seedling_steps::{Condition, Probe, wait_for};
use seedling_types::Inventory;
use serde_json::Value;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

/// A machine that shuts down writes its disks first, and firmware takes its time.
const NO_PROGRESS: Duration = Duration::from_secs(300);
const LOOK: Duration = Duration::from_secs(1);

#[derive(Args)]
pub(crate) struct Machine {
    /// The machine's name among the file's hosts
    name: String,
    /// The file with the machine's `bmc` and its password: an install-config with platform.baremetal.hosts, or a file with the same `hosts`
    #[arg(long, value_name = "FILE", default_value = "install-config.yaml")]
    config: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum To {
    On,
    /// Shut down, as by its power button
    Off,
    /// As by pulling the plug
    Kill,
    /// Off and on again, at once
    Cycle,
    /// Say whether it is on, what it boots from next, and which ISO is in its drive
    Status,
}

#[derive(Args)]
pub(crate) struct PowerArgs {
    #[command(flatten)]
    machine: Machine,
    /// What is to become of it
    to: To,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum From {
    /// The network
    Pxe,
    Disk,
    /// The ISO in its drive
    Cd,
}

#[derive(Args)]
pub(crate) struct BootArgs {
    #[command(flatten)]
    machine: Machine,
    /// What it boots from, the next time only
    from: From,
    /// An ISO for its drive, at a URL that its management controller reaches; in place of the one that is there
    #[arg(long, value_name = "URL")]
    iso: Option<String>,
    /// Take the ISO out of its drive
    #[arg(long, conflicts_with = "iso")]
    eject: bool,
}

#[derive(Args)]
pub(crate) struct WakeArgs {
    /// The machine's name in hosts.yaml
    name: String,
    /// The list of machines, with their MAC addresses
    #[arg(long, value_name = "FILE", default_value = "hosts.yaml")]
    hosts: PathBuf,
    /// The broadcast address of the machine's network [default: of this machine's card in that network]
    #[arg(long, value_name = "ADDRESS")]
    broadcast: Option<Ipv4Addr>,
}

async fn open(machine: &Machine) -> Result<Redfish> {
    let file = machine.config.display();
    let text = std::fs::read_to_string(&machine.config).with_context(|| {
        format!("{file}: `create` consumes install-config.yaml; name a copy, or a file with `hosts`, with --config")
    })?;
    // What is wrong with it may be in the line of a password: only the place is said.
    let config: Value = serde_saphyr::from_str(&text).map_err(|e| {
        let place = e.location().map(|at| format!(" in line {}", at.line())).unwrap_or_default();
        anyhow!("{file} is no YAML{place}")
    })?;
    let found = controller(&config, &machine.name).map_err(|why| anyhow!("{file}: {why}"))?;
    Redfish::open(found).await.with_context(|| machine.name.clone())
}

pub(crate) async fn power(args: PowerArgs) -> Result<()> {
    let (name, redfish) = (&args.machine.name, open(&args.machine).await?);
    let (reset, goal) = match args.to {
        To::Status => return status(name, &redfish).await,
        To::On => (Reset::On, "On"),
        To::Off => (Reset::Off, "Off"),
        To::Kill => (Reset::Kill, "Off"),
        To::Cycle => (Reset::Cycle, "On"),
    };
    let before = redfish.power().await?;
    match (args.to, before.as_str()) {
        (To::On, "On") | (To::Off | To::Kill, "Off") => {
            println!("{name} is {} already", goal.to_lowercase());
            return Ok(());
        }
        // What is off cannot be cycled.
        (To::Cycle, "Off") => redfish.reset(Reset::On).await?,
        _ => redfish.reset(reset).await?,
    }
    let hint = format!("look at its console, or `seedling node power {name} kill`");
    let condition = Condition::new(&conditions::POWERED, NO_PROGRESS, hint);
    let condition = condition.with("MACHINE", name).with("STATE", goal.to_lowercase());
    let reached = wait_for(&condition, LOOK, async || match redfish.power().await {
        Ok(state) if state == goal => Probe::Met(()),
        Ok(state) => Probe::Unmet(format!("its controller says {state}")),
        Err(e) => Probe::Unmet(e.to_string()),
    });
    reached.await?;
    println!("{name} is {}", goal.to_lowercase());
    Ok(())
}

async fn status(name: &str, redfish: &Redfish) -> Result<()> {
    println!("{name}: power {}", redfish.power().await?);
    if let Some(target) = redfish.boots_once().await? {
        println!("{name}: boots once from {target}");
    }
    // Not every controller has a drive.
    if let Ok(Some(iso)) = redfish.inserted().await {
        println!("{name}: in its drive is {iso}");
    }
    Ok(())
}

pub(crate) async fn boot(args: BootArgs) -> Result<()> {
    let (name, redfish) = (&args.machine.name, open(&args.machine).await?);
    if let Some(iso) = &args.iso {
        redfish.insert(iso).await?;
        println!("{name}: in its drive is {iso}");
    }
    if args.eject {
        redfish.eject().await?;
        println!("{name}: its drive is empty");
    }
    if args.from == From::Cd && redfish.inserted().await?.is_none() {
        return Err(anyhow!("{name} has no ISO in its drive: add --iso URL"));
    }
    let (from, what) = match args.from {
        From::Pxe => (BootOnce::Network, "the network"),
        From::Disk => (BootOnce::Disk, "its disk"),
        From::Cd => (BootOnce::Disc, "its drive"),
    };
    redfish.boot_once(from).await?;
    println!("{name} boots from {what} the next time: seedling node power {name} cycle");
    Ok(())
}

pub(crate) fn wake_machine(args: &WakeArgs) -> Result<()> {
    let file = args.hosts.display().to_string();
    let yaml = std::fs::read_to_string(&args.hosts).with_context(|| file.clone())?;
    let inventory = Inventory::parse(&yaml).map_err(|errors| {
        let lines: Vec<_> = errors.iter().map(ToString::to_string).collect();
        anyhow!("{file}:\n{}", lines.join("\n"))
    })?;
    let host = inventory.by_name(&args.name).with_context(|| format!("{file} has no host {}", args.name))?;
    let broadcast = match (args.broadcast, host.v4()) {
        (Some(broadcast), _) => broadcast,
        (None, Some(address)) => broadcast_for(address)?,
        (None, None) => {
            bail!("{} has no IPv4 address, and IPv6 knows no broadcast: name one with --broadcast", host.name)
        }
    };
    wake(&host.mac, broadcast)?;
    println!("{}: woken by a packet for {} to {broadcast}; nobody answers to that", host.name, host.mac);
    Ok(())
}
