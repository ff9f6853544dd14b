//! Every wait has a name, and gives up only when nothing moves.

use std::time::Duration;
use thiserror::Error;
use tokio::time::Instant;

#[derive(Clone, Debug)]
pub struct Condition {
    pub name: String,
    /// Give up when what is seen has not changed for this long.
    pub no_progress: Duration,
    /// What a person should do next when it stays unmet.
    pub hint: String,
}

#[derive(Clone, Debug)]
pub enum Probe<T> {
    Met(T),
    /// What was seen instead; a change of this text counts as progress.
    Unmet(String),
}

#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{condition}: no progress for {}s; last seen: {last_seen}; next: {hint}", waited.as_secs())]
pub struct Unmet {
    pub condition: String,
    pub last_seen: String,
    pub waited: Duration,
    pub hint: String,
}

impl Condition {
    pub fn new(name: impl Into<String>, no_progress: Duration, hint: impl Into<String>) -> Self {
        Self { name: name.into(), no_progress, hint: hint.into() }
    }
}

/// Asks `probe` until it is met; logs only what changed.
pub async fn wait_for<T>(
    condition: &Condition,
    poll: Duration,
    mut probe: impl AsyncFnMut() -> Probe<T>,
) -> Result<T, Unmet> {
    let mut last_seen = String::new();
    let mut last_change = Instant::now();
    loop {
        match probe().await {
            Probe::Met(value) => return Ok(value),
            Probe::Unmet(seen) if seen != last_seen => {
                tracing::info!("waiting for {}: {seen}", condition.name);
                last_seen = seen;
                last_change = Instant::now();
            }
            Probe::Unmet(_) => {}
        }
        let waited = last_change.elapsed();
        if waited >= condition.no_progress {
            let Condition { name, hint, .. } = condition.clone();
            return Err(Unmet { condition: name, last_seen, waited, hint });
        }
        tokio::time::sleep(poll).await;
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn condition() -> Condition {
        Condition::new("the thing", Duration::from_secs(5), "look at it")
    }

    #[tokio::test(start_paused = true)]
    async fn waits_as_long_as_something_moves() {
        let mut n = 0;
        let poll = Duration::from_secs(4);
        let condition = condition();
        let met = wait_for(&condition, poll, async || {
            n += 1;
            if n == 10 { Probe::Met(n) } else { Probe::Unmet(n.to_string()) }
        });
        assert_eq!(met.await.unwrap(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn gives_up_when_nothing_moves_and_says_what_it_saw() {
        let condition = condition();
        let unmet =
            wait_for(&condition, Duration::from_secs(1), async || Probe::<()>::Unmet("2 of 3".into()));
        let error = unmet.await.unwrap_err();
        assert_eq!(error.to_string(), "the thing: no progress for 5s; last seen: 2 of 3; next: look at it");
    }
}
