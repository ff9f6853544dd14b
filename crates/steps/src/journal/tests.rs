//! A journal that is cut anywhere, or whose writers come in any order, is a journal of less.

use super::*;
use crate::record;
use proptest::prelude::*;

/// A bring-up of one node, as its writers write it.
fn bring_up(who: &str, stages: usize) -> Vec<Line> {
    let mut lines = vec![Line::now(who, None, Event::Begin)];
    for stage in 0..stages {
        let name = format!("s{stage}");
        let part = format!("s{stage}/part");
        lines.push(Line::now(who, Some(&name), Event::Begin));
        lines.push(Line::now(who, Some(&part), Event::Begin));
        lines.push(Line::now(who, Some(&part), Event::End));
        lines.push(Line::now(who, Some(&name), Event::End));
    }
    lines.push(Line::now(who, None, Event::End));
    lines
}

fn text(lines: &[Line]) -> Vec<u8> {
    let line = |line: &Line| serde_json::to_string(line).unwrap_or_default() + "\n";
    lines.iter().map(line).collect::<String>().into_bytes()
}

fn done(lines: &[Line], who: &str) -> usize {
    let state = fold(lines);
    let steps = state.service(who).map_or(&[][..], |s| &s.steps);
    steps.iter().filter(|s| s.fate == Fate::Done && !s.name.contains('/')).count()
}

proptest! {
    #[test]
    fn cut_anywhere_it_tells_of_a_beginning(stages in 1usize..6, cut in 0usize..4000) {
        let whole = bring_up("bootkube", stages);
        let bytes = text(&whole);
        let cut = cut.min(bytes.len());
        let left = lines(&bytes[..cut]);
        prop_assert_eq!(&left[..], &whole[..left.len()]);
        let (before, all) = (record(&left, "bootkube"), record(&whole, "bootkube"));
        prop_assert_eq!(&before[..], &all[..before.len()]);

        // The next run goes on with the stages that are not done, and then all are.
        let first = done(&left, "bootkube");
        let mut next = bytes[..cut].to_vec();
        next.push(b'\n');
        next.extend(text(&[Line::now("bootkube", None, Event::Begin)]));
        let restarted = fold(&lines(&next));
        prop_assert!(restarted.open().next().is_none());
        for stage in first..stages {
            next.extend(text(&bring_up("bootkube", stages)[1 + 4 * stage..5 + 4 * stage]));
        }
        prop_assert_eq!(done(&lines(&next), "bootkube"), stages);
    }

    #[test]
    fn writers_do_not_disturb_each_other(order in prop::collection::vec(0usize..3, 0..60)) {
        let writers = ["boot", "installer/etcd-pod", "installer/kube-apiserver-pod"];
        let own = writers.map(|who| bring_up(who, 3));
        let mut at = [0; 3];
        let mut mixed = vec![];
        for writer in order {
            if let Some(line) = own[writer].get(at[writer]) {
                mixed.push(line.clone());
                at[writer] += 1;
            }
        }
        for (writer, who) in writers.iter().enumerate().skip(1) {
            let alone = fold(&own[writer][..at[writer]]);
            let mut among = fold(&mixed);
            among.services.retain(|s| s.name == *who);
            // A machine that starts ends whatever was open on it.
            if at[0] == 0 {
                prop_assert_eq!(among, alone);
            }
            prop_assert_eq!(record(&mixed, who), record(&own[writer][..at[writer]], who));
        }
    }

    #[test]
    fn anything_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = fold(&lines(&bytes));
    }
}

fn at(millis: i64, who: &str, step: &str, event: Event) -> Line {
    let time = OffsetDateTime::UNIX_EPOCH + time::Duration::milliseconds(millis);
    let time = time.format(&Rfc3339).unwrap_or_default();
    Line { time, ..Line::now(who, Some(step).filter(|s| !s.is_empty()), event) }
}

#[test]
fn what_was_cut_short_counts_until_the_restart() {
    let lines = [
        at(0, "bootkube", "", Event::Begin),
        at(100, "bootkube", "a", Event::Begin),
        at(1100, "bootkube", "", Event::Begin),
        at(1200, "bootkube", "a", Event::Begin),
        at(1300, "bootkube", "a/part", Event::Begin),
        at(1700, "bootkube", "a", Event::End),
    ];
    let state = fold(&lines);
    let a = state.step("bootkube", "a").map(|s| (s.fate, s.seconds, s.runs.clone()));
    assert_eq!(a, Some((Fate::Done, 1.5, vec![(100, 1100), (1200, 1700)])));
    assert_eq!(state.step("bootkube", "a/part").map(|s| s.fate), Some(Fate::Interrupted));
    assert!(state.open().next().is_none());
}

#[test]
fn what_is_tried_again_and_again_is_no_progress() {
    let run = [
        at(0, "bootkube", "", Event::Begin),
        at(0, "bootkube", "a", Event::Begin),
        at(0, "bootkube", "a", Event::End),
        at(0, "bootkube", "b", Event::Begin),
        at(0, "bootkube", "b", Event::Failed),
    ];
    let mut lines = run.to_vec();
    let once = fold(&lines).progress();
    for line in run {
        lines.push(line);
        assert_eq!(fold(&lines).progress(), once);
    }
}

#[test]
fn a_boot_ends_what_was_open_on_the_machine() {
    let mut lines =
        vec![at(0, "kubelet-join", "", Event::Begin), at(1, "kubelet-join", "request", Event::Begin)];
    let open =
        |lines: &[Line]| fold(lines).open().map(|(who, s)| format!("{who} {}", s.name)).collect::<Vec<_>>();
    assert_eq!(open(&lines), ["kubelet-join request"]);
    lines.push(at(5, BOOT, "", Event::Begin));
    assert!(open(&lines).is_empty());
}
