use super::*;
use crate::chaos::steps;
use std::collections::BTreeSet;

const STAGES: [&str; 7] = [
    "openshift-manifests",
    "etcd-bootstrap",
    "wait-for-etcd",
    "cb-bootstrap",
    "wait-for-ceo",
    "check-api-url",
    "check-api-int-url",
];

fn selection(victims: &[Victim], every_step: bool) -> Selection {
    Selection {
        victims: victims.into(),
        fault: Fault::Kill,
        on: None,
        peer: None,
        every_step,
        seed: 7,
        at_most: None,
    }
}

fn list(selection: &Selection) -> Vec<Case> {
    let masters = ["master-0", "master-1", "master-2"].map(String::from);
    cases(selection, &steps(STAGES), "bootstrap", &masters)
}

#[test]
fn every_step_of_a_victims_life_is_a_case() {
    let of = |victim| list(&selection(&[victim], true));
    let bootkube = of(Victim::Bootkube);
    assert_eq!(bootkube.len(), 13, "all stages but the last, and the seven steps of the longest");
    assert!(bootkube.iter().all(|c| c.on == "bootstrap"));
    assert_eq!(bootkube[0].to_string(), "kill.bootkube.bootstrap@openshift-manifests");
    assert!(of(Victim::Operator).iter().all(|c| c.on.starts_with("master-")));
    let node = of(Victim::Node);
    assert!(node.iter().all(|c| c.step != "etcd-bootstrap"), "gone before a machine is off");
    assert!(node.iter().any(|c| c.step == "machines-on") && node.iter().any(|c| c.step == "wait-for-etcd"));
    let etcd = of(Victim::Etcd);
    assert!(etcd.iter().any(|c| c.on == "bootstrap") && etcd.iter().any(|c| c.on != "bootstrap"));
    assert!(!etcd.iter().any(|c| c.step == "machines-on" || c.step == "etcd-bootstrap"));
}

#[test]
fn a_seed_means_the_same_cases_again() {
    let all = selection(Victim::ALL, true);
    assert_eq!(list(&all), list(&all));
    assert_ne!(list(&all), list(&Selection { seed: 8, ..all.clone() }));
    assert_eq!(list(&Selection { at_most: Some(5), ..all.clone() }).len(), 5);
    let one = list(&selection(Victim::ALL, false));
    assert_eq!(one.len(), 12, "a step for each of twelve victims");
    let ids: BTreeSet<_> = list(&all).iter().map(ToString::to_string).collect();
    assert_eq!(ids.len(), list(&all).len());
}

#[test]
fn an_id_names_its_case() {
    let inventory = crate::default_inventory(3);
    for case in list(&selection(Victim::ALL, true)) {
        assert_eq!(Case::parse(&case.to_string(), &steps(STAGES), &inventory), Ok(case));
    }
    for id in ["", "kill.etcd@cb-bootstrap", "kill.etcd.master-9@cb-bootstrap", "kill.etcd.master-0@x"] {
        assert!(Case::parse(id, &steps(STAGES), &inventory).is_err(), "{id}");
    }
    for (id, good) in [
        ("fill-disk.etcd.master-0@cb-bootstrap", true),
        ("fill-disk.kubelet.master-0@cb-bootstrap", false),
        ("fill-containerd.node.master-0@cb-bootstrap", true),
        ("fill-containerd.etcd.master-0@cb-bootstrap", false),
        ("fill-logs.node.bootstrap@cb-bootstrap", true),
        ("fill-logs.kubelet.bootstrap@cb-bootstrap", false),
        ("fsync-errors.etcd.master-0@cb-bootstrap", true),
        ("fsync-errors.node.master-0@cb-bootstrap", false),
        ("fsync-errors.helper.helper@cb-bootstrap", false),
        ("torn-wal.etcd.bootstrap@cb-bootstrap", true),
        ("torn-wal.kubelet.bootstrap@cb-bootstrap", false),
        ("torn-wal.everything.everything@cb-bootstrap", false),
        ("torn-wal.etcd.master-0+helper@cb-bootstrap", false),
        ("slow-disk.node.master-0@cb-bootstrap", true),
        ("slow-disk.etcd.master-0@cb-bootstrap", false),
        ("cut-network.etcd.master-0@cb-bootstrap", false),
        ("kill.helper.helper@cb-bootstrap", true),
        ("freeze.helper.helper@cb-bootstrap", true),
        ("kill.helper.master-0@cb-bootstrap", false),
        ("cut-network.helper.helper@cb-bootstrap", false),
        ("kill.everything.everything@cb-bootstrap", true),
        ("freeze.everything.everything@cb-bootstrap", false),
        ("kill.everything.master-0@cb-bootstrap", false),
        ("cut-link.node.bootstrap+masters@cb-bootstrap", true),
        ("cut-link.node.master-0+helper@cb-bootstrap", true),
        ("cut-link.node.master-0+master-0@cb-bootstrap", false),
        ("cut-link.node.master-0+master-7@cb-bootstrap", false),
        ("cut-link.etcd.master-0+helper@cb-bootstrap", false),
        ("deaf.node.master-0@cb-bootstrap", true),
        ("mute.node.master-0+bootstrap@cb-bootstrap", true),
        ("lossy.node.master-0@cb-bootstrap", true),
        ("kill.node.master-0+bootstrap@cb-bootstrap", false),
    ] {
        assert_eq!(Case::parse(id, &steps(STAGES), &inventory).is_ok(), good, "{id}");
    }
}

