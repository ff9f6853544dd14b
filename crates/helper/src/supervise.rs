//! Each server runs by itself: one that ends or panics is started again, alone, ever more slowly while that does not help. What
//! its connections are doing is no part of it, and goes on.

use crate::events::EventLog;
use crate::{Context, HelperError};
use seedling_types::helper::{HelperEventKind, HelperServer};
use std::pin::Pin;
use std::time::Duration;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

/// Runs for ever; it has its sockets when it is made.
pub(crate) type Server = Pin<Box<dyn Future<Output = ()> + Send>>;
pub(crate) type Starting = Pin<Box<dyn Future<Output = Result<Server, HelperError>> + Send>>;

/// One of the helper's servers: how it is called, and how it is started, at first and again.
pub(crate) struct Kind {
    pub what: &'static str,
    /// By what it can be left out.
    pub server: Option<HelperServer>,
    pub start: fn(Context) -> Starting,
}

const FIRST: Duration = Duration::from_millis(100);
const MOST: Duration = Duration::from_secs(10);
/// What ran this long has not failed for the same reason again.
const CALM: Duration = Duration::from_secs(60);

/// The pause before the next start, after one that lasted `ran`.
pub(crate) fn pause(before: Option<Duration>, ran: Duration) -> Duration {
    match before {
        Some(before) if ran < CALM => (before * 2).min(MOST),
        _ => FIRST,
    }
}

pub(crate) async fn supervise<F>(what: &str, events: &EventLog, mut server: Server, start: impl Fn() -> F)
where
    F: Future<Output = Result<Server, HelperError>>,
{
    let mut paused = None;
    loop {
        let began = Instant::now();
        // In a set, so that it goes when this future does.
        let mut running = JoinSet::new();
        running.spawn(server);
        let mut reason = match running.join_next().await {
            Some(Err(error)) => last_words(error),
            _ => "its loop returned".into(),
        };
        let mut ran = began.elapsed();
        server = loop {
            let wait = pause(paused, ran);
            paused = Some(wait);
            tracing::error!(what, reason, "a server ended; it is started again after {wait:?}");
            tokio::time::sleep(wait).await;
            match start().await {
                Ok(server) => break server,
                Err(error) => (reason, ran) = (error.to_string(), Duration::ZERO),
            }
        };
        events.send(HelperEventKind::Restarted { what: what.into(), reason });
    }
}

fn last_words(error: JoinError) -> String {
    match error.try_into_panic() {
        Ok(panic) => {
            let text = panic.downcast_ref::<&str>().map(ToString::to_string);
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            format!("panicked: {}", text.unwrap_or_else(|| "without a word".into()))
        }
        Err(error) => error.to_string(),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::events;
    use seedling_types::helper::HelperEvent;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::io::AsyncWriteExt;
    use tokio::net::{TcpListener, TcpStream};

    #[test]
    fn pauses_grow_until_it_runs_calmly() {
        let short = Duration::from_secs(1);
        let mut at = None;
        let pauses: Vec<_> = (0..9)
            .map(|_| {
                at = Some(pause(at, short));
                at.unwrap().as_millis()
            })
            .collect();
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
        assert_eq!(pause(at, CALM), FIRST);
    }

    /// A server that panics at every other connection answers again, on the same port; the one beside it never notices.
    #[tokio::test]
    async fn one_that_panics_is_started_again_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events");
        let (log, writer) = events::open(&path).unwrap();
        let starts = Arc::new(AtomicUsize::new(0));
        let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let start = {
            let starts = starts.clone();
            move || {
                let starts = starts.clone();
                async move {
                    let source = |source| HelperError::Bind { what: "test", address, source };
                    let listener = TcpListener::bind(address).await.map_err(source)?;
                    let count = starts.fetch_add(1, Ordering::Relaxed);
                    let server: Server = Box::pin(async move {
                        let (mut client, _) = listener.accept().await.unwrap();
                        client.write_all(&[u8::try_from(count).unwrap()]).await.unwrap();
                        assert!(count > 1, "number {count}");
                        std::future::pending().await
                    });
                    Ok(server)
                }
            }
        };
        let beside = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = start().await.unwrap();
        let running = tokio::spawn({
            let log = log.clone();
            async move { supervise("test", &log, server, start).await }
        });
        for count in 0..3 {
            let mut answer = [9];
            loop {
                if let Ok(mut stream) = TcpStream::connect(address).await
                    && tokio::io::AsyncReadExt::read_exact(&mut stream, &mut answer).await.is_ok()
                {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            assert_eq!(answer, [count]);
            let (near, far) = tokio::join!(TcpStream::connect(beside.local_addr().unwrap()), beside.accept());
            assert!(near.is_ok() && far.is_ok());
        }
        running.abort();
        writer.finish().await;
        let said: Vec<_> = std::fs::read_to_string(path)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str::<HelperEvent>(line).unwrap().what)
            .collect();
        let restarted = |n: usize| HelperEventKind::Restarted {
            what: "test".into(),
            reason: format!("panicked: number {n}"),
        };
        assert_eq!(said, [restarted(0), restarted(1)]);
    }
}
