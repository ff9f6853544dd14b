//! What runs on nodes, as services, static pods and installer pods. Hidden: people meet them in journals.

use anyhow::Result;
use clap::{Args, Subcommand};
use seedling_bootkube::{Extent, run_extent};
use seedling_node::{approve_csr, etcd, first_boot, installer, kubelet_join, mirrors, recover};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

#[derive(Subcommand)]
pub(crate) enum NodeCommand {
    /// Bootstrap node: run bootkube's stages
    #[command(hide = true)]
    Bootkube {
        /// Instead of running stages, let etcd continue alone although it drops entries of its log, with the numbers bootkube printed
        #[arg(long, value_name = "COMMIT-LAST")]
        accept_loss: Option<String>,
        /// Ask before each stage, with what it does and why, and show what came of it; drives bootkube.service if that runs
        #[arg(long, conflicts_with = "accept_loss")]
        step: bool,
        /// Run only this stage, whether it was done or not; bootkube.service must be stopped
        #[arg(long, value_name = "STAGE", value_parser = super::stage::stages(), conflicts_with_all = ["accept_loss", "step"])]
        only: Option<String>,
        /// Run the stages up to this one and end; bootkube.service must be stopped
        #[arg(long, value_name = "STAGE", value_parser = super::stage::stages(), conflicts_with_all = ["accept_loss", "step", "only"])]
        until: Option<String>,
        #[command(flatten)]
        node: super::stage::NodeRoot,
    },
    /// Bootstrap node: fetch the release's manifests
    #[command(hide = true)]
    ReleaseImage,
    /// Bootstrap node: approve certificates of the machines in hosts.yaml, label their nodes, and mark used tokens
    #[command(hide = true)]
    ApproveCsr,
    /// Bootstrap node: report that the bootstrap is complete
    #[command(hide = true)]
    ReportProgress,
    /// Master: write the files of one revision of a static pod
    #[command(hide = true)]
    Installer(InstallerArgs),
    /// Master: wait until this node is an etcd member, then start etcd
    #[command(hide = true)]
    EtcdJoin(EtcdJoinArgs),
    /// Bootstrap node: start etcd; if so ordered, without the other members
    #[command(hide = true)]
    EtcdStart {
        /// The program to run then
        #[arg(last = true)]
        command: Vec<String>,
    },
    /// Master: wait until this node's etcd member is a voter, then start the API server
    #[command(hide = true)]
    EtcdWait {
        #[arg(long)]
        resources: PathBuf,
        /// The program to run then
        #[arg(last = true)]
        command: Vec<String>,
    },
    /// Any node: check once whether the disk is fast enough and the clock is right
    #[command(hide = true)]
    FirstBoot {
        /// The server whose clock is compared
        #[arg(long, value_name = "URL")]
        helper: String,
    },
    /// Joining node: get the certificate that the kubelet starts with
    #[command(hide = true)]
    KubeletJoin { node: String },
    /// Any node: ask for a new certificate if the old one expired while the node was off
    #[command(hide = true)]
    KubeletRecover,
    /// Any node: ask mirrors for images, on behalf of containerd
    #[command(hide = true)]
    RegistryMirrors,
    /// Serve nodes their configuration
    #[command(hide = true, subcommand)]
    MachineConfigServer(ServerCommand),
}

#[derive(Args)]
pub(crate) struct InstallerArgs {
    #[arg(long)]
    namespace: String,
    #[arg(long)]
    pod: String,
    #[arg(long)]
    revision: i64,
    #[arg(long, value_delimiter = ',')]
    configmaps: Vec<String>,
    #[arg(long, value_delimiter = ',')]
    secrets: Vec<String>,
    /// Revisions whose files stay
    #[arg(long, value_delimiter = ',')]
    keep: Vec<i64>,
    #[arg(long, env = "NODE_NAME")]
    node_name: String,
    #[arg(long, env = "NODE_IP")]
    node_ip: String,
}

