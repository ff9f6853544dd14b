//! Running other programs: one way, with an error that says which one and what it complained about.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

pub use seedling_image::Progress;

pub type Result<T, E = MachineError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    #[error("{program} cannot be run: {source}")]
    Spawn { program: String, source: std::io::Error },
    #[error("`{command}` failed ({status}): {complaint}")]
    Failed { command: String, status: std::process::ExitStatus, complaint: String },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{0} does not stop: {1}")]
    DoesNotStop(String, String),
    #[error("{0} is not running")]
    NotRunning(String),
    #[error("{name} is a QEMU machine: {what}; take a container machine for that")]
    OnlyContainers { name: String, what: &'static str },
    #[error("{program} is not installed, which QEMU machines need: apt install {package}")]
    Missing { program: &'static str, package: &'static str },
    #[error("{name}: QEMU ended at once: {complaint}")]
    Ended { name: String, complaint: String },
    #[error("{name}: QEMU {command}: {complaint}")]
    Qmp { name: String, command: &'static str, complaint: String },
    #[error("{}: its path is longer than the {most} characters that a socket's may have; set SEEDLING_STATE to a shorter one", path.display())]
    LongPath { path: PathBuf, most: usize },
    #[error(transparent)]
    Image(#[from] seedling_image::ImageError),
    #[error("unreadable answer of runc: {0}")]
    Runc(#[from] serde_json::Error),
}

/// Adds the path to an I/O error.
pub(crate) fn at<T>(path: &Path, result: std::io::Result<T>) -> Result<T> {
    result.map_err(|source| MachineError::Io { path: path.into(), source })
}

/// Runs to the end and returns stdout.
pub(crate) async fn run(program: &str, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<String> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null());
    finish(&command_line(&command), command.output().await, program)
}

/// The same, with `input` on stdin.
pub(crate) async fn run_with(program: &str, args: &[&str], input: &str) -> Result<String> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = async {
        let mut child = command.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // A program that stops reading complains on stderr: its own words are better than our EPIPE.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
        child.wait_with_output().await
    };
    let output = output.await;
    finish(&command_line(&command), output, program)
}

/// stdout of a finished program, or what it complained about.
pub(crate) fn finish(line: &str, output: std::io::Result<Output>, program: &str) -> Result<String> {
    let output = output.map_err(|source| MachineError::Spawn { program: program.into(), source })?;
    let stdout = String::from_utf8_lossy(&output.stdout).trim_end().to_string();
    if output.status.success() {
        return Ok(stdout);
    }
    let stderr = String::from_utf8_lossy(&output.stderr).trim().to_string();
    let complaint = if stderr.is_empty() { stdout } else { stderr };
    Err(MachineError::Failed { command: line.into(), status: output.status, complaint })
}

fn command_line(command: &Command) -> String {
    let command = command.as_std();
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|w| w.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}
