//! `seedling create`: an install-config becomes manifests or Ignition files.

use anyhow::Result;
use clap::{Args, Subcommand};
use seedling_assets::{CreateError, Options, Outcome, Target};
use seedling_pki::KeyAlgorithm;
use std::io::IsTerminal;
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
    /// What signers' keys are made with: ecdsa-p256, -p384, -p521, rsa-2048, -3072, -4096, -8192 [default: ecdsa-p256, or what
    /// install-config.yaml says]
    #[arg(long, value_name = "ALGORITHM")]
    key_algorithm: Option<KeyAlgorithm>,
    /// Use the signers in tls/ of the asset directory (NAME.crt and NAME.key, e.g. root-ca) instead of new ones; they stay there
    #[arg(long)]
    own_signers: bool,
}

pub fn run(command: CreateCommand) -> Result<ExitCode> {
    let (target, args) = match command {
        CreateCommand::InstallConfig { args, new } => {
            super::ask::new_install_config(&args.dir, &new)?;
            (Target::InstallConfig, args)
        }
        CreateCommand::Manifests(args) => (Target::Manifests, args),
        CreateCommand::IgnitionConfigs { args, open } => {
            let options = Options { open, ..args.options() };
            return Ok(tell(seedling_assets::create(Target::IgnitionConfigs, &args.dir, &options)));
        }
        CreateCommand::SingleNodeIgnitionConfig(args) => (Target::SingleNodeIgnitionConfig, args),
        CreateCommand::Cluster(args) => {
            return Ok(tell(seedling_assets::refuse_cluster(&args.dir, &args.options())));
        }
    };
    Ok(tell(seedling_assets::create(target, &args.dir, &args.options())))
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

/// Says what a run has to say, and gives its exit code.
pub fn tell(done: Result<Outcome, CreateError>) -> ExitCode {
    match done {
        Ok(outcome) => {
            for message in outcome.messages {
                say(message.level.as_str(), &message.text);
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            error.lines().iter().for_each(|(level, line)| say(level, line));
            error.exit_code().into()
        }
    }
}

/// One line of text, one line of log: `INFO …` in colour for people, `level=info msg=…` for programs.
fn say(level: &str, text: &str) {
    let colour = match level {
        "info" => 36,
        "warning" => 33,
        _ => 31,
    };
    for line in text.lines() {
        if std::io::stderr().is_terminal() {
            // Short messages are padded, as logrus does it.
            eprintln!("\x1b[{colour}m{}\x1b[0m {line:<44} ", level.to_uppercase());
        } else {
            eprintln!("level={level} msg={line}");
        }
    }
}
