//! Counts and durations of reconciles, and the age of their inputs. They are kept in memory, and made into text only when asked for.

use super::Next;
use crate::Result;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

const ENDED: &str = "\
# HELP seedling_reconcile_seconds How many reconciles ended how, and how long they took.
# TYPE seedling_reconcile_seconds summary
";
const AGES: &str = "\
# HELP seedling_input_age_seconds How long ago an input changed.
# TYPE seedling_input_age_seconds gauge
";

/// Of one process; its clones are the same.
#[derive(Clone, Default)]
pub struct Metrics(Arc<Mutex<BTreeMap<&'static str, Loop>>>);

#[derive(Default)]
struct Loop {
    /// By result: how many, and how long all of them took.
    ended: BTreeMap<&'static str, (u64, Duration)>,
    /// Since when each input has not changed.
    inputs: BTreeMap<String, Instant>,
}

impl Metrics {
    /// Says what the result is called.
    pub(super) fn note<'a>(
        &self,
        name: &'static str,
        ended: &Result<Next>,
        took: Duration,
        inputs: impl Iterator<Item = (&'a str, Instant)>,
    ) -> &'static str {
        let result = match ended {
            Ok(Next::Busy) => "busy",
            Ok(Next::Quiet) => "quiet",
            Ok(Next::Waits(_)) => "waiting",
            Err(e) if e.waits() => "waiting",
            Err(_) => "failed",
        };
        let mut loops = self.0.lock().unwrap_or_else(|e| e.into_inner());
        let noted = loops.entry(name).or_default();
        let (count, total) = noted.ended.entry(result).or_default();
        (*count, *total) = (*count + 1, *total + took);
        noted.inputs.extend(inputs.map(|(input, since)| (input.to_string(), since)));
        result
    }

    /// In Prometheus' text format.
    pub fn text(&self, now: Instant) -> String {
        let loops = self.0.lock().unwrap_or_else(|e| e.into_inner());
        let (mut ended, mut ages) = (ENDED.to_string(), AGES.to_string());
        for (name, noted) in loops.iter() {
            for (result, (count, total)) in &noted.ended {
                let labels = format!("{{loop=\"{name}\",result=\"{result}\"}}");
                ended += &format!("seedling_reconcile_seconds_sum{labels} {}\n", total.as_secs_f64());
                ended += &format!("seedling_reconcile_seconds_count{labels} {count}\n");
            }
            for (input, since) in &noted.inputs {
                let labels = format!("{{loop=\"{name}\",input=\"{input}\"}}");
                let age = now.duration_since(*since).as_secs_f64();
                ages += &format!("seedling_input_age_seconds{labels} {age}\n");
            }
        }
        ended + &ages
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OperatorError;

    #[test]
    fn the_text_is_prometheus() {
        let (metrics, start) = (Metrics::default(), Instant::now());
        let took = Duration::from_millis(250);
        let inputs = || [("Node", start)].into_iter();
        assert_eq!(metrics.note("dns", &Ok(Next::Quiet), took, inputs()), "quiet");
        assert_eq!(metrics.note("dns", &Ok(Next::Quiet), took, inputs()), "quiet");
        let failed = OperatorError::LostLease("no".into());
        assert_eq!(metrics.note("dns", &Err(failed), took, inputs()), "failed");
        let missing = OperatorError::Missing("Secret ns/a".into());
        assert_eq!(metrics.note("etcd", &Err(missing), took, inputs()), "waiting");
        let want = "\
# HELP seedling_reconcile_seconds How many reconciles ended how, and how long they took.
# TYPE seedling_reconcile_seconds summary
seedling_reconcile_seconds_sum{loop=\"dns\",result=\"failed\"} 0.25
seedling_reconcile_seconds_count{loop=\"dns\",result=\"failed\"} 1
seedling_reconcile_seconds_sum{loop=\"dns\",result=\"quiet\"} 0.5
seedling_reconcile_seconds_count{loop=\"dns\",result=\"quiet\"} 2
seedling_reconcile_seconds_sum{loop=\"etcd\",result=\"waiting\"} 0.25
seedling_reconcile_seconds_count{loop=\"etcd\",result=\"waiting\"} 1
# HELP seedling_input_age_seconds How long ago an input changed.
# TYPE seedling_input_age_seconds gauge
seedling_input_age_seconds{loop=\"dns\",input=\"Node\"} 3
seedling_input_age_seconds{loop=\"etcd\",input=\"Node\"} 3
";
        assert_eq!(metrics.text(start + Duration::from_secs(3)), want);
    }
}
