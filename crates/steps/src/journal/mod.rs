//! One journal a node: what was begun, what came of it, and when. All other records of steps are derived from it.
//!
//! JSON lines, appended by everything that works on the node: first boot, services, installer pods. A line that a power cut left half
//! written does not count: what it was about was not begun, or not ended.

mod fold;
#[cfg(test)]
mod tests;
mod write;

pub use fold::{Fate, Service, State, Step, fold};
pub use write::Journal;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use time::{OffsetDateTime, format_description::well_known::Rfc3339, macros::format_description};

/// The machine itself: when it is switched on, nothing from before is still running.
pub const BOOT: &str = "boot";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Event {
    Begin,
    End,
    Failed,
    /// There was nothing to do; the note says why.
    Skipped,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// RFC 3339, with milliseconds.
    pub time: String,
    /// One process at a time: a service, or `installer/<pod>`.
    pub who: String,
    /// `<stage>` or `<stage>/<part>`; none: the service itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    pub event: Event,
    /// For people: why it failed or was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// For later runs: what this step settled.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, String>,
}

impl Line {
    pub fn now(who: &str, step: Option<&str>, event: Event) -> Self {
        let format =
            format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
        let time = OffsetDateTime::now_utc().format(format).unwrap_or_default();
        let (note, facts) = (None, BTreeMap::new());
        Self { time, who: who.into(), step: step.map(str::to_string), event, note, facts }
    }

    pub fn unix_millis(&self) -> i64 {
        let time = OffsetDateTime::parse(&self.time, &Rfc3339).unwrap_or(OffsetDateTime::UNIX_EPOCH);
        i64::try_from(time.unix_timestamp_nanos() / 1_000_000).unwrap_or_default()
    }
}

/// What can be read; the rest is left out.
pub fn lines(journal: &[u8]) -> Vec<Line> {
    journal.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}
