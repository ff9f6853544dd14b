//! Clients that write to the same objects: they create, replace what they last saw (compare and swap by resourceVersion), delete and
//! read, and write down every operation with its times and its answer, for [`crate::history`] to judge.

use super::clients::{Shared, every, next};
use super::{COUNT_WITHIN, PATIENCE, ProbeError};
use crate::chaos::Dice;
use crate::conditions;
use crate::history::{Action, Answer, Operation, Value};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, PostParams};
use kube::{Client, ResourceExt};
use seedling_steps::{Condition, Probe, wait_for};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::time::timeout;

/// Of their own: what is deleted here is no lost write of the others.
pub(super) const NAMESPACE: &str = "seedling-probe-rivals";
pub(super) const RIVALS: u32 = 4;
/// Objects in all, and how many of them are used at a time; these change, so that in the end there are many, and the
/// history of each is short.
const OBJECTS: usize = 256;
const AT_A_TIME: usize = 4;
const CHANGE_EVERY: Duration = Duration::from_millis(500);
/// One operation in so many is on any object that was used before: what was agreed on long ago must still be there.
const ANY_IN: usize = 5;
/// After an operation without an answer: an outage is to leave few of which nobody knows whether they happened.
const AFTER_UNKNOWN: Duration = Duration::from_millis(500);
const VALUE: &str = "value";

/// Times and values of all of them.
pub(super) struct Course {
    began: Instant,
    values: AtomicU32,
}

impl Course {
    pub(super) fn begin() -> Self {
        Self { began: Instant::now(), values: AtomicU32::new(1) }
    }

