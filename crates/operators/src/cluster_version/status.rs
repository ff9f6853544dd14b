//! ClusterVersion's status, from what was and what is: history and conditions with upstream's texts.

use super::board::{Failing, Summary};
use seedling_api::Condition;
use seedling_api::config::{ClusterVersionStatus, Release, Update};

/// Upstream keeps as many.
const MAX_HISTORY: usize = 100;

pub(super) struct Observed<'a> {
    pub version: &'a str,
    pub image: &'a str,
    pub hash: &'a str,
    /// Of the ClusterVersion whose spec was acted on.
    pub generation: i64,
    pub summary: &'a Summary,
    /// Every task of this version was done at least once.
    pub complete: bool,
    /// RFC 3339, UTC.
    pub now: &'a str,
}

pub(super) fn status(before: &ClusterVersionStatus, o: &Observed) -> ClusterVersionStatus {
    let history = history(before, o);
    let complete = history.first().is_some_and(Update::is_complete);
    ClusterVersionStatus {
        desired: Release { version: o.version.into(), image: o.image.into() },
        history,
        observed_generation: o.generation,
        version_hash: o.hash.into(),
        available_updates: None,
        conditions: conditions(before, o, complete),
    }
}

fn history(before: &ClusterVersionStatus, o: &Observed) -> Vec<Update> {
    let mut history = before.history.clone();
    let current = history.first().is_some_and(|e| e.version == o.version && e.image == o.image);
    if !current {
        // What was under way is over, however far it came.
        if let Some(last) = history.first_mut() {
            last.completion_time.get_or_insert_with(|| o.now.into());
        }
        let entry = Update {
            state: "Partial".into(),
            started_time: o.now.into(),
            completion_time: None,
            version: o.version.into(),
            image: o.image.into(),
            verified: false,
        };
        history.insert(0, entry);
    }
    if o.complete
        && let Some(entry) = history.first_mut()
        && !entry.is_complete()
    {
        entry.state = "Completed".into();
        entry.completion_time = Some(o.now.into());
    }
    history.truncate(MAX_HISTORY);
    history
}

fn conditions(before: &ClusterVersionStatus, o: &Observed, complete: bool) -> Vec<Condition> {
    let before = &before.conditions;
    let condition = |kind: &str, status: &str, reason: &str, message: String| {
        let condition = Condition {
            kind: kind.into(),
            status: status.into(),
            reason: Some(reason.to_string()).filter(|reason| !reason.is_empty()),
            message,
            last_transition_time: String::new(),
        };
        condition.since(before, o.now)
    };
    let version = o.version;
    // Once a version is available it stays so while the next one is applied.
    let was_available = before.iter().find(|c| c.kind == "Available" && c.is_true());
    let available = match (complete, was_available) {
        (true, _) => condition("Available", "True", "", format!("Done applying {version}")),
        (false, Some(was)) => was.clone(),
        (false, None) => condition("Available", "False", "", String::new()),
    };
    let (failing, reason, cause) = match &o.summary.failing {
        Failing::No => (condition("Failing", "False", "", String::new()), "", None),
        Failing::Unknown { reason, message } => {
            (condition("Failing", "Unknown", reason, message.clone()), reason.as_str(), None)
        }
        Failing::Yes { reason, message } => (
            condition("Failing", "True", reason, message.clone()),
            reason.as_str(),
            Some(summary(reason, message)),
        ),
    };
    let progressing = match (complete, cause) {
        (true, None) => condition("Progressing", "False", "", format!("Cluster version is {version}")),
        (true, Some(cause)) => {
            condition("Progressing", "False", reason, format!("Error while reconciling {version}: {cause}"))
        }
        (false, Some(cause)) => {
            condition("Progressing", "True", reason, format!("Unable to apply {version}: {cause}"))
        }
        (false, None) => condition("Progressing", "True", reason, working_towards(version, o.summary)),
    };
    let payload = format!("Payload loaded version=\"{version}\" image=\"{}\"", o.image);
    let (expected, no_updates) =
        ("Capabilities match configured spec".into(), "No update service is asked for updates.".into());
    vec![
        condition("ImplicitlyEnabledCapabilities", "False", "AsExpected", expected),
        condition("ReleaseAccepted", "True", "PayloadLoaded", payload),
        condition("RetrievedUpdates", "False", "NoUpdateService", no_updates),
        available,
        failing,
        progressing,
    ]
}

fn working_towards(version: &str, s: &Summary) -> String {
    if s.done == 0 {
        return format!("Working towards {version}");
    }
    let percent = 100 * s.done / s.total.max(1);
    let mut text = format!("Working towards {version}: {} of {} done ({percent}% complete)", s.done, s.total);
    if !s.waiting.is_empty() {
        text.push_str(&format!(", waiting on {}", s.waiting.join(", ")));
    }
    text
}

