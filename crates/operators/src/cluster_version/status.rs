//! ClusterVersion's status, from what was and what is: history and conditions with upstream's texts.

use super::board::{Failing, Summary};
use serde_json::{Value, json};

/// Upstream keeps as many.
const MAX_HISTORY: usize = 100;

pub struct Observed<'a> {
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

pub fn status(before: &Value, o: &Observed) -> Value {
    let history = history(before, o);
    let complete = history.first().is_some_and(|e| e["state"] == "Completed");
    json!({
        "desired": {"version": o.version, "image": o.image},
        "history": history,
        "observedGeneration": o.generation,
        "versionHash": o.hash,
        "availableUpdates": null,
        "conditions": conditions(before, o, complete),
    })
}

pub fn history_of(status: &Value) -> Vec<Value> {
    status["history"].as_array().cloned().unwrap_or_default()
}

fn history(before: &Value, o: &Observed) -> Vec<Value> {
    let mut history = history_of(before);
    let current = history.first().is_some_and(|e| e["version"] == o.version && e["image"] == o.image);
    if !current {
        // What was under way is over, however far it came.
        if let Some(last) = history.first_mut()
            && last["completionTime"].is_null()
        {
            last["completionTime"] = json!(o.now);
        }
        let entry = json!({
            "state": "Partial", "startedTime": o.now, "completionTime": null,
            "version": o.version, "image": o.image, "verified": false,
        });
        history.insert(0, entry);
    }
    if o.complete
        && let Some(entry) = history.first_mut()
        && entry["state"] != "Completed"
    {
        entry["state"] = json!("Completed");
        entry["completionTime"] = json!(o.now);
    }
    history.truncate(MAX_HISTORY);
    history
}

fn conditions(before: &Value, o: &Observed, complete: bool) -> Vec<Value> {
    let before = before["conditions"].as_array().cloned().unwrap_or_default();
    let condition = |kind: &str, status: &str, reason: &str, message: String| {
        let same = before.iter().find(|c| c["type"] == kind && c["status"] == status);
        let since = same.and_then(|c| c["lastTransitionTime"].as_str()).unwrap_or(o.now);
        let mut condition =
            json!({"type": kind, "status": status, "message": message, "lastTransitionTime": since});
        if !reason.is_empty() {
            condition["reason"] = json!(reason);
        }
        condition
    };
    let version = o.version;
    // Once a version is available it stays so while the next one is applied.
    let was_available = before.iter().any(|c| c["type"] == "Available" && c["status"] == "True");
    let available = match (complete, was_available) {
        (true, _) => condition("Available", "True", "", format!("Done applying {version}")),
        (false, true) => before.iter().find(|c| c["type"] == "Available").cloned().unwrap_or_default(),
        (false, false) => condition("Available", "False", "", String::new()),
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
    vec![
        condition(
            "ImplicitlyEnabledCapabilities",
            "False",
            "AsExpected",
            "Capabilities match configured spec".into(),
        ),
        condition("ReleaseAccepted", "True", "PayloadLoaded", payload),
        condition(
            "RetrievedUpdates",
            "False",
            "NoUpdateService",
            "No update service is asked for updates.".into(),
        ),
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

    fn observe(before: &Value, summary: &Summary, complete: bool, now: &str) -> Value {
        let o = Observed { version: "0.1.0", image: "i", hash: "h", generation: 2, summary, complete, now };
        status(before, &o)
    }

    fn sum(done: usize, waiting: &[&str], failing: Failing) -> Summary {
        Summary { done, total: 40, waiting: waiting.iter().map(|w| w.to_string()).collect(), failing }
    }

    fn text(status: &Value, kind: &str) -> String {
        let condition =
            status["conditions"].as_array().into_iter().flatten().find(|c| c["type"] == kind).cloned();
        let c = condition.unwrap_or_default();
        let field = |f: &str| c[f].as_str().unwrap_or_default().to_string();
        format!("{} {} {}", field("status"), field("reason"), field("message"))
    }

    #[test]
    fn an_installation_as_upstream_words_it() {
        let start = observe(&Value::Null, &sum(0, &[], Failing::No), false, "t1");
        assert_eq!(text(&start, "Progressing"), "True  Working towards 0.1.0");
        assert_eq!(text(&start, "Available"), "False  ");
        assert_eq!(start["history"][0]["state"], "Partial");

        let half = observe(&start, &sum(20, &["dns", "network"], Failing::No), false, "t2");
        let expected = "True  Working towards 0.1.0: 20 of 40 done (50% complete), waiting on dns, network";
        assert_eq!(text(&half, "Progressing"), expected);
        assert_eq!(half["history"][0]["startedTime"], "t1");

        let done = observe(&half, &sum(40, &[], Failing::No), true, "t3");
        assert_eq!(text(&done, "Progressing"), "False  Cluster version is 0.1.0");
        assert_eq!(text(&done, "Available"), "True  Done applying 0.1.0");
        assert_eq!(text(&done, "Failing"), "False  ");
        assert_eq!(done["history"][0]["completionTime"], "t3");
        assert_eq!(done["history"].as_array().map(Vec::len), Some(1));

        let again = observe(&done, &sum(40, &[], Failing::No), false, "t4");
        assert_eq!(again["history"], done["history"]);
        assert_eq!(again["conditions"], done["conditions"]);
    }

    #[test]
    fn failures() {
        let failing =
            |reason: &str, message: &str| Failing::Yes { reason: reason.into(), message: message.into() };
        let lost = failing("ClusterOperatorNotAvailable", "Cluster operator dns is not available");
        let unable = observe(&Value::Null, &sum(3, &[], lost.clone()), false, "t1");
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
        let before = json!({"history": [{"state": "Partial", "version": "0.0.9", "image": "o", "startedTime": "t0", "completionTime": null}]});
        let next = observe(&before, &sum(0, &[], Failing::No), false, "t1");
        assert_eq!(next["history"][1]["completionTime"], "t1");
        assert_eq!(next["history"][0]["version"], "0.1.0");
    }
}
