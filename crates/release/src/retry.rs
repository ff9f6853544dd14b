//! Downloads are retried where the other side may answer later: bursts give 429, mirrors 403 and 5xx for a while.

use crate::{Result, progress::Progress};
use std::time::Duration;

const FIRST: Duration = Duration::from_secs(4);
const ATTEMPTS: u32 = 6;

/// What to wait before attempt `made + 1` after `made` failed attempts; None: give up.
fn delay(made: u32, message: &str) -> Option<Duration> {
    (made < ATTEMPTS && transient(message)).then(|| FIRST * 2u32.pow(made.saturating_sub(1)))
}

fn transient(message: &str) -> bool {
    #[rustfmt::skip]
    const SIGNS: [&str; 14] = [
        "403 Forbidden", "429 Too Many", "500 Internal", "502 Bad", "503 Service", "504 Gateway", "i/o timeout",
        "TLS handshake timeout", "connection reset", "connection refused", "unexpected EOF", "Temporary failure",
        "Failed to fetch", "stream error",
    ];
    SIGNS.iter().any(|sign| message.contains(sign))
}

pub(crate) fn retrying<T>(
    progress: &Progress,
    what: &str,
    mut attempt: impl FnMut() -> Result<T>,
) -> Result<T> {
    let mut made = 0;
    loop {
        let error = match attempt() {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        made += 1;
        let Some(wait) = delay(made, &error.to_string()) else { return Err(error) };
        progress.step(format!("{what}: the download was refused, trying again in {} s", wait.as_secs()));
        std::thread::sleep(wait);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backs_off_only_where_waiting_can_help() {
        let cases = [
            (1, "reading https://x/@v/v1.zip: 429 Too Many Requests", Some(4)),
            (3, "server response: 403 Forbidden", Some(16)),
            (2, "dial tcp: i/o timeout", Some(8)),
            (6, "503 Service Unavailable", None),
            (1, "main.go:3: undefined: x", None),
            (1, "checksum mismatch", None),
        ];
        for (made, message, seconds) in cases {
            assert_eq!(delay(made, message), seconds.map(Duration::from_secs), "{message}");
        }
    }
}
