//! `/readyz/<pool>` is for anybody, and each look costs five questions to the API: one look a second is enough for all who ask.

use axum::http::StatusCode;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

const FRESH: Duration = Duration::from_secs(1);
/// Those every cluster has: requests for other names do not keep the operator from asking for these.
pub(crate) const POOLS: [&str; 3] = ["master", "worker", "arbiter"];

#[derive(Default)]
pub(crate) struct Readiness {
    known: [Mutex<Option<Seen>>; POOLS.len()],
    others: Mutex<Option<Seen>>,
}

struct Seen {
    pool: String,
    at: Instant,
    status: StatusCode,
}

#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Known(StatusCode),
    Look,
    TooMany,
}

fn answer(last: Option<&Seen>, pool: &str, now: Instant) -> Answer {
    match last {
        Some(seen) if now.duration_since(seen.at) >= FRESH => Answer::Look,
        Some(seen) if seen.pool == pool => Answer::Known(seen.status),
        Some(_) => Answer::TooMany,
        None => Answer::Look,
    }
}

impl Readiness {
    /// Who comes while somebody looks waits for what is seen.
    pub(crate) async fn of(&self, pool: &str, look: impl AsyncFnOnce() -> StatusCode) -> StatusCode {
        let place = POOLS.iter().position(|known| *known == pool).map_or(&self.others, |i| &self.known[i]);
        let mut last = place.lock().await;
        match answer(last.as_ref(), pool, Instant::now()) {
            Answer::Known(status) => status,
            Answer::TooMany => StatusCode::TOO_MANY_REQUESTS,
            Answer::Look => {
                let status = look().await;
                *last = Some(Seen { pool: pool.into(), at: Instant::now(), status });
                status
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[tokio::test(start_paused = true)]
    async fn a_flood_costs_one_look_a_second() {
        let (ready, looks) = (Readiness::default(), AtomicU32::new(0));
        let ask = async |pool: &str| {
            let look = async || {
                looks.fetch_add(1, Ordering::Relaxed);
                StatusCode::OK
            };
            ready.of(pool, look).await.as_u16()
        };
        let mut answers = Vec::new();
        for _ in 0..1000 {
            answers.push(ask("master").await);
        }
        assert!(answers.iter().all(|status| *status == 200));
        assert_eq!(looks.load(Ordering::Relaxed), 1);
        assert_eq!(ask("one").await, 200);
        assert_eq!(ask("two").await, 429, "names that nobody has are no way around");
        assert_eq!((ask("one").await, ask("worker").await), (200, 200));
        assert_eq!(looks.load(Ordering::Relaxed), 3);
        tokio::time::advance(FRESH).await;
        assert_eq!((ask("two").await, ask("master").await), (200, 200));
        assert_eq!(looks.load(Ordering::Relaxed), 5);
    }
}
