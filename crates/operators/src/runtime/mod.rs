//! One loop for every operator: wait until an input changes, let a burst pass, reconcile, and try again after a failure.
//!
//! In: declared `Inputs`, a `Pace`, and a function that looks at the inputs, decides (pure) and acts. Out: calls of this function, one at
//! a time, within a time limit, each in a span and counted in the `Metrics`.

mod inputs;
pub mod lead;
mod metrics;
mod pace;
mod status;
#[cfg(test)]
mod tests;

pub use inputs::{Heard, Inputs};
pub use metrics::Metrics;
pub use pace::Pace;
pub use status::Status;

use crate::{OperatorError, Result};
use kube::Client;
use seedling_cluster::{chance, lease::Fence};
use tokio::time::{Instant, sleep, timeout};
use tracing::Instrument;

/// What an operator's process gives to each of its loops.
#[derive(Clone)]
pub struct Context {
    pub client: Client,
    /// For actions that the next leader could not undo. Absent where nobody leads: on the bootstrap node and in tests.
    pub fence: Option<Fence>,
    pub metrics: Metrics,
}

impl From<Client> for Context {
    fn from(client: Client) -> Self {
        Self { client, fence: None, metrics: Metrics::default() }
    }
}

/// When to look again if no input changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Soon: something is under way that changes no input.
    Busy,
    /// Only to be sure.
    Quiet,
    /// As `Quiet`; this object is missing, and the log says so once.
    Waits(&'static str),
}

impl Context {
    /// Reconciles until dropped. `name` is the operator's, and its loop's if it has several: `machine-config/nodes`. `reconcile` is dropped
    /// at any of its awaits when its time is over; what it has written by then it has to find again.
    pub async fn reconcile(
        &self,
        name: &'static str,
        pace: Pace,
        mut inputs: Inputs,
        mut reconcile: impl AsyncFnMut(&Heard) -> Result<Next>,
    ) {
        let mut woke = "start".to_string();
        let (mut failures, mut pause, mut said) = (0, pace.busy, String::new());
        loop {
            inputs.mark_seen();
            let heard = inputs.heard(std::time::Instant::now());
            if heard.synced || inputs.unlisted {
                let begun = Instant::now();
                let span = tracing::debug_span!("reconcile", name, woke);
                let ended = timeout(pace.limit, reconcile(&heard).instrument(span)).await;
                let late = |source| OperatorError::Late { seconds: pace.limit.as_secs(), source };
                let ended = ended.map_err(late).flatten();
                let result = self.metrics.note(name, &ended, begun.elapsed(), inputs.ages());
                tracing::debug!(name, woke, result, took = ?begun.elapsed(), "reconciled");
                failures = if ended.is_err() { failures + 1 } else { 0 };
                say(name, &ended, &mut said);
                pause = pace.pause(ended.ok(), failures, chance());
            }
            woke = match inputs.changed(pause).await {
                Some(input) => {
                    // Before the first reconcile there is nothing to gain by waiting for more.
                    if heard.synced && !pace.burst.is_zero() {
                        sleep(pace.burst).await;
                    }
                    input
                }
                None if failures > 0 => "retry".into(),
                None => "time".into(),
            };
        }
    }
}

/// A failure or a missing object is logged when it differs from the last one.
fn say(name: &str, ended: &Result<Next>, said: &mut String) {
    let text = match ended {
        Ok(Next::Busy | Next::Quiet) => String::new(),
        Ok(Next::Waits(what)) => format!("waiting for {what}"),
        Err(e) => e.in_full(),
    };
    match ended {
        _ if text == *said || text.is_empty() => {}
        Ok(_) => tracing::info!("{name}: {text}"),
        Err(_) => tracing::warn!("{name}: {text}"),
    }
    *said = text;
}