#[derive(Args)]
pub(crate) struct EtcdJoinArgs {
    #[arg(long)]
    name: String,
    #[arg(long)]
    address: IpAddr,
    /// name=address, …
    #[arg(long, value_delimiter = ',', value_parser = peer)]
    peers: Vec<(String, IpAddr)>,
    #[arg(long)]
    resources: PathBuf,
    #[arg(long)]
    out: PathBuf,
    /// What to become
    #[arg(last = true)]
    command: Vec<String>,
}

#[derive(Subcommand)]
pub(crate) enum ServerCommand {
    /// From files, on the bootstrap node
    Bootstrap,
    /// From the API, on a master
    Start {
        #[arg(long)]
        apiserver_url: String,
    },
}

fn peer(text: &str) -> Result<(String, IpAddr), String> {
    let (name, address) = text.split_once('=').ok_or("name=address")?;
    Ok((name.into(), address.parse().map_err(|_| "name=address")?))
}

const ROOT: &str = "/";

pub(crate) async fn run(command: NodeCommand) -> Result<()> {
    let minutes = std::env::var(seedling_steps::NO_PROGRESS_VARIABLE).ok().and_then(|m| m.parse().ok());
    minutes.into_iter().for_each(seedling_steps::configure_no_progress);
    match command {
        NodeCommand::Bootkube { accept_loss: Some(shown), node, .. } => {
            Ok(seedling_bootkube::accept_loss(&node.root, &shown)?)
        }
        NodeCommand::Bootkube { step: true, node, .. } => super::step::bootkube(&node.root).await,
        NodeCommand::Bootkube { only, until, node, .. } => match (&only, &until) {
            (None, None) => Ok(seedling_bootkube::run_stages(&node.root).await?),
            (Some(stage), _) => Ok(run_extent(&node.root, Extent::Only(stage)).await?),
            (_, Some(stage)) => Ok(run_extent(&node.root, Extent::Until(stage)).await?),
        },
        NodeCommand::ReleaseImage => Ok(seedling_bootkube::fetch_release_manifests(Path::new(ROOT)).await?),
        NodeCommand::ReportProgress => Ok(seedling_bootkube::report_progress(Path::new(ROOT)).await?),
        NodeCommand::ApproveCsr => Ok(approve_csr::approve_until_bootstrapped().await?),
        NodeCommand::Installer(a) => {
            let client = seedling_cluster::connect(None).await?;
            let args = installer::InstallerArgs {
                namespace: a.namespace,
                pod: a.pod,
                revision: a.revision,
                configmaps: a.configmaps.into_iter().filter(|n| !n.is_empty()).collect(),
                secrets: a.secrets.into_iter().filter(|n| !n.is_empty()).collect(),
                keep: a.keep,
                node_name: a.node_name,
                node_ip: a.node_ip,
            };
            Ok(installer::install(&client, &args).await?)
        }
        NodeCommand::EtcdJoin(a) => {
            let EtcdJoinArgs { name, address, peers, resources, out, command } = a;
            Ok(etcd::join(&etcd::JoinArgs { name, address, peers, resources, out, command }).await?)
        }
        NodeCommand::EtcdStart { command } => Ok(seedling_bootkube::start_etcd(Path::new(ROOT), &command)?),
        NodeCommand::EtcdWait { resources, command } => Ok(etcd::wait_for_voter(&resources, &command).await?),
        NodeCommand::FirstBoot { helper } => Ok(first_boot::check_disk_and_clock(&helper).await?),
        NodeCommand::KubeletJoin { node } => Ok(kubelet_join::join(Path::new(ROOT), &node).await?),
        NodeCommand::KubeletRecover => Ok(recover::node::ask(Path::new(ROOT)).await.map(drop)?),
        NodeCommand::RegistryMirrors => Ok(mirrors::serve().await?),
        NodeCommand::MachineConfigServer(ServerCommand::Bootstrap) => {
            Ok(seedling_machine_config_server::serve_bootstrap().await?)
        }
        NodeCommand::MachineConfigServer(ServerCommand::Start { apiserver_url }) => {
            let client = seedling_cluster::connect(None).await?;
            Ok(seedling_machine_config_server::serve_cluster(client, &apiserver_url).await?)
        }
    }
}
