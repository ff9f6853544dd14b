//! Against a bring-up of a real lab with five machines: what happened when is known.

use super::*;
use crate::inputs::Inputs;
use proptest::prelude::*;
use seedling_steps::journal::{Event, Fate, Line};

fn recorded() -> Inputs {
    serde_json::from_str(include_str!("../../tests/data/bring-up.json")).unwrap_or_else(|e| panic!("{e}"))
}

/// What had been read by then.
fn until(inputs: &Inputs, at: f64) -> Inputs {
    let mut until = inputs.clone();
    let by = |time: &str| seconds(inputs, time).is_some_and(|time| time <= at);
    until.milestones.retain(|(_, time)| *time <= at);
    until.journals.values_mut().for_each(|lines| lines.retain(|line| by(&line.time)));
    until.events.retain(|event| by(&event.time));
    until.configs.values_mut().for_each(|asked| asked.retain(|asked| by(&asked.time)));
    until.certificates.retain(|certificate| by(&certificate.issued));
    if let Some(cluster) = &mut until.cluster {
        cluster.events.retain(|event| by(&event.time));
        cluster.nodes.retain(|node| by(&node.since));
        cluster.certificates.retain(|certificate| by(&certificate.issued));
    }
    until
}

/// Only what changes or happened: the timeline and what is known of now are about the whole.
fn timed(state: BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    let timed = |key: &str| {
        ["station/", "step/", "member/", "pod/", "moment/", "certificate/"].iter().any(|p| key.starts_with(p))
    };
    state.into_iter().filter(|(key, _)| timed(key)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// A replay shows what the live page showed.
    #[test]
    fn nothing_depends_on_what_came_later(at in 0.0f64..60.0) {
        let all = recorded();
        let (then, again) = (story(&until(&all, at)), story(&all));
        prop_assert_eq!(timed(state_at(&then, f64::INFINITY)), timed(state_at(&again, at)));
    }

    /// Tracks and the journal's own fold are of one mind, wherever the journal is cut.
    #[test]
    fn steps_are_as_the_journal_folds_them(cut in 0usize..80, restart in any::<bool>()) {
        let mut inputs = recorded();
        for lines in inputs.journals.values_mut() {
            lines.truncate(cut);
            if restart && let Some(last) = lines.last().cloned() {
                lines.push(Line { who: "boot".into(), step: None, event: Event::Begin, note: None, ..last });
            }
        }
        let story = story(&inputs);
        for (node, lines) in &inputs.journals {
            for service in fold(lines).services {
                for step in &service.steps {
                    let Some(Part::Track(track)) = story.get(&format!("step/{node}/{}/{}", service.name, step.name)) else {
                        panic!("{node} {} {}", service.name, step.name)
                    };
                    let want = match step.fate {
                        Fate::Open => State::Open,
                        Fate::Done => State::Done,
                        Fate::Failed => State::Failed,
                        Fate::Skipped => State::Skipped,
                        Fate::Interrupted => State::Interrupted,
                    };
                    prop_assert_eq!(track.frames.last().map(|frame| frame.state), Some(want), "{} {}", service.name, step.name);
                }
            }
        }
    }

    /// Whatever stands in journals, with whatever clock.
    #[test]
    fn frames_are_in_the_order_of_time(said in prop::collection::vec((0usize..5, 0usize..8, 0u8..4, -9i64..99), 0..60)) {
        let mut inputs = recorded();
        let who = ["boot", "bootkube", "etcd-join", "installer/etcd-pod", "kubelet-join"];
        let steps = [None, Some("a"), Some("a/b"), Some("membership"), Some("revision-1"), Some("revision-1/files"), Some("wait-for-etcd"), Some("")];
        let line = |&(w, s, event, at): &(usize, usize, u8, i64)| Line {
            time: jiff::Timestamp::from_millisecond(inputs.started + at * 700).map(|t| t.to_string()).unwrap_or_default(),
            who: who[w].into(),
            step: steps[s].map(str::to_string),
            event: [Event::Begin, Event::End, Event::Failed, Event::Skipped][usize::from(event)],
            note: None,
            facts: BTreeMap::new(),
        };
        let lines: Vec<Line> = said.iter().map(line).collect();
        inputs.journals.values_mut().for_each(|journal| journal.clone_from(&lines));
        for part in story(&inputs).into_values() {
            let Part::Track(track) = part else { continue };
            prop_assert!(track.frames.is_sorted_by(|a, b| a.at <= b.at), "{} {:?}", track.name, track.frames);
        }
    }
}

fn members(story: &Story, at: f64) -> (usize, usize) {
    let state = |wanted: State| {
        let tracks = story.values().filter_map(|part| match part {
            Part::Track(track) if track.group == Group::Member => track.at(at),
            _ => None,
        });
        tracks.filter(|frame| frame.state == wanted).count()
    };
    (state(State::Voter), state(State::Learner))
}

#[test]
fn etcd_goes_from_one_to_four_to_three() {
    let story = story(&recorded());
    let seen: Vec<_> = [0.0, 10.0, 40.0, 60.0].iter().map(|at| members(&story, *at)).collect();
    assert_eq!(seen, [(0, 0), (1, 0), (4, 0), (3, 0)]);
    assert!(
        (0..600).any(|tenth| members(&story, f64::from(tenth) / 10.0) == (1, 3)),
        "all learners before any voter"
    );
}

#[test]
fn every_machine_reaches_the_end_of_its_path() {
    let story = story(&recorded());
    let mut seen = BTreeMap::<&str, String>::new();
    for (key, part) in &story {
        let Part::Track(track) = part else { continue };
        if track.group == Group::Station {
            let state =
                track.at(60.0).map_or("-", |frame| if frame.state == State::Gone { "gone" } else { "done" });
            assert!(
                track.at(60.0).is_some_and(|f| matches!(f.state, State::Done | State::Gone)),
                "{key} {:?}",
                track.frames
            );
            *seen.entry(&track.node).or_default() += &format!("{} {state}, ", track.name);
        }
    }
    let all = "address done, api done, config done, etcd done, ignition done, kubelet done, power done, ready done, software done, ";
    assert_eq!(seen["master-1"], all);
    assert_eq!(seen["worker-0"], all.replace("api done, ", "").replace("etcd done, ", ""));
    assert_eq!(
        seen["bootstrap"],
        "address done, api gone, etcd done, ignition done, power gone, ready done, software done, "
    );
}

/// The bootstrap machine lets a worker in and has nothing for it; a master has.
#[test]
fn a_worker_waits_for_its_config_until_a_master_serves_it() {
    let story = story(&recorded());
    let Some(Part::Track(config)) = story.get("station/worker-0/config") else { panic!("no such station") };
    let state = |at: f64| config.at(at).map(|frame| frame.state);
    assert_eq!(
        (state(20.0), state(40.0), state(50.0)),
        (Some(State::Open), Some(State::Open), Some(State::Done))
    );
}

#[test]
fn revisions_come_from_the_installers_and_go_with_bootstrap() {
    let story = story(&recorded());
    let pod = |node: &str, name: &str, at: f64| match story.get(&format!("pod/{node}/{name}")) {
        Some(Part::Track(track)) => track.at(at).map(|frame| (frame.state, frame.revision)),
        _ => None,
    };
    assert_eq!(pod("master-0", "etcd", 10.0), None);
    assert_eq!(pod("master-0", "etcd", 60.0), Some((State::Done, Some(1))));
    assert_eq!(pod("bootstrap", "kube-apiserver", 20.0), Some((State::Done, None)));
    assert_eq!(pod("bootstrap", "kube-apiserver", 60.0), Some((State::Gone, None)));
}

#[test]
fn a_lab_that_has_not_begun_has_a_story() {
    let recorded = recorded();
    let empty = Inputs { inventory: recorded.inventory, lab: "x".into(), ..Inputs::default() };
    let story = story(&empty);
    assert_eq!(story.values().filter(|part| matches!(part, Part::Machine { .. })).count(), 5);
    assert!(timed(state_at(&story, f64::INFINITY)).is_empty());
}
