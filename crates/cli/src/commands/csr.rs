//! `seedling csr`: every certificate signing request, with its verdict and the reason; and approval by hand.

use super::lab::{Format, Output};
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use seedling_api::CertificateSigningRequest;
use seedling_lab::Labs;
use seedling_operators::machine_approver::{Shown, approve_by_hand, show};
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
    pub(crate) fn kubeconfig(&self) -> Result<PathBuf> {
        Ok(match &self.kubeconfig {
            Some(path) => path.clone(),
            None => self.lab()?.kubeconfig(),
        })
    }
    pub(crate) async fn connect(&self) -> Result<kube::Client> {
        Ok(seedling_cluster::connect(Some(&self.kubeconfig()?)).await?)
    }
    /// The lab, if one is meant.
    pub(crate) fn lab_if_meant(&self) -> Option<&str> {
        self.kubeconfig.is_none().then_some(self.lab.as_str())
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
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct CsrArgs {
    #[command(subcommand)]
    command: Option<CsrCommand>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Subcommand)]
enum CsrCommand {
    /// List the requests, as `csr` alone does
    List(ListArgs),
    /// Approve requests by hand, as `oc adm certificate approve` does
    ///
    /// Machines of hosts.yaml need this only when the approver refuses them (`csr` says why), or if the cluster was made without hosts.yaml:
    /// then each node asks twice, first for its client certificate and then for its serving certificate.
    Approve(ApproveArgs),
}

#[derive(Args)]
struct ListArgs {
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
struct ApproveArgs {
    /// Requests, by name; also those that the approver refused
    #[arg(required_unless_present = "pending", value_name = "NAME")]
    names: Vec<String>,
    /// Every request of a node that nobody has decided or refused
    #[arg(long, conflicts_with = "names")]
    pending: bool,
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn run(args: CsrArgs) -> Result<()> {
    match args.command {
        None => list(args.list).await,
        Some(CsrCommand::List(args)) => list(args).await,
        Some(CsrCommand::Approve(args)) => approve(args).await,
    }
}

async fn list(args: ListArgs) -> Result<()> {
    let client = args.cluster.connect().await?;
    let found = seedling_cluster::list(&client, None, "").await?;
    let mut requests: Vec<_> = found.iter().map(show).collect();
    requests.sort_by(|a, b| (&a.created, &a.name).cmp(&(&b.created, &b.name)));
    args.output.print(&serde_json::to_value(&requests)?, || print(&requests));
    Ok(())
}

async fn approve(args: ApproveArgs) -> Result<()> {
    let client = args.cluster.connect().await?;
    let found: Vec<CertificateSigningRequest> = seedling_cluster::list(&client, None, "").await?;
    let shown: Vec<_> = found.iter().map(show).collect();
    let chosen = match args.pending {
        true => pending(&shown),
        false => named(&shown, &args.names)?,
    };
    for request in shown.iter().filter(|r| args.pending && r.is_open() && r.verdict == "refused") {
        eprintln!(
            "{} is left alone: {}; approve it by its name if you mean it",
            request.name, request.reason
        );
    }
    for name in &chosen {
        let csr = found.iter().find(|csr| csr.metadata.name.as_ref() == Some(name));
        approve_by_hand(&client, csr.with_context(|| format!("{name} is gone"))?).await?;
        if args.output.output == Format::Table {
            println!("{name} approved");
        }
    }
    if args.output.output == Format::Json {
        println!("{}", serde_json::to_string_pretty(&chosen)?);
    } else if chosen.is_empty() {
        eprintln!("nothing waits for approval");
    }
    Ok(())
}

/// What nobody has decided yet, the approver neither. Pure.
fn pending(requests: &[Shown]) -> Vec<String> {
    let open = requests.iter().filter(|r| r.is_open() && r.verdict == "pending");
    open.map(|r| r.name.clone()).collect()
}

/// Those of the names that are not approved already. Pure.
fn named(requests: &[Shown], names: &[String]) -> Result<Vec<String>> {
    let mut chosen = Vec::new();
    for name in names {
        match requests.iter().find(|r| r.name == *name).map(|r| r.verdict) {
            Some("approved") => {}
            Some("pending" | "refused") => chosen.push(name.clone()),
            Some(verdict) => bail!("{name} is {verdict}, and that is final: whoever asked has to ask again"),
            None => bail!("there is no request {name}; `seedling csr` lists them"),
        }
    }
    Ok(chosen)
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

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn request(name: &str, node: Option<&str>, verdict: &'static str) -> Shown {
        let (kind, reason) = ("client".into(), String::new());
        let node = node.map(str::to_string);
        Shown {
            name: name.into(),
            created: None,
            requester: String::new(),
            kind,
            node,
            verdict,
            reason,
            issued: false,
        }
    }

    #[test]
    fn what_is_approved_by_hand() {
        let requests = [
            request("a", Some("worker-0"), "pending"),
            request("b", Some("worker-1"), "refused"),
            request("c", Some("worker-2"), "approved"),
            request("d", None, "pending"),
            request("e", Some("worker-3"), "denied"),
        ];
        assert_eq!(pending(&requests), ["a"], "neither refused ones nor those of others");
        let by_name =
            |names: &[&str]| named(&requests, &names.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(by_name(&["a", "b", "c", "d"]).unwrap(), ["a", "b", "d"]);
        assert!(by_name(&["e"]).unwrap_err().to_string().contains("final"));
        assert!(by_name(&["z"]).unwrap_err().to_string().contains("no request z"));
    }
}
