//! Trouble at every step of a bring-up.
//!
//! In: what to strike, how, and a seed. [`cases`] makes the list of cases and [`rounds`] puts them into bring-ups, both
//! without asking anybody, so that a seed or a case's id names the same trouble again. [`strike`] does it to a lab, and
//! [`judge`] says from what was seen whether the cluster lost anything by it; a [`Tally`] whether the whole run proves anything.
//! A [`Run`] does all of it, one bring-up after the other, and leaves a report.

mod cases;
mod evidence;
mod links;
pub mod pairs;
mod plans;
mod report;
mod round;
mod run;
mod step;
mod strike;
mod tally;
mod verdict;

pub use cases::{Case, EVERYTHING, Fault, Selection, Victim, cases, rounds};
pub use links::{HEALED, HELPER, Loss, MASTERS, Party, plan, rules};
pub use plans::{Plan, Wish};
pub use run::{Place, Run};
pub use step::{Progress, Step, When, steps};
pub(crate) use strike::heal;
pub use strike::{Killed, LASTS, refusal, strike};
pub use tally::{Tally, missed_at_most};
pub use verdict::{Seen, Verdict, judge};

/// Small and the same on every machine and in every version: a seed must always mean the same cases (splitmix64).
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// One of `0..sides`.
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        usize::try_from(z % sides.max(1) as u64).unwrap_or_default()
    }
}
