//! The event log: one JSON object a line, appended by one task, so that lines never mix. Neither a flood nor a slow disk makes it
//! grow without end: what does not fit in between is counted, and a long file is put aside once.

use crate::{HelperError, make_folder_of};
use jiff::Timestamp;
use seedling_types::helper::{HelperEvent, HelperEventKind};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Lines written with one system call when many events arrive at once.
const BATCH: usize = 256;
/// Events that wait for the disk.
const WAITING: usize = 8192;
/// Some hundred thousand events; the file before it is kept as well.
const LONGEST: u64 = 64 << 20;

/// Its time is written out by who writes the line: whoever tells of it has others to answer.
type Happened = (Timestamp, HelperEventKind);

#[derive(Clone)]
pub struct EventLog {
    sender: mpsc::Sender<Happened>,
    lost: Arc<AtomicU64>,
}

pub(crate) struct Writer {
    task: JoinHandle<()>,
    finish: oneshot::Sender<()>,
}

pub(crate) fn open(path: &Path) -> Result<(EventLog, Writer), HelperError> {
    open_with(path, LONGEST)
}

fn open_with(path: &Path, longest: u64) -> Result<(EventLog, Writer), HelperError> {
    let file = make_folder_of(path)
        .and_then(|()| Appended::open(path, longest))
        .map_err(|source| HelperError::Write { path: path.into(), source })?;
    let (sender, receiver) = mpsc::channel(WAITING);
    let (finish, finished) = oneshot::channel();
    let lost = Arc::new(AtomicU64::new(0));
    let task = tokio::spawn(write(file, receiver, finished, lost.clone()));
    Ok((EventLog { sender, lost }, Writer { task, finish }))
}

impl EventLog {
    pub fn send(&self, what: HelperEventKind) {
        // Nobody waits for a line: a server that waited for the disk would be down.
        if self.sender.try_send((Timestamp::now(), what)).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Writes times. To write a date out takes longer than the rest of a line, and in a flood thousands of lines have the same second.
#[derive(Default)]
struct Clock {
    second: i64,
    /// Without its fraction.
    text: String,
}

impl Clock {
    /// RFC 3339, UTC, milliseconds.
    fn text(&mut self, time: Timestamp) -> String {
        let second = time.as_second();
        if self.text.is_empty() || self.second != second {
            let whole = Timestamp::from_second(second).unwrap_or(time);
            *self = Self { second, text: format!("{whole:.0}").trim_end_matches('Z').into() };
        }
        format!("{}.{:03}Z", self.text, time.subsec_millisecond())
    }
}

impl Writer {
    /// Writes what was sent before this call, then ends; relays that still run may hold senders.
    pub(crate) async fn finish(self) {
        let _ = self.finish.send(());
        let _ = self.task.await;
    }
}

async fn write(
    mut file: Appended,
    mut events: mpsc::Receiver<Happened>,
    mut finish: oneshot::Receiver<()>,
    lost: Arc<AtomicU64>,
) {
    let (mut batch, mut clock) = (Vec::new(), Clock::default());
    loop {
        tokio::select! {
            biased;
            n = events.recv_many(&mut batch, BATCH) => if n == 0 { return },
            _ = &mut finish, if !events.is_closed() => { events.close(); continue }
        }
        match lost.swap(0, Ordering::Relaxed) {
            0 => {}
            events => batch.push((Timestamp::now(), HelperEventKind::Lost { events })),
        }
        let mut lines = Vec::new();
        for (time, what) in batch.drain(..) {
            let event = HelperEvent { time: clock.text(time), what };
            if let Ok(line) = serde_json::to_vec(&event) {
                lines.extend(line);
                lines.push(b'\n');
            }
        }
        // A few hundred bytes to the page cache: not worth another thread.
        if let Err(error) = file.append(&lines) {
            tracing::error!(%error, "cannot append to the event log");
        }
    }
}

struct Appended {
    path: PathBuf,
    file: File,
    length: u64,
    longest: u64,
}

impl Appended {
    fn open(path: &Path, longest: u64) -> std::io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let length = file.metadata()?.len();
        Ok(Self { path: path.into(), file, length, longest })
    }

    fn append(&mut self, lines: &[u8]) -> std::io::Result<()> {
        if self.length >= self.longest {
            std::fs::rename(&self.path, HelperEvent::older(&self.path))?;
            *self = Self::open(&self.path, self.longest)?;
        }
        self.length += lines.len() as u64;
        self.file.write_all(lines)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn restarted(n: usize) -> HelperEventKind {
        HelperEventKind::Restarted { what: n.to_string(), reason: String::new() }
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        let mut clock = Clock::default();
        let times = [
            1_700_000_000_000i64,
            1_700_000_000_007,
            1_700_000_000_999,
            1_700_000_001_000,
            0,
            1_700_000_000_120,
        ];
        for milliseconds in times {
            let time = Timestamp::from_millisecond(milliseconds).unwrap();
            assert_eq!(clock.text(time), format!("{time:.3}"));
        }
    }

    /// One thread: the writer gets its turn only afterwards.
    #[tokio::test]
    async fn what_does_not_fit_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events");
        let (log, writer) = open(&path).unwrap();
        (0..WAITING + 5).for_each(|n| log.send(restarted(n)));
        writer.finish().await;
        let text = std::fs::read_to_string(path).unwrap();
        assert_eq!(text.lines().count(), WAITING + 1);
        assert_eq!(text.matches(r#""event":"lost","events":5"#).count(), 1);
    }

    #[tokio::test]
    async fn a_long_file_is_put_aside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("not-there-yet/events");
        for n in 0..5 {
            // A line is some eighty bytes long.
            let (log, writer) = open_with(&path, 150).unwrap();
            log.send(restarted(n));
            writer.finish().await;
        }
        let lines = |path: &Path| std::fs::read_to_string(path).unwrap().lines().count();
        assert_eq!((lines(&HelperEvent::older(&path)), lines(&path)), (2, 1));
    }
}
