//! What a ClusterOperator's own status means for the version.

use super::board::Trouble;
use super::graph::Mode;
use super::payload::Manifest;
use serde_json::{Value, json};

/// What stands in the way of `wanted`, whose `status.versions` are to be reached; `None`: nothing.
pub fn trouble(wanted: &Manifest, live: Option<&Value>, mode: Mode) -> Option<Trouble> {
    let name = wanted.name().to_string();
    let live = live.unwrap_or(&Value::Null);
    if condition(live, "Available") != Some("True") {
        return Some(Trouble::NotAvailable(name));
    }
    let versions = |object: &Value| object["status"]["versions"].as_array().cloned().unwrap_or_default();
    let reached = versions(live);
    if !versions(&wanted.object).iter().all(|version| reached.contains(version)) {
        return Some(Trouble::Updating(name));
    }
    // A degraded operator may still finish an installation: reported by the operator itself, not waited for.
    if mode != Mode::Initializing && condition(live, "Degraded") == Some("True") {
        return Some(Trouble::Degraded(name));
    }
    None
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions.iter().find(|c| c["type"] == kind)?["status"].as_str()
}

/// The object as it is created before its operator runs: everyone sees what is awaited, and which objects belong to it.
pub fn precreated(manifest: &Manifest) -> Value {
    let mut object = manifest.object.clone();
    let related = object["status"]["relatedObjects"].take();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
        fields.entry("spec").or_insert_with(|| json!({}));
    }
    if !related.is_null() {
        object["status"] = json!({ "relatedObjects": related });
    }
    object
}

#[cfg(test)]
mod tests {
    use super::super::payload::tests::manifest;
    use super::*;

    #[test]
    fn available_with_the_right_version_is_no_trouble() {
        let wanted = manifest(
            "0000_70_dns-operator_05_clusteroperator.yaml",
            "apiVersion: config.openshift.io/v1\nkind: ClusterOperator\nmetadata: {name: dns}\n\
             status: {versions: [{name: operator, version: 0.1.0}]}\n",
        );
        let live = |available: &str, degraded: &str, version: &str| {
            json!({"status": {
                "conditions": [{"type": "Available", "status": available}, {"type": "Degraded", "status": degraded}],
                "versions": [{"name": "other", "version": "9"}, {"name": "operator", "version": version}],
            }})
        };
        let dns = || "dns".to_string();
        let cases = [
            (live("True", "False", "0.1.0"), Mode::Initializing, None),
            (live("True", "True", "0.1.0"), Mode::Initializing, None),
            (live("True", "True", "0.1.0"), Mode::Updating, Some(Trouble::Degraded(dns()))),
            (live("True", "False", "0.0.9"), Mode::Initializing, Some(Trouble::Updating(dns()))),
            (live("Unknown", "False", "0.1.0"), Mode::Reconciling, Some(Trouble::NotAvailable(dns()))),
            (Value::Null, Mode::Initializing, Some(Trouble::NotAvailable(dns()))),
        ];
        for (live, mode, expected) in cases {
            assert_eq!(trouble(&wanted, Some(&live), mode), expected, "{live} {mode:?}");
        }
        assert_eq!(trouble(&wanted, None, Mode::Updating), Some(Trouble::NotAvailable("dns".into())));
        assert_eq!((precreated(&wanted).get("status"), &precreated(&wanted)["spec"]), (None, &json!({})));
    }
}
