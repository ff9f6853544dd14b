//! A cluster that is no lab's: how it is named on a command line, and who its machines are.

use anyhow::{Context, Result, bail};
use clap::Args;
use seedling_api::{Meta, Node};
use seedling_checks::Ssh;
use seedling_types::{Host, Inventory, Role};
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct Elsewhere {
    /// An administrator's kubeconfig: a cluster that is no lab's; its machines are entered with ssh
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Whom ssh logs in as; anybody but root needs sudo without a password
    #[arg(long, value_name = "USER", default_value = "core", requires = "kubeconfig")]
    ssh: String,
    /// The key that ssh uses [default: ssh's own choice]
    #[arg(long, value_name = "FILE", requires = "kubeconfig")]
    ssh_key: Option<PathBuf>,
    /// An option for ssh, as its -o takes it (may be repeated)
    #[arg(long, value_name = "OPTION", requires = "kubeconfig")]
    ssh_option: Vec<String>,
    /// The machines to enter, from hosts.yaml [default: the nodes that the API knows]
    #[arg(long, value_name = "FILE", requires = "kubeconfig")]
    hosts: Option<PathBuf>,
}

impl Elsewhere {
    pub(crate) fn shell(&self) -> Ssh {
        Ssh { user: self.ssh.clone(), key: self.ssh_key.clone(), options: self.ssh_option.clone() }
    }

    /// Of hosts.yaml; without one, as the API knows them.
    pub(crate) async fn hosts(&self, client: &kube::Client) -> Result<Vec<Host>> {
        let Some(path) = &self.hosts else { return nodes(client).await };
        let yaml = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        Ok(Inventory::parse(&yaml).map_err(seedling_lab::LabError::Machines)?.hosts)
    }

    pub(crate) fn names_hosts(&self) -> bool {
        self.hosts.is_some()
    }
}

async fn nodes(client: &kube::Client) -> Result<Vec<Host>> {
    let asked = seedling_cluster::list::<Node>(client, None, "").await;
    let nodes =
        asked.context("the API does not say which nodes there are; name them with --hosts hosts.yaml")?;
    let host = |node: &Node| {
        let addresses = node.status.as_ref().map(|status| status.addresses.as_slice()).unwrap_or_default();
        let address = addresses.iter().find(|a| a.kind == "InternalIP")?.address.parse().ok()?;
        let master = ["master", "control-plane"]
            .iter()
            .any(|role| node.label(&format!("node-role.kubernetes.io/{role}")).is_some());
        let role = if master { Role::Master } else { Role::Worker };
        Some(Host { name: node.name().into(), role, mac: String::new(), address, second_address: None })
    };
    let hosts: Vec<_> = nodes.iter().filter_map(host).collect();
    if hosts.is_empty() {
        bail!("the API knows no node with an address; name the machines with --hosts hosts.yaml");
    }
    Ok(hosts)
}
