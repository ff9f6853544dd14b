//! `seedling create`: an install-config becomes manifests or Ignition files.

use anyhow::Result;
use clap::{Args, Subcommand};
use seedling_assets::{CreateError, Options, Outcome, Target};
use seedling_observe::Level;
use seedling_pki::KeyAlgorithm;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Subcommand)]
pub enum CreateCommand {
    /// Check install-config.yaml and write it back with all defaults; without one, make it from flags or questions
    InstallConfig {
        #[command(flatten)]
        args: CreateArgs,
        #[command(flatten)]
        new: super::ask::NewArgs,
    },
    /// Write the objects a cluster starts with into manifests/ and openshift/; they may be edited before the next step
    Manifests(CreateArgs),
    /// Write bootstrap.ign, master.ign, worker.ign, nodes/<name>.ign for each machine of the inventory, and the admin kubeconfig
    IgnitionConfigs {
        #[command(flatten)]
        args: CreateArgs,
        /// Let the machine-config server answer whoever reaches it, as OpenShift's does: no tokens, master.ign and worker.ign
        /// for every machine
        #[arg(long)]
        open: bool,
    },
    /// Write bootstrap-in-place-for-live-iso.ign: one machine that boots it from live media and installs itself
    SingleNodeIgnitionConfig(CreateArgs),
    /// Refused: machines are switched on by people, or by `seedling lab`
    Cluster(CreateArgs),
}

#[derive(Args)]
pub struct CreateArgs {
    /// The asset directory; holds install-config.yaml
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// The inventory (name, role, MAC and address of each machine) [default: hosts.yaml in the asset directory, if there]
    #[arg(long, value_name = "FILE")]
    hosts: Option<PathBuf>,
    /// Output of `seedling release build` [default: $SEEDLING_CACHE/release]
    #[arg(long, value_name = "DIR")]
    release: Option<PathBuf>,
    /// What signers' keys are made with: ecdsa-p256, -p384, -p521, rsa-2048 to rsa-8192 in steps of 1024 [default: ecdsa-p256, or what
    /// install-config.yaml says]
    #[arg(long, value_name = "ALGORITHM")]
    key_algorithm: Option<KeyAlgorithm>,
    /// Use the signers in tls/ of the asset directory (NAME.crt and NAME.key, e.g. root-ca) instead of new ones; they stay there
    #[arg(long)]
    own_signers: bool,
    #[command(flatten)]
    log: super::log::LogArgs,
}

pub fn run(command: CreateCommand) -> Result<ExitCode> {
    let (CreateCommand::InstallConfig { args, .. }
    | CreateCommand::Manifests(args)
    | CreateCommand::IgnitionConfigs { args, .. }
    | CreateCommand::SingleNodeIgnitionConfig(args)
    | CreateCommand::Cluster(args)) = &command;
    let level = match args.log.level() {
        Ok(level) => level,
        Err(code) => return Ok(code),
    };
    let mut options = args.options();
    let target = match &command {
        CreateCommand::InstallConfig { new, .. } => {
            super::ask::new_install_config(&args.dir, new)?;
            Target::InstallConfig
        }
        CreateCommand::Manifests(_) => Target::Manifests,
        CreateCommand::IgnitionConfigs { open, .. } => {
            options.open = *open;
            Target::IgnitionConfigs
        }
        CreateCommand::SingleNodeIgnitionConfig(_) => Target::SingleNodeIgnitionConfig,
        CreateCommand::Cluster(_) => {
            return Ok(tell(seedling_assets::refuse_cluster(&args.dir, &options), level));
        }
    };
    super::log::end_when_interrupted();
    Ok(tell(seedling_assets::create(target, &args.dir, &options), level))
}

impl CreateArgs {
    fn options(&self) -> Options {
        let mut options =
            Options { hosts: self.hosts.clone(), keys: self.key_algorithm, ..Options::default() };
        options.own_signers |= self.own_signers;
        if let Some(release) = &self.release {
            options.release = release.clone();
        }
        options
    }
}

/// Says what a run has to say, from a level on, and gives its exit code.
pub fn tell(done: Result<Outcome, CreateError>, from: Level) -> ExitCode {
    let (lines, code) = match done {
        Ok(outcome) => {
            let line = |m: seedling_assets::Message| (m.level.as_str(), m.text);
            (outcome.messages.into_iter().map(line).collect(), ExitCode::SUCCESS)
        }
        Err(error) => (error.lines(), error.exit_code().into()),
    };
    for (level, text) in lines {
        let level = level.parse().unwrap_or(Level::Error);
        if level >= from {
            seedling_observe::say(level, &text);
        }
    }
    code
}
