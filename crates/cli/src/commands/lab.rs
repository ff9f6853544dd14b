//! `seedling lab`: look into a lab, enter its machines, switch them, remove it. `up.rs` has `lab up`.

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use seedling_lab::{Lab, Labs};
use seedling_machines::{Machine, Power};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use tokio::process::Command;

#[derive(Args, Clone, Debug)]
pub(crate) struct Name {
    /// The lab's name
    #[arg(long = "name", default_value = "default", env = "SEEDLING_LAB")]
    pub name: String,
}

#[derive(Subcommand)]
pub(crate) enum LabCommand {
    /// Create a cluster and wait until it works; run it again to resume or to switch machines back on
    Up(super::up::UpArgs),
    /// Build the machines' root file system if there is none; `lab up` does this too
    Image,
    /// Serve a machine's disk that can be made to fail, mounted through the descriptor on stdin
    #[command(hide = true)]
    BadDisk { machine: PathBuf },
    /// Remove a lab and everything that belongs to it
    Down {
        #[command(flatten)]
        lab: Name,
    },
    /// Show the machines and how far each has come, as `seedling status` does
    Status(super::status::StatusArgs),
    /// Show a machine's console and Ignition log, its systemd journal, or the helper's log
    Logs {
        #[command(flatten)]
        lab: Name,
        /// The machine [default: the helper]
        node: Option<String>,
        /// Show the systemd journal instead of the console
        #[arg(long, requires = "node")]
        journal: bool,
        /// Show only this unit of the systemd journal
        #[arg(short, long, requires = "node")]
        unit: Option<String>,
        /// Keep printing new lines
        #[arg(short, long)]
        follow: bool,
    },
    /// Show step by step what was done on the machines: boot, bootkube, installers, etcd members
    Journal(super::journal::LabJournalArgs),
    /// Run a command on a machine and exit with its exit code
    Exec {
        #[command(flatten)]
        lab: Name,
        /// The machine's name
        node: String,
        /// The command and its arguments
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
    /// Open a shell on a machine
    Shell {
        #[command(flatten)]
        lab: Name,
        /// The machine's name
        node: String,
    },
    /// Log in on a machine by ssh as core, or run a command there
    ///
    /// With the lab's own key, from inside the lab's network; `sudo` asks for no password.
    Ssh {
        #[command(flatten)]
        lab: Name,
        /// The machine's name
        node: String,
        /// The command and its arguments [default: a shell]
        #[arg(last = true)]
        command: Vec<String>,
    },
    /// Shut down the whole lab: workers, then masters, then the helper
    Stop {
        #[command(flatten)]
        lab: Name,
    },
    /// Switch a stopped lab back on and wait until its nodes are Ready
    Start(super::power::StartArgs),
    /// Start the lab when this computer boots, and shut it down in order, by a unit of systemd
    Autostart {
        #[command(flatten)]
        lab: Name,
        /// Whether
        #[arg(value_parser = ["on", "off"])]
        switch: String,
    },
    /// Print the path of the administrator's kubeconfig
    Kubeconfig {
        #[command(flatten)]
        lab: Name,
    },
    /// Reinstall a machine on an empty disk, as if its hardware had been replaced
    ///
    /// The cluster must be running: the machine gets a new token, and its old etcd member is replaced.
    #[command(visible_alias = "reset")]
    Reinstall {
        #[command(flatten)]
        lab: Name,
        /// The machine's name
        node: String,
    },
    /// Add a machine to a living lab: it boots, joins the cluster and becomes Ready
    ///
    /// The helper's DHCP, DNS and Ignition configs, the cluster's inventory and hosts.yaml follow while everything runs. Run again after an
    /// interruption, it does the rest.
    Add(super::lab_change::AddArgs),
    /// Remove a worker from a living lab: its pods are evicted, then its Node, its token and the machine go
    ///
    /// Disruption budgets are respected. Masters stay. Run again after an interruption, it does the rest.
    Remove(super::lab_change::RemoveArgs),
    /// List the labs on this machine
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Switch a machine on or off, or cut the power of several at once
    ///
    /// `power NODE on|off|kill|pause` switches one machine on, shuts it down, cuts its power, or freezes it until it is switched on. `power cut` cuts the power of all machines and
    /// the helper at once, `power cut NODE...` of some. `power on` switches everything back on that the last cut switched off, `power on
    /// NODE...` some of it.
    Power {
        #[command(flatten)]
        lab: Name,
        /// `NODE on`, `NODE off`, `NODE kill`, `NODE pause`, `cut [NODE...]` or `on [NODE...]`
        #[arg(required = true, value_name = "WORD")]
        words: Vec<String>,
    },
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Output {
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    pub output: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Table,
    Json,
}

pub(crate) async fn run(cmd: LabCommand) -> Result<()> {
    let labs = Labs::from_env();
    match cmd {
        LabCommand::Up(args) => super::up::run(args).await?,
        LabCommand::Image => {
            let image = seedling_machines::image::ensure(&labs.cache, &say).await?;
            println!("{}", image.display());
        }
        LabCommand::BadDisk { machine } => {
            tokio::task::spawn_blocking(move || seedling_machines::bad_disk::serve(&machine)).await??;
        }
        LabCommand::Down { lab } => {
            if !seedling_lab::down(&labs, &lab.name, &say).await? {
                say(&format!("there is no lab {:?}", lab.name));
            }
        }
        LabCommand::Status(args) => super::status::run(args).await?,
        LabCommand::Logs { lab, node, journal, unit, follow } => {
            let lab = labs.open(&lab.name)?;
            match node {
                None => show(&[lab.helper_log()], follow).await?,
                Some(node) if journal || unit.is_some() => {
                    show_journal(&lab.machine(&node)?, unit, follow).await?
                }
                Some(node) => {
                    let machine = lab.machine(&node)?;
                    show(&[machine.on_disk("/var/log/ignition.log"), machine.console_log()], follow).await?;
                }
            }
        }
        LabCommand::Journal(args) => super::journal::of_lab(args).await?,
        LabCommand::Exec { lab, node, command } => {
            let tty = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
            enter(&labs.open(&lab.name)?.machine(&node)?, &command, tty).await?;
        }
        LabCommand::Shell { lab, node } => {
            let tty = std::io::stdin().is_terminal();
            enter(&labs.open(&lab.name)?.machine(&node)?, &["bash".into(), "-l".into()], tty).await?;
        }
        LabCommand::Ssh { lab, node, command } => {
            let lab = labs.open(&lab.name)?;
            must_be_on(&lab.machine(&node)?).await?;
            finish(&mut lab.access(&node)?.command(&command, std::io::stdin().is_terminal())).await?;
        }
        LabCommand::Stop { lab } => super::power::stop(&labs, &labs.open(&lab.name)?).await?,
        LabCommand::Start(args) => super::power::start(&labs, args).await?,
        LabCommand::Autostart { lab, switch } => {
            let program = std::env::current_exe()?;
            seedling_lab::autostart::set(&labs, &labs.open(&lab.name)?, &program, switch == "on").await?;
        }
        LabCommand::Kubeconfig { lab } => {
            let path = labs.open(&lab.name)?.kubeconfig();
            if !path.exists() {
                bail!("{} is not there yet: `lab up` writes it", path.display());
            }
            println!("{}", path.display());
        }
        LabCommand::Reinstall { lab, node } => {
            let lab = labs.open(&lab.name)?;
            // First what may be refused.
            super::node_reissue::reissue(&super::csr::Cluster::of_lab(lab.name()), &node, None, None).await?;
            lab.new_disk(&node).await?;
            lab.switch_on(&node).await?;
        }
        LabCommand::Add(args) => super::lab_change::add(&labs, args).await?,
        LabCommand::Remove(args) => super::lab_change::remove(&labs, args).await?,
        LabCommand::List { output } => list(&labs.list()?, output.output)?,
        LabCommand::Power { lab, words } => super::power::run(&labs, &labs.open(&lab.name)?, &words).await?,
    }
    Ok(())
}

pub(crate) fn say(text: &str) {
    eprintln!("{text}");
}

fn list(labs: &[Lab], format: Format) -> Result<()> {
    if format == Format::Json {
        let records: Vec<_> = labs.iter().map(|lab| &lab.record).collect();
        println!("{}", serde_json::to_string_pretty(&records)?);
        return Ok(());
    }
    println!("{:<20} {:>8}  {:<22} DIRECTORY", "NAME", "MACHINES", "API");
    for lab in labs {
        let spec = &lab.record.spec;
        let api = lab.record.api.map_or("-".into(), |a| a.to_string());
        println!("{:<20} {:>8}  {api:<22} {}", spec.name, spec.inventory.hosts.len(), lab.dir.display());
    }
    Ok(())
}

async fn show(files: &[PathBuf], follow: bool) -> Result<()> {
    let there: Vec<_> = files.iter().filter(|f| f.exists()).collect();
    let Some(last) = there.last() else { bail!("nothing was logged yet") };
    for file in &there {
        if there.len() > 1 {
            eprintln!("==> {} <==", file.display());
        }
        if !(follow && file == last) {
            std::io::copy(&mut std::fs::File::open(file)?, &mut std::io::stdout())?;
        }
    }
    if follow {
        finish(Command::new("tail").args(["-n", "+1", "-F"]).arg(last)).await?;
    }
    Ok(())
}

/// The journal of a machine that is off is read from its disk.
async fn show_journal(machine: &Machine, unit: Option<String>, follow: bool) -> Result<()> {
    let mut args = vec!["--no-pager".to_string()];
    args.extend(unit.map(|unit| format!("--unit={unit}")));
    if follow {
        args.push("--follow".into());
    }
    if machine.inspect().await?.power == Power::On {
        args.insert(0, "journalctl".into());
        return finish(&mut machine.exec(&args, false)).await;
    }
    if let Machine::Qemu(_) = machine {
        let name = &machine.name;
        bail!(
            "{name} is off, and its disk cannot be read from here: seedling lab logs {name} has its console"
        );
    }
    let journal: PathBuf = machine.on_disk("/var/log/journal");
    finish(Command::new("journalctl").arg("--directory").arg(Path::new(&journal)).args(args)).await
}

async fn must_be_on(machine: &Machine) -> Result<()> {
    if machine.inspect().await?.power != Power::On {
        bail!("{0} is not on: seedling lab power {0} on", machine.name);
    }
    Ok(())
}

async fn enter(machine: &Machine, command: &[String], tty: bool) -> Result<()> {
    must_be_on(machine).await?;
    finish(&mut machine.exec(command, tty)).await
}

/// With our own streams; the program's exit code becomes ours.
async fn finish(command: &mut Command) -> Result<()> {
    let program = command.as_std().get_program().to_string_lossy().into_owned();
    let status = command.status().await.with_context(|| format!("cannot run {program}"))?;
    match status.code() {
        Some(0) => Ok(()),
        code => std::process::exit(code.unwrap_or(1)),
    }
}
