use super::*;
use proptest::prelude::*;

fn seen(letter: char) -> Seen {
    match letter {
        'r' => Seen::Ready,
        'n' => Seen::NotReady("500".into()),
        'l' => Seen::Leaving,
        'x' => Seen::Refused,
        'f' => Seen::Stranger("unknown issuer".into()),
        'u' => Seen::Unreachable("no connection for 1s".into()),
        's' => Seen::Silent("nothing for 1s".into()),
        other => panic!("{other}"),
    }
}

/// Checks in, states out: `U` up, `L` last resort, `D` down; `!` where open connections are cut.
fn run(checks: &str) -> String {
    let mut health = Health::default();
    let mut out = String::new();
    for letter in checks.chars() {
        let step = health.after(&seen(letter));
        health = step.health;
        out.push(match health.usable {
            Usable::Up => 'U',
            Usable::LastResort => 'L',
            Usable::Down => 'D',
        });
        if step.cut {
            out.push('!');
        }
    }
    out
}

#[test]
fn health() {
    let table = [
        ("one success is up", "r", "U"),
        ("unready is down at once, connections stay", "rnnn", "UDDD"),
        ("leaving is down at once, connections stay", "rllx", "UDDD"),
        ("refused is down at once, connections stay", "rxxx", "UDDD"),
        ("a stranger is down at once, and no last resort", "rfff", "UDDD"),
        ("one loss proves nothing", "rurur", "UUUUU"),
        ("machine off: down at the second, cut", "ruu", "UUD!"),
        ("busy: down at the second, last resort", "rsss", "UULL"),
        ("busy, then off", "rsu", "UUD!"),
        ("busy, then draining", "rssn", "UULD"),
        ("back again", "ruur", "UUD!U"),
        ("frozen: cut after ten", "rssssssssss", "UULLLLLLLLD!"),
        ("never there", "uux", "DD!D"),
        ("starting", "xxxnnr", "DDDDDU"),
    ];
    for (name, checks, expected) in table {
        assert_eq!(run(checks), expected, "{name}");
    }
}

#[test]
fn only_a_backend_that_stays_ready_is_asked_less_often() {
    let after = |checks: String| {
        checks.chars().fold(Health::default(), |health, letter| health.after(&seen(letter)).health).pause()
    };
    let settled = "r".repeat(SETTLES_AFTER as usize);
    assert_eq!(after(settled.clone()), SETTLED);
    assert_eq!(after(settled[1..].into()), QUICK);
    for letter in "nlxus".chars() {
        assert_eq!(after(format!("{settled}{letter}")), QUICK, "{letter}");
        assert_eq!(after(format!("{settled}{letter}r")), QUICK, "{letter}, and ready again");
    }
}

#[test]
fn choice() {
    let state = |letters: &str| -> Vec<Health> {
        letters
            .chars()
            .map(|l| Health {
                usable: match l {
                    'U' => Usable::Up,
                    'L' => Usable::LastResort,
                    _ => Usable::Down,
                },
                ..Health::default()
            })
            .collect()
    };
    let table: &[(&str, usize, bool, &[usize])] = &[
        ("UUUU", 0, false, &[0, 1, 2, 3]),
        ("UUUU", 5, false, &[1, 2, 3, 0]),
        // The turn goes over those that are up: no neighbour of a dead one gets double.
        ("UDUU", 0, false, &[0, 2, 3]),
        ("UDUU", 1, false, &[2, 3, 0]),
        ("UDUU", 2, false, &[3, 0, 2]),
        ("DLDU", 1, true, &[3]),
        ("DLDL", 0, false, &[]),
        ("DLDL", 1, true, &[3, 1]),
        ("DDDD", 9, true, &[]),
        ("", 3, true, &[]),
    ];
    for (states, turn, patience_over, expected) in table {
        assert_eq!(
            candidates(&state(states), *turn, *patience_over),
            *expected,
            "{states} {turn} {patience_over}"
        );
    }
}

proptest! {
    /// Whatever happened before, one good check brings a backend up and one refusal takes it out.
    #[test]
    fn last_check_decides(history in "[rnlxus]{0,40}") {
        prop_assert!(run(&(history.clone() + "r")).ends_with('U'));
        prop_assert!(run(&(history + "x")).ends_with('D'));
    }
}
