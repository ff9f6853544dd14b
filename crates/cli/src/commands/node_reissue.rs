//! `seedling node reissue`: a machine that was reinstalled needs a new token, and its new key a new certificate.

use super::csr::Cluster;
use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use seedling_api::{ConfigMap, Dns, Files, Infrastructure};
use seedling_assets::{new_token, node_file, node_pointer};
use seedling_cluster::{Kind, admission, get, inventory};
use seedling_machine_config_server::bootstrapper::Tokens;
use seedling_types::names::{INVENTORY_CONFIGMAP, NS_CONFIG, NS_MCO};
use seedling_types::{ClusterDomain, Role};
use std::path::{Path, PathBuf};

#[derive(Subcommand)]
pub(crate) enum MachineCommand {
    /// Write a new nodes/NAME.ign with a new token for a machine that is reinstalled
    ///
    /// The old token stops working, and the machine may ask for its node's certificate with one new key.
    Reissue(ReissueArgs),
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
}

pub(crate) async fn run(command: MachineCommand) -> Result<()> {
    let args = match command {
        MachineCommand::Reissue(args) => args,
        MachineCommand::Journal(args) => return super::journal::of_node(args),
    };
    reissue(&args.cluster, &args.name, args.dir, args.bootstrap_kubeconfig.as_deref()).await
}

pub(crate) async fn reissue(
    cluster: &Cluster,
    name: &str,
    dir: Option<PathBuf>,
    bootstrap_kubeconfig: Option<&Path>,
) -> Result<()> {
    let client = cluster.connect().await?;
    let hosts = inventory::parse(&read(&client, Some(NS_CONFIG), INVENTORY_CONFIGMAP).await?)?;
    let host = hosts.by_name(name).filter(|host| host.role != Role::Bootstrap);
    let host = host.with_context(|| {
        format!("no master or worker {name:?} is in ConfigMap {NS_CONFIG}/{INVENTORY_CONFIGMAP}")
    })?;
    let dns = read::<Dns>(&client, None, "cluster").await?;
    let domain = dns.spec.context("DNS cluster has no baseDomain")?.base_domain;
    let ca = read::<ConfigMap>(&client, Some(NS_MCO), "machine-config-server-ca").await?;
    let ca = ca.file("ca-bundle.crt").context("machine-config-server-ca has no ca-bundle.crt")?;

    let bootstrap_kubeconfig = match bootstrap_kubeconfig {
        Some(path) => {
            let infrastructure = read::<Infrastructure>(&client, None, "cluster").await?;
            let status =
                infrastructure.status.context("Infrastructure cluster has no apiServerInternalURI")?;
            Some((path, Tokens::default().kubeconfig(&client, &status.api_server_internal_uri).await?))
        }
        None => None,
    };
    let token = new_token();
    let pointer = node_pointer(&ClusterDomain(domain), host.role, ca, &token);
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
    eprintln!("{} may join again; its pointer config is", host.name);
    println!("{}", path.display());
    Ok(())
}

async fn read<K: Kind>(client: &kube::Client, namespace: Option<&str>, name: &str) -> Result<K> {
    get(client, namespace, name).await?.with_context(|| format!("the cluster has no {} {name}", K::kind(&())))
}
