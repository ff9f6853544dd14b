//! Which bring-ups a run consists of, and which of them an earlier run has done. Pure.

use super::round::BringUp;
use super::{Case, Fault, HELPER, MASTERS, Selection, Step, Victim, cases, pairs, refusal, rounds};
use crate::{LabError, Result, default_inventory};
use std::collections::BTreeSet;
use std::time::Duration;

/// What a person asks for.
#[derive(Clone, Debug)]
pub struct Wish {
    /// Every fault on every victim at every step, and pairs of faults.
    pub whole: bool,
    /// These cases, together.
    pub named: Vec<String>,
    /// Otherwise; without victims it means all of them.
    pub selection: Selection,
    pub lasts: Duration,
    pub masters: u8,
    /// In minutes.
    pub patience: Option<u32>,
}

/// One bring-up that is to be struck, and the kind of cluster.
#[derive(Clone, Debug)]
pub struct Plan {
    pub cases: Vec<Case>,
    pub masters: u8,
    pub patience: Option<u32>,
    pub lasts: Duration,
    /// They are meant together: what one brings about, another strikes.
    pub together: bool,
}

impl Wish {
    fn plan(&self, cases: Vec<Case>, together: bool) -> Plan {
        Plan { cases, masters: self.masters, patience: self.patience, lasts: self.lasts, together }
    }

    /// The bring-ups, in their order.
    pub fn plans(&self, steps: &[Step]) -> Result<Vec<Plan>> {
        let of_rounds =
            |cases: &[Case]| rounds(cases, steps).into_iter().map(|round| self.plan(round, false));
        if !self.whole {
            let cases = self.chosen(steps)?;
            return Ok(match self.named.is_empty() {
                true => of_rounds(&cases).collect(),
                false => vec![self.plan(cases, true)],
            });
        }
        let inventory = default_inventory(pairs::MASTERS);
        let pairs = pairs::pairs(steps, &inventory).map_err(LabError::Strike)?;
        let mut plans = Vec::new();
        for fault in Fault::ALL.iter().copied() {
            let selection = Selection { every_step: true, ..self.able(fault)? };
            plans.extend(of_rounds(&self.cases(&selection, steps)));
        }
        plans.extend(pairs.into_iter().map(|pair| Plan {
            cases: pair.into(),
            masters: pairs::MASTERS,
            patience: Some(pairs::PATIENCE_MINUTES),
            lasts: pairs::LASTS,
            together: true,
        }));
        Ok(plans)
    }

    fn chosen(&self, steps: &[Step]) -> Result<Vec<Case>> {
        let inventory = default_inventory(self.masters);
        let machines: Vec<_> =
            inventory.bootstrap().into_iter().chain(inventory.masters()).map(|m| m.name.as_str()).collect();
        let no_machine = |name: &&String| inventory.by_name(name).is_none();
        let no_end = |name: &&String| no_machine(name) && ![HELPER, MASTERS].contains(&name.as_str());
        let Selection { on, peer, fault, .. } = &self.selection;
        if let Some(name) = on.as_ref().filter(no_machine).or(peer.as_ref().filter(no_end)) {
            let known = machines.join(", ");
            return Err(LabError::Strike(format!("there is no machine {name:?}; there are {known}")));
        }
        if !self.named.is_empty() {
            let parsed = self.named.iter().map(|id| Case::parse(id, steps, &inventory));
            return parsed.collect::<Result<_, _>>().map_err(LabError::Strike);
        }
        let cases = self.cases(&self.able(*fault)?, steps);
        match cases.is_empty() {
            true => Err(LabError::Strike("nothing to strike: no such victim lives on that machine".into())),
            false => Ok(cases),
        }
    }

    fn cases(&self, selection: &Selection, steps: &[Step]) -> Vec<Case> {
        let inventory = default_inventory(self.masters);
        let masters: Vec<_> = inventory.masters().iter().map(|m| m.name.clone()).collect();
        let bootstrap = inventory.bootstrap().map(|b| b.name.clone()).unwrap_or_default();
        cases(selection, steps, &bootstrap, &masters)
    }

    /// Of those victims that can be struck so.
    fn able(&self, fault: Fault) -> Result<Selection> {
        let chosen = &self.selection.victims;
        let victims = if chosen.is_empty() { Victim::ALL.into() } else { chosen.clone() };
        let (able, unable): (Vec<_>, Vec<_>) =
            victims.into_iter().partition(|victim| refusal(*victim, fault).is_none());
        if let (true, Some(victim)) = (able.is_empty(), unable.first()) {
            return Err(LabError::Strike(refusal(*victim, fault).unwrap_or_default().into()));
        }
        Ok(Selection { victims: able, fault, ..self.selection.clone() })
    }
}

/// What is left of them. Of those that are meant together, all or none.
pub(super) fn without(done: &[BringUp], plans: Vec<Plan>) -> Vec<Plan> {
    let ids = |bring_up: &BringUp| bring_up.cases.iter().map(|case| case.id.clone()).collect::<Vec<_>>();
    let (together, single): (Vec<_>, Vec<_>) = done.iter().partition(|bring_up| bring_up.together);
    let together: BTreeSet<_> = together.into_iter().map(ids).collect();
    let single: BTreeSet<_> = single.into_iter().flat_map(ids).collect();
    let left = |mut plan: Plan| {
        match plan.together {
            true if together.contains(&plan.cases.iter().map(Case::to_string).collect::<Vec<_>>()) => {
                plan.cases.clear();
            }
            true => {}
            false => plan.cases.retain(|case| !single.contains(&case.to_string())),
        }
        (!plan.cases.is_empty()).then_some(plan)
    };
    plans.into_iter().filter_map(left).collect()
}

#[cfg(test)]
mod tests {
    use super::super::round::Struck;
    use super::super::{LASTS, Verdict, steps};
    use super::*;

    #[test]
    fn what_was_green_is_not_struck_again() {
        let steps = steps(["cb-bootstrap", "wait-for-ceo"]);
        let pairs = pairs::pairs(&steps, &default_inventory(1)).unwrap_or_else(|e| panic!("{e}"));
        let plan = |cases: &[Case], together| Plan {
            cases: cases.into(),
            masters: 1,
            patience: None,
            lasts: LASTS,
            together,
        };
        let done = |cases: &[Case], together| BringUp {
            together,
            cases: (cases.iter())
                .map(|c| Struck { id: c.to_string(), verdict: Verdict::Green, struck: None })
                .collect(),
            ..BringUp::default()
        };
        let [first, second] = [&pairs[0], &pairs[1]];
        let all = || vec![plan(first, false), plan(first, true), plan(second, true)];
        let left = |done: &[BringUp]| -> Vec<(usize, bool)> {
            without(done, all()).iter().map(|p| (p.cases.len(), p.together)).collect()
        };
        assert_eq!(left(&[]), [(2, false), (2, true), (2, true)]);
        assert_eq!(left(&[done(&first[..1], false)]), [(1, false), (2, true), (2, true)]);
        assert_eq!(left(&[done(first, true)]), [(2, false), (2, true)]);
        assert_eq!(left(&[done(first, false), done(first, true), done(second, true)]), []);
    }
}
