//! How many cases ended how, and whether that proves anything. Pure.

use super::Verdict;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    pub green: usize,
    pub red: usize,
    pub missed: usize,
}

impl Tally {
    pub fn of<'a>(verdicts: impl IntoIterator<Item = &'a Verdict>) -> Self {
        verdicts.into_iter().fold(Self::default(), |mut tally, verdict| {
            match verdict {
                Verdict::Green => tally.green += 1,
                Verdict::Red(_) => tally.red += 1,
                Verdict::Missed(_) => tally.missed += 1,
            }
            tally
        })
    }

    /// Why the run is no success. A strike that found nobody proves nothing: some may, since victims come and go, but not most.
    pub fn failed(self, missed_at_most: usize) -> Option<String> {
        let Self { green, red, missed } = self;
        match () {
            () if red > 0 => Some(format!("{red} cases are red")),
            () if green == 0 => Some(format!("no case is green, {missed} were missed: nothing was proved")),
            () if missed > missed_at_most => {
                Some(format!("{missed} cases were missed, {missed_at_most} may be: too little was proved"))
            }
            () => None,
        }
    }
}

/// Unless somebody says otherwise: one in twenty, and always one.
pub fn missed_at_most(cases: usize) -> usize {
    cases.div_ceil(20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_strikes_that_hit_prove_something() {
        for (green, red, missed, at_most, fails) in [
            (4, 0, 0, 0, false),
            (3, 0, 1, 1, false),
            (3, 1, 0, 1, true),
            (2, 0, 2, 1, true),
            (3, 0, 1, 0, true),
            // All were missed, or nothing was tried: this was a success once.
            (0, 0, 4, 4, true),
            (0, 0, 0, 0, true),
        ] {
            let tally = Tally { green, red, missed };
            assert_eq!(tally.failed(at_most).is_some(), fails, "{tally:?}, {at_most}");
        }
    }

    #[test]
    fn verdicts_are_counted() {
        let verdicts =
            [Verdict::Green, Verdict::Red("x".into()), Verdict::Missed("y".into()), Verdict::Green];
        assert_eq!(Tally::of(&verdicts), Tally { green: 2, red: 1, missed: 1 });
        assert_eq!([1, 4, 20, 21, 154].map(missed_at_most), [1, 1, 1, 2, 8]);
    }
}
