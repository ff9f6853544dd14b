//! Running other programs: one way, with an error that says which one, what it complained about, or how to get it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::process::Command;

/// Told what is being done, in words for people.
pub type Progress<'a> = &'a (dyn Fn(&str) + Send + Sync);

pub type Result<T, E = ImageError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    #[error("{program} cannot be run: {source}")]
    Spawn { program: String, source: std::io::Error },
    #[error("`{command}` failed ({status}): {complaint}")]
    Failed { command: String, status: std::process::ExitStatus, complaint: String },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("missing on this machine: {}; run `apt install {}`", what.join(", "), packages.join(" "))]
    Missing { what: Vec<String>, packages: Vec<String> },
    #[error("{}: {why}", path.display())]
    Unusable { path: PathBuf, why: String },
}

/// Adds the path to an I/O error.
pub(crate) fn at<T>(path: &Path, result: std::io::Result<T>) -> Result<T> {
    result.map_err(|source| ImageError::Io { path: path.into(), source })
}

pub(crate) fn unusable(path: &Path, why: impl Into<String>) -> ImageError {
    ImageError::Unusable { path: path.into(), why: why.into() }
}

/// Runs to the end and returns stdout.
pub(crate) async fn run(program: &str, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<String> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null());
    finish(command).await
}

/// Runs to the end what the caller has set up, and returns stdout.
pub(crate) async fn finish(mut command: Command) -> Result<String> {
    // Debian's tools for disks are not on everybody's path.
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
    let words = std::iter::once(command.as_std().get_program()).chain(command.as_std().get_args());
    let line = words.map(|w| w.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ");
    let program = command.as_std().get_program().to_string_lossy().into_owned();
    let output = command.output().await.map_err(|source| ImageError::Spawn { program, source })?;
    let stdout = String::from_utf8_lossy(&output.stdout).trim_end().to_string();
    if output.status.success() {
        return Ok(stdout);
    }
    let stderr = String::from_utf8_lossy(&output.stderr).trim().to_string();
    let complaint = if stderr.is_empty() { stdout } else { stderr };
    Err(ImageError::Failed { command: line, status: output.status, complaint })
}

/// Removes a file, a link or a whole directory; it may be missing.
pub fn remove_tree(path: &Path) -> Result<()> {
    let removed = match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
        Err(e) => Err(e),
    };
    match removed {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => at(path, other),
    }
}
