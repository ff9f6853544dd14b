//! The verdict as it is committed.

use super::suite::Verdict;
use seedling_observe::report::Report;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

pub(crate) struct Facts<'a> {
    pub kubernetes: &'a str,
    /// All conformance tests there are, and how many were asked for.
    pub listed: usize,
    pub asked: usize,
    pub selection: &'a str,
    pub nodes: usize,
    pub components: &'a BTreeMap<String, String>,
    pub parallel: Duration,
    pub serial: Duration,
}

pub(crate) fn fill(report: Report, facts: &Facts, verdict: &Verdict) -> Report {
    let minutes = (facts.parallel + facts.serial).as_secs().div_ceil(60);
    let line = format!(
        "Kubernetes {} conformance, {}: {} of {} tests passed, {} failed, {} missed, {} skipped, in {minutes} min on {} nodes.",
        facts.kubernetes,
        facts.selection,
        verdict.passed,
        facts.asked,
        verdict.failed.len(),
        verdict.missed.len(),
        verdict.skipped.len(),
        facts.nodes
    );
    let results = json!({
        "kubernetes": facts.kubernetes,
        "components": facts.components,
        "selection": facts.selection,
        "listed": facts.listed,
        "asked": facts.asked,
        "passed": verdict.passed,
        "failed": verdict.failed,
        "skipped": verdict.skipped,
        "missed": verdict.missed,
        "parallelSeconds": facts.parallel.as_secs(),
        "serialSeconds": facts.serial.as_secs(),
    });
    Report { results, ..report }.summarised([line])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_missed_is_said() {
        let facts = Facts {
            kubernetes: "v1.36.4",
            listed: 446,
            asked: 3,
            selection: "all",
            nodes: 3,
            components: &BTreeMap::new(),
            parallel: Duration::from_secs(61),
            serial: Duration::ZERO,
        };
        let verdict = Verdict { passed: 2, missed: vec!["x".into()], ..Verdict::default() };
        let report = fill(Report::new("conformance", "make conformance", None, json!({})), &facts, &verdict);
        let line = "Kubernetes v1.36.4 conformance, all: 2 of 3 tests passed, 0 failed, 1 missed, 0 skipped, in 2 min on 3 nodes.";
        assert_eq!(report.summary, [line]);
        assert_eq!(report.results["missed"][0], "x");
    }
}
