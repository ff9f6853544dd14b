//! Which trouble, where and when: the list of cases, and how they share bring-ups. Pure.

use super::links::{HELPER, MASTERS, is_of_links, peers};
use super::{Dice, Step, When};
use seedling_types::Inventory;
use serde::{Deserialize, Serialize};
use std::fmt;

/// An enum whose members have words, in reports and in the ids of cases.
macro_rules! words {
    ($name:ident { $($(#[$doc:meta])* $member:ident = $word:literal,)+ }) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $name { $($(#[$doc])* #[serde(rename = $word)] $member,)+ }

        impl $name {
            pub const ALL: &[Self] = &[$(Self::$member),+];

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$member => $word),+ }
            }
        }
    };
}

words! { Victim {
    Bootkube = "bootkube",
    Kubelet = "kubelet",
    Etcd = "etcd",
    Apiserver = "apiserver",
    Operator = "operator",
    Node = "node",
    /// What machines boot from, and reach the API through.
    Helper = "helper",
    /// All machines and the helper.
    Everything = "everything",
} }

/// As the place of a case that strikes everything.
pub const EVERYTHING: &str = "everything";

words! { Fault {
    Kill = "kill",
    Freeze = "freeze",
    CutNetwork = "cut-network",
    FillDisk = "fill-disk",
    SlowDisk = "slow-disk",
    /// Between a machine and another, or the helper: nothing gets through.
    CutLink = "cut-link",
    /// A machine sends, and gets nothing.
    Deaf = "deaf",
    /// A machine gets everything, and nothing that it sends arrives.
    Mute = "mute",
    /// A share of what is sent is lost, both ways.
    Lossy = "lossy",
    /// No room for images and containers.
    FillContainerd = "fill-containerd",
    /// No room for what pods say.
    FillLogs = "fill-logs",
    /// etcd's disk fails every sync.
    FsyncErrors = "fsync-errors",
    /// The machine's power goes while etcd's log is being synced: half of what was to be synced is there.
    TornWal = "torn-wal",
} }

impl Victim {
    /// Where it is, if there is only one of it, and on no machine.
    fn place(self) -> Option<&'static str> {
        match self {
            Victim::Helper => Some(HELPER),
            Victim::Everything => Some(EVERYTHING),
            _ => None,
        }
    }

    fn is_whole_machines(self) -> bool {
        matches!(self, Victim::Node | Victim::Everything)
    }

    /// The first and the last step at which it is there to be struck, on the bootstrap node and on a master.
    fn lives(self, bootstrap: bool) -> Option<(&'static str, &'static str)> {
        match (self, bootstrap) {
            // Its last stage is over in a moment, and it with it.
            (Victim::Bootkube, true) => Some(("openshift-manifests", "check-api-url")),
            (Victim::Kubelet, true) => Some(("openshift-manifests", "bootstrap-complete")),
            (Victim::Etcd, true) => Some(("wait-for-etcd", "wait-for-ceo")),
            (Victim::Apiserver, true) => Some(("api-answers", "etcd-carried")),
            (Victim::Node, true) => Some(("machines-on", "bootstrap-complete")),
            (Victim::Kubelet, false) => Some(("ignition-applied", "member-removed")),
            (Victim::Etcd, false) => Some(("etcd-manifest", "member-removed")),
            (Victim::Apiserver, false) => Some(("kube-apiserver-manifest", "member-removed")),
            (Victim::Operator, false) => Some(("masters-joined", "member-removed")),
            (Victim::Node, false) => Some(("machines-on", "member-removed")),
            (Victim::Helper, true) => Some(("machines-on", "member-removed")),
            // Later bootstrap is switched off for good, maybe in the same moment.
            (Victim::Everything, true) => Some(("machines-on", "etcd-carried")),
            (Victim::Bootkube | Victim::Helper | Victim::Everything, false) | (Victim::Operator, true) => {
                None
            }
        }
    }
}

/// Of bootkube's stages those at which a machine can be struck: a machine takes a tenth of a second to be switched off, and in
/// that time a dozen of the others, which only write files, come and go. Between two of them it would be the same case.
#[rustfmt::skip]
const LONG_STAGES: [&str; 6] = [
    "openshift-manifests", "mco-bootstrap", "wait-for-etcd", "cb-bootstrap", "wait-for-ceo", "check-api-int-url",
];

