//! The end of etcd's write-ahead log, read while no etcd runs: what it knows to be agreed on, and what it has beyond that.
//!
//! Files `<sequence>-<index>.wal` of records: eight bytes of length (little endian; the highest byte says how many bytes of
//! padding follow), then type, checksum and data as protobuf. The checksum goes on from record to record. What cannot be read to its end is
//! an error: a log that nobody understands is no reason to drop anything.

mod write;

pub use write::{Writer, agree_to_all};

use crate::recovery::Tail;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use thiserror::Error;

#[derive(Debug, Error)]
#[error("{}: {why}", path.display())]
pub struct BadLog {
    path: PathBuf,
    why: Box<dyn std::error::Error + Send + Sync>,
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum Unreadable {
    #[error("the log has no entry")]
    Empty,
    #[error("a record is not whole")]
    Torn,
    #[error("a record's checksum is wrong")]
    Checksum,
    #[error("a record is of unknown type {0}")]
    Type(u64),
    #[error("entry {next} comes after {last}")]
    Gap { last: u64, next: u64 },
    #[error("a file of the log is missing")]
    FileMissing,
}

const METADATA: u64 = 1;
const ENTRY: u64 = 2;
const STATE: u64 = 3;
const CHECKSUM: u64 = 4;
const SNAPSHOT: u64 = 5;

/// Whose data it is: each file says so at its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    pub member: u64,
    pub cluster: u64,
}

pub fn read_tail(dir: &Path) -> Result<Tail, BadLog> {
    let (_, log) = read(dir)?;
    log.tail().map_err(|e| bad(dir, e))
}

pub fn read_owner(dir: &Path) -> Result<Owner, BadLog> {
    let newest = files(dir)?.pop().ok_or_else(|| bad(dir, Unreadable::Empty))?;
    let mut head = Vec::new();
    let read = std::fs::File::open(&newest).and_then(|file| file.take(4096).read_to_end(&mut head));
    read.map_err(|e| bad(&newest, e))?;
    // It ends somewhere in a record.
    let mut log = Log::default();
    let _ = log.read(&head, false);
    log.owner.ok_or_else(|| bad(&newest, Unreadable::Empty))
}

