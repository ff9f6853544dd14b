//! What etcd would write into its log.

use super::{BadLog, CHECKSUM, ENTRY, METADATA, SNAPSHOT, STATE, bad, crc32c, read};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;

/// From now on the member takes everything in its log for agreed on. For data of which nothing else is left: what only the others knew to be
/// agreed on is then not dropped. The log must be whole, and no etcd run.
pub fn agree_to_all(dir: &Path) -> Result<(), BadLog> {
    let (newest, log) = read(dir)?;
    let tail = log.tail().map_err(|e| bad(dir, e))?;
    let mut writer = Writer { checksum: log.checksum, ..Writer::default() };
    writer.record(STATE, &numbers(&[log.vote.0.max(tail.term), log.vote.1, tail.last]));
    let written = std::fs::OpenOptions::new().write(true).open(&newest).and_then(|mut file| {
        file.seek(SeekFrom::Start(log.end))?;
        file.write_all(&writer.bytes)?;
        file.sync_all()
    });
    written.map_err(|e| bad(&newest, e))
}

/// A file of the log.
#[derive(Default)]
pub struct Writer {
    pub bytes: Vec<u8>,
    checksum: u32,
    /// Where the types of the records are. No checksum covers them, and etcd itself would be misled.
    pub types: Vec<usize>,
}

fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn numbers(fields: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    for (field, number) in (1u64..).zip(fields) {
        put_varint(&mut out, field << 3);
        put_varint(&mut out, *number);
    }
    out
}

impl Writer {
    /// A file begins with the checksum of the one before.
    pub fn after(checksum: u32) -> Self {
        let mut writer = Self { checksum, ..Self::default() };
        writer.record(CHECKSUM, &[]);
        writer.record(METADATA, &numbers(&[0xa, 0xc]));
        writer
    }
    pub fn checksum(&self) -> u32 {
        self.checksum
    }
    pub fn entry(&mut self, term: u64, index: u64) -> &mut Self {
        self.entry_of(0, term, index)
    }
    pub fn entry_of(&mut self, kind: u64, term: u64, index: u64) -> &mut Self {
        let mut data = numbers(&[kind, term, index]);
        data.extend([4 << 3 | 2, 3, b'a', b'b', b'c']);
        self.record(ENTRY, &data)
    }
    pub fn state(&mut self, term: u64, commit: u64) -> &mut Self {
        self.record(STATE, &numbers(&[term, 1, commit]))
    }
    pub fn snapshot(&mut self, index: u64, term: u64) -> &mut Self {
        self.record(SNAPSHOT, &numbers(&[index, term]))
    }
    pub(super) fn record(&mut self, kind: u64, data: &[u8]) -> &mut Self {
        self.checksum = crc32c(self.checksum, data);
        let mut record = numbers(&[kind, u64::from(self.checksum)]);
        if !data.is_empty() {
            record.push(3 << 3 | 2);
            put_varint(&mut record, data.len() as u64);
            record.extend(data);
        }
        let padding = (8 - record.len() % 8) % 8;
        let mut length = record.len() as u64;
        if padding != 0 {
            length |= (0x80 | padding as u64) << 56;
        }
        self.types.push(self.bytes.len() + 9);
        self.bytes.extend(length.to_le_bytes());
        self.bytes.extend(record);
        self.bytes.extend(vec![0; padding]);
        self
    }
}
