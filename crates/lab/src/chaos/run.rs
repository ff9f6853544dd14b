//! A whole run: one bring-up after the other is struck, judged and written down.

use super::plans::{Plan, Wish, without};
use super::report::{begin, green, results, tally};
use super::round::{BringUp, Round};
use super::{Case, Step, missed_at_most};
use crate::{LabError, Labs, Result, probe};
use seedling_observe::Report;
use std::path::PathBuf;

/// Where a run happens, and where it leaves what it found.
pub struct Place {
    pub labs: Labs,
    /// Of the lab that is made for each bring-up.
    pub name: String,
    pub report: PathBuf,
    /// Directory of logs and evidence.
    pub logs: PathBuf,
    /// As it was typed, for the report.
    pub command: String,
}

pub struct Run {
    pub seed: u64,
    /// What is left to do.
    pub plans: Vec<Plan>,
    steps: Vec<Step>,
    place: Place,
    /// What an earlier run has done.
    before: Vec<BringUp>,
    /// Cases, also those of before.
    planned: usize,
}

impl Run {
    /// Without a seed: that of the report to `resume` from, or one from the clock.
    pub fn prepare(
        mut wish: Wish,
        seed: Option<u64>,
        resume: bool,
        steps: Vec<Step>,
        place: Place,
    ) -> Result<Self> {
        let (before, seed_before) = match resume {
            true => green(&place.report)?,
            false => (Vec::new(), None),
        };
        let by_clock = || u64::try_from(probe::now()).unwrap_or_default();
        let seed = seed.or(seed_before).unwrap_or_else(by_clock);
        wish.selection.seed = seed;
        let plans = wish.plans(&steps)?;
        let planned = plans.iter().map(|plan| plan.cases.len()).sum();
        Ok(Self { seed, plans: without(&before, plans), steps, place, before, planned })
    }

    pub fn cases(&self) -> impl Iterator<Item = &Case> {
        self.plans.iter().flat_map(|plan| &plan.cases)
    }

    /// The report, and why the run is no success. `told` is called for each case.
    pub async fn carry_out(
        self,
        allowed_to_miss: Option<usize>,
        told: &dyn Fn(&str),
        interrupted: impl AsyncFn(),
    ) -> Result<(Report, Option<String>)> {
        let Self { seed, plans, steps, place, before, planned } = self;
        let name = &place.name;
        if place.labs.open(name).is_ok() {
            return Err(LabError::Strike(format!(
                "lab {name:?} exists; `seedling lab down --name {name}` removes it, --name chooses another"
            )));
        }
        let allowed = allowed_to_miss.unwrap_or_else(|| missed_at_most(planned));
        let mut report = begin(&place.report, &place.command, seed);
        let first = 1 + before.iter().map(|bring_up| bring_up.number).max().unwrap_or_default();
        let mut bring_ups = before;
        for (number, plan) in (first..).zip(plans) {
            let round =
                Round { place: &place, steps: &steps, number, plan, revision: &report.revision, told };
            let ended = tokio::select! {
                ended = round.strike_and_judge() => ended,
                () = interrupted() => Err(LabError::Strike("interrupted".into())),
            };
            crate::down(&place.labs, name, &|_| ()).await?;
            bring_ups.push(ended?);
            // Written after each bring-up: hours of them are not lost to the last.
            (report.results, report.summary) = results(&bring_ups, planned, allowed);
            report.write(&place.report).map_err(|e| LabError::Strike(format!("{e:#}")))?;
        }
        let failed = tally(&bring_ups).failed(allowed);
        Ok((report, failed))
    }
}
