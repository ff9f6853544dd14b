//! `seedling create`: an install-config becomes manifests or Ignition files.

use anyhow::Result;
use clap::{Args, Subcommand};
use seedling_assets::{CreateError, Options, Outcome, Target};
use seedling_observe::Level;
use seedling_pki::KeyAlgorithm;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Subcommand)]
pub(crate) enum CreateCommand {
    /// Check install-config.yaml and write it back with all defaults; if there is none, make one from flags or by asking
    InstallConfig {
        #[command(flatten)]
        args: CreateArgs,
        #[command(flatten)]
        new: super::ask::NewArgs,
    },
    /// Write the cluster's first objects into manifests/ and openshift/; you may edit them before the next step
    Manifests(CreateArgs),
    /// Write bootstrap.ign, master.ign, worker.ign, one nodes/NAME.ign per machine in hosts.yaml, and the admin's kubeconfig
    IgnitionConfigs {
        #[command(flatten)]
        args: CreateArgs,
        /// Let the machine-config server answer every client, as OpenShift's does: no tokens, and master.ign or worker.ign for
        /// every machine
        #[arg(long)]
        open: bool,
    },
    /// Write bootstrap-in-place-for-live-iso.ign, with which a single machine booted from live media installs itself
    SingleNodeIgnitionConfig(CreateArgs),
    /// Not supported: you switch machines on yourself, or `seedling lab up` does; for openshift-install's callers
    #[command(hide = true)]
    Cluster(CreateArgs),
}

#[derive(Args)]
pub(crate) struct CreateArgs {
    /// The asset directory, which has install-config.yaml and receives the files made from it
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// The list of machines: name, role, MAC and IP address of each [default: hosts.yaml in the asset directory, if present]
    #[arg(long, value_name = "FILE")]
    hosts: Option<PathBuf>,
    /// The release to install: the output of `seedling release build` [default: $SEEDLING_CACHE/release]
    #[arg(long, value_name = "DIR")]
    release: Option<PathBuf>,
    /// Algorithm of the certificate authorities' keys: ecdsa-p256, ecdsa-p384, ecdsa-p521, or rsa-2048 to rsa-8192 in steps of 1024
    /// [default: ecdsa-p256, or what install-config.yaml says]
    #[arg(long, value_name = "ALGORITHM")]
    key_algorithm: Option<KeyAlgorithm>,
    /// Use your own certificate authorities from tls/ in the asset directory (NAME.crt and NAME.key, e.g. root-ca) instead of new
    /// ones; the files stay there
    #[arg(long)]
    own_signers: bool,
    #[command(flatten)]
    log: super::log::LogArgs,
}

pub(crate) fn run(command: CreateCommand) -> Result<ExitCode> {
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
pub(crate) fn tell(done: Result<Outcome, CreateError>, from: Level) -> ExitCode {
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
