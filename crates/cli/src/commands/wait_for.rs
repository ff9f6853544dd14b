//! `seedling wait-for`: follow a bootstrap or an installation to its end; upstream's words and exit codes.

use super::log::{self, LogArgs, NoProgress};
use clap::{Args, Subcommand};
use seedling_observe::{Console, InstallParams, Level, WaitError};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

#[derive(Subcommand)]
pub(crate) enum WaitForCommand {
    /// Wait until the masters run the cluster and the bootstrap machine can be switched off
    BootstrapComplete(WaitForArgs),
    /// Wait until every cluster operator is available and no longer progressing
    InstallComplete(WaitForArgs),
    /// Wait until a machine has joined as a node and is Ready; says what it still lacks
    Node(super::wait_node::NodeArgs),
}

#[derive(Args)]
pub(crate) struct WaitForArgs {
    /// The asset directory, whose auth/kubeconfig is used
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    #[command(flatten)]
    log: LogArgs,
    #[command(flatten)]
    no_progress: NoProgress,
    /// How many seconds an operator must be stable before it counts (openshift-install: 30)
    #[arg(long, default_value_t = 0, value_name = "SECONDS")]
    stable_for: u64,
}

pub(crate) async fn run(command: WaitForCommand) -> ExitCode {
    let args = match &command {
        WaitForCommand::Node(args) => return super::wait_node::run(args).await,
        WaitForCommand::BootstrapComplete(args) | WaitForCommand::InstallComplete(args) => args,
    };
    args.no_progress.configure();
    let mut console = match args.log.console(&args.dir) {
        Ok(console) => console,
        Err(code) => return code,
    };
    let waited = tokio::select! {
        waited = wait(&command, args, &mut console) => Some(waited),
        () = log::interrupted() => None,
    };
    match waited {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(Failed::Waiting(e))) => e.exit_code().into(),
        Some(Err(Failed::Start(message))) => {
            console.say(Level::Fatal, &message);
            ExitCode::FAILURE
        }
        None => {
            console.say(Level::Warning, log::INTERRUPTED);
            log::INTERRUPTED_CODE.into()
        }
    }
}

enum Failed {
    Start(String),
    Waiting(WaitError),
}

async fn wait(command: &WaitForCommand, args: &WaitForArgs, console: &mut Console) -> Result<(), Failed> {
    let kubeconfig = args.dir.join("auth/kubeconfig");
    let start = |e: String| Failed::Start(format!("loading kubeconfig: {e}"));
    let url = server(&kubeconfig).map_err(start)?;
    let client = seedling_cluster::connect(Some(&kubeconfig)).await.map_err(|e| start(e.to_string()))?;
    let mut on = |level, text: String| console.say(level, &text);
    let error = match command {
        WaitForCommand::BootstrapComplete(_) => {
            let waited = seedling_observe::bootstrap_complete(&client, &url, &mut on).await;
            let Err(error) = waited else { return Ok(()) };
            seedling_observe::report_bootstrap_failure(&client, &args.dir, &error, &mut on).await;
            error
        }
        WaitForCommand::InstallComplete(_) => {
            let stable_for = Duration::from_secs(args.stable_for);
            let params = InstallParams { api_url: &url, dir: &args.dir, stable_for };
            let waited = seedling_observe::install_complete(&client, &params, &mut on).await;
            let Err(error) = waited else { return Ok(()) };
            seedling_observe::report_install_failure(&client, &args.dir, &error, &mut on).await;
            error
        }
        WaitForCommand::Node(_) => return Ok(()),
    };
    Err(Failed::Waiting(error))
}

/// The API's address as people know it.
fn server(kubeconfig: &std::path::Path) -> Result<String, String> {
    let failed = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::NotFound => format!("stat {}: no such file or directory", kubeconfig.display()),
        _ => format!("open {}: {e}", kubeconfig.display()),
    };
    let text = std::fs::read_to_string(kubeconfig).map_err(failed)?;
    let config: serde_json::Value = serde_saphyr::from_str(&text).map_err(|e| e.to_string())?;
    let server = config["clusters"][0]["cluster"]["server"].as_str();
    server.map(str::to_string).ok_or_else(|| format!("{} names no server", kubeconfig.display()))
}
