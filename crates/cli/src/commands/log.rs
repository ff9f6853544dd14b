//! How openshift-install's commands speak: `--log-level`, and an end by signal. Everything said is in `.openshift_install.log`, too.

use clap::Args;
use seedling_observe::{Console, Level};
use std::path::Path;
use std::process::ExitCode;

/// Upstream's words and exit code for a run that was interrupted.
pub(super) const INTERRUPTED: &str = "Received interrupt signal";
pub(super) const INTERRUPTED_CODE: u8 = 8;

#[derive(Args)]
pub(super) struct LogArgs {
    /// How much to print: debug, info, warning or error
    #[arg(long, default_value = "info", value_name = "LEVEL")]
    log_level: String,
}

impl LogArgs {
    /// What is no level is said in openshift-install's words.
    pub(super) fn level(&self) -> Result<Level, ExitCode> {
        self.log_level.parse().map_err(|why| {
            seedling_observe::say(Level::Fatal, &format!("invalid log-level: {why}"));
            ExitCode::FAILURE
        })
    }

    /// For commands whose lines are logged where they are said.
    pub(super) fn console(&self, dir: &Path) -> Result<Console, ExitCode> {
        Ok(Console::new(self.level()?, dir))
    }
}

/// For every wait of a command.
#[derive(Args, Clone, Debug)]
pub(super) struct NoProgress {
    /// Give up after this many minutes without any progress [default: depends on what is waited for]
    #[arg(long, env = seedling_steps::NO_PROGRESS_VARIABLE, value_name = "MINUTES", value_parser = clap::value_parser!(u32).range(1..))]
    no_progress: Option<u32>,
}

impl NoProgress {
    pub(super) fn configure(&self) {
        self.no_progress.into_iter().for_each(seedling_steps::configure_no_progress);
    }
}

/// Ends the program at SIGINT or SIGTERM at any point: the next run continues or repeats what was not finished.
pub(super) fn end_when_interrupted() {
    tokio::spawn(async {
        interrupted().await;
        seedling_observe::say(Level::Warning, INTERRUPTED);
        std::process::exit(INTERRUPTED_CODE.into());
    });
}

pub(super) async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return std::future::pending().await };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}
