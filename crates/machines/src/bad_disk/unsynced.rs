//! What a disk has of a file that was written and not synced, when its power goes. Pure.
//!
//! A file is changed in place, and what was there before is kept until the next sync: a disk that loses its power is what is left when
//! the changes are taken back. The order of changes is kept and sectors are whole, as on real disks; names and directories
//! are there at once, as on file systems with a journal.

use std::collections::VecDeque;

/// What a disk writes whole or not at all.
pub(super) const SECTOR: u64 = 512;
/// Changes older than the last this many bytes count as written back, as a kernel does.
const KEPT: usize = 64 << 20;

/// One write, or a new length.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Change {
    offset: u64,
    /// How many bytes were written; none, if only the length changed.
    written: u64,
    /// What was there, from `offset` on; beyond it there were zeros, or nothing.
    before: Vec<u8>,
    length_before: u64,
}

impl Change {
    /// In what a disk writes at once. A new length is one, too.
    fn sectors(&self) -> u64 {
        match self.written {
            0 => 1,
            written => (self.offset + written).div_ceil(SECTOR) - self.offset / SECTOR,
        }
    }

    /// As the file was, but for the first sectors of this change.
    fn taken_back(&self, kept: u64) -> Repair {
        let whole = (self.offset / SECTOR + kept) * SECTOR;
        let kept = if kept == 0 { 0 } else { (whole - self.offset).min(self.written) };
        let from = usize::try_from(kept).unwrap_or(usize::MAX).min(self.before.len());
        let reached = if kept == 0 { 0 } else { self.offset + kept };
        Repair {
            length: self.length_before.max(reached),
            offset: self.offset + kept,
            bytes: self.before[from..].to_vec(),
        }
    }
}

/// First the length, then the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Repair {
    pub length: u64,
    pub offset: u64,
    pub bytes: Vec<u8>,
}

/// How much of it reached the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Survives {
    Nothing,
    /// Of all sectors that were written the first half; so the change in the middle is torn.
    Half,
}

/// Of one file, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Unsynced(VecDeque<Change>);

impl Unsynced {
    /// `before` is what the file had from `offset` on, as far as it is to be overwritten.
    pub(super) fn wrote(&mut self, offset: u64, written: u64, before: Vec<u8>, length_before: u64) {
        if written > 0 {
            self.changed(Change { offset, written, before, length_before });
        }
    }

    /// `cut_off` is what the file had beyond its new length.
    pub(super) fn resized(&mut self, length: u64, mut cut_off: Vec<u8>, length_before: u64) {
        let used = cut_off.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        cut_off.truncate(used);
        cut_off.shrink_to_fit();
        if length != length_before {
            self.changed(Change { offset: length, written: 0, before: cut_off, length_before });
        }
    }

    fn changed(&mut self, change: Change) {
        self.0.push_back(change);
        let mut held: usize = self.0.iter().map(|c| c.before.len()).sum();
        while held > KEPT
            && self.0.len() > 1
            && let Some(oldest) = self.0.pop_front()
        {
            held -= oldest.before.len();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is to be done to the file, in this order.
    pub(super) fn power_lost(&self, survives: Survives) -> Vec<Repair> {
        let mut kept = match survives {
            Survives::Nothing => 0,
            Survives::Half => self.0.iter().map(Change::sectors).sum::<u64>() / 2,
        };
        let mut repairs = Vec::new();
        for change in &self.0 {
            let sectors = change.sectors();
            if kept < sectors {
                repairs.push(change.taken_back(kept));
            }
            kept = kept.saturating_sub(sectors);
        }
        repairs.reverse();
        repairs
    }
}

#[cfg(test)]
#[path = "unsynced_tests.rs"]
mod tests;
