#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use proptest::prelude::*;

impl Writer {
    fn tail(&self) -> Result<Tail, Unreadable> {
        tail(&self.bytes)
    }
}

fn tail(bytes: &[u8]) -> Result<Tail, Unreadable> {
    let mut log = Log::default();
    log.read(bytes, true)?;
    log.tail()
}

#[test]
fn the_checksum_is_castagnolis() {
    assert_eq!(crc32c(0, b"123456789"), 0xe306_9283);
    assert_eq!(crc32c(crc32c(0, b"1234"), b"56789"), 0xe306_9283);
}

/// The first record of every log.
#[test]
fn a_record_is_framed_as_etcd_frames_it() {
    let mut writer = Writer::default();
    writer.record(CHECKSUM, &[]);
    assert_eq!(writer.bytes[..8], [4, 0, 0, 0, 0, 0, 0, 0x84], "four bytes, and four of padding");
    assert_eq!(writer.bytes[8..], [8, 4, 16, 0, 0, 0, 0, 0]);
}

#[test]
fn the_end_is_the_last_entry_and_the_last_known_agreement() {
    let mut writer = Writer::after(0);
    assert_eq!(writer.tail(), Err(Unreadable::Empty));
    writer.entry(2, 1).entry(2, 2).state(2, 2);
    assert_eq!(writer.tail(), Ok(Tail { commit: 2, last: 2, term: 2, changes_members: false }));
    writer.entry(2, 3).entry(2, 4);
    assert_eq!(writer.tail(), Ok(Tail { commit: 2, last: 4, term: 2, changes_members: false }));
    // A new leader replaces what was not agreed on.
    writer.entry(3, 3).state(3, 3);
    assert_eq!(writer.tail(), Ok(Tail { commit: 3, last: 3, term: 3, changes_members: false }));
    // The leader's snapshot stands for what was never received.
    writer.snapshot(9, 3).state(3, 9).entry(3, 10);
    assert_eq!(writer.tail(), Ok(Tail { commit: 9, last: 10, term: 3, changes_members: false }));
    writer.bytes.extend([0; 4096]);
    assert_eq!(writer.tail().map(|t| t.last), Ok(10), "space made in advance");
    *writer.bytes.last_mut().unwrap() = 1;
    assert_eq!(writer.tail(), Err(Unreadable::Torn));
    let mut gap = Writer::after(0);
    assert_eq!(gap.entry(1, 1).entry(1, 3).tail(), Err(Unreadable::Gap { last: 1, next: 3 }));
    let mut ahead = Writer::after(0);
    assert!(ahead.entry(1, 1).state(1, 2).tail().is_err(), "agreed on what is not here");
}

#[test]
fn a_change_of_members_that_may_not_be_agreed_on_is_seen() {
    let changes = |writer: &mut Writer| writer.tail().unwrap().changes_members;
    let mut writer = Writer::after(0);
    writer.entry_of(1, 1, 1).state(1, 1);
    assert!(!changes(&mut writer), "agreed on");
    writer.entry(1, 2).entry_of(1, 1, 3).entry(1, 4);
    assert!(changes(&mut writer));
    writer.entry(2, 3);
    assert!(!changes(&mut writer), "replaced by a new leader's");
}

#[test]
fn files_go_on_from_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(dir.path().join(name), bytes).unwrap();
    let mut first = Writer::after(0);
    first.entry(1, 1).entry(1, 2).state(1, 2);
    let mut second = Writer::after(first.checksum());
    second.state(1, 2).entry(1, 3);
    write("0000000000000000-0000000000000000.wal", &first.bytes);
    write("0000000000000001-0000000000000003.wal", &second.bytes);
    write("1.tmp", b"made in advance");
    assert_eq!(read_tail(dir.path()).unwrap(), Tail { commit: 2, last: 3, term: 1, changes_members: false });
    write("0000000000000003-0000000000000009.wal", &second.bytes);
    assert!(read_tail(dir.path()).is_err(), "one is missing");
    assert!(read_tail(&dir.path().join("none")).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever was written is read. With a byte changed nothing is read, or the same (it was padding); with the end cut off
    /// nothing is read, or what once was the whole.
    #[test]
    fn a_broken_log_is_never_taken_for_another(
        entries in proptest::collection::vec((1u64..4, any::<bool>()), 1..12),
        at in any::<prop::sample::Index>(),
        flip in 1u8..,
        cut in any::<bool>(),
    ) {
        let mut writer = Writer::after(0);
        let mut once = Vec::new();
        let mut commit = 0;
        for (index, (term, agreed)) in (1u64..).zip(&entries) {
            writer.entry(*term, index);
            once.push(Tail { commit, last: index, term: *term, changes_members: false });
            if *agreed {
                commit = index;
                writer.state(*term, commit);
                once.push(Tail { commit, last: index, term: *term, changes_members: false });
            }
        }
        prop_assert_eq!(writer.tail().ok(), once.last().copied());
        let mut bytes = writer.bytes.clone();
        let at = at.index(bytes.len());
        prop_assume!(cut || !writer.types.contains(&at));
        if cut {
            bytes.truncate(at);
        } else {
            bytes[at] ^= flip;
        }
        if let Ok(read) = tail(&bytes) {
            let changed_padding = !cut && Some(&read) == once.last();
            prop_assert!(changed_padding || cut && once.contains(&read), "{:?} of {:?}", read, once);
        }
    }

    #[test]
    fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = tail(&bytes);
    }
}

#[test]
fn whose_it_is_is_said_at_the_beginning() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("0000000000000000-0000000000000000.wal");
    assert!(read_owner(dir.path()).is_err());
    let mut log = Writer::after(0);
    (1..1000).for_each(|index| _ = log.entry(1, index));
    std::fs::write(&file, &log.bytes).unwrap();
    assert_eq!(read_owner(dir.path()).unwrap(), Owner { member: 0xa, cluster: 0xc });
}

#[test]
fn a_log_that_is_agreed_to_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("0000000000000000-0000000000000000.wal");
    let mut log = Writer::after(0);
    log.state(3, 0).entry(2, 1).entry(3, 2);
    let end = log.bytes.len();
    log.bytes.extend([0; 256]);
    std::fs::write(&file, &log.bytes).unwrap();
    agree_to_all(dir.path()).unwrap();
    assert_eq!(read_tail(dir.path()).unwrap(), Tail { commit: 2, last: 2, term: 3, changes_members: false });
    let bytes = std::fs::read(&file).unwrap();
    assert_eq!(
        (bytes.len(), &bytes[..end]),
        (log.bytes.len(), &log.bytes[..end]),
        "in the space made in advance"
    );
    let length = |file: &Path| std::fs::metadata(file).unwrap().len();
    let before = length(&file);
    agree_to_all(dir.path()).unwrap();
    assert_eq!(read_tail(dir.path()).unwrap().commit, 2);
    assert_eq!(length(&file), before);
}
