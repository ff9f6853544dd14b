//! `seedling csr`: every certificate signing request, with its verdict and the reason.

use super::lab::Output;
use anyhow::Result;
use clap::Args;
use seedling_lab::Labs;
use seedling_operators::machine_approver::{Shown, show};
use std::path::PathBuf;

/// Which cluster is meant.
#[derive(Args)]
pub(crate) struct Cluster {
    /// An administrator's kubeconfig [default: the lab's]
    #[arg(long, env = "KUBECONFIG", value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The lab to use if no kubeconfig is given
    #[arg(long = "lab", env = "SEEDLING_LAB", default_value = "default", value_name = "NAME")]
    lab: String,
}

impl Cluster {
    pub(crate) fn of_lab(name: &str) -> Self {
        Self { kubeconfig: None, lab: name.into() }
    }
    pub(crate) async fn connect(&self) -> Result<kube::Client> {
        let kubeconfig = match &self.kubeconfig {
            Some(path) => path.clone(),
            None => self.lab()?.kubeconfig(),
        };
        Ok(seedling_cluster::connect(Some(&kubeconfig)).await?)
    }
    /// The asset directory of the lab; without a lab there is none to guess.
    pub(crate) fn assets(&self) -> Result<PathBuf> {
        Ok(match &self.kubeconfig {
            Some(_) => PathBuf::from("."),
            None => self.lab()?.record.spec.assets,
        })
    }
    fn lab(&self) -> Result<seedling_lab::Lab> {
        Ok(Labs::from_env().open(&self.lab)?)
    }
}

#[derive(Args)]
pub(crate) struct CsrArgs {
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn run(args: CsrArgs) -> Result<()> {
    let client = args.cluster.connect().await?;
    let found = seedling_cluster::list(&client, None, "").await?;
    let mut requests: Vec<_> = found.iter().map(show).collect();
    requests.sort_by(|a, b| (&a.created, &a.name).cmp(&(&b.created, &b.name)));
    args.output.print(&serde_json::to_value(&requests)?, || print(&requests));
    Ok(())
}

fn print(requests: &[Shown]) {
    println!("{:<26} {:<14} {:<14} {:<9} REASON", "NAME", "NODE", "KIND", "VERDICT");
    for Shown { name, node, kind, verdict, reason, requester, .. } in requests {
        let node = node.as_deref().unwrap_or("-");
        // Who asked is of interest where it was not the expected one.
        let asked = if *verdict == "refused" { format!(" (asked by {requester})") } else { String::new() };
        println!("{name:<26} {node:<14} {kind:<14} {verdict:<9} {reason}{asked}");
    }
}
