//! ClusterOperator `machine-config`.

use super::Rendered;
use super::answers::Answers;
use crate::patience::{self, Progress, enough};
use crate::runtime::{Context, Inputs, Next, Pace, Status};
use seedling_cluster::Cache;
use seedling_cluster::operator_status::{Cond, related_namespace};
use seedling_types::Inventory;
use seedling_types::names::NS_MCO;
use std::time::Instant;
use tokio::sync::watch;

const NAME: &str = "machine-config";
/// What answered before is reported as failing after this many failures: a master may restart.
const STRIKES: u32 = 5;

pub(super) async fn keep_reporting(
    context: &Context,
    version: &str,
    inventory: &Inventory,
    answers: watch::Receiver<Answers>,
    rendered: watch::Receiver<Rendered>,
) {
    let masters: Vec<_> = inventory.masters().iter().map(|m| m.name.clone()).collect();
    let related = vec![related_namespace(NS_MCO)];
    let mut status = Status::new(Cache::new(&context.client), NAME, version, related);
    let mut progress = Progress::default();
    let inputs = Inputs::default().hears("answers", &answers).hears("rendered", &rendered);
    let reporting = context.reconcile("machine-config/status", Pace::USUAL, inputs, async |_| {
        let was_available = status.was_available().await?;
        let patience = patience::read(&status.cache).await?;
        let (answers, rendered, now) = (answers.borrow().clone(), rendered.borrow().clone(), Instant::now());
        let lost = |m: &&String| progress.stalled(m, (), answers_well(&answers, m), now) >= patience;
        let lost: Vec<_> = masters.iter().filter(lost).cloned().collect();
        let (available, progressing, degraded) = decide(&masters, &lost, &answers, &rendered, was_available);
        status.report(available, progressing, degraded).await?;
        Ok(Next::Quiet)
    });
    reporting.await
}

fn answers_well(answers: &Answers, master: &str) -> bool {
    answers.get(master).is_some_and(|a| a.error.is_none())
}

/// Available, progressing, degraded. The first time every master has to answer, or enough of them and the others are lost; later one
/// is enough to join a machine.
fn decide(
    masters: &[String],
    lost: &[String],
    answers: &Answers,
    rendered: &Rendered,
    was_available: bool,
) -> (Cond, Cond, Cond) {
    let bad: Vec<_> = masters.iter().filter(|m| !answers_well(answers, m)).collect();
    let good = masters.len() - bad.len();
    let enough = match was_available {
        true => good > 0,
        false => good >= enough(masters.len()) && bad.iter().all(|m| lost.contains(m)),
    };
    let reasons: Vec<_> = bad
        .iter()
        .map(|m| {
            format!("{m}: {}", answers.get(*m).and_then(|a| a.error.as_deref()).unwrap_or("not asked yet"))
        })
        .collect();
    let waiting = format!("The machine-config server does not answer on {}", reasons.join("; "));
    let available = match (enough, rendered) {
        (true, Ok(())) if bad.is_empty() => {
            Cond::new(true, "AsExpected", "Every master hands out its config")
        }
        (true, Ok(())) => Cond::new(true, "AsExpected", format!("{good} masters hand out their config")),
        (true, Err(_)) if was_available => {
            Cond::new(true, "AsExpected", "The configs rendered last are handed out")
        }
        (_, Err(e)) => Cond::new(false, "NotRendered", e.to_string()),
        (false, _) => Cond::new(false, "ServerNotAnswering", &waiting),
    };
    let progressing = match available.status {
        true => Cond::new(false, "AsExpected", "All configs are rendered and served"),
        false => Cond::new(true, "RollingOut", available.message.clone()),
    };
    let failing = bad.iter().any(|m| answers.get(*m).is_some_and(|a| a.strikes >= STRIKES));
    let degraded = match rendered {
        Err(e) if was_available => Cond::new(true, "RenderFailed", e.to_string()),
        _ if (was_available || available.status) && failing => Cond::new(true, "ServerNotAnswering", waiting),
        _ => Cond::new(false, "AsExpected", ""),
    };
    (available, progressing, degraded)
}

#[cfg(test)]
mod tests {
    use super::super::answers::Answer;
    use super::*;
    use crate::OperatorError;
    use std::sync::Arc;

    fn case(errors: [Option<u32>; 3], rendered: Rendered, was: bool) -> (bool, bool, bool) {
        said(&[], errors, rendered, was)
    }

    fn said(lost: &[&str], errors: [Option<u32>; 3], rendered: Rendered, was: bool) -> (bool, bool, bool) {
        let masters: Vec<String> = ["m0", "m1", "m2"].map(Into::into).into();
        let answer = |strikes: Option<u32>| Answer {
            strikes: strikes.unwrap_or(0),
            error: strikes.map(|_| "refused".into()),
        };
        let answers = masters.iter().cloned().zip(errors.map(answer)).collect();
        let lost: Vec<String> = lost.iter().map(ToString::to_string).collect();
        let (a, p, d) = decide(&masters, &lost, &answers, &rendered, was);
        (a.status, p.status, d.status)
    }

    #[test]
    fn every_master_first_then_one_is_enough() {
        let (ok, bad) = (None, Some(STRIKES));
        let broken = || Err(Arc::new(OperatorError::Waits("no".into())));
        assert_eq!(case([ok, ok, ok], Ok(()), false), (true, false, false));
        assert_eq!(case([ok, ok, bad], Ok(()), false), (false, true, false));
        assert_eq!(case([ok, ok, ok], broken(), false), (false, true, false));
        assert_eq!(case([ok, ok, bad], Ok(()), true), (true, false, true));
        assert_eq!(case([ok, ok, Some(1)], Ok(()), true), (true, false, false));
        assert_eq!(case([bad, bad, bad], Ok(()), true), (false, true, true));
        assert_eq!(case([ok, ok, ok], broken(), true), (true, false, true));
        assert!(!decide(&["m".into()], &["m".into()], &Answers::new(), &Ok(()), false).0.status);
    }

    #[test]
    fn two_are_enough_when_the_third_is_lost() {
        let (ok, bad) = (None, Some(STRIKES));
        assert_eq!(said(&["m2"], [ok, ok, bad], Ok(()), false), (true, false, true));
        assert_eq!(said(&["m1"], [ok, ok, bad], Ok(()), false), (false, true, false));
        assert_eq!(said(&["m1", "m2"], [ok, bad, bad], Ok(()), false), (false, true, false));
        assert_eq!([1, 2, 3, 4, 5].map(enough), [1, 2, 2, 3, 3]);
    }
}
