//! `seedling lab add` and `seedling lab remove`: a machine more or less in a living lab.

use super::hardware::HardwareArgs;
use super::lab::{Format, Name, Output, say};
use super::log::NoProgress;
use super::{membership, wait_node};
use anyhow::{Result, ensure};
use clap::Args;
use seedling_cluster::{Resent, connect, connect_without_retries, drain::drain};
use seedling_lab::{Change, Labs, MachineKind, may_leave};
use seedling_types::Role;

#[derive(Args)]
pub(crate) struct AddArgs {
    #[command(flatten)]
    lab: Name,
    /// The new machine's name, e.g. worker-2; one that is there already is brought to its end
    node: String,
    /// What it becomes; the control plane of a living cluster stays as it is
    #[arg(long, default_value = "worker", value_parser = ["worker"])]
    role: String,
    /// What it is: a container, or a machine in QEMU that boots over the network [default: container]
    #[arg(long, value_parser = ["container", "qemu"])]
    machine: Option<String>,
    #[command(flatten)]
    hardware: HardwareArgs,
    #[command(flatten)]
    no_progress: NoProgress,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
pub(crate) struct RemoveArgs {
    #[command(flatten)]
    lab: Name,
    /// The machine's name
    node: String,
    /// Also lose pods that nobody would start elsewhere
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    no_progress: NoProgress,
}

/// lab.json, the cluster, the helper, power; then it is waited for.
pub(super) async fn add(labs: &Labs, args: AddArgs) -> Result<()> {
    args.no_progress.configure();
    args.hardware.check()?;
    let kind = match args.machine.as_deref() {
        Some("qemu") => Some(MachineKind::Qemu(args.hardware.of(Role::Worker))),
        kind => {
            ensure!(
                !args.hardware.given(),
                "--memory, --cpus and the like are for QEMU machines: add --machine qemu"
            );
            kind.map(|_| MachineKind::Container)
        }
    };
    let mut change = Change::begin(labs, &args.lab.name, &say).await?;
    let client = connect(Some(&change.lab.kubeconfig())).await?;
    membership::must_be_grown(&client).await?;
    let host = change.add(&args.node, Role::Worker, kind)?;
    change.make_bootable(labs, &say).await?;
    membership::admit(&client, &host, &change.lab.record.spec.assets).await?;
    say(&format!("the cluster expects {} with MAC {} at {}", host.name, host.mac, host.address));
    change.tell_helper().await?;
    change.boot(&host.name).await?;
    say(&format!("{} is on", host.name));
    let hint = format!("seedling lab status --name {}", args.lab.name);
    drop(change);
    wait_node::ready(&client, &host.name, &hint, &mut |text| say(text)).await?;
    if args.output.output == Format::Json {
        println!("{}", serde_json::to_string_pretty(&host)?);
    }
    Ok(())
}

/// Emptied, off, forgotten by the cluster, removed; in this order, so that nobody loses what still runs.
pub(super) async fn remove(labs: &Labs, args: RemoveArgs) -> Result<()> {
    args.no_progress.configure();
    let mut change = Change::begin(labs, &args.lab.name, &say).await?;
    let Some(host) = change.lab.record.spec.inventory.by_name(&args.node).cloned() else {
        let known: Vec<_> = change.lab.record.spec.inventory.hosts.iter().map(|h| h.name.as_str()).collect();
        say(&format!("lab {:?} has no machine {:?}; it has {}", args.lab.name, args.node, known.join(", ")));
        return Ok(());
    };
    may_leave(&host)?;
    let kubeconfig = change.lab.kubeconfig();
    let client = connect(Some(&kubeconfig)).await?;
    membership::must_be_grown(&client).await?;
    // A refused eviction is an answer, and no reason to ask the same again.
    drain(&connect_without_retries(&kubeconfig, &Resent::default()).await?, &host.name, args.force).await?;
    say(&format!("{} has no pods of others any more", host.name));
    // Its disk goes with it: nothing is left to be written.
    change.lab.machine(&host.name)?.cut_off().await?;
    membership::dismiss(&client, &host.name).await?;
    say(&format!("the cluster knows {} no more", host.name));
    change.remove(&host.name).await?;
    say(&format!("{} is gone", host.name));
    Ok(())
}
