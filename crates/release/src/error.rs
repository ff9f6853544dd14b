//! What can go wrong while a release is made.

use std::path::{Path, PathBuf};
use std::process::Command;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum ReleaseError {
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{path}: {source}")]
    Json { path: PathBuf, source: serde_json::Error },
    #[error("`{command}` failed: {detail}\nhint: {hint}")]
    Tool { command: String, detail: String, hint: String },
    #[error("{what}\nhint: {hint}")]
    Invalid { what: String, hint: String },
}

impl ReleaseError {
    pub fn invalid(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Invalid { what: what.into(), hint: hint.into() }
    }
}

/// Adds the path to an I/O error.
pub trait At<T> {
    fn at(self, path: impl AsRef<Path>) -> Result<T, ReleaseError>;
}

impl<T> At<T> for std::io::Result<T> {
    fn at(self, path: impl AsRef<Path>) -> Result<T, ReleaseError> {
        self.map_err(|source| ReleaseError::Io { path: path.as_ref().into(), source })
    }
}

impl<T> At<T> for serde_json::Result<T> {
    fn at(self, path: impl AsRef<Path>) -> Result<T, ReleaseError> {
        self.map_err(|source| ReleaseError::Json { path: path.as_ref().into(), source })
    }
}

/// Runs a command to its end and returns its stdout; a failure carries the end of what it said.
pub fn output(command: &mut Command, hint: &str) -> Result<String, ReleaseError> {
    let name = shown(command);
    let failed = |detail| ReleaseError::Tool { command: name.clone(), detail, hint: hint.into() };
    let out = command.output().map_err(|e| failed(e.to_string()))?;
    if !out.status.success() {
        return Err(failed(tail(&out.stderr)));
    }
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|w| w.to_string_lossy()).collect::<Vec<_>>().join(" ").chars().take(200).collect()
}

fn tail(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines: Vec<_> = text.lines().filter(|l| !l.starts_with("go: downloading")).collect();
    lines[lines.len().saturating_sub(8)..].join("\n")
}
