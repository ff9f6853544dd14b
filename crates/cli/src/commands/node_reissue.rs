//! `seedling node reissue`: a machine that was reinstalled needs a new token, and its new key a new certificate. And the other commands
//! about machines.

use super::csr::Cluster;
use super::{bare_metal, membership, node_change};
use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use seedling_api::Infrastructure;
use seedling_assets::node_file;
use seedling_lab::Labs;
use seedling_machine_config_server::bootstrapper::Tokens;
use std::path::{Path, PathBuf};

#[derive(Subcommand)]
pub(crate) enum MachineCommand {
    /// Let a new machine join: the cluster expects it, and its pointer config is written
    ///
    /// For machines that are no lab's (`lab add` is for those). Run again, it does what was not done yet.
    Add(node_change::AddArgs),
    /// Empty a worker of pods and let the cluster forget it
    ///
    /// Its pods are evicted as disruption budgets allow, its Node is deleted, and its token and certificates are not renewed. Then switch it off.
    Remove(node_change::RemoveArgs),
    /// Write a new nodes/NAME.ign with a new token for a machine that is reinstalled
    ///
    /// The old token stops working, and the machine may ask for its node's certificate with one new key. If it boots over the network from the
    /// helper, it installs itself again.
    Reissue(ReissueArgs),
    /// Switch a machine on or off by its management controller (Redfish), or ask it
    Power(bare_metal::PowerArgs),
    /// Say what a machine boots from the next time, by its management controller (Redfish), and put an ISO into its drive
    Boot(bare_metal::BootArgs),
    /// Wake a machine by a packet to its network card (Wake-on-LAN)
    ///
    /// Its firmware must be told to listen for that. Run it on a machine in the same network.
    Wake(bare_metal::WakeArgs),
    /// On a node: show step by step what was done on it
    Journal(super::journal::NodeJournalArgs),
}

#[derive(Args)]
pub(crate) struct ReissueArgs {
    /// The machine's name in hosts.yaml
    name: String,
    #[command(flatten)]
    cluster: Cluster,
    /// The asset directory that receives nodes/NAME.ign [default: the lab's; with a kubeconfig, the current directory]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Also write a kubeconfig, valid for a day, with which a machine that keeps its disk but lost its certificate can ask for a new
    /// one; copy it to /etc/kubernetes/kubeconfig there
    #[arg(long, value_name = "FILE")]
    bootstrap_kubeconfig: Option<PathBuf>,
    /// The helper's configuration: a machine that boots over the network installs itself again at its next boot [default: the lab's, else
    /// /etc/seedling/helper.yaml]
    #[arg(long, value_name = "FILE")]
    helper: Option<PathBuf>,
}

pub(crate) async fn run(command: MachineCommand) -> Result<()> {
    let args = match command {
        MachineCommand::Reissue(args) => args,
        MachineCommand::Add(args) => return node_change::add(args).await,
        MachineCommand::Remove(args) => return node_change::remove(args).await,
        MachineCommand::Power(args) => return bare_metal::power(args).await,
        MachineCommand::Boot(args) => return bare_metal::boot(args).await,
        MachineCommand::Wake(args) => return bare_metal::wake_machine(&args),
        MachineCommand::Journal(args) => return super::journal::of_node(args),
    };
    let (dir, kubeconfig) = (args.dir, args.bootstrap_kubeconfig.as_deref());
    reissue_and_install(&args.cluster, &args.name, dir, kubeconfig, args.helper).await
}

pub(crate) async fn reissue(
    cluster: &Cluster,
    name: &str,
    dir: Option<PathBuf>,
    bootstrap_kubeconfig: Option<&Path>,
) -> Result<()> {
    reissue_and_install(cluster, name, dir, bootstrap_kubeconfig, None).await
}

async fn reissue_and_install(
    cluster: &Cluster,
    name: &str,
    dir: Option<PathBuf>,
    bootstrap_kubeconfig: Option<&Path>,
    helper: Option<PathBuf>,
) -> Result<()> {
    let client = cluster.connect().await?;
    let host = membership::known(&client, name).await?;
    let bootstrap_kubeconfig = match bootstrap_kubeconfig {
        Some(path) => {
            let infrastructure = membership::read::<Infrastructure>(&client, None, "cluster").await?;
            let status =
                infrastructure.status.context("Infrastructure cluster has no apiServerInternalURI")?;
            Some((path, Tokens::default().kubeconfig(&client, &status.api_server_internal_uri).await?))
        }
        None => None,
    };
    let path = dir.map_or_else(|| cluster.assets(), Ok)?.join(node_file(&host.name));
    membership::issue(&client, &host, &path).await?;
    if let Some((path, kubeconfig)) = bootstrap_kubeconfig {
        seedling_steps::write_atomic(path, kubeconfig, 0o600)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let config = match (helper, cluster.lab_if_meant()) {
        (Some(path), _) => Some(path),
        (None, Some(lab)) => Some(Labs::from_env().open(lab)?.helper_config()),
        (None, None) => Some(PathBuf::from(super::helper::CONFIG)).filter(|path| path.exists()),
    };
    if let Some(path) = config
        && seedling_helper::boot::want(&seedling_helper::load(&path)?, &host.name)?
    {
        eprintln!("{} installs itself at its next boot from the network", host.name);
    }
    eprintln!("{} may join again; its pointer config is", host.name);
    println!("{}", path.display());
    Ok(())
}
