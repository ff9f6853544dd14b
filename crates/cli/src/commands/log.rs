//! `--log-level`: how much a command says. Everything is in `.openshift_install.log` all the same.

use clap::Args;
use seedling_observe::{Console, Level};
use std::path::Path;
use std::process::ExitCode;

#[derive(Args)]
pub struct LogArgs {
    /// debug, info, warning or error
    #[arg(long, default_value = "info", value_name = "LEVEL")]
    log_level: String,
}

impl LogArgs {
    /// What is no level is said in openshift-install's words.
    pub fn level(&self) -> Result<Level, ExitCode> {
        self.log_level.parse().map_err(|why| {
            seedling_observe::say(Level::Fatal, &format!("invalid log-level: {why}"));
            ExitCode::FAILURE
        })
    }

    /// For commands whose lines are logged where they are said.
    pub fn console(&self, dir: &Path) -> Result<Console, ExitCode> {
        Ok(Console::new(self.level()?, dir))
    }
}
