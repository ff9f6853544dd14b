//! The event log: one JSON object a line, appended by one task, so that lines never mix.

use crate::HelperError;
use seedling_types::helper::{HelperEvent, HelperEventKind};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Lines written with one system call when many events arrive at once.
const BATCH: usize = 256;

#[derive(Clone)]
pub struct EventLog(mpsc::UnboundedSender<HelperEvent>);

pub struct Writer {
    task: JoinHandle<()>,
    finish: oneshot::Sender<()>,
}

pub fn open(path: &Path) -> Result<(EventLog, Writer), HelperError> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    let file = file.map_err(|source| HelperError::Write { path: path.into(), source })?;
    let (sender, receiver) = mpsc::unbounded_channel();
    let (finish, finished) = oneshot::channel();
    let task = tokio::spawn(write(file, receiver, finished));
    Ok((EventLog(sender), Writer { task, finish }))
}

impl EventLog {
    pub fn send(&self, what: HelperEventKind) {
        let time = format!("{:.3}", jiff::Timestamp::now());
        // Fails only while the process ends; nobody waits for that line.
        let _ = self.0.send(HelperEvent { time, what });
    }
}

impl Writer {
    /// Writes what was sent before this call, then ends; relays that still run may hold senders.
    pub async fn finish(self) {
        let _ = self.finish.send(());
        let _ = self.task.await;
    }
}

async fn write(
    mut file: File,
    mut events: mpsc::UnboundedReceiver<HelperEvent>,
    mut finish: oneshot::Receiver<()>,
) {
    let mut batch = Vec::new();
    loop {
        tokio::select! {
            biased;
            n = events.recv_many(&mut batch, BATCH) => if n == 0 { return },
            _ = &mut finish, if !events.is_closed() => { events.close(); continue }
        }
        let mut lines = Vec::new();
        for event in batch.drain(..) {
            if let Ok(line) = serde_json::to_vec(&event) {
                lines.extend(line);
                lines.push(b'\n');
            }
        }
        // A few hundred bytes to the page cache: not worth another thread.
        if let Err(error) = file.write_all(&lines) {
            tracing::error!(%error, "cannot append to the event log");
        }
    }
}
