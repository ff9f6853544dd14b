//! `seedling helper`: the servers that nodes boot from, on a lab's network or a real one.

use super::lab::Name;
use super::{helper_check, helper_site, helper_status};
use anyhow::Result;
use seedling_helper::{doors, keep, load, run as serve};
use seedling_lab::Labs;
use std::path::PathBuf;
use std::process::ExitCode;

/// Where the package's unit looks for it.
pub(super) const CONFIG: &str = "/etc/seedling/helper.yaml";

#[derive(clap::Subcommand)]
pub(crate) enum HelperCommand {
    /// Run all servers on the machines' network, until it is stopped
    Run {
        /// The configuration, helper.yaml
        #[arg(long)]
        config: PathBuf,
        /// Why it is restarted, for the event log
        #[arg(long, hide = true)]
        after: Option<String>,
        /// Send a heartbeat through the pipe on standard input
        #[arg(long, hide = true)]
        beat: bool,
    },
    /// `run` in a child process that is restarted when it dies or its heartbeat stops
    #[command(hide = true)]
    Keep {
        #[arg(long)]
        config: PathBuf,
    },
    /// Let a machine fetch its Ignition config once more within the next hour
    ///
    /// Without this, the bootstrap machine gets its config once per power-on and never after the masters have taken over, and other
    /// machines get theirs only while they boot for the first time.
    Open {
        /// The machine's name in hosts.yaml
        machine: String,
        /// The helper's configuration, helper.yaml [default: the lab's]
        #[arg(long)]
        config: Option<PathBuf>,
        #[command(flatten)]
        lab: Name,
    },
    /// Write a helper.yaml for a real network, with a comment on every field
    ///
    /// From install-config.yaml and hosts.yaml, and this machine's address on the machines' network.
    Init(helper_site::InitArgs),
    /// Check whether the helper can serve here, or what is wrong while it runs; exit 9 if something is
    ///
    /// All problems at once: fields that do not fit together, an address that this machine does not have, ports that are taken, files that are
    /// missing, another DHCP server, DNS or balancer. One DHCPDISCOVER is sent on the helper's interface.
    Check(helper_check::CheckArgs),
    /// Write the helper's systemd unit and start it
    Install(helper_site::InstallArgs),
    /// Stop the helper's systemd unit and remove it; helper.yaml and the event log stay
    Uninstall(helper_site::UninstallArgs),
    /// Show how far each machine's boot got, the first link that is broken, and machines that nobody knows
    Status(helper_status::StatusArgs),
    /// Write helper.yaml as the configuration of servers that you have already
    Export(helper_site::ExportArgs),
    /// Operating systems that machines boot over the network
    #[command(subcommand)]
    Images(helper_site::ImagesCommand),
}

pub(crate) async fn run(cmd: HelperCommand) -> Result<ExitCode> {
    match cmd {
        HelperCommand::Run { config, after, beat } => {
            if beat {
                tokio::spawn(seedling_helper::beat());
            }
            serve(&config, after).await?;
        }
        HelperCommand::Keep { config } => keep(&std::env::current_exe()?, &config).await?,
        HelperCommand::Open { machine, config, lab } => {
            doors::open(&load(&config_of(config, &lab)?)?, &machine)?;
            eprintln!("{machine} may fetch its Ignition config once within the hour");
        }
        HelperCommand::Init(args) => helper_site::init(&args)?,
        HelperCommand::Check(args) => return helper_check::run(args).await,
        HelperCommand::Install(args) => helper_site::install(&args).await?,
        HelperCommand::Uninstall(args) => helper_site::uninstall(&args)?,
        HelperCommand::Status(args) => helper_status::run(&args)?,
        HelperCommand::Export(args) => helper_site::export(&args)?,
        HelperCommand::Images(command) => helper_site::images(&command)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The one that is named, else the lab's.
pub(super) fn config_of(config: Option<PathBuf>, lab: &Name) -> Result<PathBuf> {
    match config {
        Some(config) => Ok(config),
        None => Ok(Labs::from_env().open(&lab.name)?.helper_config()),
    }
}

/// The one that is named, else this machine's, else the lab's.
pub(super) fn config_here(config: Option<PathBuf>, lab: &Name) -> Result<PathBuf> {
    config_of(here(config), lab)
}

/// The one that is named, else this machine's, if it has one.
pub(super) fn here(config: Option<PathBuf>) -> Option<PathBuf> {
    config.or_else(|| Some(PathBuf::from(CONFIG)).filter(|path| path.exists()))
}
