//! What can go wrong while a release is made.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use thiserror::Error;

pub type Result<T, E = ReleaseError> = std::result::Result<T, E>;

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
pub(crate) trait At<T> {
    fn at(self, path: impl AsRef<Path>) -> Result<T>;
}

impl<T> At<T> for std::io::Result<T> {
    fn at(self, path: impl AsRef<Path>) -> Result<T> {
        self.map_err(|source| ReleaseError::Io { path: path.as_ref().into(), source })
    }
}

impl<T> At<T> for serde_json::Result<T> {
    fn at(self, path: impl AsRef<Path>) -> Result<T> {
        self.map_err(|source| ReleaseError::Json { path: path.as_ref().into(), source })
    }
}

const DISK_FULL: &str = "the disk is full: make room (the payload needs about 4 GB in /var/cache/seedling and in Go's caches), or set \
                         SEEDLING_CACHE to another disk; then run it again, it goes on where it stopped";

/// Runs a command to its end and returns its stdout; a failure carries the end of what it said.
pub(crate) fn output(command: &mut Command, hint: &str) -> Result<String> {
    let failed = failure(shown(command), hint);
    let out = command.output().map_err(|e| failed(e.to_string()))?;
    if !out.status.success() {
        return Err(failed(tail(&out.stderr)));
    }
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

/// The same for a command that reports progress on stderr; its stdout is discarded.
pub(crate) fn output_telling(command: &mut Command, hint: &str, mut tell: impl FnMut(&str)) -> Result<()> {
    let failed = failure(shown(command), hint);
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = spawned.map_err(|e| failed(e.to_string()))?;
    let mut said = Vec::new();
    for line in child.stderr.take().into_iter().flat_map(|stderr| BufReader::new(stderr).split(b'\n')) {
        let line = line.map_err(|e| failed(e.to_string()))?;
        tell(&String::from_utf8_lossy(&line));
        said.extend(line);
        said.push(b'\n');
    }
    match child.wait().map_err(|e| failed(e.to_string()))?.success() {
        true => Ok(()),
        false => Err(failed(tail(&said))),
    }
}

fn failure(command: String, hint: &str) -> impl Fn(String) -> ReleaseError {
    move |detail| {
        let hint = if detail.contains("no space left on device") { DISK_FULL } else { hint };
        ReleaseError::Tool { command: command.clone(), detail, hint: hint.into() }
    }
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let text = words.map(|w| w.to_string_lossy()).collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text,
    }
}

fn tail(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let mut lines: Vec<_> = text.lines().filter(|l| !l.starts_with("go: downloading")).collect();
    // One cause is often said of every package.
    lines.dedup();
    lines[lines.len().saturating_sub(4)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(script: &str) -> String {
        let ended = output(Command::new("sh").args(["-c", script]), "try again").map_err(|e| e.to_string());
        ended.err().unwrap_or_default()
    }

    #[test]
    fn a_full_disk_is_named_and_one_cause_is_said_once() {
        let full =
            failed("w=space; for i in 1 2 3; do echo \"write x: no $w left on device\" >&2; done; exit 1");
        assert_eq!(full.matches("no space left").count(), 1, "{full}");
        assert!(full.contains("SEEDLING_CACHE") && !full.contains("try again"), "{full}");
        assert!(failed("echo refused >&2; exit 1").ends_with("failed: refused\nhint: try again"));
    }
}
