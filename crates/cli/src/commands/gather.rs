//! `seedling gather`: what explains a failed bring-up, in one archive without secrets.

use super::log::LogArgs;
use anyhow::Result;
use clap::{Args, Subcommand};
use seedling_assets::Options;
use seedling_diagnose::{collect, diagnose, upstream};
use seedling_lab::{Labs, gather};
use seedling_observe::{Console, Level};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;

#[derive(Subcommand)]
pub(crate) enum GatherCommand {
    /// Pack logs, records and manifests of the bootstrap machine and the masters into log-bundle-TIMESTAMP.tar.gz
    ///
    /// From a lab (`--name`), or from machines by ssh as core. Works without the API and with machines off: what is missing is said. The
    /// archive holds no secret.
    Bootstrap(GatherArgs),
}

#[derive(Args)]
pub(crate) struct GatherArgs {
    /// The asset directory; the archive is written there
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// Gather from this lab
    #[arg(long, value_name = "LAB", conflicts_with_all = ["bootstrap", "master", "key"])]
    name: Option<String>,
    /// The bootstrap machine's address
    #[arg(long, value_name = "HOST")]
    bootstrap: Option<String>,
    /// A master's address; may be repeated
    #[arg(long, value_name = "HOST", requires = "bootstrap")]
    master: Vec<String>,
    /// A private key for ssh; may be repeated [default: ssh's own]
    #[arg(long, value_name = "FILE", requires = "bootstrap")]
    key: Vec<PathBuf>,
    /// Do not analyze the archive
    #[arg(long = "skipAnalysis", alias = "skip-analysis")]
    skip_analysis: bool,
    #[command(flatten)]
    log: LogArgs,
}

pub(crate) async fn run(command: GatherCommand) -> Result<ExitCode> {
    let GatherCommand::Bootstrap(args) = command;
    let console = match args.log.console(&args.dir) {
        Ok(console) => Mutex::new(console),
        Err(code) => return Ok(code),
    };
    let say = |level: Level, text: &str| console.lock().unwrap_or_else(|e| e.into_inner()).say(level, text);
    let told = |line: &str| say(Level::Info, line);
    let (bundle, known) = match (&args.name, &args.bootstrap) {
        (Some(name), _) => {
            let lab = Labs::from_env().open(name)?;
            (gather::gather(&lab, &told).await?, gather::known_secrets(&lab))
        }
        (None, Some(bootstrap)) => {
            let api = seedling_cluster::connect(Some(&args.dir.join("auth/kubeconfig")))
                .await
                .map_err(|e| e.to_string());
            match collect::by_ssh(bootstrap, &args.master, &args.key, api, &told).await {
                Ok(bundle) => (bundle, Vec::new()),
                Err(why) => {
                    say(Level::Fatal, &why);
                    return Ok(ExitCode::FAILURE);
                }
            }
        }
        (None, None) => {
            return Ok(no_address(&args.dir, &mut console.into_inner().unwrap_or_else(|e| e.into_inner())));
        }
    };
    let id = collect::new_id();
    let path = args.dir.join(format!("log-bundle-{id}.tar.gz"));
    if let Err(error) = bundle.write(&path, &format!("log-bundle-{id}"), &known) {
        say(Level::Fatal, &error.to_string());
        return Ok(ExitCode::FAILURE);
    }
    if !args.skip_analysis {
        upstream::analyze(&bundle).iter().for_each(|(level, line)| say(*level, line));
        super::analyze::print_causes(&diagnose(&bundle));
    }
    let whole = std::path::absolute(&path).unwrap_or(path);
    say(Level::Info, &format!("Bootstrap gather logs captured here \"{}\"", whole.display()));
    Ok(ExitCode::SUCCESS)
}

/// Upstream's words: it asks its platform, and ours have no answer.
fn no_address(dir: &Path, console: &mut Console) -> ExitCode {
    match seedling_assets::platform(dir, &Options::default()) {
        Ok(platform) => console.say(
            Level::Fatal,
            &format!(
                "error getting infrastructure provider: platform {platform:?} does not support automated infrastructure provisioning"
            ),
        ),
        Err(error) => {
            let fatal = |level| if level == "error" { Level::Error } else { Level::Fatal };
            error.lines().iter().for_each(|(level, line)| console.say(fatal(*level), line));
            return error.exit_code().into();
        }
    }
    ExitCode::FAILURE
}
