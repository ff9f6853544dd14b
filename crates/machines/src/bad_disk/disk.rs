//! The disk: files below a directory, what of them was not synced, and what is wrong with it today.

use super::nodes::Nodes;
use super::unsynced::{Survives, Unsynced};
use fuser::ReplyEmpty;
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

#[derive(Default)]
pub(super) enum Syncs {
    #[default]
    Work,
    Fail,
    /// Those of etcd's log get no answer: the power goes while it waits.
    Hold(Vec<(Arc<File>, PathBuf, ReplyEmpty)>),
}

pub(super) struct Handle {
    pub number: u64,
    pub file: Arc<File>,
}

#[derive(Default)]
pub(super) struct State {
    pub nodes: Nodes,
    pub handles: HashMap<u64, Handle>,
    pub next_handle: u64,
    pub unsynced: HashMap<u64, Unsynced>,
    pub syncs: Syncs,
}

pub(super) struct Disk {
    pub root: PathBuf,
    state: Mutex<State>,
    held: Condvar,
}

impl Disk {
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.into(), state: Mutex::default(), held: Condvar::new() }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// What was there is read before it is overwritten, and nobody writes in between.
    pub(super) fn write(&self, handle: u64, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        let (number, file) = state.open(handle)?;
        let length = file.metadata()?.len();
        let wanted = length.saturating_sub(offset).min(data.len() as u64);
        let before = read_at(&file, offset, wanted)?;
        file.write_all_at(data, offset)?;
        state.unsynced.entry(number).or_default().wrote(offset, data.len() as u64, before, length);
        Ok(())
    }

    pub(super) fn resize(&self, number: u64, file: &File, length: u64) -> io::Result<()> {
        let mut state = self.state();
        let before = file.metadata()?.len();
        let cut_off = read_at(file, length, before.saturating_sub(length))?;
        file.set_len(length)?;
        state.unsynced.entry(number).or_default().resized(length, cut_off, before);
        Ok(())
    }

    pub(super) fn sync(&self, handle: u64, reply: ReplyEmpty) {
        let mut state = self.state();
        let (number, file) = match state.open(handle) {
            Ok(open) => open,
            Err(e) => return reply.error(e.into()),
        };
        let path = state.nodes.path(number).unwrap_or(Path::new("")).to_path_buf();
        let is_dirty = state.unsynced.get(&number).is_some_and(|unsynced| !unsynced.is_empty());
        match &mut state.syncs {
            Syncs::Fail => return reply.error(fuser::Errno::EIO),
            Syncs::Hold(held) if is_dirty && is_log(&path) => {
                held.push((file, path, reply));
                self.held.notify_all();
                return;
            }
            _ => {}
        }
        // Taken before: what is written during the sync may not be part of it.
        let changes = state.unsynced.remove(&number);
        drop(state);
        match file.sync_data() {
            Ok(()) => reply.ok(),
            Err(e) => {
                if let Some(changes) = changes {
                    self.state().unsynced.entry(number).or_insert(changes);
                }
                reply.error(e.into());
            }
        }
    }

    pub(super) fn syncs_fail(&self) -> bool {
        matches!(self.state().syncs, Syncs::Fail)
    }

    pub(super) fn fail_syncs(&self) {
        self.state().syncs = Syncs::Fail;
    }

    /// Syncs work again; those that wait get their answer.
    pub(super) fn work(&self) {
        let syncs = std::mem::take(&mut self.state().syncs);
        if let Syncs::Hold(held) = syncs {
            for (file, _, reply) in held {
                match file.sync_data() {
                    Ok(()) => reply.ok(),
                    Err(e) => reply.error(e.into()),
                }
            }
        }
    }

    /// The power goes while etcd's log is being synced: half of what was to be synced is there, and of other files nothing that was not.
    /// Nothing is served after that. Returns the log's name, or nothing if none was synced in this time.
    pub(super) fn tear_log(&self, within: Duration) -> io::Result<Option<PathBuf>> {
        let mut state = self.state();
        state.syncs = Syncs::Hold(Vec::new());
        let nobody = |state: &mut State| matches!(&state.syncs, Syncs::Hold(held) if held.is_empty());
        let (state, waited) =
            self.held.wait_timeout_while(state, within, nobody).unwrap_or_else(|e| e.into_inner());
        let torn = match &state.syncs {
            Syncs::Hold(held) => held.first().map(|(_, path, _)| path.clone()),
            _ => None,
        };
        if waited.timed_out() || torn.is_none() {
            drop(state);
            self.work();
            return Ok(None);
        }
        for (number, unsynced) in &state.unsynced {
            let Some(path) = state.nodes.path(*number).map(|path| self.root.join(path)) else { continue };
            let survives = if is_log(&path) { Survives::Half } else { Survives::Nothing };
            lose(&path, unsynced, survives)?;
        }
        // Never given back: who asks now waits until there is no disk.
        std::mem::forget(state);
        Ok(torn)
    }
}

impl State {
    /// The number and the file.
    pub(super) fn open(&self, handle: u64) -> io::Result<(u64, Arc<File>)> {
        let handle = self.handles.get(&handle).ok_or(io::Error::from_raw_os_error(nix::libc::EBADF))?;
        Ok((handle.number, handle.file.clone()))
    }
}

fn is_log(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "wal")
}

fn read_at(file: &File, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

fn lose(path: &Path, unsynced: &Unsynced, survives: Survives) -> io::Result<()> {
    let repairs = unsynced.power_lost(survives);
    if repairs.is_empty() || !fs::exists(path)? {
        return Ok(());
    }
    let file = OpenOptions::new().write(true).open(path)?;
    for repair in repairs {
        file.set_len(repair.length)?;
        file.write_all_at(&repair.bytes, repair.offset)?;
    }
    Ok(())
}
