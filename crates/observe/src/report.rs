//! The one shape of a committed report (`docs/reports/<name>.json`): what was measured, by which revision, on which machine.
//!
//! In: a name, the command that was run, its seed and its results. Out: JSON, whose `summary` is what README.md and CHANGELOG.md quote
//! between markers (`figures`).

use seedling_steps::write_atomic;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};
use thiserror::Error;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// As its file is called, without `.json`.
    pub name: String,
    /// The commit that the work tree was at: 40 hexadecimal digits, or "unknown" outside a clone.
    pub revision: String,
    /// The work tree had changes that are in no commit. Markdown and reports do not count: no figure comes from them.
    pub dirty: bool,
    /// RFC 3339, UTC.
    pub date: String,
    pub command: String,
    pub machine: Machine,
    pub seed: Option<u64>,
    /// Lines of Markdown, as they are quoted.
    pub summary: Vec<String>,
    pub results: Value,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    pub cores: usize,
    pub memory_gib: f64,
    pub cpu: String,
    pub kernel: String,
    /// The distribution, as it calls itself.
    pub system: String,
}

/// A report's file that cannot be read, written or understood.
#[derive(Debug, Error)]
#[error("{}: {why}", path.display())]
pub struct ReportError {
    path: PathBuf,
    why: io::Error,
}

impl ReportError {
    fn of(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |why| Self { path: path.into(), why }
    }
}

impl Report {
    /// Made when the work begins, since the tree may have moved on when it ends; results and summary can be set later.
    pub fn new(name: &str, command: &str, seed: Option<u64>, results: Value) -> Self {
        let (revision, dirty) = tree();
        Self {
            name: name.into(),
            revision,
            dirty,
            date: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            command: command.into(),
            machine: Machine::this(),
            seed,
            summary: Vec::new(),
            results,
        }
    }

    pub fn summarised(mut self, lines: impl IntoIterator<Item = String>) -> Self {
        self.summary = lines.into_iter().collect();
        self
    }

    pub fn write(&self, path: &Path) -> Result<(), ReportError> {
        let json = serde_json::to_string_pretty(self).map_err(io::Error::from);
        let written = json.and_then(|json| write_atomic(path, json + "\n", 0o644));
        written.map_err(ReportError::of(path))
    }

    pub fn read(path: &Path) -> Result<Self, ReportError> {
        let json = fs::read(path).map_err(ReportError::of(path))?;
        serde_json::from_slice(&json).map_err(io::Error::from).map_err(ReportError::of(path))
    }
}

impl Machine {
    fn this() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self {
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory_gib: gib(&read("/proc/meminfo")),
            cpu: field(&read("/proc/cpuinfo"), "model name", ':'),
            kernel: read("/proc/sys/kernel/osrelease").trim().into(),
            system: field(&read("/etc/os-release"), "PRETTY_NAME", '='),
        }
    }
}

/// The commit of the work tree that this runs in, and whether it had changes.
fn tree() -> (String, bool) {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok().filter(|o| o.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_string())
    };
    let changes =
        git(&["status", "--porcelain", "--", ":/", ":(exclude,top)docs/reports", ":(exclude,top)*.md"]);
    (git(&["rev-parse", "HEAD"]).unwrap_or_else(|| "unknown".into()), changes.is_none_or(|c| !c.is_empty()))
}

/// The first value of a `name<separator>value` file, without quotes.
fn field(text: &str, name: &str, separator: char) -> String {
    let mut lines = text.lines().filter_map(|l| l.split_once(separator));
    let value = lines.find(|(key, _)| key.trim() == name).map(|(_, value)| value);
    value.unwrap_or("unknown").trim().trim_matches('"').into()
}

/// Rounded to a tenth.
fn gib(meminfo: &str) -> f64 {
    let total = field(meminfo, "MemTotal", ':');
    let kib: f64 = total.trim_end_matches(" kB").parse().unwrap_or_default();
    (kib / f64::from(1 << 20) * 10.0).round() / 10.0
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_described_by_its_own_files() {
        assert_eq!(gib("MemTotal:       25165824 kB\nMemFree: 1 kB\n"), 24.0);
        assert_eq!(
            field("processor\t: 0\nmodel name\t: A CPU\nmodel name\t: B\n", "model name", ':'),
            "A CPU"
        );
        assert_eq!(field("NAME=\"D\"\nPRETTY_NAME=\"Debian 12\"\n", "PRETTY_NAME", '='), "Debian 12");
        assert_eq!(field("", "model name", ':'), "unknown");
    }

    #[test]
    fn what_is_written_can_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("reports/x.json");
        let report = Report::new("x", "make x", Some(7), serde_json::json!({"red": 0}));
        let report = report.summarised(["| 1 |".to_string()]);
        assert!(report.revision.len() == 40 || report.revision == "unknown", "{}", report.revision);
        assert!(report.machine.cores > 0 && report.machine.memory_gib > 0.0, "{:?}", report.machine);
        report.write(&path).unwrap();
        assert_eq!(Report::read(&path).unwrap(), report);
    }
}
