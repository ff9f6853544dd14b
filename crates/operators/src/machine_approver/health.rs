//! ClusterOperator `machine-approver`: what the approver can know of itself.

use crate::runtime::{Context, Inputs, Next, Pace, Status};
use seedling_cluster::Cache;
use seedling_cluster::operator_status::{Cond, related_namespace};
use seedling_types::names::NS_APPROVER;
use tokio::sync::watch;

/// One failed write is tried again and forgotten; an API server that leaves costs one or two.
const STRIKES: u32 = 5;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Health {
    /// Requests, Nodes and tokens have been listed once.
    pub synced: bool,
    /// Why nothing is heard of them at the moment.
    pub deaf: Option<String>,
    /// Why it is not known which keys were given a certificate.
    pub no_tokens: Option<String>,
    /// Rounds in a row in which something could not be written, and what was said last.
    pub failed_writes: u32,
    pub error: Option<String>,
}

/// Available, progressing, degraded.
pub(super) fn conditions(health: &Health) -> (Cond, Cond, Cond) {
    let error = health.error.as_deref().unwrap_or_default();
    let available = match (&health.deaf, &health.no_tokens) {
        (Some(error), _) => Cond::new(false, "NotWatching", format!("Watching fails: {error}")),
        _ if !health.synced => {
            Cond::new(false, "NotWatching", "Certificate signing requests are not watched yet")
        }
        (_, Some(why)) => Cond::new(false, "NoTokens", why),
        _ => Cond::new(true, "AsExpected", "Certificate signing requests are watched"),
    };
    let degraded = match &health.deaf {
        Some(_) => Cond::new(true, "WatchFailing", &available.message),
        None if health.failed_writes >= STRIKES => {
            Cond::new(true, "WriteFailing", format!("Again and again: {error}"))
        }
        None => Cond::new(false, "AsExpected", ""),
    };
    let starting = !available.status && !degraded.status;
    let progressing = match starting {
        true => Cond::new(true, "Starting", &available.message),
        false => Cond::new(false, "AsExpected", ""),
    };
    (available, progressing, degraded)
}

pub(super) async fn keep_reporting(context: &Context, version: &str, health: watch::Receiver<Health>) {
    let related = vec![related_namespace(NS_APPROVER)];
    let mut status = Status::new(Cache::new(&context.client), "machine-approver", version, related);
    let inputs = Inputs::default().hears("health", &health);
    let reporting = context.reconcile("machine-approver/status", Pace::USUAL, inputs, async |_| {
        let (available, progressing, degraded) = conditions(&health.borrow());
        status.report(available, progressing, degraded).await?;
        Ok(Next::Quiet)
    });
    reporting.await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_says_follows_from_what_it_sees() {
        let well = || Health { synced: true, ..Health::default() };
        let failing = |failed_writes| Health { failed_writes, error: Some("forbidden".into()), ..well() };
        let deaf = |health| Health { deaf: Some("forbidden".into()), ..health };
        for (health, want) in [
            (well(), (true, false, false)),
            (Health::default(), (false, true, false)),
            (Health { no_tokens: Some("there is no Secret".into()), ..well() }, (false, true, false)),
            (failing(STRIKES - 1), (true, false, false)),
            (failing(STRIKES), (true, false, true)),
            (deaf(well()), (false, false, true)),
            (deaf(Health::default()), (false, false, true)),
        ] {
            let (available, progressing, degraded) = conditions(&health);
            assert_eq!((available.status, progressing.status, degraded.status), want, "{health:?}");
        }
        assert!(conditions(&failing(STRIKES)).2.message.contains("forbidden"));
    }
}
