//! `seedling verify`: does a cluster work? Every check with its evidence.

use super::lab::Output;
use anyhow::{Context, Result, bail};
use clap::Args;
use seedling_api::{Meta, Node};
use seedling_checks::verify::{CHECKS, Cluster, Facts, Hands, gather, judge};
use seedling_checks::{Choice, Report, Shell, Ssh};
use seedling_lab::{Lab, Labs};
use seedling_machines::Power;
use seedling_types::{Host, Inventory, Role};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Args)]
pub(crate) struct VerifyArgs {
    /// The lab to look at, if no kubeconfig is given
    #[arg(long = "name", env = "SEEDLING_LAB", default_value = "default")]
    name: String,
    /// An administrator's kubeconfig: a cluster that is no lab's; its nodes are entered with ssh
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
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
    /// Make only this check (may be repeated)
    #[arg(long, value_name = "CHECK")]
    only: Vec<String>,
    /// Make this check, and do not count what it finds (may be repeated)
    #[arg(long, value_name = "CHECK")]
    ignore: Vec<String>,
    /// Write down what was seen, before it is judged
    #[arg(long, value_name = "FILE", hide = true)]
    facts: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn run(args: VerifyArgs) -> Result<ExitCode> {
    let choice = Choice { only: args.only.clone(), ignore: args.ignore.clone() };
    if let Err(unknown) = choice.check(CHECKS) {
        eprintln!("error: {unknown}");
        return Ok(ExitCode::from(super::WRONG_USAGE));
    }
    let (facts, report) = match &args.kubeconfig {
        Some(kubeconfig) => ssh(&args, kubeconfig, &choice).await?,
        None => lab(&Labs::from_env().open(&args.name)?, &choice).await?,
    };
    if let Some(path) = &args.facts {
        std::fs::write(path, serde_json::to_vec_pretty(&facts)?)?;
    }
    args.output.print(&serde_json::to_value(&report)?, || print!("{}", report.table()));
    Ok(if report.ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn lab(lab: &Lab, choice: &Choice) -> Result<(Facts, Report)> {
    let mut on = InLab { lab, off: vec![] };
    for machine in lab.machines() {
        if machine.inspect().await?.power != Power::On {
            on.off.push(machine.name.clone());
        }
    }
    let hosts = &lab.record.spec.inventory.hosts;
    // A bootstrap machine that is off has left, or is not there yet.
    let expected = |host: &&Host| host.role != Role::Bootstrap || !on.off.contains(&host.name);
    let hosts = hosts.iter().filter(expected).cloned().collect();
    let client = seedling_cluster::connect(Some(&lab.kubeconfig())).await?;
    let kubectl = format!("seedling kubectl --lab {}", lab.name());
    look(Cluster { client, hosts, shell: &on }, &kubectl, choice).await
}

async fn ssh(args: &VerifyArgs, kubeconfig: &Path, choice: &Choice) -> Result<(Facts, Report)> {
    let client = seedling_cluster::connect(Some(kubeconfig)).await?;
    let hosts = match &args.hosts {
        Some(path) => {
            let yaml = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
            let inventory = Inventory::parse(&yaml).map_err(seedling_lab::LabError::Machines)?;
            inventory.hosts
        }
        None => nodes(&client).await?,
    };
    let shell = Ssh { user: args.ssh.clone(), key: args.ssh_key.clone(), options: args.ssh_option.clone() };
    let kubectl = format!("kubectl --kubeconfig {}", kubeconfig.display());
    look(Cluster { client, hosts, shell: &shell }, &kubectl, choice).await
}

async fn look(cluster: Cluster<'_>, kubectl: &str, choice: &Choice) -> Result<(Facts, Report)> {
    let facts = gather(&cluster).await;
    let findings = judge(&facts, &Hands { shell: cluster.shell, kubectl });
    Ok((facts, Report::new(findings, choice)))
}

/// As the API knows them.
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

/// A lab's machines are entered through their container.
struct InLab<'a> {
    lab: &'a Lab,
    off: Vec<String>,
}

impl Shell for InLab<'_> {
    fn bash(&self, host: &Host) -> tokio::process::Command {
        match self.lab.machine(&host.name) {
            Ok(machine) if !self.off.contains(&host.name) => {
                machine.exec(&["bash".into(), "-s".into()], false)
            }
            _ => {
                let mut off = tokio::process::Command::new("sh");
                off.args(["-c", "echo the machine is off >&2"]);
                off
            }
        }
    }

    fn by_hand(&self, host: &Host, command: &str) -> String {
        let command = format!("'{}'", command.replace('\'', r"'\''"));
        format!("seedling lab exec --name {} {} -- sh -c {command}", self.lab.name(), host.name)
    }
}
