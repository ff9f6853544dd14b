use super::*;
use proptest::prelude::*;

fn index(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

/// A file as a program sees it, and what happens to it.
#[derive(Clone, Default)]
struct File {
    bytes: Vec<u8>,
    unsynced: Unsynced,
}

#[derive(Clone, Debug)]
enum Op {
    Write { offset: u64, bytes: Vec<u8> },
    Resize(u64),
    Sync,
}

/// Of no bytes, it changes nothing.
fn write(file: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let end = index(offset) + bytes.len();
    if file.len() < end {
        file.resize(end, 0);
    }
    file[index(offset)..end].copy_from_slice(bytes);
}

impl File {
    fn does(&mut self, op: &Op) {
        let length = self.bytes.len() as u64;
        match op {
            Op::Write { offset, bytes } => {
                let there = |at: u64| index(at).min(self.bytes.len());
                let before = self.bytes[there(*offset)..there(offset + bytes.len() as u64)].to_vec();
                self.unsynced.wrote(*offset, bytes.len() as u64, before, length);
                write(&mut self.bytes, *offset, bytes);
            }
            Op::Resize(to) => {
                let cut_off = self.bytes.get(index(*to)..).unwrap_or_default().to_vec();
                self.unsynced.resized(*to, cut_off, length);
                self.bytes.resize(index(*to), 0);
            }
            Op::Sync => self.unsynced = Unsynced::default(),
        }
    }

    fn after_power_loss(&self, survives: Survives) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        for repair in self.unsynced.power_lost(survives) {
            bytes.resize(index(repair.length), 0);
            write(&mut bytes, repair.offset, &repair.bytes);
            assert_eq!(bytes.len(), index(repair.length), "a repair never reaches beyond the file's end");
        }
        bytes
    }
}

/// The other way round: what was synced, and then one sector after the other as long as there is power.
fn sector_by_sector(ops: &[Op], survives: Survives) -> Vec<u8> {
    let last = ops.iter().rposition(|op| matches!(op, Op::Sync)).map_or(0, |last| last + 1);
    let mut file = File::default();
    ops[..last].iter().for_each(|op| file.does(op));
    let mut bytes = file.bytes;
    let mut length = bytes.len() as u64;
    let mut pieces: Vec<Op> = Vec::new();
    for op in &ops[last..] {
        match op {
            Op::Write { offset, bytes } if !bytes.is_empty() => {
                let mut from = 0;
                while from < bytes.len() {
                    let at = offset + from as u64;
                    let to = (from + index(SECTOR - at % SECTOR)).min(bytes.len());
                    pieces.push(Op::Write { offset: at, bytes: bytes[from..to].to_vec() });
                    from = to;
                }
                length = length.max(offset + bytes.len() as u64);
            }
            Op::Resize(to) if *to != length => {
                length = *to;
                pieces.push(op.clone());
            }
            _ => {}
        }
    }
    let kept = if survives == Survives::Nothing { 0 } else { pieces.len() / 2 };
    for piece in &pieces[..kept] {
        match piece {
            Op::Write { offset, bytes: piece } => write(&mut bytes, *offset, piece),
            Op::Resize(to) => bytes.resize(index(*to), 0),
            Op::Sync => {}
        }
    }
    bytes
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (0u64..4000, proptest::collection::vec(any::<u8>(), 0..2500))
            .prop_map(|(offset, bytes)| Op::Write { offset, bytes }),
        2 => (0u64..6000).prop_map(Op::Resize),
        1 => Just(Op::Sync),
    ]
}

proptest! {
    #[test]
    fn a_disk_has_what_was_synced_and_as_many_sectors_as_it_had_power_for(ops in proptest::collection::vec(op(), 0..12)) {
        let mut file = File::default();
        ops.iter().for_each(|op| file.does(op));
        for survives in [Survives::Nothing, Survives::Half] {
            prop_assert_eq!(file.after_power_loss(survives), sector_by_sector(&ops, survives), "{:?}", survives);
        }
    }
}

#[test]
fn what_was_synced_survives_and_the_rest_is_torn_at_a_sector() {
    let mut file = File::default();
    file.does(&Op::Resize(4096));
    file.does(&Op::Write { offset: 0, bytes: vec![1; 600] });
    file.does(&Op::Sync);
    assert!(file.unsynced.is_empty());
    // From the middle of the second sector on: three are touched.
    file.does(&Op::Write { offset: 600, bytes: vec![2; 1300] });
    assert_eq!(file.after_power_loss(Survives::Nothing)[..1024], [vec![1; 600], vec![0; 424]].concat());
    let torn = file.after_power_loss(Survives::Half);
    assert_eq!(torn.len(), 4096);
    assert!(torn[..600].iter().all(|b| *b == 1) && torn[600..1024].iter().all(|b| *b == 2));
    assert!(torn[1024..].iter().all(|b| *b == 0), "two of three sectors are lost");
}

#[test]
fn what_is_never_synced_takes_no_more_memory_than_that() {
    let mut unsynced = Unsynced::default();
    for megabyte in 0..200u64 {
        unsynced.wrote(megabyte << 20, 1 << 20, vec![7; 1 << 20], 200 << 20);
    }
    assert_eq!(unsynced.0.len(), 64);
    unsynced.resized(0, vec![0; 1 << 20], 200 << 20);
    assert!(
        unsynced.0.iter().all(|change| change.written > 0 || change.before.is_empty()),
        "zeros are not kept"
    );
}
