//! The steps of a bring-up at which trouble can strike, in the order in which they are reached, and how each is noticed.

use crate::Lab;
use seedling_steps::Phase;
use seedling_steps::journal::{Event, Line};
use std::collections::BTreeSet;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// `lab up` has said so; the milestone's first words.
    Milestone(&'static str),
    /// bootkube has begun a stage.
    Stage(String),
    /// A file is on the disk of the struck master, or of the first one.
    File(&'static str),
    /// Somebody has begun a step in the bootstrap machine's journal: who, and which.
    Begun(&'static str, &'static str),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Part of a case's id.
    pub id: String,
    pub when: When,
}

use When::{Begun, File, Milestone};

/// The longest stage of bootkube: the masters come while it waits.
const MASTERS_COME: &str = "cb-bootstrap";
/// What happens in that stage.
const MEANWHILE: &[(&str, When)] = &[
    ("api-answers", Milestone("the API to answer")),
    ("ignition-applied", File("/etc/.ignition-applied")),
    ("masters-joined", Milestone("all masters to join")),
    ("etcd-manifest", File("/etc/kubernetes/manifests/etcd-pod.yaml")),
    ("kube-apiserver-manifest", File("/etc/kubernetes/manifests/kube-apiserver-pod.yaml")),
    ("kube-controller-manager-manifest", File("/etc/kubernetes/manifests/kube-controller-manager-pod.yaml")),
    ("etcd-carried", Milestone("all masters to carry etcd")),
];
const AFTERWARDS: &[(&str, When)] = &[
    ("bootstrap-complete", Milestone("bootstrapping to complete")),
    ("member-removed", Milestone("the bootstrap etcd member to be removed")),
];

/// What is not part of every bring-up, and so never chosen: only a case that is named can strike here, as a rule beside another that
/// brings it about.
const IN_TROUBLE: &[(&str, When)] = &[
    // Of two voters the other has been lost for as long as anybody waits.
    ("going-alone", Begun("etcd-restore", "go-on-alone")),
];

/// `stages` are bootkube's, in order.
pub fn steps<'a>(stages: impl IntoIterator<Item = &'a str>) -> Vec<Step> {
    let named = |(id, when): &(&str, When)| Step { id: (*id).into(), when: when.clone() };
    let mut steps = vec![named(&("machines-on", Milestone("machines switched on")))];
    for stage in stages {
        steps.push(Step { id: stage.into(), when: When::Stage(stage.into()) });
        if stage == MASTERS_COME {
            steps.extend(MEANWHILE.iter().map(named));
        }
    }
    steps.extend(AFTERWARDS.iter().chain(IN_TROUBLE).map(named));
    steps
}

/// What a bring-up has written down so far: read once for all steps that are waited for.
pub struct Progress {
    begun: BTreeSet<String>,
    milestones: Vec<String>,
    lab: Lab,
}

impl Progress {
    pub fn of(lab: Lab) -> Self {
        let begun = lab.bootkube_record().into_iter().filter(|e| e.phase == Phase::StageStart);
        let milestones = lab.bring_up().milestones.into_iter().map(|(name, _)| name).collect();
        Self { begun: begun.filter_map(|e| e.stage).collect(), milestones, lab }
    }

    /// `on` is the machine to be struck.
    pub fn reached(&self, when: &When, on: &str) -> bool {
        match when {
            When::Milestone(words) => self.milestones.iter().any(|name| name.starts_with(words)),
            When::Stage(stage) => self.begun.contains(stage),
            When::Begun(who, step) => {
                let bootstrap = self.lab.record.spec.inventory.bootstrap();
                bootstrap.is_some_and(|b| begun(&self.lab.journal(&b.name), who, step))
            }
            When::File(path) => {
                let masters = self.lab.record.spec.inventory.masters();
                let master = masters.iter().find(|m| m.name == on).or(masters.first());
                let machine = master.and_then(|m| self.lab.machine(&m.name).ok());
                machine.is_some_and(|m| m.on_disk(path).exists())
            }
        }
    }
}

fn begun(journal: &[Line], who: &str, step: &str) -> bool {
    journal.iter().any(|l| l.who == who && l.step.as_deref() == Some(step) && l.event == Event::Begin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_in_trouble_is_seen_in_the_journal_and_comes_last() {
        let line = |who, step, event| Line::now(who, Some(step), event);
        let asked = line("etcd-restore", "accept-loss", Event::Begin);
        let other = line("bootkube", "go-on-alone", Event::Begin);
        let failed = line("etcd-restore", "go-on-alone", Event::Failed);
        let alone = line("etcd-restore", "go-on-alone", Event::Begin);
        for (journal, want) in [
            (vec![], false),
            (vec![asked.clone(), other.clone(), failed], false),
            (vec![asked, other, alone], true),
        ] {
            assert_eq!(begun(&journal, "etcd-restore", "go-on-alone"), want, "{journal:?}");
        }
        let steps = steps(["cb-bootstrap", "check-api-url"]);
        assert_eq!(steps.last().map(|s| s.id.as_str()), Some("going-alone"));
    }
}
