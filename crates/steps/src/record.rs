//! Service records, `/var/log/openshift/<service>.json`: one JSON array, in upstream's format, as a view of the journal.

use crate::journal::{Event, Journal, Line};
use seedling_types::paths;
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

/// A service's record, as the journal has it. A stage that a killed run left open is closed as failed when the service starts again.
/// Parts of stages are the journal's own: upstream's readers know stages only.
pub fn record(lines: &[Line], service: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut open: Option<&str> = None;
    let whole = |line: &&Line| line.who == service && line.step.as_ref().is_none_or(|s| !s.contains('/'));
    for line in lines.iter().filter(whole) {
        let mut push = |phase, stage: Option<&str>, error: Option<&str>| {
            let mut entry = entry(line.unix_millis(), phase, stage);
            if matches!(phase, Phase::StageEnd | Phase::ServiceEnd) {
                entry.result = Some(if error.is_some() { Result::Failure } else { Result::Success });
            }
            entry.error_message = error.map(str::to_string);
            if line.event == Event::Skipped {
                entry.note.clone_from(&line.note);
            }
            entries.push(entry);
        };
        let stage = line.step.as_deref();
        let error = (line.event == Event::Failed).then(|| line.note.as_deref().unwrap_or("failed"));
        match (stage, line.event) {
            (None, Event::Begin) => {
                if let Some(stage) = open.take() {
                    push(Phase::StageEnd, Some(stage), Some("interrupted"));
                    push(Phase::ServiceEnd, None, Some("interrupted"));
                }
                push(Phase::ServiceStart, None, None);
            }
            (None, _) => push(Phase::ServiceEnd, None, error),
            (Some(_), Event::Begin) => {
                open = stage;
                push(Phase::StageStart, stage, None);
            }
            (Some(_), _) => {
                // What had nothing to do was never begun.
                if open.take().is_some() {
                    push(Phase::StageEnd, stage, error);
                }
            }
        }
    }
    entries
}

/// A service's lines in the journal, and its record as a view of them: `/var/log/openshift/<service>.json`.
pub struct Recorder {
    journal: Journal,
    view: PathBuf,
}

impl Recorder {
    /// `root` is `/` on a node.
    pub fn start(root: &Path, service: &str) -> io::Result<Self> {
        let view = root.join(paths::SERVICE_RECORDS.trim_start_matches('/')).join(format!("{service}.json"));
        let recorder = Self { journal: Journal::of(root, service), view };
        recorder.journal.start()?;
        recorder.show()?;
        Ok(recorder)
    }

    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    pub fn stage_start(&self, stage: &str) -> io::Result<()> {
        self.append(Some(stage), Event::Begin, None)
    }

    pub fn stage_end(&self, stage: &str, error: Option<String>) -> io::Result<()> {
        self.append(Some(stage), ended(&error), error)
    }

    /// The stage succeeded without work, for a reason worth keeping.
    pub fn stage_skipped(&self, stage: &str, note: &str) -> io::Result<()> {
        self.append(Some(stage), Event::Skipped, Some(note.into()))
    }

    pub fn service_end(&self, error: Option<String>) -> io::Result<()> {
        self.append(None, ended(&error), error)
    }

    fn append(&self, stage: Option<&str>, event: Event, note: Option<String>) -> io::Result<()> {
        self.journal.append(&Line { note, ..Line::now(self.journal.who(), stage, event) })?;
        self.show()
    }

    /// Whole or not at all, but not waited for: it can be made again.
    fn show(&self) -> io::Result<()> {
        let record = record(&self.journal.read()?, self.journal.who());
        let temporary = self.view.with_extension("json.tmp");
        std::fs::write(&temporary, serde_json::to_vec_pretty(&record)?)?;
        std::fs::rename(temporary, &self.view)
    }
}

fn ended(error: &Option<String>) -> Event {
    if error.is_some() { Event::Failed } else { Event::End }
}

fn entry(unix_millis: i64, phase: Phase, stage: Option<&str>) -> Entry {
    let at = OffsetDateTime::from_unix_timestamp(unix_millis.div_euclid(1000));
    Entry {
        timestamp: timestamp(at.unwrap_or(OffsetDateTime::UNIX_EPOCH)),
        phase,
        stage: stage.map(str::to_string),
        result: None,
        error_line: None,
        error_message: None,
        note: None,
        unix_millis: Some(unix_millis),
    }
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
        let dir = tempfile::tempdir().unwrap();
        let first = Recorder::start(dir.path(), "bootkube").unwrap();
        first.stage_start("etcd-bootstrap").unwrap();
        first.journal().begin("etcd-bootstrap/certificates").unwrap();
        drop(first);
        let second = Recorder::start(dir.path(), "bootkube").unwrap();
        second.stage_start("cco-bootstrap").unwrap();
        second.stage_skipped("cco-bootstrap", "not in the payload").unwrap();
        second.service_end(None).unwrap();
        let view = std::fs::read(dir.path().join("var/log/openshift/bootkube.json")).unwrap();
        let entries: Vec<Entry> = serde_json::from_slice(&view).unwrap();
        let phases: Vec<_> = entries.iter().map(|e| (e.phase, e.result, e.note.as_deref())).collect();
        assert_eq!(
            phases,
            [
                (Phase::ServiceStart, None, None),
                (Phase::StageStart, None, None),
                (Phase::StageEnd, Some(Result::Failure), None),
                (Phase::ServiceEnd, Some(Result::Failure), None),
                (Phase::ServiceStart, None, None),
                (Phase::StageStart, None, None),
                (Phase::StageEnd, Some(Result::Success), Some("not in the payload")),
                (Phase::ServiceEnd, Some(Result::Success), None),
            ]
        );
    }

    #[test]
    fn seconds_of_a_stage_add_up_over_a_restart() {
        let at = |phase, stage: &str, millis| entry(millis, phase, Some(stage));
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
