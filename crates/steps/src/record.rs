//! Service records, `/var/log/openshift/<service>.json`: one JSON array, rewritten atomically, in upstream's format.

use crate::write_atomic;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use time::{OffsetDateTime, macros::format_description};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    #[serde(rename = "service start")]
    ServiceStart,
    #[serde(rename = "service end")]
    ServiceEnd,
    #[serde(rename = "stage start")]
    StageStart,
    #[serde(rename = "stage end")]
    StageEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Result {
    Success,
    Failure,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    pub timestamp: String,
    pub phase: Phase,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Result>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_line: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Ours: said of a stage that had nothing to do, and why. Upstream's readers skip it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Ours: the timestamp with all its digits, for those who ask where the time went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unix_millis: Option<i64>,
}

/// Stages that ended, and the seconds each took; one that a restart cut in two counts with both parts.
pub fn stage_seconds(entries: &[Entry]) -> Vec<(String, f64)> {
    let mut took: Vec<(String, f64)> = Vec::new();
    let mut open: Option<(&String, i64)> = None;
    for entry in entries {
        match (entry.phase, &entry.stage, entry.unix_millis) {
            (Phase::StageStart, Some(stage), Some(at)) => open = Some((stage, at)),
            (Phase::StageEnd, Some(stage), Some(at)) => {
                let Some((_, started)) = open.take().filter(|(open, _)| *open == stage) else { continue };
                let seconds = (at - started) as f64 / 1000.0;
                match took.iter_mut().find(|(name, _)| name == stage) {
                    Some((_, sum)) => *sum += seconds,
                    None => took.push((stage.clone(), seconds)),
                }
            }
            _ => {}
        }
    }
    took
}

/// Appends entries; what an earlier run wrote is kept.
pub struct Recorder {
    path: PathBuf,
    entries: Vec<Entry>,
}

impl Recorder {
    /// Opens the record of a service and writes `service start`. A stage that a killed run left open is closed as failed.
    pub fn start(dir: &Path, service: &str) -> io::Result<Self> {
        let path = dir.join(format!("{service}.json"));
        let entries = match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_default(),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(e) => return Err(e),
        };
        let mut recorder = Self { path, entries };
        if let Some(stage) = recorder.open_stage() {
            recorder.push(
                Phase::StageEnd,
                Some(&stage),
                Some(Result::Failure),
                Some("interrupted".into()),
            )?;
            recorder.push(Phase::ServiceEnd, None, Some(Result::Failure), Some("interrupted".into()))?;
        }
        recorder.push(Phase::ServiceStart, None, None, None)?;
        Ok(recorder)
    }

    pub fn stage_start(&mut self, stage: &str) -> io::Result<()> {
        self.push(Phase::StageStart, Some(stage), None, None)
    }

    pub fn stage_end(&mut self, stage: &str, error: Option<String>) -> io::Result<()> {
        self.push(Phase::StageEnd, Some(stage), Some(result(&error)), error)
    }

    /// The stage succeeded without work, for a reason worth keeping.
    pub fn stage_skipped(&mut self, stage: &str, note: &str) -> io::Result<()> {
        let mut entry = entry(Phase::StageEnd, Some(stage), Some(Result::Success), None);
        entry.note = Some(note.into());
        self.append(entry)
    }

    pub fn service_end(&mut self, error: Option<String>) -> io::Result<()> {
        self.push(Phase::ServiceEnd, None, Some(result(&error)), error)
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    fn open_stage(&self) -> Option<String> {
        let last =
            self.entries.iter().rev().find(|e| matches!(e.phase, Phase::StageStart | Phase::StageEnd))?;
        (last.phase == Phase::StageStart).then(|| last.stage.clone()).flatten()
    }

    fn push(
        &mut self,
        phase: Phase,
        stage: Option<&str>,
        result: Option<Result>,
        error_message: Option<String>,
    ) -> io::Result<()> {
        self.append(entry(phase, stage, result, error_message))
    }

    fn append(&mut self, entry: Entry) -> io::Result<()> {
        self.entries.push(entry);
        write_atomic(&self.path, serde_json::to_vec_pretty(&self.entries)?, 0o644)
    }
}

fn entry(phase: Phase, stage: Option<&str>, result: Option<Result>, error_message: Option<String>) -> Entry {
    let now = OffsetDateTime::now_utc();
    Entry {
        timestamp: timestamp(now),
        phase,
        stage: stage.map(str::to_string),
        result,
        error_line: None,
        error_message,
        note: None,
        unix_millis: i64::try_from(now.unix_timestamp_nanos() / 1_000_000).ok(),
    }
}

fn result(error: &Option<String>) -> Result {
    if error.is_some() { Result::Failure } else { Result::Success }
}

fn timestamp(now: OffsetDateTime) -> String {
    now.format(format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z")).unwrap_or_default()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_killed_run_is_closed_and_kept() {
        let dir = std::env::temp_dir().join(format!("seedling-record-{}", std::process::id()));
        let mut first = Recorder::start(&dir, "bootkube").unwrap();
        first.stage_start("etcd-bootstrap").unwrap();
        drop(first);
        let second = Recorder::start(&dir, "bootkube").unwrap();
        let phases: Vec<_> = second.entries().iter().map(|e| (e.phase, e.result)).collect();
        assert_eq!(
            phases,
            [
                (Phase::ServiceStart, None),
                (Phase::StageStart, None),
                (Phase::StageEnd, Some(Result::Failure)),
                (Phase::ServiceEnd, Some(Result::Failure)),
                (Phase::ServiceStart, None),
            ]
        );
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn seconds_of_a_stage_add_up_over_a_restart() {
        let at = |phase, stage: &str, millis| Entry {
            unix_millis: Some(millis),
            ..entry(phase, Some(stage), None, None)
        };
        let entries = [
            at(Phase::StageStart, "a", 0),
            at(Phase::StageEnd, "a", 500),
            at(Phase::StageStart, "b", 600),
            at(Phase::StageEnd, "b", 1600),
            at(Phase::StageStart, "b", 2000),
            at(Phase::StageEnd, "b", 2250),
        ];
        assert_eq!(stage_seconds(&entries), [("a".to_string(), 0.5), ("b".to_string(), 1.25)]);
    }

    #[test]
    fn upstream_form() {
        let entry = Entry {
            timestamp: timestamp(OffsetDateTime::UNIX_EPOCH),
            phase: Phase::StageEnd,
            stage: Some("cb-bootstrap".into()),
            result: Some(Result::Success),
            error_line: None,
            error_message: None,
            note: None,
            unix_millis: None,
        };
        let json = serde_json::to_string(&entry).unwrap();
        assert_eq!(
            json,
            r#"{"timestamp":"1970-01-01T00:00:00Z","phase":"stage end","stage":"cb-bootstrap","result":"success"}"#
        );
    }
}
