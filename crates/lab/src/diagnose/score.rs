//! What was said of each fault, and how many sentences were right. Pure.

use seedling_diagnose::Cause;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Right,
    Wrong,
    /// It could not be made.
    NotMade,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Case {
    pub fault: String,
    pub what: String,
    pub expected: Vec<String>,
    pub verdict: Verdict,
    /// The rule that was first, if any.
    pub rule: Option<String>,
    /// As people read it; or why there is none.
    pub said: String,
    pub evidence: Vec<String>,
    /// Rules that were found behind it.
    pub also: Vec<String>,
    pub seconds: f64,
    /// When the report's revision was not what ran.
    pub revision: String,
}

pub(super) fn judge(expects: &[&str], causes: &[Cause]) -> Verdict {
    let right = match causes.first() {
        Some(cause) => expects.contains(&cause.rule),
        None => expects.is_empty(),
    };
    if right { Verdict::Right } else { Verdict::Wrong }
}

/// The table of a report, and its first line.
pub fn summary(cases: &[Case]) -> Vec<String> {
    let faults: Vec<_> = cases.iter().filter(|case| !case.expected.is_empty()).collect();
    let right = faults.iter().filter(|case| case.verdict == Verdict::Right).count();
    let seconds: f64 = cases.iter().map(|case| case.seconds).sum();
    let missed: Vec<_> =
        cases.iter().filter(|case| case.verdict != Verdict::Right).map(|case| case.fault.as_str()).collect();
    let misses = if missed.is_empty() { "none".into() } else { missed.join(", ") };
    vec![format!(
        "{right} of {} faults named right, misses: {misses}; {:.0} s a fault on average",
        faults.len(),
        seconds / cases.len().max(1) as f64
    )]
}

#[cfg(test)]
mod tests {
    use super::*;
    use seedling_diagnose::Link;

    fn cause(rule: &'static str) -> Cause {
        Cause { rule, link: Link::Api, cause: String::new(), evidence: vec![], next: String::new() }
    }

    #[test]
    fn only_the_first_sentence_counts() {
        assert_eq!(judge(&["a"], &[cause("a"), cause("b")]), Verdict::Right);
        assert_eq!(judge(&["a"], &[cause("b"), cause("a")]), Verdict::Wrong);
        assert_eq!(judge(&["a"], &[]), Verdict::Wrong);
        assert_eq!(judge(&[], &[]), Verdict::Right);
        assert_eq!(judge(&[], &[cause("a")]), Verdict::Wrong);
    }
}