#[test]
fn a_machine_can_be_chosen() {
    let on = Selection { on: Some("master-2".into()), ..selection(Victim::ALL, true) };
    assert!(!list(&on).is_empty() && list(&on).iter().all(|c| c.on == "master-2"));
}

#[test]
fn a_cut_link_has_another_end_and_the_same_for_a_seed() {
    let cut = Selection { fault: Fault::CutLink, ..selection(&[Victim::Node], true) };
    let ends: BTreeSet<_> = list(&cut).into_iter().map(|c| c.peer.unwrap_or_default()).collect();
    assert!(ends.contains(HELPER) && ends.contains(MASTERS) && ends.len() > 3, "{ends:?}");
    assert!(list(&cut).iter().all(|c| c.peer.as_deref() != Some(&c.on)));
    assert_eq!(list(&cut), list(&cut));
    for case in list(&cut) {
        let inventory = crate::default_inventory(3);
        assert_eq!(Case::parse(&case.to_string(), &steps(STAGES), &inventory), Ok(case));
    }
    let deaf = Selection { fault: Fault::Deaf, ..cut.clone() };
    assert!(list(&deaf).iter().all(|c| c.peer.is_none()));
    let chosen = Selection { peer: Some(MASTERS.into()), ..cut };
    assert!(list(&chosen).iter().all(|c| c.peer.as_deref() == Some(MASTERS)));
}

#[test]
fn the_helper_and_everything_are_struck_where_they_are() {
    let of = |victim| list(&selection(&[victim], true));
    assert!(of(Victim::Helper).iter().all(|c| c.on == HELPER) && of(Victim::Helper).len() > 10);
    let everything = of(Victim::Everything);
    assert!(everything.iter().all(|c| c.on == EVERYTHING && c.step != "member-removed"));
    let on = Selection { on: Some("master-0".into()), ..selection(&[Victim::Everything], true) };
    assert!(list(&on).is_empty());
}

#[test]
fn what_lasts_shares_a_bring_up_only_with_steps_that_come_later() {
    let steps = steps(STAGES);
    for fault in Fault::ALL.iter().copied() {
        let victim =
            if crate::chaos::refusal(Victim::Node, fault).is_none() { Victim::Node } else { Victim::Etcd };
        let cases = list(&Selection { fault, ..selection(&[victim], true) });
        let rounds = rounds(&cases, &steps);
        assert!(cases.len() > 5 && rounds.len() < cases.len(), "{fault:?}");
        assert_eq!(rounds.concat().len(), cases.len());
        for round in rounds {
            assert!(round.len() <= LASTING_IN_ONE_ROUND);
            assert!(
                round.windows(2).all(|two| position(&two[0], &steps) + APART <= position(&two[1], &steps)),
                "{round:?}"
            );
            let last = round.iter().filter(|c| LAST_SECOND.contains(&c.step.as_str()));
            let last: Vec<_> = last.map(|c| &c.on).collect();
            assert_eq!(BTreeSet::from_iter(&last).len(), last.len(), "one machine, one last second");
        }
    }
}

#[test]
fn process_kills_are_chained_without_machines() {
    let all = list(&selection(Victim::ALL, true));
    let rounds = rounds(&all, &steps(STAGES));
    assert_eq!(rounds.concat().len(), all.len());
    for round in rounds {
        let steps: BTreeSet<_> = round.iter().map(|c| &c.step).collect();
        assert_eq!(steps.len(), round.len(), "one a step");
        let machines = round.iter().filter(|c| c.victim.is_whole_machines()).count();
        assert!(machines == 0 || machines == round.len());
        assert!(round.len() <= IN_ONE_ROUND);
        let last = round.iter().filter(|c| LAST_SECOND.contains(&c.step.as_str()));
        let last: Vec<_> = last.map(|c| (c.victim, &c.on)).collect();
        assert_eq!(BTreeSet::from_iter(&last).len(), last.len(), "one process, one last second");
    }
}