fn bad(path: &Path, why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> BadLog {
    BadLog { path: path.into(), why: why.into() }
}

/// In their order, none missing.
fn files(dir: &Path) -> Result<Vec<PathBuf>, BadLog> {
    let named = |name: &str| {
        let (sequence, _) = name.strip_suffix(".wal")?.split_once('-')?;
        u64::from_str_radix(sequence, 16).ok()
    };
    let entries = std::fs::read_dir(dir).and_then(|entries| entries.collect::<io::Result<Vec<_>>>());
    let mut files = Vec::new();
    for entry in entries.map_err(|e| bad(dir, e))? {
        files.extend(named(&entry.file_name().to_string_lossy()).map(|sequence| (sequence, entry.path())));
    }
    files.sort();
    if !files.windows(2).all(|two| two[0].0 + 1 == two[1].0) {
        return Err(bad(dir, Unreadable::FileMissing));
    }
    Ok(files.into_iter().map(|(_, path)| path).collect())
}

/// The newest file, and everything that the log says.
fn read(dir: &Path) -> Result<(PathBuf, Log), BadLog> {
    let files = files(dir)?;
    let newest = files.last().cloned().ok_or_else(|| bad(dir, Unreadable::Empty))?;
    let mut log = Log::default();
    for path in files {
        let bytes = std::fs::read(&path).map_err(|e| bad(&path, e))?;
        log.read(&bytes, path == newest).map_err(|e| bad(&path, e))?;
    }
    Ok((newest, log))
}

#[derive(Default)]
struct Log {
    owner: Option<Owner>,
    checksum: u32,
    /// In which term it voted last, and for whom.
    vote: (u64, u64),
    commit: u64,
    /// Where the records of the file that was read last end.
    end: u64,
    /// Number and term of the last entry, or of the snapshot that stands for it.
    last: (u64, u64),
    /// Entries that change who is a member.
    changes: Vec<u64>,
}

impl Log {
    fn tail(&self) -> Result<Tail, Unreadable> {
        let (last, term) = self.last;
        match last {
            0 => Err(Unreadable::Empty),
            _ if self.commit > last => Err(Unreadable::Gap { last, next: self.commit }),
            _ => {
                let changes_members = self.changes.iter().any(|index| *index > self.commit);
                Ok(Tail { commit: self.commit, last, term, changes_members })
            }
        }
    }

    fn read(&mut self, file: &[u8], newest: bool) -> Result<(), Unreadable> {
        let mut rest = file;
        while let Some((head, after)) = rest.split_first_chunk::<8>() {
            let length = u64::from_le_bytes(*head);
            if length == 0 {
                // Space made in advance. What a power cut left behind it was never whole.
                return if newest && after.iter().any(|b| *b != 0) { Err(Unreadable::Torn) } else { Ok(()) };
            }
            let padding = if length >> 63 == 1 { (length >> 56) & 7 } else { 0 };
            let size = usize::try_from(length & (u64::MAX >> 8)).map_err(|_| Unreadable::Torn)?;
            let record = after.get(..size).ok_or(Unreadable::Torn)?;
            rest = after.get(size + padding as usize..).ok_or(Unreadable::Torn)?;
            self.record(&Message::parse(record).ok_or(Unreadable::Torn)?)?;
            self.end = (file.len() - rest.len()) as u64;
        }
        if rest.is_empty() { Ok(()) } else { Err(Unreadable::Torn) }
    }

    fn record(&mut self, record: &Message) -> Result<(), Unreadable> {
        let (kind, checksum, data) = (record.numbers[1], record.numbers[2] as u32, record.bytes);
        if kind == CHECKSUM {
            // At the start of a file: the checksum that the one before ended with.
            if self.checksum != 0 && self.checksum != checksum {
                return Err(Unreadable::Checksum);
            }
            self.checksum = checksum;
            return Ok(());
        }
        self.checksum = crc32c(self.checksum, data);
        if self.checksum != checksum {
            return Err(Unreadable::Checksum);
        }
        let fields = || Message::parse(data).map(|m| m.numbers).ok_or(Unreadable::Torn);
        match kind {
            METADATA => {
                let [_, member, cluster, _] = fields()?;
                self.owner = Some(Owner { member, cluster });
            }
            ENTRY => {
                let [_, kind, term, index] = fields()?;
                // One that comes again replaces itself and all that followed.
                if self.last.0 != 0 && index > self.last.0 + 1 {
                    return Err(Unreadable::Gap { last: self.last.0, next: index });
                }
                self.last = (index, term);
                self.changes.retain(|change| *change < index);
                if kind != 0 {
                    self.changes.push(index);
                }
            }
            STATE => {
                let [_, term, vote, commit] = fields()?;
                (self.vote, self.commit) = ((term, vote), commit);
            }
            SNAPSHOT => {
                let [_, index, term, _] = fields()?;
                if index > self.last.0 {
                    self.last = (index, term);
                }
            }
            other => return Err(Unreadable::Type(other)),
        }
        Ok(())
    }
}

/// Protobuf, as far as it is needed: numbers of fields 1 to 3 (at their places), and the bytes of field 3.
#[derive(Default)]
struct Message<'a> {
    numbers: [u64; 4],
    bytes: &'a [u8],
}

impl<'a> Message<'a> {
    fn parse(mut rest: &'a [u8]) -> Option<Self> {
        let mut message = Self::default();
        while !rest.is_empty() {
            let key = varint(&mut rest)?;
            let field = usize::try_from(key >> 3).ok()?;
            match key & 7 {
                0 => {
                    let number = varint(&mut rest)?;
                    if let Some(place) = message.numbers.get_mut(field) {
                        *place = number;
                    }
                }
                2 => {
                    let size = usize::try_from(varint(&mut rest)?).ok()?;
                    let (bytes, after) = rest.split_at_checked(size)?;
                    if field == 3 {
                        message.bytes = bytes;
                    }
                    rest = after;
                }
                _ => return None,
            }
        }
        Some(message)
    }
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..70).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Castagnoli's polynomial, going on from an earlier sum.
fn crc32c(before: u32, bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut n = 0;
        while n < 256 {
            let mut sum = n as u32;
            let mut bit = 0;
            while bit < 8 {
                sum = if sum & 1 == 1 { (sum >> 1) ^ 0x82f6_3b78 } else { sum >> 1 };
                bit += 1;
            }
            table[n] = sum;
            n += 1;
        }
        table
    };
    !bytes.iter().fold(!before, |sum, byte| (sum >> 8) ^ TABLE[((sum ^ u32::from(*byte)) & 0xff) as usize])
}

#[cfg(test)]
mod tests;
