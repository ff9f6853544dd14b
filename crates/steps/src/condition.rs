//! Every wait has a name, and gives up only when nothing moves.

use crate::Awaited;
use std::collections::HashSet;
use std::fmt::Display;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::time::Duration;
use thiserror::Error;
use tokio::time::Instant;

/// Minutes, for every wait of this process that can be configured.
pub const NO_PROGRESS_VARIABLE: &str = "SEEDLING_NO_PROGRESS";

static CONFIGURED: OnceLock<Duration> = OnceLock::new();

/// Called once, where the configuration is read: flag, environment or ConfigMap. The first call counts.
pub fn configure_no_progress(minutes: u32) {
    let _ = CONFIGURED.set(Duration::from_secs(60 * u64::from(minutes.max(1))));
}

/// How long nothing may move, where it is this long by default.
pub fn no_progress(default: Duration) -> Duration {
    CONFIGURED.get().copied().unwrap_or(default)
}

#[derive(Clone, Debug)]
pub struct Condition {
    /// Behind "waiting for".
    pub sentence: String,
    /// Where it is to be met, if in one place.
    pub node: Option<String>,
    /// Give up when nothing new is seen for this long.
    pub no_progress: Duration,
    /// The command a person should run next when it stays unmet.
    pub hint: String,
    /// Changes are logged elsewhere.
    pub quiet: bool,
}

#[derive(Clone, Debug)]
pub enum Probe<T> {
    Met(T),
    /// What was seen instead; a text that was never seen before counts as progress.
    Unmet(String),
    /// The same, and which node keeps it from being met.
    UnmetOn {
        node: String,
        seen: String,
    },
}

/// Where whatever succeeds is what was waited for.
impl<T, E: Display> From<Result<T, E>> for Probe<T> {
    fn from(result: Result<T, E>) -> Self {
        result.map_or_else(|e| Self::Unmet(e.to_string()), Self::Met)
    }
}

#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{}{condition}: no progress for {}s{}; last seen: {last_seen}; next: {hint}", in_stage(.stage), waited.as_secs(), on_node(.node))]
pub struct Unmet {
    /// Of bootkube, where it is one of its stages that waited.
    pub stage: Option<&'static str>,
    pub condition: String,
    pub node: Option<Box<str>>,
    pub last_seen: String,
    pub waited: Duration,
    pub hint: String,
}

fn in_stage(stage: &Option<&str>) -> String {
    stage.map(|stage| format!("stage {stage}: ")).unwrap_or_default()
}

fn on_node(node: &Option<Box<str>>) -> String {
    node.as_ref().map(|node| format!(" on {node}")).unwrap_or_default()
}

impl Condition {
    /// `no_progress` is the default: see [`configure_no_progress`].
    pub fn new(awaited: &'static Awaited, no_progress: Duration, hint: impl Into<String>) -> Self {
        Self::within(awaited, self::no_progress(no_progress), hint)
    }

    /// A limit of the thing itself, which no configuration changes.
    pub fn within(awaited: &'static Awaited, limit: Duration, hint: impl Into<String>) -> Self {
        let sentence = awaited.sentence.into();
        Self { sentence, node: None, no_progress: limit, hint: hint.into(), quiet: false }
    }

    /// What the sentence has in capitals, as it is this time.
    pub fn with(self, capitals: &str, this_time: impl Display) -> Self {
        Self { sentence: self.sentence.replace(capitals, &this_time.to_string()), ..self }
    }

    pub fn quiet(self) -> Self {
        Self { quiet: true, ..self }
    }

    pub fn on(self, node: impl Into<String>) -> Self {
        Self { node: Some(node.into()), ..self }
    }
}

/// Texts after which none is new any more: whatever says something else each time has a clock or a port in it, and gets nowhere.
const MOST_NEWS: usize = 1000;

/// What was seen so far, by its hash: two errors that take turns are no progress.
#[derive(Default)]
struct News {
    seen: HashSet<u64>,
    hasher: RandomState,
}

impl News {
    fn is_new(&mut self, node: &Option<String>, seen: &str) -> bool {
        self.seen.len() < MOST_NEWS && self.seen.insert(self.hasher.hash_one((node, seen)))
    }
}

/// Asks `probe` until it is met; logs only what changed.
pub async fn wait_for<T>(
    condition: &Condition,
    poll: Duration,
    mut probe: impl AsyncFnMut() -> Probe<T>,
) -> Result<T, Unmet> {
    let mut last_seen = String::new();
    let mut last_node = condition.node.clone();
    let mut last_change = Instant::now();
    let mut news = News::default();
    loop {
        let (node, seen) = match probe().await {
            Probe::Met(value) => return Ok(value),
            Probe::Unmet(seen) => (condition.node.clone(), seen),
            Probe::UnmetOn { node, seen } => (Some(node), seen),
        };
        if seen != last_seen || node != last_node {
            match condition.quiet {
                false => tracing::info!("waiting for {}: {seen}", condition.sentence),
                true => tracing::debug!("waiting for {}: {seen}", condition.sentence),
            }
            if news.is_new(&node, &seen) {
                last_change = Instant::now();
            }
            (last_node, last_seen) = (node, seen);
        }
        let waited = last_change.elapsed();
        if waited >= condition.no_progress {
            let Condition { sentence, hint, .. } = condition.clone();
            let node = last_node.map(String::into_boxed_str);
            return Err(Unmet { stage: None, condition: sentence, node, last_seen, waited, hint });
        }
        tokio::time::sleep(poll).await;
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    static THING: Awaited = Awaited::in_test("THING");

    fn condition() -> Condition {
        Condition::new(&THING, Duration::from_secs(5), "look at it").with("THING", "the thing")
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

    #[tokio::test(start_paused = true)]
    async fn what_comes_again_or_never_ends_is_no_progress() {
        for (text, most) in [(2, 10), (usize::MAX, 1010)] {
            let (mut n, condition) = (0, condition());
            let unmet = wait_for(&condition, Duration::from_secs(1), async || {
                n += 1;
                Probe::<()>::Unmet(format!("error {}", n % text))
            });
            let limited = tokio::time::timeout(Duration::from_secs(5000), unmet).await;
            assert!(limited.unwrap().is_err() && n < most, "{n}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn names_the_stage_and_the_node_that_stands_still() {
        let mut n = 0;
        let condition = condition().on("bootstrap");
        let unmet = wait_for(&condition, Duration::from_secs(1), async || {
            n += 1;
            match n {
                1 => Probe::<()>::Unmet("nothing".into()),
                _ => Probe::UnmetOn { node: "master-2".into(), seen: "no pod".into() },
            }
        });
        let mut error = unmet.await.unwrap_err();
        error.stage = Some("cb-bootstrap");
        assert_eq!(
            error.to_string(),
            "stage cb-bootstrap: the thing: no progress for 5s on master-2; last seen: no pod; next: look at it"
        );
    }
}
