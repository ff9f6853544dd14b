//! The event log: one JSON object a line, appended by one task, so that lines never mix. Neither a flood nor a slow disk makes it
//! grow without end: what does not fit in between is counted, and a long file is put aside once.

use crate::HelperError;
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

#[derive(Clone)]
pub struct EventLog {
    sender: mpsc::Sender<HelperEvent>,
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
    let file =
        Appended::open(path, longest).map_err(|source| HelperError::Write { path: path.into(), source })?;
    let (sender, receiver) = mpsc::channel(WAITING);
    let (finish, finished) = oneshot::channel();
    let lost = Arc::new(AtomicU64::new(0));
    let task = tokio::spawn(write(file, receiver, finished, lost.clone()));
    Ok((EventLog { sender, lost }, Writer { task, finish }))
}

impl EventLog {
    pub fn send(&self, what: HelperEventKind) {
        // Nobody waits for a line: a server that waited for the disk would be down.
        if self.sender.try_send(now(what)).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn now(what: HelperEventKind) -> HelperEvent {
    HelperEvent { time: format!("{:.3}", jiff::Timestamp::now()), what }
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
    mut events: mpsc::Receiver<HelperEvent>,
    mut finish: oneshot::Receiver<()>,
    lost: Arc<AtomicU64>,
) {
    let mut batch = Vec::new();
    loop {
        tokio::select! {
            biased;
            n = events.recv_many(&mut batch, BATCH) => if n == 0 { return },
            _ = &mut finish, if !events.is_closed() => { events.close(); continue }
        }
        match lost.swap(0, Ordering::Relaxed) {
            0 => {}
            events => batch.push(now(HelperEventKind::Lost { events })),
        }
        let mut lines = Vec::new();
        for event in batch.drain(..) {
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
        let path = folder.path().join("events");
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