fn can_be_aimed_at(victim: Victim, step: &Step) -> bool {
    match &step.when {
        When::Stage(stage) if victim.is_whole_machines() => LONG_STAGES.contains(&stage.as_str()),
        _ => true,
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    pub victim: Victim,
    pub fault: Fault,
    /// The machine; or the helper, or everything.
    pub on: String,
    /// The other end of a link: a machine, the helper, or all (other) masters. Without it, everybody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// The step's id.
    pub step: String,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let peer = self.peer.as_ref().map(|peer| format!("+{peer}")).unwrap_or_default();
        write!(f, "{}.{}.{}{peer}@{}", self.fault.as_str(), self.victim.as_str(), self.on, self.step)
    }
}

impl Case {
    /// It strikes a machine, or its disk, for a while: the next one on that machine comes when it is over.
    pub fn is_of_a_whole_machine(&self) -> bool {
        let of_disks = matches!(self.fault, Fault::FillDisk | Fault::FsyncErrors | Fault::TornWal);
        self.victim.is_whole_machines() || of_disks
    }

    /// From its id.
    pub fn parse(id: &str, steps: &[Step], inventory: &Inventory) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{id:?} is no case: they look like kill.etcd.master-0@etcd-carried, kill.helper.helper@api-answers, \
                 cut-link.node.bootstrap+masters@etcd-carried"
            )
        };
        let (what, step) = id.split_once('@').ok_or_else(wrong)?;
        let [fault, victim, on] = what.split('.').collect::<Vec<_>>().try_into().map_err(|_| wrong())?;
        let fault = *Fault::ALL.iter().find(|f| f.as_str() == fault).ok_or_else(wrong)?;
        let victim = *Victim::ALL.iter().find(|v| v.as_str() == victim).ok_or_else(wrong)?;
        let (on, peer) = on.split_once('+').map_or((on, None), |(on, peer)| (on, Some(peer)));
        let there = match victim.place() {
            Some(place) => place == on,
            None => inventory.by_name(on).is_some(),
        };
        if !there {
            return Err(format!("there is no {} on {on:?}", victim.as_str()));
        }
        match (is_of_links(fault), peer) {
            (true, _) => drop(peers(peer, on, inventory, crate::HELPER)?),
            (false, Some(_)) => return Err(format!("{} strikes no link", fault.as_str())),
            (false, None) => {}
        }
        let step = steps.iter().find(|s| s.id == step).ok_or_else(|| format!("there is no step {step:?}"))?;
        match super::refusal(victim, fault) {
            Some(why) => Err(why.into()),
            None => Ok(Self {
                victim,
                fault,
                on: on.into(),
                peer: peer.map(str::to_string),
                step: step.id.clone(),
            }),
        }
    }
}

/// What the user asked for.
#[derive(Clone, Debug)]
pub struct Selection {
    pub victims: Vec<Victim>,
    pub fault: Fault,
    /// Else bootstrap, and a master that the seed chooses.
    pub on: Option<String>,
    /// The other end of a link. Else, for a link that is cut, one that the seed chooses; for the other faults of links, everybody.
    pub peer: Option<String>,
    /// Else one step, that the seed chooses, for each victim and machine.
    pub every_step: bool,
    pub seed: u64,
    /// At most so many, chosen by the seed.
    pub at_most: Option<usize>,
}