/// The short form that Progressing has of a failure; the long one is Failing's message.
fn summary(reason: &str, message: &str) -> String {
    let text = match reason {
        "UpdatePayloadResourceNotFound" | "UpdatePayloadResourceConflict" => {
            "some resources could not be updated"
        }
        "UpdatePayloadClusterDown" => "the control plane is down",
        "UpdatePayloadResourceForbidden" => "the server is rejecting updates",
        "UpdatePayloadResourceTypeMissing" => "a required extension is not available to update",
        "UpdatePayloadResourceInvalid" => "some cluster configuration is invalid",
        "ClusterOperatorsNotAvailable" => "some cluster operators are not available",
        "ClusterOperatorsDegraded" => "some cluster operators are degraded",
        "ClusterOperatorNotAvailable" | "ClusterOperatorDegraded" => {
            return message.replacen("Cluster operator", "the cluster operator", 1);
        }
        "MultipleErrors" => "an unknown error has occurred: MultipleErrors",
        _ => "the update could not be applied",
    };
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observe(
        before: &ClusterVersionStatus,
        summary: &Summary,
        complete: bool,
        now: &str,
    ) -> ClusterVersionStatus {
        let o = Observed { version: "0.1.0", image: "i", hash: "h", generation: 2, summary, complete, now };
        status(before, &o)
    }

    fn sum(done: usize, waiting: &[&str], failing: Failing) -> Summary {
        Summary { done, total: 40, waiting: waiting.iter().map(|w| w.to_string()).collect(), failing }
    }

    fn text(status: &ClusterVersionStatus, kind: &str) -> String {
        let c = status.conditions.iter().find(|c| c.kind == kind).cloned().unwrap_or_default();
        format!("{} {} {}", c.status, c.reason.unwrap_or_default(), c.message)
    }

    #[test]
    fn an_installation_as_upstream_words_it() {
        let start = observe(&ClusterVersionStatus::default(), &sum(0, &[], Failing::No), false, "t1");
        assert_eq!(text(&start, "Progressing"), "True  Working towards 0.1.0");
        assert_eq!(text(&start, "Available"), "False  ");
        assert_eq!(start.history[0].state, "Partial");

        let half = observe(&start, &sum(20, &["dns", "network"], Failing::No), false, "t2");
        let expected = "True  Working towards 0.1.0: 20 of 40 done (50% complete), waiting on dns, network";
        assert_eq!(text(&half, "Progressing"), expected);
        assert_eq!(half.history[0].started_time, "t1");

        let done = observe(&half, &sum(40, &[], Failing::No), true, "t3");
        assert_eq!(text(&done, "Progressing"), "False  Cluster version is 0.1.0");
        assert_eq!(text(&done, "Available"), "True  Done applying 0.1.0");
        assert_eq!(text(&done, "Failing"), "False  ");
        assert_eq!(done.history[0].completion_time.as_deref(), Some("t3"));
        assert_eq!(done.history.len(), 1);

        let again = observe(&done, &sum(40, &[], Failing::No), false, "t4");
        assert_eq!(again.history, done.history);
        assert_eq!(again.conditions, done.conditions);
    }

    #[test]
    fn failures() {
        let failing =
            |reason: &str, message: &str| Failing::Yes { reason: reason.into(), message: message.into() };
        let lost = failing("ClusterOperatorNotAvailable", "Cluster operator dns is not available");
        let unable = observe(&ClusterVersionStatus::default(), &sum(3, &[], lost.clone()), false, "t1");
        let expected = "True ClusterOperatorNotAvailable Unable to apply 0.1.0: the cluster operator dns is not available";
        assert_eq!(text(&unable, "Progressing"), expected);
        let done = observe(&unable, &sum(40, &[], Failing::No), true, "t2");
        let error = observe(&done, &sum(39, &[], lost), false, "t3");
        let expected = "False ClusterOperatorNotAvailable Error while reconciling 0.1.0: the cluster operator dns is not available";
        assert_eq!(text(&error, "Progressing"), expected);
        assert_eq!(text(&error, "Available"), "True  Done applying 0.1.0");
    }

    #[test]
    fn another_version_ends_the_one_before() {
        let old = Update {
            state: "Partial".into(),
            version: "0.0.9".into(),
            image: "o".into(),
            ..Update::default()
        };
        let before = ClusterVersionStatus { history: vec![old], ..ClusterVersionStatus::default() };
        let next = observe(&before, &sum(0, &[], Failing::No), false, "t1");
        assert_eq!(next.history[1].completion_time.as_deref(), Some("t1"));
        assert_eq!(next.history[0].version, "0.1.0");
    }
}
