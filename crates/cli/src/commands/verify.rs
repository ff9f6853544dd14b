//! `seedling verify`: does a cluster work? Every check with its evidence.

use super::elsewhere::Elsewhere;
use super::lab::Output;
use anyhow::Result;
use clap::Args;
use seedling_checks::verify::{CHECKS, Cluster, Facts, Hands, gather, judge};
use seedling_checks::{Choice, Report, Shell};
use seedling_lab::{Lab, Labs};
use seedling_machines::Power;
use seedling_types::{Host, Role};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Args)]
pub(crate) struct VerifyArgs {
    /// The lab to look at, if no kubeconfig is given
    #[arg(long = "name", env = "SEEDLING_LAB", default_value = "default")]
    name: String,
    #[command(flatten)]
    elsewhere: Elsewhere,
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
    let (facts, report) = match &args.elsewhere.kubeconfig {
        Some(kubeconfig) => ssh(&args.elsewhere, kubeconfig, &choice).await?,
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

async fn ssh(elsewhere: &Elsewhere, kubeconfig: &Path, choice: &Choice) -> Result<(Facts, Report)> {
    let client = seedling_cluster::connect(Some(kubeconfig)).await?;
    let hosts = elsewhere.hosts(&client).await?;
    let kubectl = format!("kubectl --kubeconfig {}", kubeconfig.display());
    look(Cluster { client, hosts, shell: &elsewhere.shell() }, &kubectl, choice).await
}

async fn look(cluster: Cluster<'_>, kubectl: &str, choice: &Choice) -> Result<(Facts, Report)> {
    let facts = gather(&cluster).await;
    let findings = judge(&facts, &Hands { shell: cluster.shell, kubectl });
    Ok((facts, Report::new(findings, choice)))
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
