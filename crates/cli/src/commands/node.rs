//! What runs on nodes, as services, static pods and installer pods. Hidden: people meet them in journals.

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use seedling_observe::first_boot;
use seedling_operators::{
    admission, etcd, kubelet_join, machine_approver, machine_config, recover, static_pod,
};
use seedling_steps::{Journal, Recorder};
use seedling_types::{Inventory, paths};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

#[derive(Subcommand)]
pub enum NodeCommand {
    /// Bootstrap node: run bootkube's stages
    #[command(hide = true)]
    Bootkube {
        /// Instead of running stages, let etcd continue alone although it drops entries of its log, with the numbers bootkube printed
        #[arg(long, value_name = "COMMIT-LAST")]
        accept_loss: Option<String>,
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
    /// Serve nodes their configuration
    #[command(hide = true, subcommand)]
    MachineConfigServer(ServerCommand),
}

#[derive(Args)]
pub struct InstallerArgs {
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
pub struct EtcdJoinArgs {
    #[arg(long)]
    name: String,
    #[arg(long)]
    address: Ipv4Addr,
    /// name=address, …
    #[arg(long, value_delimiter = ',', value_parser = peer)]
    peers: Vec<(String, Ipv4Addr)>,
    #[arg(long)]
    resources: PathBuf,
    #[arg(long)]
    out: PathBuf,
    /// What to become
    #[arg(last = true)]
    command: Vec<String>,
}

#[derive(Subcommand)]
pub enum ServerCommand {
    /// From files, on the bootstrap node
    Bootstrap,
    /// From the API, on a master
    Start {
        #[arg(long)]
        apiserver_url: String,
    },
}

fn peer(text: &str) -> Result<(String, Ipv4Addr), String> {
    let (name, address) = text.split_once('=').ok_or("name=address")?;
    Ok((name.into(), address.parse().map_err(|_| "name=address")?))
}

const ROOT: &str = "/";

pub async fn run(command: NodeCommand) -> Result<()> {
    let minutes = std::env::var(seedling_steps::NO_PROGRESS_VARIABLE).ok().and_then(|m| m.parse().ok());
    minutes.into_iter().for_each(seedling_steps::configure_no_progress);
    match command {
        NodeCommand::Bootkube { accept_loss: None } => seedling_bootkube::run(Path::new(ROOT)).await,
        NodeCommand::Bootkube { accept_loss: Some(shown) } => {
            seedling_bootkube::accept_loss(Path::new(ROOT), &shown)
        }
        NodeCommand::ReleaseImage => seedling_bootkube::fetch_release_manifests(Path::new(ROOT)).await,
        NodeCommand::ReportProgress => seedling_bootkube::report_progress(Path::new(ROOT)).await,
        NodeCommand::ApproveCsr => {
            let recorder = Recorder::start(Path::new(ROOT), "approve-csr")?;
            let approved = approve_csr().await;
            recorder.service_end(approved.as_ref().err().map(|e| format!("{e:#}")))?;
            approved
        }
        NodeCommand::Installer(a) => {
            let client = seedling_cluster::connect(None).await?;
            let args = static_pod::InstallerArgs {
                namespace: a.namespace,
                pod: a.pod,
                revision: a.revision,
                configmaps: a.configmaps.into_iter().filter(|n| !n.is_empty()).collect(),
                secrets: a.secrets.into_iter().filter(|n| !n.is_empty()).collect(),
                keep: a.keep,
                node_name: a.node_name,
                node_ip: a.node_ip,
            };
            static_pod::install(&client, &args).await
        }
        NodeCommand::EtcdJoin(a) => {
            let EtcdJoinArgs { name, address, peers, resources, out, command } = a;
            etcd::join(&etcd::JoinArgs { name, address, peers, resources, out, command }).await
        }
        NodeCommand::EtcdStart { command } => seedling_bootkube::start_etcd(Path::new(ROOT), &command),
        NodeCommand::EtcdWait { resources, command } => etcd::wait_for_voter(&resources, &command).await,
        NodeCommand::FirstBoot { helper } => {
            let journal = Journal::of(Path::new(ROOT), "first-boot");
            journal.run(journal.step("disk-and-clock", first_boot(&helper))).await
        }
        NodeCommand::KubeletJoin { node } => kubelet_join::join(Path::new("/"), &node).await,
        NodeCommand::KubeletRecover => recover::node::ask(Path::new("/")).await.map(drop),
        NodeCommand::MachineConfigServer(ServerCommand::Bootstrap) => {
            let tls = Path::new(paths::MCS_TLS);
            let kubeconfig = Path::new("/etc/mcs/kubeconfig");
            let (base, tokens) = (Path::new(paths::MCS_BOOTSTRAP), Path::new(paths::MCS_NODE_TOKENS));
            Ok(machine_config::serve_bootstrap(base, tls, kubeconfig, tokens, inventory()?).await?)
        }
        NodeCommand::MachineConfigServer(ServerCommand::Start { apiserver_url }) => {
            let client = seedling_cluster::connect(None).await?;
            Ok(machine_config::serve_cluster(client, &apiserver_url, Path::new(paths::MCS_TLS)).await?)
        }
    }
}

fn inventory() -> Result<Inventory> {
    let path = Path::new(paths::OPT_OPENSHIFT).join("hosts.yaml");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Inventory::parse(&text).map_err(|errors| {
        anyhow::anyhow!(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
    })
}

/// Beside everything else: nothing waits for it.
async fn first_boot(helper: &str) -> Result<()> {
    let http = reqwest::Client::builder().timeout(std::time::Duration::from_secs(5)).no_proxy().build()?;
    let asked = std::time::SystemTime::now();
    let answer = http.head(helper).send().await.ok();
    let answered = std::time::SystemTime::now();
    let date = answer.as_ref().and_then(|a| a.headers().get("date")?.to_str().ok());
    let ahead = date.and_then(|date| first_boot::clock_ahead(date, asked, answered));
    let seen = first_boot::judge(first_boot::measure_disk(Path::new(paths::ETCD_DATA))?, ahead);
    for finding in &seen.findings {
        println!("This machine may be trouble: {finding}");
    }
    seedling_steps::write_atomic(Path::new(first_boot::REPORT), serde_json::to_vec_pretty(&seen)?, 0o644)?;
    Ok(())
}

/// Until the masters' own approver leads: bootkube waits for that before it takes this node's API away.
async fn approve_csr() -> Result<()> {
    let kubeconfig = Path::new(paths::OPT_OPENSHIFT).join("auth/kubeconfig-loopback");
    let client = seedling_cluster::connect(Some(&kubeconfig)).await?;
    let inventory = inventory()?;
    let done = Path::new(paths::OPT_OPENSHIFT).join(".bootkube.done");
    let condition = seedling_steps::Condition::within(
        "bootkube to be done",
        std::time::Duration::from_secs(4 * 3600),
        "journalctl -n 50 -u bootkube.service",
    )
    .quiet();
    let journal = Journal::of(Path::new(ROOT), "approve-csr");
    let until_done = seedling_steps::wait_for(&condition, std::time::Duration::from_secs(1), async || {
        match done.exists() {
            true => seedling_steps::Probe::Met(()),
            false => seedling_steps::Probe::Unmet(journal.says("bootkube")),
        }
    });
    let manifest =
        std::fs::read_to_string(Path::new(paths::OPT_OPENSHIFT).join("manifests/cluster-config.yaml"))?;
    let domain = seedling_components::ClusterConfig::from_manifest(&manifest)?.domain;
    tokio::select! {
        () = machine_approver::approve_loop(&client, &inventory, &domain) => {}
        () = machine_config::label_nodes(&client, &inventory) => {}
        () = admission::mirror(&client, Path::new(paths::MCS_NODE_TOKENS)) => {}
        ended = until_done => ended?,
    }
    Ok(())
}
