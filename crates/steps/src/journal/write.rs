//! Writers of the journal: any number, each line whole and on the disk before the step continues.

use super::{Event, Line, fold, lines};
use crate::{if_there, sync_directory};
use seedling_types::paths;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The journal as one of its writers sees it.
#[derive(Clone, Debug)]
pub struct Journal {
    path: PathBuf,
    who: String,
}

impl Journal {
    /// Of the node whose files are below `root`.
    pub fn of(root: &Path, who: impl Into<String>) -> Self {
        Self { path: root.join(paths::JOURNAL.trim_start_matches('/')), who: who.into() }
    }

    /// The same journal, for another writer.
    pub fn by(&self, who: &str) -> Self {
        Self { who: who.into(), ..self.clone() }
    }

    pub fn who(&self) -> &str {
        &self.who
    }

    /// Everybody's lines. A journal that is not there yet is empty.
    pub fn read(&self) -> io::Result<Vec<Line>> {
        Ok(lines(&if_there(std::fs::read(&self.path))?.unwrap_or_default()))
    }

    /// How far another service is, for those who wait for it. A step that is tried again and again gives the same text.
    pub fn summary_of(&self, who: &str) -> String {
        let state = fold(&self.read().unwrap_or_default());
        let steps = state.service(who).map_or(&[][..], |s| &s.steps);
        let done = steps.iter().filter(|s| s.was_done).count();
        match steps.last() {
            Some(last) => format!("{who} came as far as {}, {done} steps are done", last.name),
            None => format!("{who} has not begun"),
        }
    }

    /// The service was started: whatever it left open was interrupted.
    pub fn start(&self) -> io::Result<()> {
        self.append(&Line::now(&self.who, None, Event::Begin))
    }

    pub fn begin(&self, step: &str) -> io::Result<()> {
        self.append(&Line::now(&self.who, Some(step), Event::Begin))
    }

    /// With what a later run needs to continue.
    pub fn begin_with(&self, step: &str, facts: BTreeMap<String, String>) -> io::Result<()> {
        self.append(&Line { facts, ..Line::now(&self.who, Some(step), Event::Begin) })
    }

    pub fn end(&self, step: &str) -> io::Result<()> {
        self.append(&Line::now(&self.who, Some(step), Event::End))
    }

    /// It ended, and settled something for later runs.
    pub fn settle(&self, step: &str, facts: BTreeMap<String, String>) -> io::Result<()> {
        self.append(&Line { facts, ..Line::now(&self.who, Some(step), Event::End) })
    }

    pub fn append(&self, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        let mut file = self.open()?;
        // Unlocked when the file is closed, also by being killed.
        file.lock()?;
        if ends_in_a_torn_line(&mut file)? {
            text.insert(0, b'\n');
        }
        file.write_all(&text)?;
        file.sync_data()
    }

    fn open(&self) -> io::Result<File> {
        let open = || OpenOptions::new().read(true).append(true).create(true).open(&self.path);
        if self.path.exists() {
            return open();
        }
        let dir = self.path.parent().unwrap_or(Path::new("/"));
        std::fs::create_dir_all(dir)?;
        let file = open()?;
        sync_directory(dir)?;
        Ok(file)
    }

    /// Works on a step, with a line before and one after. For steps whose results show by themselves that they were done: a journal that
    /// cannot be written is said and does not stop them.
    pub async fn step<T, E: Display>(
        &self,
        step: &str,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        self.tell(Line::now(&self.who, Some(step), Event::Begin));
        let worked = work.await;
        self.tell_end(Some(step), &worked);
        worked
    }

    /// As `step`, for the service itself.
    pub async fn service<T, E: Display>(&self, work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        self.tell(Line::now(&self.who, None, Event::Begin));
        let worked = work.await;
        self.finished(&worked);
        worked
    }

    /// The service ended; one that becomes another program says so before.
    pub fn finished<T, E: Display>(&self, worked: &Result<T, E>) {
        self.tell_end(None, worked);
    }

    fn tell_end<T, E: Display>(&self, step: Option<&str>, worked: &Result<T, E>) {
        let line = Line::now(&self.who, step, Event::End);
        self.tell(match worked {
            Ok(_) => line,
            Err(e) => Line { event: Event::Failed, note: Some(format!("{e:#}")), ..line },
        });
    }

    fn tell(&self, line: Line) {
        if let Err(e) = self.append(&line) {
            tracing::warn!("{}: {e}", self.path.display());
        }
    }
}

/// Only a machine that lost its power leaves one; without this, the next line would be lost with it.
fn ends_in_a_torn_line(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn many_writers_lose_no_line() {
        let dir = tempfile::tempdir().unwrap();
        std::thread::scope(|s| {
            for n in 0..8 {
                let journal = Journal::of(dir.path(), format!("installer/{n}"));
                s.spawn(move || (0..20).for_each(|i| journal.begin(&i.to_string()).unwrap()));
            }
        });
        let all = Journal::of(dir.path(), "x").read().unwrap();
        for n in 0..8 {
            let steps = all.iter().filter(|l| l.who == format!("installer/{n}"));
            let steps: Vec<u32> = steps.filter_map(|l| l.step.as_ref()?.parse().ok()).collect();
            assert_eq!(steps, (0..20).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_torn_line_does_not_take_the_next_one_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::of(dir.path(), "bootkube");
        journal.start().unwrap();
        let mut file = OpenOptions::new().append(true).open(&journal.path).unwrap();
        file.write_all(br#"{"time":"2026-11-16T"#).unwrap();
        journal.begin("etcd-bootstrap").unwrap();
        let steps: Vec<_> = journal.read().unwrap().into_iter().map(|l| l.step).collect();
        assert_eq!(steps, [None, Some("etcd-bootstrap".into())]);
    }

    #[tokio::test]
    async fn a_step_is_told_before_and_after() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::of(dir.path(), "etcd-join");
        let fails = journal.step("data", async { Err::<(), _>("no leader") }).await;
        assert_eq!(fails, Err("no leader"));
        journal.step("start", async { Ok::<_, String>(()) }).await.unwrap();
        let told = journal.read().unwrap();
        let told: Vec<_> = told.iter().map(|l| (l.step.as_deref(), l.event, l.note.as_deref())).collect();
        assert_eq!(
            told,
            [
                (Some("data"), Event::Begin, None),
                (Some("data"), Event::Failed, Some("no leader")),
                (Some("start"), Event::Begin, None),
                (Some("start"), Event::End, None),
            ]
        );
    }
}
