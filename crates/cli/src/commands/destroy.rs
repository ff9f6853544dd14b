//! `seedling destroy`: there is nothing at a cloud to take away; upstream's words for that.

use super::log::LogArgs;
use clap::{Args, Subcommand};
use seedling_observe::Level;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Subcommand)]
pub(crate) enum DestroyCommand {
    /// Not supported: the machines are yours
    Cluster(DestroyArgs),
    /// Not supported: switch the bootstrap machine off yourself
    Bootstrap(DestroyArgs),
}

#[derive(Args)]
pub(crate) struct DestroyArgs {
    /// The asset directory, which has metadata.json
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    #[command(flatten)]
    log: LogArgs,
}

pub(crate) fn run(command: DestroyCommand) -> ExitCode {
    let (args, doing) = match &command {
        DestroyCommand::Cluster(args) => (args, "failed while preparing to destroy cluster: "),
        DestroyCommand::Bootstrap(args) => (args, ""),
    };
    let mut console = match args.log.console(&args.dir) {
        Ok(console) => console,
        Err(code) => return code,
    };
    console.say(Level::Fatal, &format!("{doing}{}", refusal(&args.dir)));
    let hint = format!(
        "Nothing was made outside of {}: switch the machines off and delete it; `seedling lab down` takes a lab away.",
        args.dir.display()
    );
    console.say(Level::Info, &hint);
    ExitCode::FAILURE
}

fn refusal(dir: &Path) -> String {
    let path = dir.join("metadata.json");
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return format!("open {}: no such file or directory", path.display());
        }
        Err(e) => return format!("open {}: {e}", path.display()),
    };
    match serde_json::from_str::<Value>(&text) {
        Ok(metadata) if metadata.get("baremetal").is_some() => {
            "platform \"baremetal\" has no machines that seedling made".into()
        }
        Ok(_) => "no platform configured in metadata".into(),
        Err(e) => format!("failed to unmarshal data from {:?} to types.ClusterMetadata: {e}", path.display()),
    }
}
