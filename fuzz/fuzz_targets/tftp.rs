//! Any packets, in any order: the parser takes each, and a transfer never sends a block that its file does not have.

#![no_main]

use libfuzzer_sys::fuzz_target;
use seedling_helper::tftp::packet::{Heard, parse};
use seedling_helper::tftp::transfer::{Step, Transfer};

fuzz_target!(|packets: Vec<Vec<u8>>| {
    let mut transfer: Option<(Transfer, u64)> = None;
    for packet in packets {
        let step = match (parse(&packet), &mut transfer) {
            (Some(Heard::Read(request)), _) => {
                assert!(!request.file.is_empty());
                let size = packet.len() as u64 * 1000;
                let (mut begun, _) = Transfer::new(size, &request.options);
                let step = begun.start();
                transfer = Some((begun, size));
                step
            }
            (Some(Heard::Ack(block)), Some((transfer, _))) => transfer.heard(block),
            (None, Some((transfer, _))) => transfer.silence(),
            _ => continue,
        };
        if let (Step::Send { from, to }, Some((transfer, size))) = (step, &transfer) {
            assert!(from >= 1 && from <= to && to - from < 64);
            assert!(transfer.bytes(to).end <= *size && transfer.bytes(from).start <= *size);
        }
    }
});