/// In the order of the steps.
pub fn cases(selection: &Selection, steps: &[Step], bootstrap: &str, masters: &[String]) -> Vec<Case> {
    let mut dice = Dice::new(selection.seed);
    let mut chosen: Vec<(usize, Case)> = Vec::new();
    for victim in &selection.victims {
        for is_bootstrap in [true, false] {
            let Some((first, last)) = victim.lives(is_bootstrap) else { continue };
            let at = |id: &str| steps.iter().position(|s| s.id == id);
            let (Some(first), Some(last)) = (at(first), at(last)) else { continue };
            let mut alive: Vec<usize> =
                (first..=last).filter(|step| can_be_aimed_at(*victim, &steps[*step])).collect();
            if !selection.every_step {
                alive = vec![alive[dice.roll(alive.len())]];
            }
            for step in alive {
                let machine = if is_bootstrap { bootstrap } else { &masters[dice.roll(masters.len())] };
                let on = match (&selection.on, victim.place()) {
                    (Some(on), Some(place)) if on != place => continue,
                    (_, Some(place)) => place.to_string(),
                    (Some(on), None) if (on == bootstrap) != is_bootstrap => continue,
                    (Some(on), None) => on.clone(),
                    (None, None) => machine.to_string(),
                };
                let peer = match (&selection.peer, selection.fault) {
                    (None, Fault::CutLink) => Some(other_end(&on, bootstrap, masters, &mut dice)),
                    (peer, fault) => peer.clone().filter(|_| is_of_links(fault)),
                };
                let step_id = steps[step].id.clone();
                chosen
                    .push((step, Case { victim: *victim, fault: selection.fault, on, peer, step: step_id }));
            }
        }
    }
    while chosen.len() > selection.at_most.unwrap_or(usize::MAX) {
        chosen.remove(dice.roll(chosen.len()));
    }
    chosen.sort_by_key(|(step, _)| *step);
    chosen.into_iter().map(|(_, case)| case).collect()
}

fn other_end(on: &str, bootstrap: &str, masters: &[String], dice: &mut Dice) -> String {
    let machines = masters.iter().map(String::as_str).chain([bootstrap]).filter(|name| *name != on);
    let ends: Vec<_> = [HELPER, MASTERS].into_iter().chain(machines).collect();
    ends[dice.roll(ends.len())].to_string()
}

/// Strikes on one process in one bring-up: each costs its restart, and a bring-up must still end.
const OF_ONE_VICTIM: usize = 8;
const IN_ONE_ROUND: usize = 16;

/// Strikes that last, in one bring-up.
const LASTING_IN_ONE_ROUND: usize = 6;
/// Steps between two of them.
const APART: usize = 3;

/// These come and go within a second, which a process needs to be there again: a second strike on it would miss.
#[rustfmt::skip]
const LAST_SECOND: [&str; 7] = [
    "cvo-overrides", "stop-machine-config-server", "wait-for-ceo", "check-api-url", "check-api-int-url",
    "bootstrap-complete", "member-removed",
];

/// Cases of one fault that share a bring-up: one a step. What strikes a whole machine, or its disk, takes a while: such cases share only
/// with others like them, some steps on. Where those follow fast two of them meet, which must do no harm.
pub fn rounds(cases: &[Case], steps: &[Step]) -> Vec<Vec<Case>> {
    let mut rounds: Vec<Vec<Case>> = Vec::new();
    let at = |case: &Case| position(case, steps);
    let lasting = Case::is_of_a_whole_machine;
    let last = |c: &Case| LAST_SECOND.contains(&c.step.as_str());
    for case in cases {
        let fits = |round: &&mut Vec<Case>| {
            let alike = round.iter().all(|c| lasting(c) == lasting(case) && c.step != case.step);
            let same = || round.iter().filter(|c| (c.victim, &c.on) == (case.victim, &case.on));
            let room = match lasting(case) {
                true => {
                    round.len() < LASTING_IN_ONE_ROUND
                        && round.iter().all(|c| at(c).abs_diff(at(case)) >= APART)
                }
                false => round.len() < IN_ONE_ROUND && same().count() < OF_ONE_VICTIM,
            };
            alike && room && !(last(case) && same().any(last))
        };
        match rounds.iter_mut().find(fits) {
            Some(round) => round.push(case.clone()),
            None => rounds.push(vec![case.clone()]),
        }
    }
    rounds
}

/// Among the steps that last long enough for a machine to be struck.
fn position(case: &Case, steps: &[Step]) -> usize {
    let until = steps.iter().take_while(|step| step.id != case.step);
    until.filter(|step| can_be_aimed_at(Victim::Node, step)).count()
}

#[cfg(test)]
#[path = "cases_tests.rs"]
mod tests;
