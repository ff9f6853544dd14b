//! `seedling node reissue`: a machine that was installed anew needs a new token, and its new key a new certificate.

use super::csr::Cluster;
use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use seedling_assets::{new_token, node_file, node_pointer};
use seedling_cluster::get;
use seedling_operators::machine_config::bootstrapper::Tokens;
use seedling_operators::{admission, inventory};
use seedling_types::names::{INVENTORY_CONFIGMAP, NS_CONFIG, NS_MCO};
use seedling_types::{ClusterDomain, Role};
use std::path::{Path, PathBuf};

#[derive(Subcommand)]
pub enum MachineCommand {
    /// Write a new pointer config for a machine, with a new token; from then on the old one is worth nothing, and one new key may
    /// ask for the node's certificate
    Reissue(ReissueArgs),
    /// On a node: show what was done on it, step by step
    Journal(super::journal::NodeJournalArgs),
}

#[derive(Args)]
pub struct ReissueArgs {
    /// Name of the machine in the inventory
    name: String,
    #[command(flatten)]
    cluster: Cluster,
    /// The asset directory: the pointer becomes its nodes/NAME.ign [default: the lab's; with a kubeconfig, the current directory]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// For a machine that keeps its disk and has lost its certificate: also write what it can ask for a new one with, good for a
    /// day; it belongs to /etc/kubernetes/kubeconfig there
    #[arg(long, value_name = "FILE")]
    bootstrap_kubeconfig: Option<PathBuf>,
}

pub async fn run(command: MachineCommand) -> Result<()> {
    let args = match command {
        MachineCommand::Reissue(args) => args,
        MachineCommand::Journal(args) => return super::journal::of_node(args),
    };
    reissue(&args.cluster, &args.name, args.dir, args.bootstrap_kubeconfig.as_deref()).await
}

pub async fn reissue(
    cluster: &Cluster,
    name: &str,
    dir: Option<PathBuf>,
    bootstrap_kubeconfig: Option<&Path>,
) -> Result<()> {
    let client = cluster.connect().await?;
    let read = async |api_version: &str, kind: &str, namespace: Option<&str>, name: &str| {
        get(&client, api_version, kind, namespace, name)
            .await?
            .with_context(|| format!("the cluster has no {kind} {name}"))
    };
    let hosts = inventory::parse(&read("v1", "ConfigMap", Some(NS_CONFIG), INVENTORY_CONFIGMAP).await?)?;
    let host = hosts.by_name(name).filter(|host| host.role != Role::Bootstrap);
    let host = host.with_context(|| {
        format!("no master or worker {name:?} is in ConfigMap {NS_CONFIG}/{INVENTORY_CONFIGMAP}")
    })?;
    let dns = read("config.openshift.io/v1", "DNS", None, "cluster").await?;
    let domain = dns["spec"]["baseDomain"].as_str().context("DNS cluster has no baseDomain")?;
    let ca = read("v1", "ConfigMap", Some(NS_MCO), "machine-config-server-ca").await?;
    let ca = ca["data"]["ca-bundle.crt"].as_str().context("machine-config-server-ca has no ca-bundle.crt")?;

    let bootstrap_kubeconfig = match bootstrap_kubeconfig {
        Some(path) => {
            let infrastructure = read("config.openshift.io/v1", "Infrastructure", None, "cluster").await?;
            let url = infrastructure["status"]["apiServerInternalURI"].as_str();
            let url = url.context("Infrastructure cluster has no apiServerInternalURI")?;
            Some((path, Tokens::default().kubeconfig(&client, url).await?))
        }
        None => None,
    };
    let token = new_token();
    let pointer = node_pointer(&ClusterDomain(domain.into()), host.role, ca, &token);
    let dir = dir.map_or_else(|| cluster.assets(), Ok)?;
    let path = dir.join(node_file(&host.name));
    // First the cluster: a pointer whose token nobody knows would only mislead. Killed in between, it is done again.
    admission::reissue(&client, &host.name, token.digest()).await?;
    seedling_steps::write_atomic(&path, serde_json::to_vec(&pointer)?, 0o600)
        .with_context(|| format!("cannot write {}", path.display()))?;
    if let Some((path, kubeconfig)) = bootstrap_kubeconfig {
        seedling_steps::write_atomic(path, kubeconfig, 0o600)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    eprintln!("{} may join anew; its pointer config is", host.name);
    println!("{}", path.display());
    Ok(())
}
