use super::*;
use proptest::prelude::*;

fn wishes(block: u16, window: u16) -> Options {
    Options { block: Some(block), window: Some(window), ..Options::default() }
}

/// Words in: `start`, `ack:N`, `silence`; what is sent out.
fn story(size: u64, options: &Options, words: &str) -> String {
    let (mut transfer, _) = Transfer::new(size, options);
    let step = |word: &str, transfer: &mut Transfer| match word.split_once(':') {
        Some((_, block)) => transfer.heard(block.parse().unwrap_or_default()),
        None if word == "silence" => transfer.silence(),
        None => transfer.start(),
    };
    let said = words.split(' ').map(|word| match step(word, &mut transfer) {
        Step::Send { from, to } if from == to => from.to_string(),
        Step::Send { from, to } => format!("{from}-{to}"),
        other => format!("{other:?}").to_lowercase(),
    });
    said.collect::<Vec<_>>().join(" ")
}

#[test]
fn plain_transfers() {
    let plain = Options::default();
    let table = [
        ("a short file", 100, "start ack:1", "1 done"),
        ("an empty file", 0, "start ack:1", "1 done"),
        ("a full block is followed by an empty one", 512, "start ack:1 ack:2", "1 2 done"),
        ("lost", 1000, "start silence ack:1 ack:2", "1 1 2 done"),
        ("a doubled answer doubles nothing", 2000, "start ack:1 ack:1 ack:2", "1 2 wait 3"),
        ("an answer to what was never sent", 2000, "start ack:9 ack:2 ack:1", "1 wait wait 2"),
        ("gone", 9, "start silence silence silence silence silence silence silence", "1 1 1 1 1 1 1 giveup"),
    ];
    for (name, size, words, want) in table {
        assert_eq!(story(size, &plain, words), want, "{name}");
    }
}

#[test]
fn windows() {
    let four = wishes(1000, 4);
    let table = [
        ("agreed first", 9500, "start ack:0 ack:4 ack:8 ack:10", "propose 1-4 5-8 9-10 done"),
        ("the proposal was lost", 100, "start silence ack:0 ack:1", "propose propose 1 done"),
        ("an early answer is none", 100, "start ack:1 ack:0 ack:1", "propose wait 1 done"),
        ("one is missing in between", 9500, "start ack:0 ack:2 ack:6", "propose 1-4 3-6 7-10"),
        (
            "the first is missing, said twice",
            9500,
            "start ack:0 ack:4 ack:4 ack:4 ack:8",
            "propose 1-4 5-8 5-8 wait 9-10",
        ),
        ("all are missing", 9500, "start ack:0 silence ack:4", "propose 1-4 1-4 5-8"),
        ("late", 9500, "start ack:0 ack:4 ack:2 ack:8", "propose 1-4 5-8 wait 9-10"),
    ];
    for (name, size, words, want) in table {
        assert_eq!(story(size, &four, words), want, "{name}");
    }
}

#[test]
fn wishes_are_granted_within_reason() {
    let all = Options { block: Some(65000), size: Some(0), timeout: Some(9), window: Some(60000) };
    let (transfer, granted) = Transfer::new(5, &all);
    assert_eq!(granted, Options { block: Some(1468), size: Some(5), timeout: Some(9), window: Some(64) });
    assert_eq!(transfer.patience(), 9);
    let (mut transfer, _) = Transfer::new(5, &Options::default());
    let waits: Vec<_> = (0..6)
        .map(|_| {
            transfer.silence();
            transfer.patience()
        })
        .collect();
    assert_eq!(waits, [2, 4, 8, 8, 8, 8]);
}

/// As a client that loses packets: every third window's answer names a block in between.
#[test]
fn more_blocks_than_the_wire_can_count() {
    let (mut transfer, _) = Transfer::new(8 * 200_000 + 3, &wishes(8, 16));
    let (mut has, mut turn) = (0u64, 0u32);
    transfer.start();
    let mut step = transfer.heard(0);
    while let Step::Send { from, to } = step {
        assert!(from == has + 1 && to - from < 16, "{from}-{to} after {has}");
        turn += 1;
        has = if turn.is_multiple_of(3) { from + (to - from) / 2 } else { to };
        step = transfer.heard(cut(has));
    }
    assert_eq!((step, has), (Step::Done, 200_001));
    assert_eq!(transfer.delivered(), 8 * 200_000 + 3);
}

proptest! {
    /// Whatever is heard: never a block that the file does not have, never more than a window, and the bytes fit together.
    #[test]
    fn nothing_heard_leads_astray(size in 0u64..100_000, block in 8u16..2000, window in 1u16..100, heard in prop::collection::vec(any::<(bool, u8)>(), 0..200)) {
        let (mut transfer, granted) = Transfer::new(size, &wishes(block, window));
        let mut steps = vec![transfer.start()];
        for (silent, ack) in heard {
            steps.push(if silent { transfer.silence() } else { transfer.heard(ack.into()) });
        }
        for step in steps {
            if let Step::Send { from, to } = step {
                prop_assert!(from >= 1 && from <= to && to <= transfer.last());
                prop_assert!(to - from < u64::from(granted.window.unwrap_or(1)));
                prop_assert!(transfer.bytes(to).end <= size);
            }
        }
        prop_assert!(transfer.delivered() <= size);
    }
}