    fn micros(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

/// What one of them last saw of an object: its value, and the version to replace.
type Seen = BTreeMap<u32, (Value, String)>;

pub(super) async fn rival(client: Client, worker: u32, shared: Arc<Shared>, mut stop: watch::Receiver<bool>) {
    let maps: Api<ConfigMap> = Api::namespaced(client, NAMESPACE);
    let course = &shared.course;
    let mut dice = Dice::new(u64::from(worker));
    let mut seen = Seen::new();
    let mut tick = every(Duration::from_secs(1) * RIVALS / shared.rate.max(1));
    while next(&mut tick, &mut stop).await {
        let key = object(course.began.elapsed(), &mut dice);
        let value = course.values.fetch_add(1, Ordering::Relaxed);
        let action = action(seen.get(&key).map(|(value, _)| *value), value, &mut dice);
        let version = seen.get(&key).map(|(_, version)| version.clone());
        let sent = course.micros();
        let (answer, found) = ask(&maps, key, action, version).await;
        let operation = Operation { key, worker, sent, answered: course.micros(), action, answer };
        shared.operated(operation);
        match (found, answer) {
            (Some(found), _) => drop(seen.insert(key, found)),
            // It tries once more to replace what it knows: if that was done after all, it must be refused.
            (None, Answer::Unknown) => tick.reset_after(AFTER_UNKNOWN),
            (None, _) => drop(seen.remove(&key)),
        }
    }
}

/// Every object once more at the end, until there is an answer.
pub(super) async fn last_look(client: Client, shared: &Shared) -> Result<(), ProbeError> {
    let maps: Api<ConfigMap> = Api::namespaced(client, NAMESPACE);
    for key in shared.operated_on() {
        let condition = Condition::within(&conditions::PROBER_READ, COUNT_WITHIN, "seedling lab status");
        let read = wait_for(&condition, Duration::from_millis(500), async || {
            let sent = shared.course.micros();
            let (answer, _) = ask(&maps, key, Action::Read, None).await;
            let answered = shared.course.micros();
            match answer {
                Answer::Unknown => Probe::Unmet("no answer".into()),
                _ => Probe::Met(Operation {
                    key,
                    worker: RIVALS,
                    sent,
                    answered,
                    action: Action::Read,
                    answer,
                }),
            }
        });
        shared.operated(read.await?);
    }
    Ok(())
}

fn object(elapsed: Duration, dice: &mut Dice) -> u32 {
    let turn = usize::try_from(elapsed.as_millis() / CHANGE_EVERY.as_millis()).unwrap_or_default();
    let object = match dice.roll(ANY_IN) {
        0 => dice.roll((turn + AT_A_TIME).min(OBJECTS)),
        _ => (turn + dice.roll(AT_A_TIME)) % OBJECTS,
    };
    u32::try_from(object).unwrap_or_default()
}

/// Mostly what should succeed, by what was last seen; sometimes what should be refused.
fn action(seen: Option<Value>, new: Value, dice: &mut Dice) -> Action {
    match (dice.roll(10), seen) {
        (0..=1, _) => Action::Read,
        (2..=7, Some(from)) => Action::Update { from, to: new },
        (8, _) => Action::Delete,
        (9, _) => Action::Create(new),
        (n, None) if n % 2 == 0 => Action::Read,
        (_, None) => Action::Create(new),
        (_, Some(_)) => Action::Read,
    }
}

/// The answer, and what the object is by it.
async fn ask(
    maps: &Api<ConfigMap>,
    key: u32,
    action: Action,
    version: Option<String>,
) -> (Answer, Option<(Value, String)>) {
    let name = format!("r-{key}");
    let with = |value: Value, version: Option<String>| {
        let mut map = ConfigMap::default();
        (map.metadata.name, map.metadata.resource_version) = (Some(name.clone()), version);
        map.data = Some([(VALUE.to_string(), value.to_string())].into());
        map
    };
    let params = PostParams::default();
    let asked = async {
        match action {
            Action::Create(value) => maps.create(&params, &with(value, None)).await.map(Some),
            Action::Update { to, .. } => maps.replace(&name, &params, &with(to, version)).await.map(Some),
            Action::Delete => maps.delete(&name, &DeleteParams::default()).await.map(|_| None),
            Action::Read => maps.get(&name).await.map(Some),
        }
    };
    match timeout(PATIENCE, asked).await {
        Ok(Ok(map)) => {
            let found = map.map(|map| (value_of(&map), map.resource_version().unwrap_or_default()));
            match (action, &found) {
                (Action::Read, Some((value, _))) => (Answer::Found(*value), found),
                _ => (Answer::Done, found),
            }
        }
        Ok(Err(kube::Error::Api(status))) => (refused(action, &status.reason), None),
        Ok(Err(_)) | Err(_) => (Answer::Unknown, None),
    }
}

/// Nobody writes 0.
fn value_of(map: &ConfigMap) -> Value {
    map.data.as_ref().and_then(|data| data.get(VALUE)?.parse().ok()).unwrap_or_default()
}

/// Only these say that nothing was done; by the word, since anything on the way may answer 404.
fn refused(action: Action, reason: &str) -> Answer {
    match (action, reason) {
        (Action::Create(_), "AlreadyExists") | (Action::Update { .. }, "Conflict") => Answer::Conflict,
        (Action::Update { .. } | Action::Delete | Action::Read, "NotFound") => Answer::Missing,
        _ => Answer::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn only_a_clear_refusal_is_one() {
        let update = Action::Update { from: 1, to: 2 };
        for (action, reason, want) in [
            (Action::Create(1), "AlreadyExists", Answer::Conflict),
            (Action::Create(1), "NotFound", Answer::Unknown),
            (Action::Create(1), "Conflict", Answer::Unknown),
            (update, "Conflict", Answer::Conflict),
            (update, "NotFound", Answer::Missing),
            (update, "Timeout", Answer::Unknown),
            (update, "TooManyRequests", Answer::Unknown),
            (Action::Delete, "NotFound", Answer::Missing),
            (Action::Delete, "Conflict", Answer::Unknown),
            (Action::Read, "NotFound", Answer::Missing),
            (Action::Read, "Failed to parse error data", Answer::Unknown),
            (Action::Read, "ServiceUnavailable", Answer::Unknown),
        ] {
            assert_eq!(refused(action, reason), want, "{action:?} {reason}");
        }
    }

    #[test]
    fn rivals_meet_on_few_objects_and_come_back_to_old_ones() {
        let mut dice = Dice::new(1);
        let mut at = |seconds| -> BTreeSet<u32> {
            (0..500).map(|_| object(Duration::from_secs(seconds), &mut dice)).collect()
        };
        assert_eq!(at(0), (0..4).collect());
        let later = at(20);
        assert!((40..44).all(|object| later.contains(&object)));
        assert!(later.iter().all(|object| *object < 44) && later.len() > 20, "{later:?}");
        assert!(at(3600).iter().all(|object| *object < 256));
    }

    #[test]
    fn every_action_is_tried_with_and_without_knowledge() {
        let mut dice = Dice::new(1);
        let mut kinds = |seen| -> BTreeSet<&str> {
            (0..200)
                .map(|_| match action(seen, 9, &mut dice) {
                    Action::Create(9) => "create",
                    Action::Update { from: 5, to: 9 } => "update",
                    Action::Delete => "delete",
                    Action::Read => "read",
                    _ => "wrong",
                })
                .collect()
        };
        assert_eq!(kinds(Some(5)), BTreeSet::from(["create", "delete", "read", "update"]));
        assert_eq!(kinds(None), BTreeSet::from(["create", "delete", "read"]));
    }
}
