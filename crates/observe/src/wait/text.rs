//! Durations and times as upstream prints them.

use jiff::Zoned;
use std::time::Duration;

/// Go's form of a duration, in whole seconds: `0s`, `13s`, `20m0s`, `1h0m5s`.
pub(super) fn duration(d: Duration) -> String {
    let total = d.as_secs();
    let (hours, minutes, seconds) = (total / 3600, total / 60 % 60, total % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, _) => format!("{minutes}m{seconds}s"),
        _ => format!("{hours}h{minutes}m{seconds}s"),
    }
}

/// `Waiting up to 20m0s (until 8:19PM UTC) <what>...`
pub(super) fn waiting(limit: Duration, now: &Zoned, what: &str) -> String {
    let until = now.saturating_add(jiff::SignedDuration::try_from(limit).unwrap_or_default());
    format!("Waiting up to {} (until {}) {what}...", duration(limit), until.strftime("%-I:%M%p %Z"))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn as_go_prints_them() {
        let cases = [(0, "0s"), (13, "13s"), (65, "1m5s"), (1200, "20m0s"), (3605, "1h0m5s")];
        for (seconds, text) in cases {
            assert_eq!(duration(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn a_waiting_line() {
        let now: Zoned = "2026-11-15T19:59:30+00:00[UTC]".parse().unwrap();
        let line = waiting(
            Duration::from_secs(1200),
            &now,
            "for the Kubernetes API at https://api.ocp4.alchemy.com:6443",
        );
        let expected = "Waiting up to 20m0s (until 8:19PM UTC) for the Kubernetes API at https://api.ocp4.alchemy.com:6443...";
        assert_eq!(line, expected);
    }
}
